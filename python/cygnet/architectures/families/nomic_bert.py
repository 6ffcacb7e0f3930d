"""NomicBERT (Nussbaum et al. 2024): BERT with rotary positions and a gated SiLU feed-forward; config keys of GPT-2 in the first files."""

from __future__ import annotations

from dataclasses import replace

from cygnet.architectures.encoders import CLASSES, encoder_only, masked_head, pooled_head, pooler, token_head
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import (
    Activation,
    AttentionSpec,
    EmbeddingSpec,
    FeedForwardSpec,
    LayerSpec,
    Mask,
    NormKind,
    NormSpec,
    Placement,
    RopeScaling,
    StackSpec,
    Task,
)
from cygnet.architectures.transforms import part_of
from cygnet.architectures.weights import Row

AT = "encoder.layers.{i}."
ROWS = (
    Row("encoder.embed.token", "embeddings.word_embeddings"),
    Row("encoder.embed.type", "embeddings.token_type_embeddings"),
    Row("encoder.embed.norm", "emb_ln"),
    *(Row(f"encoder.{{i}}.attention.{name}", AT + "attn.Wqkv", part_of(n, 3), bias=False) for n, name in enumerate(("query", "key", "value"))),
    Row("encoder.{i}.attention.output", AT + "attn.out_proj", bias=False),
    Row("encoder.{i}.attention_norm", AT + "norm1"),
    Row("encoder.{i}.ffn.up", AT + "mlp.fc11", bias=False),
    Row("encoder.{i}.ffn.gate", AT + "mlp.fc12", bias=False),
    Row("encoder.{i}.ffn.down", AT + "mlp.fc2", bias=False),
    Row("encoder.{i}.ffn_norm", AT + "norm2"),
)
HEADS = (r"cls\..*", r"pooler\..*", r"classifier\..*")


def check(config):
    """Switches of the first files that no released model turns."""
    for key in ("prenorm", "parallel_block", "use_rms_norm", "causal", "rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"):
        config.refuse(key, False)
    for key in ("rotary_emb_fraction", "rotary_emb_scale_base", "scale_attn_weights"):
        config.refuse(key, 1, True, None)
    config.refuse("activation_function", "swiglu")


def positions_of(config, size, count):
    """Rotary positions; the first files scale dynamically beyond the length of training."""
    positions = rotary(config, size, theta=1000.0, theta_keys=("rope_theta", "rotary_emb_base"), max_positions=count)
    factor, trained = config.get("rotary_scaling_factor"), config.get("max_trained_positions", 2048)
    if not factor:
        return positions
    return replace(positions, scaling=RopeScaling("dynamic", factor=float(factor), original_max_positions=trained), max_positions=trained)


def head_of(config, source, task, hidden, norm, act):
    """As BERT's."""
    if task is Task.MASKED_LM:
        at = "cls.predictions."
        tied = source.tied(config.get("tie_word_embeddings", True), at + "decoder.weight", "embeddings.word_embeddings.weight")
        names = dict(dense=at + "transform.dense", norm_name=at + "transform.layer_norm", decoder=at + "decoder")
        return masked_head(config["vocab_size"], hidden, act, norm, tied, **names, bias=(at + "bias", at + "decoder.bias"))
    if task is Task.SEQUENCE_CLASSIFICATION:
        return pooled_head(config, hidden, "pooler.dense", "classifier")
    return None if task is Task.ENCODER else token_head(config, task)


def build(config, source, task):
    check(config)
    hidden, heads = config.first("hidden_size", "n_embd"), config.first("num_attention_heads", "n_head")
    inner, depth = config.first("intermediate_size", "n_inner"), config.first("num_hidden_layers", "n_layer")
    count = config.first("max_position_embeddings", "n_positions", default=2048)
    size = config.get("head_dim", hidden // heads)
    norm = NormSpec(NormKind.LAYER, config.first("layer_norm_eps", "layer_norm_epsilon", default=1e-12))
    act = config.activation("hidden_act", "silu")
    attention = AttentionSpec(heads, heads, size, size**-0.5, Mask.BIDIRECTIONAL, positions=positions_of(config, size, count))
    layer = LayerSpec(attention, FeedForwardSpec(inner, act, gated=True), norm, Placement.POST)
    embedding = EmbeddingSpec(config["vocab_size"], hidden, type_count=config.get("type_vocab_size", 2), norm=norm)
    stack = StackSpec(hidden, embedding, (layer,) * depth, None)
    head = head_of(config, source, task, hidden, norm, act)
    pooled = pooler(source, hidden, activation=Activation.TANH) if task is Task.ENCODER else None
    return encoder_only(config, task, family="nomic_bert", stack=stack, rows=ROWS, head=head, pooler=pooled, max_positions=count, ignored=HEADS)


IGNORED = (
    "use_pad_vocab_size_multiple",
    "pad_vocab_size_multiple",
    "dense_seq_output",
    "last_layer_subset",
    "reorder_and_upcast_attn",
    "scale_attn_by_inverse_layer_idx",
    "max_trained_positions",
    "layer_norm_epsilon",
)


def tensors_tell(config, weights):
    """GGUF gives the number of token types by their table alone."""
    return {"type_vocab_size": weights["token_types.weight"].shape[0] if "token_types.weight" in weights else 0}


FAMILY = Family("nomic_bert", build, CLASSES, Task.ENCODER, ("nomic_bert.", "bert."), IGNORED, tensors_tell)
