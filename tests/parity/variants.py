"""Random settings for the tiny models: other sizes, head sizes, groups, activations, epsilons, biases, windows and rotary scalings of any family."""

import dataclasses

import numpy as np

ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu", "relu", "silu", "relu2", "tanh", "sigmoid")
ACTIVATION_KEYS = ("hidden_act", "hidden_activation", "activation_function", "activation")
EPSILON_KEYS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon")
FLAGS = (
    *("attention_bias", "mlp_bias", "use_bias", "qkv_bias", "use_qkv_bias", "attention_out_bias", "norm_bias", "classifier_bias", "decoder_bias"),
    *("tie_word_embeddings", "scale_embedding", "norm_topk_prob", "bias", "enable_bias", "use_parallel_residual"),
)
# Settings that say the same in other words: (size, heads, how many layers).
SHAPES = (
    ("hidden_size", "num_attention_heads", "num_hidden_layers"),
    ("n_embd", "n_head", "n_layer"),
    ("hidden_size", "n_head", "n_layer"),
    ("hidden_size", "num_heads", "num_layers"),
    ("d_model", "n_heads", "n_layers"),
    ("d_model", "attention_heads", "num_layers"),
    ("dim", "n_heads", "n_layers"),
)
# Families whose settings hang together too tightly: theirs are in their rows.
FIXED = (
    "albert",
    "gpt_neo",
    "opt",
    "mpt",
    "falcon",
    "torch_transformer",
    "codegen",
    "nomic_bert",
    "dinov2",
    "dinov2_with_registers",
    "deit",
    "vit",
    "helium",
)
# Functions of which the reference has a table of its own, or none.
NO_ACTIVATION = ("openai-gpt", "bloom", "gte")
LONGEST = 48


def draw(random, values):
    """One of the values."""
    return values[int(random.integers(len(values)))]


def rope(random, size):
    """Rotary parameters of any kind."""
    kind = draw(random, ("default", "linear", "dynamic", "yarn", "llama3"))
    fields = {"rope_type": kind, "rope_theta": draw(random, (100.0, 1e4, 5e5))}
    if kind != "default":
        fields["factor"] = draw(random, (2.0, 3.5))
    if kind in ("yarn", "llama3"):
        fields["original_max_position_embeddings"] = 16
    if kind == "llama3":
        fields |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if kind == "yarn" and random.random() < 0.5:
        fields["beta_fast"], fields["beta_slow"] = 16.0, 2.0
    return fields


def variant(model_type, class_name, settings, seed):
    """Other settings for one row of the tiny models.

    Parameters
    ----------
    model_type, class_name : str
    settings : dict
    seed : int

    Returns
    -------
    dict
    """
    import transformers

    if model_type in FIXED:
        return settings
    random = np.random.default_rng([seed, len(class_name), sum(map(ord, class_name))])
    config_class = getattr(transformers, class_name).config_class
    known = {field.name for field in dataclasses.fields(config_class)}
    changed = dict(settings)
    shapes(changed, settings, random, known)
    for key in ACTIVATION_KEYS:
        if key in known and model_type not in NO_ACTIVATION and random.random() < 0.6:
            changed[key] = draw(random, ACTIVATIONS)
    for key in EPSILON_KEYS:
        if key in known and random.random() < 0.5:
            changed[key] = draw(random, (1e-3, 1e-5, 1e-7))
    for key in FLAGS:
        if key in known and key not in settings and random.random() < 0.5:
            changed[key] = bool(random.random() < 0.5)
    if "sliding_window" in known and settings.get("sliding_window") and random.random() < 0.7:
        changed["sliding_window"] = draw(random, (1, 2, 5, 33))
    if "max_position_embeddings" in settings:
        changed["max_position_embeddings"] = LONGEST + 4
    if "num_labels" in settings and "Question" not in class_name:
        changed["num_labels"] = draw(random, (1, 2, 5))
    return changed


def pair_shapes(changed, settings, random):
    """Sizes of encoder-decoders."""
    if "d_kv" in settings:
        changed |= {"num_heads": draw(random, (1, 2, 4)), "d_kv": draw(random, (4, 6, 14)), "d_model": draw(random, (20, 36, 44))}
        changed |= {"relative_attention_num_buckets": draw(random, (4, 8, 32)), "relative_attention_max_distance": draw(random, (20, 128))}
        return
    changed["d_model"] = draw(random, (12, 36, 60))
    for side in ("encoder", "decoder"):
        changed |= {f"{side}_attention_heads": draw(random, (1, 2, 3, 6)), f"{side}_layers": draw(random, (1, 2, 3))}
        changed[f"{side}_ffn_dim"] = draw(random, (12, 28, 65))


def shapes(changed, settings, random, known):
    """Sizes: of the heads, of all of them together, of the feed-forward, how many layers."""
    width, heads, layers = next((keys for keys in SHAPES if keys[0] in settings and keys[1] in settings), (None, None, None))
    if width is None:
        if "d_kv" in settings or "encoder_layers" in settings:
            pair_shapes(changed, settings, random)
        return
    # The reference multiplies experts in rows of whole 16 bytes.
    sparse = {"num_experts", "num_local_experts"} & set(settings)
    count, size = draw(random, (1, 2, 3, 4, 6)), draw(random, (4, 8, 12, 20) if sparse else (4, 6, 8, 10, 14, 20))
    changed[heads], changed[width] = count, count * size
    if "head_dim" in settings:
        changed["head_dim"], changed[width] = size, draw(random, (20, 36, 44))
    if layers in settings and "layer_types" not in settings:
        changed[layers] = draw(random, (1, 2, 3))
    if "num_key_value_heads" in known:
        changed["num_key_value_heads"] = draw(random, [groups for groups in range(1, count + 1) if count % groups == 0])
    for key in ("intermediate_size", "ffn_dim", "d_ff", "moe_intermediate_size"):
        if key in settings:
            changed[key] = draw(random, (12, 28, 44) if sparse else (12, 28, 44, 65))
    plain = "rope_parameters" in known and "rope_parameters" not in settings
    if plain and not {"layer_types", "local_attention", "sliding_window_pattern"} & set(settings):
        if random.random() < 0.7:
            changed["rope_parameters"] = rope(random, size)


KEPT = ("architectures", "model_type", "num_labels", "id2label", "label2id", "vocab_size", "tie_word_embeddings")


def older(config, defaults):
    """config.json as transformers 4 wrote it: rotary settings apart, values of the config class left out.

    Parameters
    ----------
    config : dict
        As transformers 5 writes it.
    defaults : dict
        What the config class says without arguments.
    """
    config = dict(config)
    parameters = config.pop("rope_parameters", None)
    result = {key: value for key, value in config.items() if key in KEPT or key.endswith("_token_id") or defaults.get(key, "#") != value}
    if parameters and any(isinstance(value, dict) for value in parameters.values()):
        return {**result, "rope_parameters": parameters}
    if parameters:
        usual = (defaults.get("rope_parameters") or {}).get("rope_theta")
        theta, partial = parameters.pop("rope_theta", usual), parameters.pop("partial_rotary_factor", None)
        result |= {"rope_theta": theta} if theta != usual else {}
        result |= {"partial_rotary_factor": partial} if partial is not None else {}
        result |= {"rope_scaling": parameters} if parameters.get("rope_type", "default") != "default" else {}
    return result
