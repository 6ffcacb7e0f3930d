"""Translators in Marian's own files (Junczys-Dowmunt et al. 2018): its Transformer, and the students whose decoder has an SSRU (Kim et al. 2019)."""

from __future__ import annotations

from math import inf

from cygnet.architectures.family import Family
from cygnet.architectures.seq2seq import encoder_decoder, sinusoids
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    Mixing,
    NormKind,
    NormSpec,
    Placement,
    PositionSpec,
    PositionTable,
    StackSpec,
    Task,
)
from cygnet.architectures.transforms import made, one_more_row, part_of, transposed
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

NORM = NormSpec(NormKind.LAYER, 1e-6)
POSITIONS = 1024  # sinusoids know no limit; translators are trained on sentences
PARTS = {"query": "q", "key": "k", "value": "v", "output": "o"}
HARMLESS = {
    **{"type": ("transformer",), "transformer-preprocess": (), "transformer-postprocess": ("dan",), "transformer-postprocess-emb": ("d",)},
    **dict.fromkeys(("transformer-postprocess-top", "transformer-tied-layers", "lemma-dim-emb", "input-types"), ([], "", 0)),
    **dict.fromkeys(("transformer-train-position-embeddings", "transformer-no-projection", "transformer-pool", "ulr", "right-left"), (False,)),
    **{"transformer-ffn-depth": (2,), "transformer-decoder-ffn-depth": (0, 2)},
    **dict.fromkeys(("transformer-rnn-projection", "transformer-no-bias", "transformer-no-affine"), (False,)),
}


def linear(ours, weight, bias=False):
    """A matrix stored (in, out), and its bias."""
    return Row(ours, f"{weight}!", transposed(), bias=bias)


def norm(ours, name):
    """A LayerNorm."""
    return Row(ours, f"{name}_ln_scale!", part_of(0, 1), bias=f"{name}_ln_bias")


def attention_rows(ours, theirs):
    """The projections of attention, and the norm behind it."""
    parts = (linear(f"{ours}.{name}", f"{theirs}_W{part}", f"{theirs}_b{part}") for name, part in PARTS.items())
    return (*parts, norm(f"{ours}_norm", f"{theirs}_Wo"))


def layer_rows(s, i, recurrent):
    """One layer; Marian counts from one."""
    ours, at = f"{s}.{i}", f"{s}_l{i + 1}_"
    if recurrent:
        mixing = (
            linear(f"{ours}.recurrent.forget", at + "rnn_Wf", at + "rnn_bf"),
            linear(f"{ours}.recurrent.input", at + "rnn_W"),
            norm(f"{ours}.attention_norm", at + "rnn_ffn"),
        )
    else:
        mixing = attention_rows(f"{ours}.attention", at + "self")
    return (
        *mixing,
        *(attention_rows(f"{ours}.cross", at + "context") if s == "decoder" else ()),
        linear(f"{ours}.ffn.up", at + "ffn_W1", at + "ffn_b1"),
        linear(f"{ours}.ffn.down", at + "ffn_W2", at + "ffn_b2"),
        norm(f"{ours}.ffn_norm", at + "ffn_ffn"),
    )


def is_recurrent(config):
    """Whether the decoder mixes by an SSRU instead of self-attention."""
    mixing, cell = config.get("transformer-decoder-autoreg", "self-attention"), config.get("dec-cell", "gru")
    if mixing not in ("self-attention", "rnn") or mixing == "rnn" and cell != "ssru":
        wanted = "self-attention, or rnn with dec-cell ssru"
        raise UnsupportedModel(f"config of {config.name}: transformer-decoder-autoreg = {mixing!r} with dec-cell {cell!r} (supported: {wanted})")
    return mixing == "rnn"


def stack_spec(config, s, recurrent, **fields):
    """Encoder or decoder."""
    width, heads = config["dim-emb"], config.get("transformer-heads", 8)
    size, decoder = width // heads, s == "decoder"
    inner = config.get("transformer-dim-ffn", 2048)
    inner = config.get("transformer-decoder-dim-ffn", 0) or inner if decoder else inner

    def attention(mask, count=heads, size=size):
        return AttentionSpec(count, count, size, size**-0.5, mask)

    layer = LayerSpec(
        attention(Mask.CAUSAL, 1, width) if recurrent else attention(Mask.CAUSAL if decoder else Mask.BIDIRECTIONAL),
        FeedForwardSpec(inner, config.activation("transformer-ffn-activation", "swish")),
        NORM,
        Placement.POST,
        cross=attention(Mask.BIDIRECTIONAL) if decoder else None,
        mixing=Mixing.SSRU if recurrent else Mixing.ATTENTION,
    )
    embedding = EmbeddingSpec(
        config["dim-vocabs"][1 if decoder else 0] + 1,
        width,
        scale=width**0.5,
        positions=PositionSpec(PositionTable.SINUSOIDAL_FAIRSEQ, POSITIONS),
    )
    return StackSpec(width, embedding, (layer,) * config["dec-depth" if decoder else "enc-depth"], None, **fields)


def build(config, source, task):
    for key, values in HARMLESS.items():
        config.refuse(key, *values, "")
    if not config.get("tied-embeddings-all", False):
        raise UnsupportedModel(f"config of {config.name}: tied-embeddings-all is off: models with two vocabularies are not supported")
    recurrent = is_recurrent(config)
    encoder, decoder = stack_spec(config, "encoder", False), stack_spec(config, "decoder", recurrent, shared_embedding=True)
    positions = made(sinusoids(decoder.embedding.positions))
    rows = [
        Row("encoder.embed.token", "Wemb!", one_more_row(0.0)),
        *(Row(f"{s}.embed.position", (), positions) for s in ("encoder", "decoder")),
    ]
    for s, stack in (("encoder", encoder), ("decoder", decoder)):
        for i in range(len(stack.layers)):
            rows += layer_rows(s, i, recurrent and s == "decoder")
    # The row that only starts the decoder is never an answer.
    row = Row("head.logits", (), one_more_row(-inf), bias="decoder_ff_logit_out_b" if "decoder_ff_logit_out_b" in source else ())
    whole = dict(encoder=encoder, decoder=decoder, rows=rows, row=row, max_positions=POSITIONS, ignored=(r".*_QuantMultA",))
    return encoder_decoder(config, source, task, family="marian-nmt", **whole)


# Of other kinds of model, of training, or of how factors and vocabularies were prepared.
IGNORED = (
    *("version", "enc-cell", "enc-cell-depth", "enc-type", "dec-cell-base-depth", "dec-cell-high-depth", "dim-rnn", "layer-normalization", "skip"),
    *("bert-train-type-embeddings", "bert-type-vocab-size", "transformer-aan-activation", "transformer-aan-depth", "transformer-aan-nogate"),
    *("transformer-dim-aan", "transformer-guided-alignment-layer", "ulr-dim-emb", "ulr-trainable-transformation"),
    *("tied-embeddings", "tied-embeddings-src", "output-omit-bias", "lemma-dependency", "factors-combine", "factors-dim-emb"),
)
FAMILY = Family("marian-nmt", build, {"": Task.SEQ2SEQ}, Task.SEQ2SEQ, (), IGNORED)
