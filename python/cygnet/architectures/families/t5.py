"""T5 (Raffel et al. 2020), T5 1.1, Flan-T5, mT5, UMT5: RMSNorm, relative biases, unscaled attention; also the encoder alone."""

from __future__ import annotations

from cygnet.architectures.encoders import encoder_only, token_head
from cygnet.architectures.family import Family
from cygnet.architectures.seq2seq import CLASSES, HEADS, embedding_rows, encoder_decoder, token_names
from cygnet.architectures.spec import (
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    Relative,
    StackSpec,
    Task,
)
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel

PARTS = ("query", "key", "value", "output")
AT = "{s}.block.{i}.layer."


def feed_forward_rows(stack, place):
    """The feed-forward is the second sublayer of the encoder, the third of the decoder; wi alone, or gate and up."""
    at, ours = f"{stack}.block.{{i}}.layer.{place}.", f"{stack}.{{i}}."
    return (
        Row(ours + "ffn.gate", at + "DenseReluDense.wi_0", bias=False),
        Row(ours + "ffn.up", (at + "DenseReluDense.wi_1", at + "DenseReluDense.wi"), bias=False),
        Row(ours + "ffn.down", at + "DenseReluDense.wo", bias=False),
        Row(ours + "ffn_norm", at + "layer_norm"),
    )


ROWS = (
    *(Row(f"{{s}}.{{i}}.attention.{part}", f"{AT}0.SelfAttention.{part[0]}", bias=False) for part in PARTS),
    Row("{s}.{i}.attention_norm", AT + "0.layer_norm"),
    *(Row(f"{{s}}.{{i}}.cross.{part}", f"{AT}1.EncDecAttention.{part[0]}", bias=False) for part in PARTS),
    Row("{s}.{i}.cross_norm", AT + "1.layer_norm"),
    *feed_forward_rows("encoder", 1),
    *feed_forward_rows("decoder", 2),
    Row("{s}.relative", "{s}.block.0.layer.0.SelfAttention.relative_attention_bias"),
    Row("{s}.{i}.relative", AT + "0.SelfAttention.relative_attention_bias"),
    Row("{s}.final_norm", "{s}.final_layer_norm"),
)
IGNORED_TENSORS = (r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",)


def feed_forward(config, default):
    """feed_forward_proj: an activation, or "gated-" and one; "gated-gelu" means the tanh form."""
    named = config.get("feed_forward_proj", default)
    kind = named.removeprefix("gated-")
    if "-" in kind:
        raise UnsupportedModel(f"config of {config.name}: feed_forward_proj = {named!r} is not known (known: an activation, or gated- and one)")
    act = config.activation("feed_forward_act", "gelu_new" if named == "gated-gelu" else kind)
    return FeedForwardSpec(config["d_ff"], act, gated=named.startswith("gated-"))


def stack_spec(config, s, ffn, own, **fields):
    """Encoder or decoder; `own` for a relative bias of each layer's own."""
    heads, size, causal = config["num_heads"], config.get("d_kv", 64), s == "decoder"
    norm = NormSpec(NormKind.RMS, config.get("layer_norm_epsilon", 1e-6))
    buckets, distance = config.get("relative_attention_num_buckets", 32), config.get("relative_attention_max_distance", 128)
    cross = AttentionSpec(heads, heads, size, 1.0, Mask.BIDIRECTIONAL) if causal else None
    count = config.get("num_decoder_layers", config["num_layers"]) if causal else config["num_layers"]
    embedding = EmbeddingSpec(config["vocab_size"], config["d_model"])

    def layer(index):
        relative = Relative(buckets, distance, bidirectional=not causal, layer=index if own else None)
        attention = AttentionSpec(heads, heads, size, 1.0, Mask.CAUSAL if causal else Mask.BIDIRECTIONAL, positions=relative)
        return LayerSpec(attention, ffn, norm, Placement.PRE, cross=cross)

    return StackSpec(config["d_model"], embedding, tuple(layer(index) for index in range(count)), norm, **fields)


def builder(name, projection, scaled, own=False):
    """Family.build; `projection` is the default feed_forward_proj, `scaled` whether a tied head scales hidden states by d_model^-0.5."""

    def build(config, source, task):
        ffn = feed_forward(config, projection)
        reads, writes = token_names(source)
        encoder = stack_spec(config, "encoder", ffn, own)
        rows = (*embedding_rows(reads, writes), *ROWS)
        if task in (Task.ENCODER, Task.TOKEN_CLASSIFICATION):
            head = token_head(config, task) if task is Task.TOKEN_CLASSIFICATION else None
            ignored = (r"decoder\..*", r"(shared|lm_head|encoder\.embed_tokens)\.weight", r"classifier\..*")
            return encoder_only(config, task, family=name, stack=encoder, rows=rows, head=head, ignored=ignored)
        scale = config.get("scale_decoder_outputs", config.get("tie_word_embeddings", True)) if scaled else False
        return encoder_decoder(
            config,
            source,
            task,
            family=name,
            encoder=encoder,
            decoder=stack_spec(config, "decoder", ffn, own, shared_embedding=reads == writes),
            rows=rows,
            token_name=writes,
            hidden_scale=config["d_model"] ** -0.5 if scale else 1.0,
            ignored=(*IGNORED_TENSORS, r"shared\.weight"),
        )

    return build


ALL = {**CLASSES, **HEADS, "WithLMHeadModel": Task.SEQ2SEQ, "EncoderModel": Task.ENCODER, "ForTokenClassification": Task.TOKEN_CLASSIFICATION}
PREFIXES = ("transformer.",)
# Follow from feed_forward_proj and num_decoder_layers, or belong to generation.
IGNORED = ("dense_act_fn", "is_gated_act", "n_positions", "scale_decoder_outputs", "num_decoder_layers", "tokenizer_model_type")


def tensors_tell(config, weights):
    """GGUF does not name the feed-forward; a model without an output layer of its own is the first T5, which scales."""
    gated, alone = "enc.blk.0.ffn_gate.weight" in weights, "dec.blk.0.attn_q.weight" not in weights
    settings = {"feed_forward_proj": "gated-gelu" if gated else "relu", "scale_decoder_outputs": "output.weight" not in weights}
    return {**settings, "architectures": ["T5EncoderModel" if alone else "T5ForConditionalGeneration"]}


FAMILY = Family("t5", builder("t5", "relu", True), ALL, Task.SEQ2SEQ, PREFIXES, IGNORED, tensors_tell)
MT5 = Family("mt5", builder("mt5", "gated-gelu", False), ALL, Task.SEQ2SEQ, PREFIXES, IGNORED, tensors_tell)
UMT5 = Family("umt5", builder("umt5", "gated-gelu", True, own=True), ALL, Task.SEQ2SEQ, PREFIXES, IGNORED)
