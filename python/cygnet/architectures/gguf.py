"""GGUF metadata in place of config.json (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""

from __future__ import annotations

import math

import numpy as np

from cygnet.errors import UnsupportedModel, WeightsError

# general.architecture -> model_type whose family runs it
ARCHITECTURES = {
    "arcee": "arcee",
    "bert": "bert",
    "bloom": "bloom",
    "cohere2": "cohere2",
    "command-r": "cohere",
    "ernie4_5": "ernie4_5",
    "exaone4": "exaone4",
    "falcon": "falcon",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "glm4": "glm4",
    "gpt2": "gpt2",
    "gptneox": "gpt_neox",
    "granite": "granite",
    "granitemoe": "granitemoe",
    "llama": "llama",
    "modern-bert": "modernbert",
    "mpt": "mpt",
    "nomic-bert": "nomic_bert",
    "nemotron": "nemotron",
    "olmo": "olmo",
    "olmo2": "olmo2",
    "olmoe": "olmoe",
    "phi2": "phi",
    "phi3": "phi3",
    "qwen2": "qwen2",
    "qwen2moe": "qwen2_moe",
    "qwen3": "qwen3",
    "qwen3moe": "qwen3_moe",
    "seed_oss": "seed_oss",
    "smollm3": "smollm3",
    "stablelm": "stablelm",
    "starcoder": "gpt_bigcode",
    "starcoder2": "starcoder2",
    "t5": "t5",
    "t5encoder": "t5",
}
# Metadata key, less the architecture's name -> config keys; each family reads those it knows.
KEYS = {
    "context_length": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "block_count": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "feed_forward_length": ("intermediate_size", "n_inner", "ffn_hidden_size", "d_ff"),
    "attention.head_count": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "attention.head_count_kv": ("num_key_value_heads", "num_kv_heads"),
    "attention.key_length": ("head_dim", "d_kv"),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps", "layer_norm_epsilon"),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon", "norm_eps"),
    "attention.sliding_window": ("sliding_window", "local_attention"),
    "attention.clamp_kqv": ("clip_qkv",),
    "attention.max_alibi_bias": ("alibi_bias_max",),
    "attention.scale": ("attention_multiplier",),
    "attention.relative_buckets_count": ("relative_attention_num_buckets",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "rope.freq_base": ("rope_theta", "global_rope_theta"),
    "rope.freq_base_swa": ("rope_local_base_freq", "local_rope_theta"),
    "expert_count": ("num_experts", "num_local_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size", "shared_intermediate_size"),
    "logit_scale": ("logit_scale", "logits_scaling"),
    "residual_scale": ("residual_multiplier",),
    "embedding_scale": ("embedding_multiplier",),
    "use_parallel_residual": ("use_parallel_residual",),
    "decoder_block_count": ("num_decoder_layers",),
    "decoder_start_token_id": ("decoder_start_token_id",),
}
EPSILONS = ("layer_norm_rms_epsilon", "layer_norm_epsilon")
# What readers of GGUF assume where the file does not say, whatever the family's own default is.
DEFAULTS = {"rope_theta": 10000.0, "global_rope_theta": 10000.0, "partial_rotary_factor": 1.0}
TOKENS = {"bos_token_id": "bos_token_id", "padding_token_id": "pad_token_id"}
# Each of these ends a text: of the model, of a turn, of a message.
END_TOKENS = ("eos_token_id", "eot_token_id", "eom_token_id")


def model_type_of(weights):
    """The model_type a GGUF file's architecture stands for; UnsupportedModel lists the known ones."""
    architecture = weights.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise UnsupportedModel(f"GGUF architecture {architecture!r} is not supported; known are {', '.join(sorted(ARCHITECTURES))}")
    if architecture == "llama" and _scalar(weights.metadata.get("llama.expert_count", 0), "expert_count"):
        return "mixtral"
    return ARCHITECTURES[architecture]


def config_from_metadata(weights, complete=None):
    """What config.json would say, from a GGUF file's metadata.

    Parameters
    ----------
    weights : WeightFile
    complete : callable, optional
        Family.gguf: complete(config, weights) -> settings that only the tensors tell.

    Returns
    -------
    dict

    Raises
    ------
    WeightsError
        If the file has no token embedding.
    UnsupportedModel
        If a setting without which results would be guesswork is missing.
    """
    if "token_embd.weight" not in weights:
        raise WeightsError("the GGUF file holds no token_embd.weight; is it a vocabulary without a model?")
    metadata = weights.metadata
    architecture = metadata["general.architecture"]
    config = {**DEFAULTS, "model_type": model_type_of(weights), "gguf_architecture": architecture}
    for key, names in KEYS.items():
        value = metadata.get(f"{architecture}.{key}")
        if value is not None:
            config.update(dict.fromkeys(names, _scalar(value, key)))
    if not any(f"{architecture}.attention.{key}" in metadata for key in EPSILONS):
        raise UnsupportedModel(f"GGUF metadata has none of {', '.join(f'{architecture}.attention.{key}' for key in EPSILONS)}")
    for key, name in TOKENS.items():
        if f"tokenizer.ggml.{key}" in metadata:
            config[name] = metadata[f"tokenizer.ggml.{key}"]
    ends = [metadata[f"tokenizer.ggml.{key}"] for key in END_TOKENS if f"tokenizer.ggml.{key}" in metadata]
    config["eos_token_id"] = list(dict.fromkeys(ends))
    config["vocab_size"] = weights["token_embd.weight"].shape[0]
    config.update(_rope_settings(architecture, metadata, config, weights))
    return {**config, **(complete(config, weights) if complete else {})}


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
    turned, heads = metadata.get(f"{architecture}.rope.dimension_count"), config.get("num_attention_heads")
    size = config.get("head_dim") or (config.get("hidden_size", 0) // heads if heads else 0)
    if turned and size:
        settings["partial_rotary_factor"] = turned / size
    kind = metadata.get(f"{architecture}.rope.scaling.type", "none")
    factor = metadata.get(f"{architecture}.rope.scaling.factor", metadata.get(f"{architecture}.rope.scale_linear"))
    original = metadata.get(f"{architecture}.rope.scaling.original_context_length")
    if "rope_factors_long.weight" in weights:
        factors = {name: weights[f"rope_factors_{name}.weight"].to_float32().tolist() for name in ("short", "long")}
        scaling = {"type": "longrope", "short_factor": factors["short"], "long_factor": factors["long"]}
        scaling["attention_factor"] = metadata.get(f"{architecture}.rope.scaling.attn_factor")
        settings["rope_scaling"] = scaling
        settings["original_max_position_embeddings"] = original
    elif kind != "none" and factor:
        settings["rope_scaling"] = {"type": kind, "factor": factor, "original_max_position_embeddings": original}
        magnitude = metadata.get(f"{architecture}.rope.scaling.attn_factor")
        if kind == "yarn" and magnitude is not None:
            settings["rope_scaling"]["attention_factor"] = magnitude * (1 + 0.1 * math.log(factor))
    return settings
