"""The original Transformer (Vaswani et al. 2017) as a plain state dict of torch.nn.Transformer, embeddings and generator beside it.

config.json names the constructor's arguments, vocabulary sizes and token ids; `keys` may rename the four parts src_embed, tgt_embed,
transformer and generator. Embeddings are scaled by sqrt(d_model); a file without tgt_embed shares src_embed, one without generator.weight
uses the target embedding.
"""

from __future__ import annotations

from cygnet.architectures.family import Family
from cygnet.architectures.seq2seq import embedding_rows, encoder_decoder, sinusoids
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.transforms import made, part_of
from cygnet.architectures.weights import Row

MAX_POSITIONS = 5000
PARTS = ("query", "key", "value")


def rows(parts, positions, bias):
    """The weight table; `parts` are the names of the four parts in the file."""
    at = parts["transformer"] + ".{s}.layers.{i}."
    table = [
        Row("{s}.embed.position", (), made(sinusoids(positions))),
        Row("{s}.final_norm", parts["transformer"] + ".{s}.norm", bias=bias),
        Row("{s}.{i}.attention_norm", at + "norm1", bias=bias),
        Row("decoder.{i}.cross_norm", at + "norm2", bias=bias),
        Row("encoder.{i}.ffn_norm", at + "norm2", bias=bias),
        Row("decoder.{i}.ffn_norm", at + "norm3", bias=bias),
        Row("{s}.{i}.ffn.up", at + "linear1", bias=bias),
        Row("{s}.{i}.ffn.down", at + "linear2", bias=bias),
    ]
    for ours, theirs in (("attention", "self_attn"), ("cross", "multihead_attn")):
        for index, part in enumerate(PARTS):
            table.append(Row(f"{{s}}.{{i}}.{ours}.{part}", f"{at}{theirs}.in_proj_*", part_of(index, 3), bias=bias))
        table.append(Row(f"{{s}}.{{i}}.{ours}.output", f"{at}{theirs}.out_proj", bias=bias))
    return table


def stack_spec(config, s, vocab_size, positions, normed, **fields):
    """Encoder or decoder."""
    width, heads = config["d_model"], config["nhead"]
    size = width // heads
    norm = NormSpec(NormKind.LAYER, config.get("layer_norm_eps", 1e-5))

    def attention(mask):
        return AttentionSpec(heads, heads, size, size**-0.5, mask)

    layer = LayerSpec(
        attention(Mask.CAUSAL if s == "decoder" else Mask.BIDIRECTIONAL),
        FeedForwardSpec(config.get("dim_feedforward", 2048), config.activation("activation", "relu")),
        norm,
        Placement.PRE if config.get("norm_first", False) else Placement.POST,
        cross=attention(Mask.BIDIRECTIONAL) if s == "decoder" else None,
    )
    scale = width**0.5 if config.get("scale_embedding", True) else 1.0
    embedding = EmbeddingSpec(vocab_size, width, scale=scale, positions=positions)
    layers = (layer,) * config.get(f"num_{s}_layers", 6)
    return StackSpec(width, embedding, layers, norm if normed else None, **fields)


def build(config, source, task):
    parts = {name: name for name in ("src_embed", "tgt_embed", "transformer", "generator")} | dict(config.get("keys") or {})
    count = config.get("max_positions", MAX_POSITIONS)
    positions = PositionSpec(PositionTable.SINUSOIDAL, count)
    source_vocab = config.first("src_vocab_size", "vocab_size")
    target_vocab = config.first("tgt_vocab_size", "vocab_size", default=source_vocab)
    shared = f"{parts['tgt_embed']}.weight" not in source
    writes = parts["src_embed"] if shared else parts["tgt_embed"]
    normed = {s: f"{parts['transformer']}.{s}.norm.weight" in source for s in ("encoder", "decoder")}
    generator = parts["generator"]
    return encoder_decoder(
        config,
        source,
        family="torch_transformer",
        encoder=stack_spec(config, "encoder", source_vocab, positions, normed["encoder"]),
        decoder=stack_spec(config, "decoder", target_vocab, positions, normed["decoder"], shared_embedding=shared),
        rows=(*embedding_rows(parts["src_embed"], writes), *rows(parts, positions, config.get("bias", True))),
        tie_default=f"{generator}.weight" not in source,
        head_name=generator,
        token_name=writes,
        max_positions=count,
        bias=None,
    )


IGNORED = ("batch_first", "vocab_size")
FAMILY = Family("torch_transformer", build, {"Transformer": Task.SEQ2SEQ}, Task.SEQ2SEQ, (), IGNORED)
