"""A model's settings, read strictly: every key is used by the family, ignored on purpose, or refused.

Nothing that changes the mathematics may pass unseen, so `Config` notes which keys a family has read and `Config.finish` raises for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cygnet.architectures.spec import Activation
from cygnet.errors import UnsupportedModel

ACTIVATIONS = {
    "gelu": Activation.GELU,
    "gelu_python": Activation.GELU,
    "gelu_new": Activation.GELU_TANH,
    "gelu_fast": Activation.GELU_TANH,
    "gelu_accurate": Activation.GELU_TANH,
    "gelu_pytorch_tanh": Activation.GELU_TANH,
    "gelu_python_tanh": Activation.GELU_TANH,
    "quick_gelu": Activation.GELU_QUICK,
    "relu": Activation.RELU,
    "relu2": Activation.RELU2,
    "silu": Activation.SILU,
    "swish": Activation.SILU,
    "tanh": Activation.TANH,
    "sigmoid": Activation.SIGMOID,
    "linear": Activation.IDENTITY,
}

# Keys that never change what a forward pass computes; a pattern matches the whole key.
TRAINING = (
    r".*drop(out|_rate|_prob|_path_rate)?|.*layerdrop|.*_pdrop|.*dropout_(rate|prob|p)|.*initializer.*|init_(std|xavier_std|config|device)",
    r"gradient_checkpointing|problem_type|finetuning_task|loss_type|ignore_index|reduction|router_aux_loss_coef|router_z_loss.*|moe_aux.*",
    r"router_jitter_noise|pretraining_tp|tensor_parallel.*|unsloth_.*|save_step|tf_legacy_loss",
)
BOOKKEEPING = (
    r"_.*|architectures|model_type|transformers_version|torch_dtype|dtype|auto_map|processor_class|name|language|license|datasets|tie_word_embeddings",
    r"id2label|label2id|num_labels|is_encoder_decoder|return_dict|use_return_dict|torchscript|use_bfloat16|use_cache|chunk_size_feed_forward",
    r"output_(attentions|hidden_states|past|router_logits|scores)|keys_to_ignore_at_inference|task_specific_params|sentence_transformers",
    r"onnx_export|torch_compile|reference_compile|compile_model|deterministic_flash_attn|attn_implementation|window_attention_impl|use_flash.*",
    r"use_mem_eff.*|use_xformers|use_xentropy|fused_(bias_fc|dropout_add_ln|mlp)|gated_activation_memory|static_position_embeddings",
)
TEXT = (
    r"prefix|prompt.*|vocab_file|tokenizer_.*|model_max_length|keep_accents|(bos|eos|pad|unk|sep|cls)_token|.*_token_ids?|.*token_index",
    r"summary_.*|max_length|min_length|max_new_tokens|do_sample|early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_[kp]",
    r"typical_p|repetition_penalty|length_penalty|(encoder_)?no_repeat_ngram_size|bad_words_ids|num_return_sequences|remove_invalid_values",
    r"exponential_decay_length_penalty|(begin_)?suppress_tokens",
)
IGNORED = re.compile("|".join((*TRAINING, *BOOKKEEPING, *TEXT)))


class Config(Mapping):
    """Settings by key, remembering which were read.

    Parameters
    ----------
    values : dict
        The parsed config.json, or what stands for one.
    name : str
        What errors call the model: its `model_type`.

    Examples
    --------
    >>> config = Config({"hidden_size": 8, "rope_scaling": None}, "llama")
    >>> config["hidden_size"], config.get("head_dim", 4), config.get("rope_scaling", "off")
    (8, 4, 'off')
    """

    def __init__(self, values, name):
        self.values_by_key = dict(values)
        self.name = name
        self.read = set()

    def __getitem__(self, key):
        self.read.add(key)
        value = self.values_by_key.get(key)
        if value is None:
            raise UnsupportedModel(f"config of {self.name}: {key!r} is missing; it is needed to know the model's shape")
        return value

    def __iter__(self):
        return iter(self.values_by_key)

    def __len__(self):
        return len(self.values_by_key)

    def __contains__(self, key):
        return self.values_by_key.get(key) is not None

    def get(self, key, default=None):
        """The value, or `default` where the key is absent or null."""
        self.read.add(key)
        value = self.values_by_key.get(key)
        return default if value is None else value

    def nullable(self, key, default):
        """The value, where null means null and only an absent key means `default`."""
        self.read.add(key)
        return self.values_by_key.get(key, default)

    def first(self, *keys, default=None):
        """The value of the first of several spellings that is present."""
        found = [value for value in (self.get(key) for key in keys) if value is not None]
        return found[0] if found else default

    def refuse(self, key, *harmless):
        """Raise UnsupportedModel unless `key` is absent or has one of the `harmless` values."""
        value = self.get(key)
        if value is not None and value not in harmless:
            known = ", ".join(repr(known) for known in harmless)
            raise UnsupportedModel(f"config of {self.name}: {key} = {value!r} is not supported (supported: {known or 'absent'})")

    def replaced(self, values):
        """The same settings with some others in their place."""
        return Config({**self.values_by_key, **values}, self.name)

    def activation(self, key, default=None):
        """The activation that `key` names; UnsupportedModel for a name that is not known."""
        return activation(self.get(key, default), f"config of {self.name}: {key}")

    def finish(self, ignored=(), *, ignore_unknown=False):
        """Raise for keys that nothing has read and nothing ignores on purpose.

        A key that is not known is harmless where its value switches nothing on: null, false, zero or empty.

        Parameters
        ----------
        ignored : iterable of str
            Keys the family ignores on purpose, beside the common ones.
        ignore_unknown : bool
            Accept unknown keys.

        Raises
        ------
        UnsupportedModel
            Naming every unknown key with its value.
        """
        unknown = {
            key: value
            for key, value in self.values_by_key.items()
            if value and key not in self.read and key not in ignored and not IGNORED.fullmatch(key)
        }
        if unknown and not ignore_unknown:
            listed = ", ".join(f"{key} = {str(value)[:60]}" for key, value in sorted(unknown.items()))
            raise UnsupportedModel(
                f"config of {self.name}: unknown settings that may change the results: {listed}; if they do not, load with ignore_unknown_config=True"
            )


def activation(name, where="activation"):
    """The activation called `name`; UnsupportedModel names `where` it stands.

    Examples
    --------
    >>> activation("gelu_new")
    <Activation.GELU_TANH: 3>
    """
    if name not in ACTIVATIONS:
        raise UnsupportedModel(f"{where} = {name!r} is not known (known: {', '.join(sorted(ACTIVATIONS))})")
    return ACTIVATIONS[name]
