"""One table of GGUF's tensor names for every family.

The names are the same for all architectures; what differs is which tensors are fused, and for some the row order of queries and keys.
Norms that count from one (Gemma) are stored with the one already added, GPT-2's matrices the usual way round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cygnet.architectures.family import Built
from cygnet.architectures.spec import Placement, RopeScaling, Rotary
from cygnet.architectures.transforms import interleaved_pairs, ones, part_of, per_head, plain, rows
from cygnet.architectures.weights import Row

# These keep queries and keys in the order of interleaved pairs; all others as their config.json twins do.
PERMUTED = ("llama", "arcee", "granite", "granitemoe", "smollm3", "olmo")
IGNORED = (r"rope_freqs\.weight", r"rope_factors_(long|short)\.weight", r".*\.attn_rot_embd\..*", r"cls\..*", r"(pooler|score)\..*")
PARTS = ("query", "key", "value")


class Names:
    """Stands for the source while a family builds its spec: GGUF says by absence that the output layer is the token embedding."""

    def __init__(self, source):
        self._source = source

    def __contains__(self, name):
        return False

    def tied(self, wanted, head, embedding):
        """Whether the file has no output layer of its own."""
        return "output.weight" not in self._source


def rebuild(built, source, config):
    """The same spec served by GGUF's names.

    Frequencies that the file gives as a divisor per pair (rope_freqs, Llama 3.1) take the place of rotary scaling.

    Parameters
    ----------
    built : Built
        What the family made of the metadata.
    source : Source
    config : dict

    Returns
    -------
    Built
    """
    spec = built.spec
    if "rope_freqs.weight" in source and spec.decoder is not None:
        factors = tuple(source["rope_freqs.weight"].to_float32().tolist())
        spec = replace(spec, decoder=_with_frequencies(spec.decoder, factors))
    table = [Row("head.logits", "output", bias=None)]
    for s in ("encoder", "decoder"):
        stack = getattr(spec, s)
        if stack is not None:
            prefix = f"{s[:3]}." if config["gguf_architecture"] in ("t5", "t5encoder") else ""
            table += _stack_rows(s, stack, source, prefix, config["gguf_architecture"])
    return Built(spec, tuple(table), IGNORED)


def _with_frequencies(stack, factors):
    """Every rotary layer with these divisors, short and long alike."""
    layers = []
    for layer in stack.layers:
        positions = layer.attention.positions
        if isinstance(positions, Rotary):
            scaling = RopeScaling(
                "longrope",
                factor=1.0,
                original_max_positions=positions.max_positions,
                attention_factor=1.0,
                short_factor=factors,
                long_factor=factors,
            )
            positions = replace(positions, scaling=scaling)
        layers.append(replace(layer, attention=replace(layer.attention, positions=positions)))
    return replace(stack, layers=tuple(layers))


def _stack_rows(s, stack, source, prefix, architecture):
    """Rows of a stack: fused tensors are told by their presence."""
    layer, at, blk = stack.layers[0], f"{s}.{{i}}.", prefix + "blk.{i}."
    first = f"{prefix}blk.0."
    experts = next((layer.ffn.experts for layer in stack.layers if layer.ffn.experts), None)
    return [
        Row(f"{s}.embed.token", "token_embd"),
        Row(f"{s}.embed.position", "position_embd"),
        Row(f"{s}.embed.type", "token_types"),
        Row(f"{s}.embed.norm", "token_embd_norm", bias=None),
        Row(f"{s}.relative", f"{first}attn_rel_b"),
        *_norm_rows(s, layer, source, prefix),
        *_attention_rows(at, blk, first, layer.attention, source, architecture in PERMUTED),
        *_cross_rows(at, blk),
        *_feed_forward_rows(at, blk, first, layer.ffn.gated, source),
        *_expert_rows(at, experts, source),
    ]


def _norm_rows(s, layer, source, prefix):
    """Norms of layers and stack; an architecture whose norms have no weights (OLMo) has none of them in the file."""
    at, blk, attention = f"{s}.{{i}}.", prefix + "blk.{i}.", layer.attention
    if f"{prefix}output_norm.weight" not in source and layer.placement is not Placement.POST:
        return [Row(name, (), ones, bias=False) for name in (at + "attention_norm", at + "ffn_norm", f"{s}.final_norm")]
    first = ("attn_norm_2", "attn_norm", "attn_output_norm", "post_attention_norm")
    second = ("ffn_norm", "attn_norm", "layer_output_norm", "post_ffw_norm")
    if layer.placement is Placement.PRE:
        second = ("ffn_norm", "post_attention_norm", *second[1:])  # Seed-OSS calls it by the name of a sandwich
    return [
        Row(f"{s}.final_norm", f"{prefix}output_norm", bias=None),
        Row(at + "attention_norm", tuple(blk + name for name in first), bias=None),
        Row(at + "ffn_norm", tuple(blk + name for name in second), bias=None),
        Row(at + "cross_norm", blk + "cross_attn_norm", bias=None),
        Row(at + "attention_post_norm", blk + "post_attention_norm", bias=None),
        Row(at + "ffn_post_norm", blk + "post_ffw_norm", bias=None),
        Row(at + "attention.query_norm", blk + "attn_q_norm", _norm_of(source, "q", attention.heads), bias=None),
        Row(at + "attention.key_norm", blk + "attn_k_norm", _norm_of(source, "k", attention.kv_heads), bias=None),
    ]


def _norm_of(source, which, heads):
    """Norms of queries or keys, as a vector for all heads or as a matrix."""
    tensor = source.get(f"blk.0.attn_{which}_norm.weight")
    return per_head(heads) if tensor is not None and len(tensor.shape) == 2 else plain


def _attention_rows(at, blk, first, attention, source, permuted):
    output = Row(at + "attention.output", (blk + "attn_output", blk + "attn_o"), bias=None)
    if f"{first}attn_qkv.weight" in source:
        size = attention.head_dim
        ends = np.cumsum([0, attention.heads * size, attention.kv_heads * size, attention.kv_heads * size]).tolist()
        return [output, *(Row(f"{at}attention.{part}", blk + "attn_qkv", rows(slice(*ends[n : n + 2])), bias=None) for n, part in enumerate(PARTS))]
    orders = [interleaved_pairs(attention.heads), interleaved_pairs(attention.kv_heads), plain] if permuted else [plain] * 3
    return [output, *(Row(f"{at}attention.{part}", f"{blk}attn_{part[0]}", order, bias=None) for part, order in zip(PARTS, orders, strict=True))]


def _cross_rows(at, blk):
    return [Row(f"{at}cross.{part}", f"{blk}cross_attn_{part[0]}", bias=None) for part in (*PARTS, "output")]


def _feed_forward_rows(at, blk, first, gated, source):
    """Plain, gated, or gate and up in one tensor."""
    fused = gated and f"{first}ffn_gate.weight" not in source and f"{first}ffn_up.weight" in source
    result = [Row(at + "ffn.down", blk + "ffn_down", bias=None)]
    for position, name in enumerate(("gate", "up")):
        source_name = blk + ("ffn_up" if fused else f"ffn_{name}")
        result.append(Row(f"{at}ffn.{name}", source_name, part_of(position, 2) if fused else plain, bias=None))
    return result


def _expert_rows(at, experts, source):
    """Experts as one tensor of them all, or one an expert in old files; the expert that all tokens pass."""
    if experts is None:
        return []
    result = [Row(at + "ffn.router", "blk.{i}.ffn_gate_inp"), Row(at + "ffn.shared_gate", "blk.{i}.ffn_gate_inp_shexp", bias=None)]
    together = any(name.endswith(".ffn_up_exps.weight") for name in source)
    for name in ("gate", "up", "down"):
        result.append(Row(f"{at}ffn.shared.{name}", f"blk.{{i}}.ffn_{name}_shexp", bias=None))
        if not together:
            result.append(Row(f"{at}ffn.experts.{{e}}.{name}", f"blk.{{i}}.ffn_{name}.{{e}}", bias=None))
            continue
        for expert in range(experts.count):
            result.append(Row(f"{at}ffn.experts.{expert}.{name}", f"blk.{{i}}.ffn_{name}_exps", part_of(expert, experts.count), bias=None))
    return result
