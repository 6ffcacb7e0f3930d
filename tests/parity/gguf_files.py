"""Writes a transformers model as a float32 GGUF file, as the converter of llama.cpp does: its names, fusions and row orders."""

import re

import numpy as np
from tiny_sizes import GPT, ODD, SMALL, T5, WIDE, rope

# Architecture of the file -> class and settings of the model that is written.
GGUF = {
    "arcee": ("ArceeForCausalLM", dict(ODD, num_key_value_heads=2)),
    "bert": ("BertModel", SMALL),
    "bloom": ("BloomForCausalLM", dict(vocab_size=61, hidden_size=24, n_layer=2, n_head=3)),
    "cohere2": ("Cohere2ForCausalLM", dict(ODD, num_key_value_heads=2, sliding_window=4, sliding_window_pattern=4, num_hidden_layers=4)),
    "command-r": ("CohereForCausalLM", dict(ODD, num_key_value_heads=2, logit_scale=0.3)),
    "falcon": (
        "FalconForCausalLM",
        dict(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=3, new_decoder_architecture=True),
    ),
    "ernie4_5": ("Ernie4_5ForCausalLM", dict(ODD, head_dim=6, num_key_value_heads=2)),
    "exaone4": ("Exaone4ForCausalLM", dict(ODD, num_hidden_layers=4, num_key_value_heads=2, sliding_window=4)),
    "falcon-7b": ("FalconForCausalLM", dict(vocab_size=61, hidden_size=24, num_hidden_layers=2, num_attention_heads=3)),
    "gemma": ("GemmaForCausalLM", dict(WIDE, num_key_value_heads=1)),
    "gemma2": ("Gemma2ForCausalLM", dict(WIDE, num_key_value_heads=1, sliding_window=3, query_pre_attn_scalar=14)),
    "gemma3": (
        "Gemma3ForCausalLM",
        dict(
            WIDE,
            num_hidden_layers=6,
            num_key_value_heads=1,
            sliding_window=3,
            query_pre_attn_scalar=14,
            rope_parameters={
                "full_attention": {"rope_type": "default", "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        ),
    ),
    "glm4": ("Glm4ForCausalLM", dict(ODD, head_dim=12, num_key_value_heads=2, pad_token_id=0)),
    "gpt2": ("GPT2LMHeadModel", GPT),
    "gptneox": ("GPTNeoXForCausalLM", dict(SMALL, **rope("default", partial_rotary_factor=0.5))),
    "granite": (
        "GraniteForCausalLM",
        dict(SMALL, num_key_value_heads=1, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5),
    ),
    "granitemoe": (
        "GraniteMoeSharedForCausalLM",
        dict(
            ODD,
            num_key_value_heads=2,
            num_local_experts=4,
            num_experts_per_tok=2,
            shared_intermediate_size=20,
            embedding_multiplier=3.0,
            residual_multiplier=0.4,
            attention_multiplier=0.2,
            logits_scaling=2.5,
        ),
    ),
    "llama": ("LlamaForCausalLM", dict(ODD, num_key_value_heads=2)),
    "llama-tied-linear": ("LlamaForCausalLM", dict(ODD, num_key_value_heads=2, tie_word_embeddings=True, **rope("linear", 2e4, factor=3.0))),
    "llama-moe": ("MixtralForCausalLM", dict(ODD, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2)),
    "modern-bert": ("ModernBertModel", dict(SMALL, num_hidden_layers=3, local_attention=6, pad_token_id=0)),
    "mpt": ("MptForCausalLM", dict(vocab_size=61, d_model=40, n_heads=5, n_layers=2, max_seq_len=64, attn_config={"clip_qkv": 0.7})),
    "nomic-bert": ("NomicBertModel", SMALL),
    "nemotron": ("NemotronForCausalLM", dict(SMALL, num_key_value_heads=1)),
    "olmo": ("OlmoForCausalLM", dict(ODD, num_key_value_heads=2, clip_qkv=0.6)),
    "olmo2": ("Olmo2ForCausalLM", dict(ODD, num_key_value_heads=4)),
    "olmoe": ("OlmoeForCausalLM", dict(ODD, num_key_value_heads=4, num_experts=4, num_experts_per_tok=2)),
    "phi2": ("PhiForCausalLM", dict(SMALL, num_key_value_heads=3)),
    "phi3": ("Phi3ForCausalLM", dict(SMALL, num_key_value_heads=1, pad_token_id=0)),
    "qwen2": ("Qwen2ForCausalLM", dict(SMALL, num_key_value_heads=1, tie_word_embeddings=True)),
    "qwen2moe": (
        "Qwen2MoeForCausalLM",
        dict(SMALL, num_key_value_heads=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20, shared_expert_intermediate_size=28),
    ),
    "qwen3": ("Qwen3ForCausalLM", dict(WIDE, num_key_value_heads=1)),
    "qwen3moe": (
        "Qwen3MoeForCausalLM",
        dict(WIDE, num_key_value_heads=1, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=True),
    ),
    "seed_oss": ("SeedOssForCausalLM", dict(ODD, head_dim=6, num_key_value_heads=2)),
    "smollm3": ("SmolLM3ForCausalLM", dict(SMALL, num_hidden_layers=4, num_key_value_heads=1, pad_token_id=0)),
    "stablelm": ("StableLmForCausalLM", dict(SMALL, num_key_value_heads=1, use_qkv_bias=True, **rope("default", partial_rotary_factor=0.5))),
    "stablelm-parallel": (
        "StableLmForCausalLM",
        dict(ODD, num_key_value_heads=2, qk_layernorm=True, use_parallel_residual=True, **rope("default", partial_rotary_factor=0.4)),
    ),
    "starcoder": ("GPTBigCodeForCausalLM", GPT),
    "starcoder2": ("Starcoder2ForCausalLM", dict(SMALL, num_key_value_heads=1)),
    "t5": ("T5ForConditionalGeneration", dict(T5, relative_attention_max_distance=128, feed_forward_proj="gated-gelu", tie_word_embeddings=False)),
    "t5encoder": ("T5EncoderModel", dict(T5, relative_attention_max_distance=128, feed_forward_proj="relu")),
}
VARIANTS = {"falcon-7b": "falcon", "llama-tied-linear": "llama", "llama-moe": "llama", "stablelm-parallel": "stablelm"}


def write(name, model, path):
    """Write `model` as the GGUF architecture that row `name` of GGUF stands for."""
    import gguf

    architecture = VARIANTS.get(name, name)
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata(architecture, config).items():
        add(writer, key if "." in key and key.startswith("tokenizer") else f"{architecture}.{key}", value)
    writer.add_tokenizer_model("none")
    writer.add_vocab_size(config.vocab_size)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    for tensor, array in sorted(tensors(architecture, model).items()):
        writer.add_tensor(tensor, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add(writer, key, value):
    """One metadata entry of the type GGUF readers look for."""
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_string(key, value)


def first(config, *names, default=None):
    """The first attribute that exists and is not None."""
    return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), default)


def metadata(architecture, config):
    """Metadata keys without the architecture's name."""
    hidden = first(config, "hidden_size", "n_embd", "d_model")
    heads = first(config, "num_attention_heads", "n_head", "n_heads", "num_heads")
    values = {
        "context_length": first(config, "max_position_embeddings", "n_positions", "max_seq_len", default=512),
        "embedding_length": hidden,
        "block_count": first(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "feed_forward_length": first(config, "intermediate_size", "n_inner", "d_ff", default=4 * hidden),
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads(config, heads),
    }
    values |= numbers(architecture, config)
    values |= rotary(architecture, config, hidden // heads)
    return values


def kv_heads(config, heads):
    if config.model_type == "falcon":
        return config.num_kv_heads if config.new_decoder_architecture else 1
    return 1 if getattr(config, "multi_query", False) else first(config, "num_key_value_heads", default=heads)


def numbers(architecture, config):
    """Epsilons, caps, multipliers, experts."""
    names = {
        "attention.sliding_window": "local_attention" if architecture == "modern-bert" else "sliding_window",
        "attn_logit_softcapping": "attn_logit_softcapping",
        "final_logit_softcapping": "final_logit_softcapping",
        "attention.clamp_kqv": "clip_qkv",
        "attention.scale": "attention_multiplier",
        "residual_scale": "residual_multiplier",
        "embedding_scale": "embedding_multiplier",
        "use_parallel_residual": "use_parallel_residual",
        "expert_used_count": "num_experts_per_tok",
        "expert_feed_forward_length": "moe_intermediate_size",
        "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
        "expert_shared_feed_forward_length ": "shared_intermediate_size",
        "attention.relative_buckets_count": "relative_attention_num_buckets",
        "decoder_start_token_id": "decoder_start_token_id",
    }
    values = {key.strip(): getattr(config, name) for key, name in names.items() if getattr(config, name, None) is not None}
    rms, layer = first(config, "rms_norm_eps"), first(config, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
    rms = layer if architecture.startswith("t5") else rms
    values |= {"attention.layer_norm_rms_epsilon": rms} if rms else {"attention.layer_norm_epsilon": layer or 1e-5}
    scale, experts = first(config, "logits_scaling", "logit_scale"), first(config, "num_local_experts", "num_experts")
    values |= {"logit_scale": float(scale)} if scale else {}
    values |= {"expert_count": experts} if experts else {}
    size = first(config, "head_dim", "d_kv")
    values |= {"attention.key_length": size, "attention.value_length": size} if size else {}
    if architecture == "mpt":
        values |= {"attention.max_alibi_bias": 8.0, "attention.clamp_kqv": float(config.attn_config.clip_qkv)}
    if "bert" in architecture:
        values |= {"attention.causal": False, "pooling_type": 0}
    if architecture == "t5encoder":
        values.pop("decoder_start_token_id", None)
    return values


def rotary(architecture, config, head_dim):
    """Base, number of rotated features, scaling."""
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return {}
    local = parameters.get("sliding_attention")
    parameters = parameters.get("full_attention", parameters)
    size = first(config, "head_dim", default=head_dim)
    values = {"rope.freq_base": float(parameters["rope_theta"]), "rope.dimension_count": int(size * parameters.get("partial_rotary_factor", 1.0))}
    values |= {"rope.freq_base_swa": float(local["rope_theta"])} if local else {}
    if parameters["rope_type"] == "linear":
        values |= {"rope.scaling.type": "linear", "rope.scaling.factor": float(parameters["factor"])}
    return values


def tensors(architecture, model):
    """{GGUF name: array}."""
    import gguf

    config = model.config
    layers = first(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers")
    enum = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
    names = gguf.get_tensor_name_map(enum, layers)
    state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
    if first(config, "tie_word_embeddings", default=True) and architecture != "t5":
        state = {name: array for name, array in state.items() if name not in ("lm_head.weight", "embed_out.weight")}
    result = {}
    for name, array in reshaped(architecture, config, state).items():
        target = names.get_name(name, try_suffixes=(".weight", ".bias")) or names.get_name(name.removeprefix("transformer."), (".weight", ".bias"))
        if target is None:
            raise LookupError(f"no GGUF name for {name}")
        result[target] = array
    return result


def reshaped(architecture, config, state):
    """Tensors under names the gguf package knows, in the order and form GGUF files have."""
    heads, result = first(config, "num_attention_heads", "n_head", "n_heads"), {}
    for name, array in state.items():
        if name.endswith(("pooler.dense.weight", "pooler.dense.bias", ".attn.bias", "rotary_emb.inv_freq", "masked_bias", "position_ids")):
            continue
        if name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
            continue
        if architecture in ("llama", "arcee", "granite", "granitemoe", "smollm3", "olmo") and re.search(r"\.[qk]_proj\.", name):
            count = heads if ".q_proj." in name else config.num_key_value_heads
            array = array.reshape(count, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)
        elif architecture in ("bloom", "gptneox") and "query_key_value" in name:
            array = array.reshape(heads, 3, -1, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)
        elif architecture == "falcon" and "query_key_value" in name and config.new_decoder_architecture:
            grouped = array.reshape(config.num_kv_heads, heads // config.num_kv_heads + 2, -1, *array.shape[1:])
            parts = grouped[:, :-2], grouped[:, -2:-1], grouped[:, -1:]
            array = np.concatenate([part.reshape(-1, *array.shape[1:]) for part in parts])
        elif architecture == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
            array = array.T
        elif architecture.startswith(("gemma", "nemotron")) and name.endswith("norm.weight"):
            array = array + 1
        result[renamed(name)] = array
    return stacked(architecture, config, result)


def renamed(name):
    """GraniteMoE's parts under names that the gguf package knows."""
    name = name.replace("block_sparse_moe.experts", "mlp.experts").replace("shared_mlp.output_linear", "mlp.shared_expert.down_proj")
    return name.replace("block_sparse_moe.router.weight", "block_sparse_moe.router.layer.weight")


def stacked(architecture, config, state):
    """Experts and norms of heads as one tensor, projections of NomicBERT as the hub files have them."""
    result = {}
    for name, array in state.items():
        shared = name.endswith("shared_mlp.input_linear.weight")
        experts = re.fullmatch(r"(.*)\.experts\.(gate_up_proj|down_proj)", name)
        norm = re.fullmatch(r"(.*[qk]_layernorm)\.norms\.(\d+)\.weight", name)
        if experts and experts[2] == "gate_up_proj":
            half = array.shape[1] // 2
            result[f"{experts[1]}.experts.gate_proj.weight"], result[f"{experts[1]}.experts.up_proj.weight"] = array[:, :half], array[:, half:]
        elif experts:
            result[f"{experts[1]}.experts.down_proj.weight"] = array
        elif shared:
            at, half = name.replace("shared_mlp.input_linear.weight", "mlp.shared_expert."), len(array) // 2
            result[at + "gate_proj.weight"], result[at + "up_proj.weight"] = array[:half], array[half:]
        elif norm:
            result.setdefault(f"{norm[1]}.weight", []).append(array)
        else:
            result[name] = array
    result = {name: np.stack(array) if isinstance(array, list) else array for name, array in result.items()}
    return nomic(result) if architecture == "nomic-bert" else result


def nomic(state):
    """Projections fused and names as the first files have them."""
    result = {}
    renamed = {
        "self_attn.o_proj": "attn.out_proj",
        "mlp.up_proj": "mlp.fc11",
        "mlp.gate_proj": "mlp.fc12",
        "mlp.down_proj": "mlp.fc2",
        "post_attention_layernorm": "norm1",
        "post_mlp_layernorm": "norm2",
    }
    for name, array in state.items():
        name = name.replace("embeddings.LayerNorm", "emb_ln").replace("layers.", "encoder.layers.")
        for old, new in renamed.items():
            name = name.replace(old, new)
        fused = re.fullmatch(r"(.*)\.self_attn\.([qkv])_proj\.weight", name)
        if fused:
            result.setdefault(f"{fused[1]}.attn.Wqkv.weight", {})[fused[2]] = array
        else:
            result[name] = array
    return {name: np.concatenate([array[part] for part in "qkv"]) if isinstance(array, dict) else array for name, array in result.items()}
