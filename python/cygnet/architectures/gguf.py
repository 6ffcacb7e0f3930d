"""GGUF: metadata in place of config.json, and one table of tensor names for every family.

GGUF's names are the same for all architectures (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md); what differs is which are fused
and, for some, the row order of queries and keys. Norms that count from one (Gemma) are stored with the one already added.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cygnet.architectures.family import Built
from cygnet.architectures.spec import RopeScaling, Rotary
from cygnet.architectures.transforms import interleaved_pairs, part_of, per_head, plain, rows
from cygnet.architectures.weights import Row
from cygnet.errors import UnsupportedModel, WeightsError

# general.architecture -> model_type whose family runs it
ARCHITECTURES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen2moe": "qwen2_moe",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi2": "phi",
    "phi3": "phi3",
    "gpt2": "gpt2",
    "gptneox": "gpt_neox",
    "falcon": "falcon",
    "bloom": "bloom",
    "mpt": "mpt",
    "stablelm": "stablelm",
    "starcoder2": "starcoder2",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "command-r": "cohere",
    "granite": "granite",
    "smollm3": "smollm3",
    "bert": "bert",
    "nomic-bert": "nomic_bert",
    "t5": "t5",
    "t5encoder": "t5",
}
# Metadata key, less the architecture's name -> config key. A family's own spellings (Family.gguf) win.
KEYS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "attention.sliding_window": "sliding_window",
    "attention.clamp_kqv": "clip_qkv",
    "attention.scale": "attention_multiplier",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base": "rope_theta",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
    "logit_scale": "logit_scale",
    "residual_scale": "residual_multiplier",
    "embedding_scale": "embedding_multiplier",
    "vocab_size": "vocab_size",
}
TOKENS = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "padding_token_id": "pad_token_id"}
# These keep queries and keys in the order of interleaved pairs; all others as their config.json twins do.
PERMUTED = ("llama", "granite", "smollm3", "olmo")
IGNORED = (r"rope_freqs\.weight", r"rope_factors_(long|short)\.weight", r".*\.attn_rot_embd\..*")


class Names:
    """Stands for the source while a family builds its spec: GGUF says by absence that the output layer is the token embedding."""

    def __init__(self, source):
        self._source = source

    def __contains__(self, name):
        return False

    def tied(self, wanted, head, embedding):
        """Whether the file has no output layer of its own."""
        return "output.weight" not in self._source


def model_type_of(weights):
    """The model_type a GGUF file's architecture stands for; UnsupportedModel lists the known ones."""
    architecture = weights.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise UnsupportedModel(f"GGUF architecture {architecture!r} is not supported; known are {', '.join(sorted(ARCHITECTURES))}")
    return ARCHITECTURES[architecture]


def config_from_metadata(weights, family_keys):
    """What config.json would say, from a GGUF file's metadata.

    Parameters
    ----------
    weights : WeightFile
    family_keys : dict of str to str
        Family.gguf.

    Returns
    -------
    dict

    Raises
    ------
    WeightsError
        If the file has no token embedding.
    """
    if "token_embd.weight" not in weights:
        raise WeightsError("the GGUF file holds no token_embd.weight; is it a vocabulary without a model?")
    metadata, model_type = weights.metadata, model_type_of(weights)
    architecture = metadata["general.architecture"]
    config = {"model_type": model_type, "gguf_architecture": architecture}
    for key, name in {**KEYS, **family_keys}.items():
        value = metadata.get(f"{architecture}.{key}")
        if value is not None:
            config[name] = _scalar(value, key)
    for key, name in TOKENS.items():
        if f"tokenizer.ggml.{key}" in metadata:
            config[name] = metadata[f"tokenizer.ggml.{key}"]
    config["vocab_size"] = weights["token_embd.weight"].shape[0]
    config.update(_rope_settings(architecture, metadata, config, weights))
    return config


def _scalar(value, key):
    """One number; GGUF may give one a layer, which is accepted where all are equal."""
    if not isinstance(value, np.ndarray):
        return value
    if len(set(value.tolist())) != 1:
        raise UnsupportedModel(f"GGUF metadata {key!r} differs between layers, which is not supported")
    return value[0].item()


