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

# Keys that never change what a forward pass computes: training, bookkeeping, file handling, and defaults of text generation,
# which belongs to the caller. Patterns match the whole key.
IGNORED = re.compile(
    r"""_.*|.*drop(out|_rate|_prob|_path_rate)?|.*_?layerdrop|.*_pdrop|.*dropout_(rate|prob|p)|.*initializer.*|init_.*|summary_.*
    |architectures|model_type|transformers_version|torch_dtype|dtype|auto_map|tokenizer_class|processor_class|return_dict|use_return_dict
    |torchscript|use_bfloat16|use_cache|output_.*|gradient_checkpointing|problem_type|finetuning_task|task_specific_params|id2label|label2id
    |num_labels|prefix|name|vocab_file|bos_token|eos_token|pad_token|unk_token|.*_token_ids?|.*_token_index|token_index
    |is_encoder_decoder|cross_attention_hidden_size|tf_legacy_loss|pruned_heads|keys_to_ignore_at_inference|sep_token|cls_token
    |max_length|min_length|max_new_tokens|do_sample|early_stopping|num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p
    |typical_p|repetition_penalty|length_penalty|no_repeat_ngram_size|encoder_no_repeat_ngram_size|bad_words_ids|num_return_sequences
    |exponential_decay_length_penalty|suppress_tokens|begin_suppress_tokens|remove_invalid_values|chunk_size_feed_forward|loss_type
    |ignore_index|reduction|language|license|datasets|unsloth_.*|sentence_transformers|prompt.*|router_aux_loss_coef|router_z_loss.*
    |router_jitter_noise|moe_aux.*|pretraining_tp|tensor_parallel.*|onnx_export|fused_.*|use_flash.*|use_mem_eff.*|use_xformers|attn_implementation
    |torch_compile|reference_compile|deterministic_flash_attn|model_max_length|window_attention_impl|save_step|tokenizer_.*|use_xentropy|use_mrope|static_position_embeddings
    |gated_activation_memory|keep_accents|vocab_size_or_config_json_file|tie_word_embeddings""".replace("\n", "").replace(" ", "")
)


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
