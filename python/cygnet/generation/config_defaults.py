"""Defaults that a model's generation_config.json (or the generation keys of an older config.json) states."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from cygnet.errors import OptionError
from cygnet.generation.options import ALIASES, SAMPLING_FILTERS, STRUCTURES, GenerationOptions

_log = logging.getLogger("cygnet")

# Keys that change which tokens come out and that are not offered, with the values at which they do nothing.
_NOT_OFFERED = {
    "encoder_no_repeat_ngram_size": (None, 0),
    "encoder_repetition_penalty": (None, 1, 1.0),
    "exponential_decay_length_penalty": (None,),
    "force_words_ids": (None,),
    "constraints": (None,),
    "guidance_scale": (None, 1, 1.0),
    "penalty_alpha": (None, 0, 0.0),
    "dola_layers": (None,),
    "top_h": (None,),
    "watermarking_config": (None,),
    "token_healing": (None, False),
}

# Keys that say nothing about the choice of tokens, or that the loader of the model reads.
_ELSEWHERE = frozenset(
    "transformers_version _from_model_config bos_token_id pad_token_id decoder_start_token_id use_cache cache_implementation cache_config "
    "return_dict_in_generate output_attentions output_hidden_states output_scores output_logits low_memory max_time stop_strings "
    "num_assistant_tokens num_assistant_tokens_schedule prompt_lookup_num_tokens max_matching_ngram_size assistant_confidence_threshold "
    "assistant_early_exit assistant_lookbehind target_lookbehind is_assistant compile_config disable_compile prefill_chunk_size "
    "remove_invalid_values renormalize_logits trust_remote_code generation_kwargs".split()
)

_OWN_FIELDS = frozenset(field.name for field in fields(GenerationOptions)) - {"stop", "stop_when", "allowed_tokens", "speculation", *STRUCTURES}

# What transformers writes for "not set".
_UNSET_MAX_LENGTH = 20


def config_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a generation_config.json asks for, in the form that GenerationOptions.create() takes as defaults.

    Sampling filters count only where the file says do_sample: true, as in transformers; without it the file asks for greedy decoding or beams.
    max_length of 20 is what transformers writes when nobody chose a limit, and is left out.

    Parameters
    ----------
    config : mapping
        The parsed file.

    Raises
    ------
    OptionError
        If the file asks for a way of decoding that changes the result and is not offered.

    Examples
    --------
    >>> config_defaults({"do_sample": True, "temperature": 0.6, "eos_token_id": [2, 7]})
    {'do_sample': True, 'temperature': 0.6, 'eos_token_ids': [2, 7]}
    """
    found = {}
    for key, value in config.items():
        name = ALIASES.get(key, key)
        if key in _NOT_OFFERED and value not in _NOT_OFFERED[key]:
            raise OptionError(f"generation_config.json asks for {key}={value!r}, which is not offered; remove the key to decode without it")
        if key == "stop_strings" and value:
            found["stop"] = value
        elif name in _OWN_FIELDS:
            if value is not None:
                found[name] = value
        elif key not in _NOT_OFFERED and key not in _ELSEWHERE:
            _log.warning("generation_config.json: unknown key %s is ignored", key)
    if found.get("max_length") == _UNSET_MAX_LENGTH:
        del found["max_length"]
    if not found.get("do_sample"):
        found = {key: value for key, value in found.items() if key not in ("do_sample", "temperature", *SAMPLING_FILTERS)}
    elif found.get("temperature") == 0:
        del found["do_sample"]
    return found