def _rope_settings(architecture, metadata, config, weights):
    """rope_scaling and partial_rotary_factor."""
    settings = {}
    size = config.get("head_dim") or _head_dim(config)
    turned = metadata.get(f"{architecture}.rope.dimension_count")
    if turned and size:
        settings["partial_rotary_factor"] = turned / size
    kind = metadata.get(f"{architecture}.rope.scaling.type", "none")
    factor = metadata.get(f"{architecture}.rope.scaling.factor", metadata.get(f"{architecture}.rope.scale_linear"))
    original = metadata.get(f"{architecture}.rope.scaling.original_context_length")
    if "rope_factors_long.weight" in weights:
        factors = {name: weights[f"rope_factors_{name}.weight"].to_float32().tolist() for name in ("short", "long")}
        settings["rope_scaling"] = {"type": "longrope", "short_factor": factors["short"], "long_factor": factors["long"]}
        settings["original_max_position_embeddings"] = original
        factor = metadata.get(f"{architecture}.rope.scaling.attn_factor")
        if factor is not None:
            settings["rope_scaling"]["attention_factor"] = factor
    elif kind != "none" and factor:
        settings["rope_scaling"] = {"type": kind, "factor": factor, "original_max_position_embeddings": original}
    return settings


def _head_dim(config):
    hidden = config.get("hidden_size") or config.get("n_embd")
    heads = config.get("num_attention_heads") or config.get("n_head")
    return hidden // heads if hidden and heads else None


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
    if "rope_freqs.weight" in source:
        factors = tuple(source["rope_freqs.weight"].to_float32().tolist())
        spec = replace(spec, decoder=_with_frequencies(spec.decoder, factors))
    stack = "encoder" if spec.decoder is None else "decoder"
    table = (*_stack_rows(spec, stack, source, config), *_head_rows())
    return Built(spec, table, IGNORED)


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


def _stack_rows(spec, s, source, config):
    """Rows of a stack: fused tensors are told by their presence."""
    layer = getattr(spec, s).layers[0]
    attention, at = layer.attention, f"{s}.{{i}}."
    permuted = config["gguf_architecture"] in PERMUTED
    result = [
        Row(f"{s}.embed.token", "token_embd"),
        Row(f"{s}.embed.position", "position_embd"),
        Row(f"{s}.embed.type", "token_types"),
        Row(f"{s}.embed.norm", "token_embd_norm", bias=None),
        Row(f"{s}.final_norm", "output_norm", bias=None),
        Row(at + "attention.output", "blk.{i}.attn_output", bias=None),
        Row(at + "attention.query_norm", "blk.{i}.attn_q_norm", _norm_of(source, "q", attention.heads), bias=None),
        Row(at + "attention.key_norm", "blk.{i}.attn_k_norm", _norm_of(source, "k", attention.kv_heads), bias=None),
        Row(
            at + "attention_norm", ("blk.{i}.attn_norm_2", "blk.{i}.attn_norm", "blk.{i}.attn_output_norm", "blk.{i}.post_attention_norm"), bias=None
        ),
        Row(at + "ffn_norm", ("blk.{i}.ffn_norm", "blk.{i}.attn_norm", "blk.{i}.layer_output_norm", "blk.{i}.post_ffw_norm"), bias=None),
        Row(at + "attention_post_norm", "blk.{i}.post_attention_norm", bias=None),
        Row(at + "ffn_post_norm", "blk.{i}.post_ffw_norm", bias=None),
    ]
    experts = next((layer.ffn.experts for layer in getattr(spec, s).layers if layer.ffn.experts), None)
    return (
        *result,
        *_query_key_value_rows(at, attention, source, permuted),
        *_feed_forward_rows(at, layer.ffn.gated, source),
        *_expert_rows(at, experts, source),
    )


def _norm_of(source, which, heads):
    """Norms of queries or keys, as a vector for all heads or as a matrix."""
    tensor = source.get(f"blk.0.attn_{which}_norm.weight")
    return per_head(heads) if tensor is not None and len(tensor.shape) == 2 else plain


def _query_key_value_rows(at, attention, source, permuted):
    names = ("query", "key", "value")
    if "blk.0.attn_qkv.weight" in source:
        size = attention.head_dim
        ends = np.cumsum([0, attention.heads * size, attention.kv_heads * size, attention.kv_heads * size]).tolist()
        return [Row(f"{at}attention.{name}", "blk.{i}.attn_qkv", rows(slice(*ends[n : n + 2])), bias=None) for n, name in enumerate(names)]
    orders = [interleaved_pairs(attention.heads), interleaved_pairs(attention.kv_heads), plain] if permuted else [plain] * 3
    return [Row(f"{at}attention.{name}", f"blk.{{i}}.attn_{name[0]}", order, bias=None) for name, order in zip(names, orders, strict=True)]


def _feed_forward_rows(at, gated, source):
    """Plain, gated, or gate and up in one tensor."""
    fused = gated and "blk.0.ffn_gate.weight" not in source and "blk.0.ffn_up.weight" in source
    result = [Row(at + "ffn.down", "blk.{i}.ffn_down", bias=None)]
    for position, name in enumerate(("gate", "up")):
        source_name = "blk.{i}.ffn_up" if fused else f"blk.{{i}}.ffn_{name}"
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


def _head_rows():
    return [Row("head.logits", ("output", "cls.output"), bias=None), Row("head.dense", "cls", bias=None)]
