"""What lies beside a vocabulary in a model folder: tokenizer_config.json, special_tokens_map.json and the chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cygnet.errors import TokenizerError
from cygnet.files import read_json, read_text

TOKEN_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
PLAIN = ("clean_up_tokenization_spaces", "chat_template", "add_bos_token", "add_eos_token", "do_lower_case", "tokenizer_class")
# Larger than this means "no limit" in files written by transformers.
NO_LIMIT = 10**12


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where there is no such file."""
    return read_json(path, {}, TokenizerError)


def read_settings(folder: Path) -> dict[str, Any]:
    """Settings of the tokenizer in a folder.

    Returns
    -------
    dict
        Token names ("bos_token" ...) to their spelling, model_max_length, chat_template and the switches of tokenizer_config.json.
    """
    config = read_object(folder / "tokenizer_config.json")
    tokens = {**read_object(folder / "special_tokens_map.json"), **{k: v for k, v in config.items() if v is not None}}
    out: dict[str, Any] = {name: config[name] for name in PLAIN if config.get(name) is not None}
    for name in TOKEN_NAMES:
        token = tokens.get(name)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            out[name] = token
    limit = config.get("model_max_length")
    if isinstance(limit, (int, float)) and 0 < limit < NO_LIMIT:
        out["model_max_length"] = int(limit)
    try:
        out["chat_template"] = read_text(folder / "chat_template.jinja", TokenizerError)
    except FileNotFoundError:
        pass  # the template is in tokenizer_config.json, or there is none
    return out
