"""LLaMA 1-3 (Touvron et al. 2023): pre-norm RMSNorm, rotary positions, grouped queries, gated feed-forward. Mistral and others build on it."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, decoder_only, layer_types, token_embedding
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import AttentionSpec, FeedForwardSpec, LayerSpec, Mask, NormKind, NormSpec, Placement, Task
from cygnet.architectures.weights import Row

PREFIXES = ("model.", "transformer.")


def attention_rows(bias=False, output_bias=None, output="o_proj"):
    """Separate projections of queries, keys, values and output."""
    at = "layers.{i}.self_attn."
    return (
        Row("decoder.{i}.attention.query", at + "q_proj", bias=bias),
        Row("decoder.{i}.attention.key", at + "k_proj", bias=bias),
        Row("decoder.{i}.attention.value", at + "v_proj", bias=bias),
        Row("decoder.{i}.attention.output", at + output, bias=bias if output_bias is None else output_bias),
    )


def gated_rows(bias=False, ours="decoder.{i}.ffn", at="layers.{i}.mlp"):
    """Gate, up and down projections."""
    return tuple(Row(f"{ours}.{name}", f"{at}.{name}_proj", bias=bias) for name in ("gate", "up", "down"))


def norm_rows(bias=False):
    """Token embedding, the two norms of a layer and the last one."""
    return (
        Row("decoder.embed.token", "embed_tokens"),
        Row("decoder.{i}.attention_norm", "layers.{i}.input_layernorm", bias=bias),
        Row("decoder.{i}.ffn_norm", "layers.{i}.post_attention_layernorm", bias=bias),
        Row("decoder.final_norm", "norm", bias=bias),
    )


def heads(config, size=None):
    """(heads, key/value heads, size of a head); `size` is the family's own where the config gives none."""
    count = config["num_attention_heads"]
    return count, config.get("num_key_value_heads", count), config.get("head_dim", size or config["hidden_size"] // count)


def attention_spec(config, *, theta=10000.0, head_dim=None, partial=1.0, **fields):
    """Causal attention with rotary positions; `fields` overrides."""
    count, kv, size = heads(config, head_dim)
    values = dict(heads=count, kv_heads=kv, head_dim=size, scale=size**-0.5, mask=Mask.CAUSAL)
    if "positions" not in fields:
        values["positions"] = rotary(config, size, theta=theta, partial=partial)
    return AttentionSpec(**{**values, **fields})


def rms(config, eps=1e-6):
    """RMSNorm."""
    return NormSpec(NormKind.RMS, config.get("rms_norm_eps", eps))


def layer_spec(config, attention, *, placement=Placement.PRE, act="silu", norm=None, ffn=None, **fields):
    """A layer with RMSNorm and a gated feed-forward, unless others are given."""
    ffn = ffn or FeedForwardSpec(config["intermediate_size"], config.activation("hidden_act", act), gated=True)
    return LayerSpec(attention, ffn, norm or rms(config), placement, **fields)


def windows(config, default=None):
    """The window of each layer: sliding_window everywhere, or where layer_types says so."""
    count, size = config["num_hidden_layers"], config.nullable("sliding_window", default)
    types = layer_types(config, count, lambda index: "sliding_attention")
    return [size if kind == "sliding_attention" else None for kind in types]


def assemble(config, source, task, layers, rows, *, family, tie_default=False, final_norm=None, **fields):
    """decoder_only with LLaMA's outer shape."""
    return decoder_only(
        config,
        source,
        task,
        family=family,
        embedding=fields.pop("embedding", None) or token_embedding(config),
        layers=layers,
        rows=rows,
        final_norm=final_norm or layers[0].norm,
        hidden_size=config["hidden_size"],
        tie_default=tie_default,
        max_positions=config.get("max_position_embeddings"),
        **fields,
    )


def build(config, source, task):
    bias, mlp_bias = config.get("attention_bias", False), config.get("mlp_bias", False)
    layer = layer_spec(config, attention_spec(config))
    rows = (*norm_rows(), *attention_rows(bias), *gated_rows(mlp_bias))
    return assemble(config, source, task, [layer] * config["num_hidden_layers"], rows, family="llama")


FAMILY = Family("llama", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
