"""What lies beside a vocabulary in a model folder: tokenizer_config.json, special_tokens_map.json and the chat template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cygnet.errors import TokenizerError

TOKEN_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
PLAIN = ("clean_up_tokenization_spaces", "chat_template", "add_bos_token", "add_eos_token", "do_lower_case", "tokenizer_class")
# Larger than this means "no limit" in files written by transformers.
NO_LIMIT = 10**12


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{path} is no valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise TokenizerError(f"{path} must hold an object, not {type(found).__name__}")
    return found


def read_settings(folder: Path) -> dict[str, Any]:
    """Settings of the tokenizer in a folder.

    Returns
    -------
    dict
        Token names ("bos_token" ...) to their spelling, model_max_length, chat_template and the switches of tokenizer_config.json.
    """
    config = read_json(folder / "tokenizer_config.json")
    tokens = {**read_json(folder / "special_tokens_map.json"), **{k: v for k, v in config.items() if v is not None}}
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
    template = folder / "chat_template.jinja"
    if template.is_file():
        out["chat_template"] = template.read_text(encoding="utf-8")
    return out
