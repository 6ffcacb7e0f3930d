"""Every tensor a spec asks for, with its shape: what loading checks a file against."""

from __future__ import annotations

from cygnet.architectures.spec import Disentangled, Mixing, NormKind, Placement, Pool, PositionTable, QKNorm, Relative


def inventory(spec):
    """The tensors of a model.

    Parameters
    ----------
    spec : ModelSpec

    Returns
    -------
    dict of str to tuple of int
        Name to shape, in the order of the forward pass. Biases are listed wherever there may be one.
    """
    names = {}
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        if stack is not None:
            names.update(_stack(name, stack))
    source = spec.decoder or spec.encoder
    for head in (spec.head, spec.pooler):
        if head is not None:
            names.update(_head(head, source))
    return names


def _linear(name, out, inner):
    return {f"{name}.weight": (out, inner), f"{name}.bias": (out,)}


def _norm(name, kind, shape):
    names = {f"{name}.weight": shape}
    if kind is NormKind.LAYER:
        names[f"{name}.bias"] = shape
    return names


def output_width(stack):
    """Width of the hidden states a stack returns."""
    return stack.embedding.width if stack.final_project else stack.hidden_size


def _stack(s, stack):
    names = _embedding(s, stack)
    layers = stack.weight_layers or range(len(stack.layers))
    first = {index: stack.layers[position] for position, index in reversed(list(enumerate(layers)))}
    for index in sorted(first):
        names.update(_layer(f"{s}.{index}", first[index], stack.hidden_size))
    kinds = [layer.attention.positions for layer in stack.layers]
    for relative in dict.fromkeys(kind for kind in kinds if isinstance(kind, Relative)):
        names[relative_name(s, relative)] = (relative.buckets, stack.layers[0].attention.heads)
    disentangled = next((kind for kind in kinds if isinstance(kind, Disentangled)), None)
    if disentangled is not None:
        names[f"{s}.disentangled.weight"] = (2 * disentangled.span, stack.hidden_size)
    if stack.convolution is not None:
        names.update(_linear(f"{s}.convolution", stack.hidden_size, stack.convolution.size * stack.hidden_size))
        names.update(_norm(f"{s}.convolution_norm", stack.convolution.norm.kind, (stack.hidden_size,)))
    if stack.final_norm is not None:
        names.update(_norm(f"{s}.final_norm", stack.final_norm.kind, (stack.hidden_size,)))
    if stack.final_project:
        names.update(_linear(f"{s}.final_project", stack.embedding.width, stack.hidden_size))
    return names


def relative_name(s, relative):
    """The table of a Relative: of all layers of the stack, or of one."""
    return f"{s}.relative.weight" if relative.layer is None else f"{s}.{relative.layer}.relative.weight"


def _embedding(s, stack):
    embedding, hidden = stack.embedding, stack.hidden_size
    names = {}
    if embedding.patches is not None:
        patches = embedding.patches
        names.update(_linear(f"{s}.embed.patch", hidden, patches.channels * patches.patch_size**2))
        names[f"{s}.embed.class"] = (hidden,) if patches.front == 1 else (patches.front, hidden)
    elif not stack.shared_embedding:
        names[f"{s}.embed.token.weight"] = (embedding.vocab_size, embedding.width)
    width = hidden if embedding.positions_after_project else embedding.width
    if embedding.positions is not None and embedding.positions.kind is not PositionTable.NONE:
        names[f"{s}.embed.position.weight"] = (embedding.positions.count, width)
    if embedding.type_count:
        names[f"{s}.embed.type.weight"] = (embedding.type_count, width)
    if embedding.norm is not None:
        names.update(_norm(f"{s}.embed.norm", embedding.norm.kind, (width,)))
    if embedding.project:
        names.update(_linear(f"{s}.embed.project", hidden, embedding.width))
    return names


def _layer(name, layer, hidden):
    names = {}
    parallel = layer.placement is Placement.PARALLEL
    if layer.attention_norm:
        names.update(_norm(f"{name}.attention_norm", layer.norm.kind, (hidden,)))
    if layer.mixing is Mixing.SSRU:
        names.update(_linear(f"{name}.recurrent.forget", hidden, hidden))
        names.update(_linear(f"{name}.recurrent.input", hidden, hidden))
    else:
        names.update(_attention(f"{name}.attention", layer.attention, hidden))
    if layer.cross is not None:
        names.update(_norm(f"{name}.cross_norm", layer.norm.kind, (hidden,)))
        names.update(_attention(f"{name}.cross", layer.cross, hidden))
    if not parallel:
        names.update(_norm(f"{name}.ffn_norm", layer.norm.kind, (hidden,)))
    names.update(_feed_forward(f"{name}.ffn", layer.ffn, hidden))
    if layer.placement is Placement.SANDWICH:
        names.update(_norm(f"{name}.attention_post_norm", layer.norm.kind, (hidden,)))
        names.update(_norm(f"{name}.ffn_post_norm", layer.norm.kind, (hidden,)))
    return names


def _attention(name, attention, hidden):
    query, key = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    names = {**_linear(f"{name}.query", query, hidden), **_linear(f"{name}.key", key, hidden), **_linear(f"{name}.value", key, hidden)}
    names.update(_linear(f"{name}.output", hidden, query))
    if attention.qk_norm is not QKNorm.NONE:
        kind = attention.qk_norm_spec.kind
        for which, heads in (("query", attention.heads), ("key", attention.kv_heads)):
            width = attention.head_dim if attention.qk_norm is QKNorm.HEAD else heads * attention.head_dim
            names.update(_norm(f"{name}.{which}_norm", kind, (width,)))
    if isinstance(attention.positions, Disentangled) and not attention.positions.shared_projection:
        if attention.positions.content_to_position:
            names.update(_linear(f"{name}.position_key", key, hidden))
        if attention.positions.position_to_content:
            names.update(_linear(f"{name}.position_query", query, hidden))
    return names


def _feed_forward(name, ffn, hidden):
    if ffn.experts is None:
        return _gated(name, ffn.hidden_size, hidden, ffn.gated)
    experts = ffn.experts
    names = {f"{name}.router.weight": (experts.count, hidden)}
    for index in range(experts.count):
        names.update(_gated(f"{name}.experts.{index}", experts.hidden_size, hidden, ffn.gated))
    if experts.shared_hidden_size:
        names.update(_gated(f"{name}.shared", experts.shared_hidden_size, hidden, ffn.gated))
    if experts.shared_gate:
        names[f"{name}.shared_gate.weight"] = (1, hidden)
    return names


def _gated(name, inner, hidden, gated):
    names = _linear(f"{name}.up", inner, hidden)
    if gated:
        names.update(_linear(f"{name}.gate", inner, hidden))
    return {**names, **_linear(f"{name}.down", hidden, inner)}


def _head(head, stack):
    names, width = {}, output_width(stack) * (2 if head.pool is Pool.FIRST_AND_MEAN else 1)
    for step in head.steps:
        if step.norm is not None:
            names.update(_norm(f"head.{step.name}", step.norm.kind, (width,)))
            continue
        shapes = _linear(f"head.{step.name}", step.features, width)
        if step.tied:
            del shapes[f"head.{step.name}.weight"]
        names.update(shapes)
        width = step.features
    return names
