"""Gemma 1-3 (Gemma team 2024, 2025): scaled embeddings, norms that count from one, soft caps, alternating windows, normed queries and keys."""

from __future__ import annotations

from cygnet.architectures.decoders import CLASSES, layer_types, token_embedding
from cygnet.architectures.families.llama import PREFIXES, assemble, attention_rows, attention_spec, gated_rows, heads, layer_spec, rms
from cygnet.architectures.family import Family
from cygnet.architectures.rotary import rotary
from cygnet.architectures.spec import FeedForwardSpec, Mask, Placement, QKNorm, Rotary, Task
from cygnet.architectures.transforms import add_one
from cygnet.architectures.weights import Row

HEAD_DIM = 256
NORMS = (
    Row("decoder.embed.token", "embed_tokens"),
    Row("decoder.{i}.attention_norm", "layers.{i}.input_layernorm", add_one),
    Row("decoder.final_norm", "norm", add_one),
)
TWO_NORMS = (*NORMS, Row("decoder.{i}.ffn_norm", "layers.{i}.post_attention_layernorm", add_one))
FOUR_NORMS = (
    *NORMS,
    Row("decoder.{i}.attention_post_norm", "layers.{i}.post_attention_layernorm", add_one),
    Row("decoder.{i}.ffn_norm", "layers.{i}.pre_feedforward_layernorm", add_one),
    Row("decoder.{i}.ffn_post_norm", "layers.{i}.post_feedforward_layernorm", add_one),
)
QK_NORMS = tuple(Row(f"decoder.{{i}}.attention.{which}_norm", f"layers.{{i}}.self_attn.{which[0]}_norm", add_one) for which in ("query", "key"))


def feed_forward(config):
    """Gated; the first configs say "gelu" (or hidden_activation null) and mean the tanh form."""
    named = config.first("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")
    act = config.activation("hidden_activation", "gelu_pytorch_tanh" if named == "gelu" else named)
    return FeedForwardSpec(config["intermediate_size"], act, gated=True)


def finish(config, source, task, layers, rows, **fields):
    """Scaled embeddings, tied head."""
    rows = (*rows, *attention_rows(config.get("attention_bias", False)), *gated_rows())
    embedding = token_embedding(config, scale=config["hidden_size"] ** 0.5)
    return assemble(config, source, task, layers, rows, tie_default=True, embedding=embedding, **fields)


def build(config, source, task):
    mask = Mask.BIDIRECTIONAL if config.get("use_bidirectional_attention") else Mask.CAUSAL
    layer = layer_spec(config, attention_spec(config, head_dim=HEAD_DIM, mask=mask), ffn=feed_forward(config))
    return finish(config, source, task, [layer] * config["num_hidden_layers"], TWO_NORMS, family="gemma")


def build_2(config, source, task):
    config.refuse("use_bidirectional_attention", False)
    size, scale = config.nullable("sliding_window", 4096), config.get("query_pre_attn_scalar", 256) ** -0.5
    cap = config.nullable("attn_logit_softcapping", 50.0)
    types = layer_types(config, config["num_hidden_layers"], lambda index: "full_attention" if index % 2 else "sliding_attention")
    layers = []
    for kind in types:
        window = size if kind == "sliding_attention" else None
        attention = attention_spec(config, head_dim=HEAD_DIM, scale=scale, window=window, softcap=cap)
        layers.append(layer_spec(config, attention, ffn=feed_forward(config), placement=Placement.SANDWICH))
    softcap = config.nullable("final_logit_softcapping", 30.0)
    return finish(config, source, task, layers, FOUR_NORMS, family="gemma2", head_softcap=softcap)


def build_3(config, source, task):
    pattern = config.first("sliding_window_pattern", "_sliding_window_pattern", default=6)
    types = layer_types(config, config["num_hidden_layers"], lambda index: "sliding_attention" if (index + 1) % pattern else "full_attention")
    both_ways, size = config.get("use_bidirectional_attention", False), config.get("sliding_window", 4096)
    layers = []
    for kind in types:
        window = (size // 2 + 1 if both_ways else size) if kind == "sliding_attention" else None
        attention = attention_spec(
            config,
            head_dim=HEAD_DIM,
            scale=config.get("query_pre_attn_scalar", 256) ** -0.5,
            mask=Mask.BIDIRECTIONAL if both_ways else Mask.CAUSAL,
            window=window,
            positions=local_rotary(config, kind),
            softcap=config.get("attn_logit_softcapping"),
            qk_norm=QKNorm.HEAD,
            qk_norm_spec=rms(config),
        )
        layers.append(layer_spec(config, attention, ffn=feed_forward(config), placement=Placement.SANDWICH))
    softcap = config.get("final_logit_softcapping")
    return finish(config, source, task, layers, (*FOUR_NORMS, *QK_NORMS), family="gemma3", head_softcap=softcap)


def local_rotary(config, kind):
    """Full layers have their own base and scaling; windowed ones a smaller base and none."""
    size = heads(config, HEAD_DIM)[2]
    local = config.get("rope_local_base_freq", 10000.0)
    if kind == "full_attention" or "rope_parameters" in config:
        return rotary(config, size, theta=1e6, layer_type=kind)
    return Rotary(size, local, max_positions=config.get("max_position_embeddings", 131072))


def tensors_tell(config, weights):
    """GGUF leaves the scale of queries out: the head size, but hidden_size / heads in the two largest models."""
    largest = config["num_hidden_layers"] in (46, 62)
    return {"query_pre_attn_scalar": config["hidden_size"] // config["num_attention_heads"] if largest else config.get("head_dim", HEAD_DIM)}


FAMILY = Family("gemma", build, CLASSES, Task.CAUSAL_LM, PREFIXES)
GEMMA2 = Family("gemma2", build_2, CLASSES, Task.CAUSAL_LM, PREFIXES, ("cache_implementation",), tensors_tell)
GEMMA3 = Family(
    "gemma3", build_3, CLASSES, Task.CAUSAL_LM, ("language_model.model.", "model.language_model.", *PREFIXES), ("cache_implementation",), tensors_tell
)
