"""The vocabulary of a GGUF file: its metadata keys (tokenizer.ggml.*) checked, with the corrections that llama.cpp makes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cygnet._core._gguf import Strings
from cygnet.errors import TokenizerError

UNDEFINED, NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(7)

# Kind -> ids that hold where the file names none.
DEFAULT_IDS: dict[str, dict[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "bert": {"bos": 101, "unknown": 100, "seperator": 102, "padding": 0, "mask": 103},
    "gpt2": {"bos": 11, "eos": 11},
    "whitespace": {"bos": 11, "eos": 11},
    "gemma4": {},
    "t5": {"eos": 1, "unknown": 2, "padding": 0},
    "rwkv": {},
}
NO_DEFAULT_BOS = ("glm4", "chatglm-bpe")
# The format spells the separator's key this way.
ID_KEYS = ("bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep")
END_OF_TURN = (
    "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> [EOT] <｜end▁of▁sentence｜> <end_of_utterance>"
).split()
# Tokens that stand for a purpose by their spelling, where no key names one.
BY_SPELLING = {
    "eot": END_OF_TURN,
    "eom": ["<|eom_id|>"],
    "fim_pre": "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>".split(),
    "fim_suf": "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>".split(),
    "fim_mid": "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>".split(),
    "fim_pad": "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]".split(),
    "fim_rep": "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>".split(),
    "fim_sep": ["<|file_sep|>"],
}
END_OF_GENERATION = [
    *END_OF_TURN,
    *"<|return|> <|call|> <|flush|> <|calls|> </s> <|eom_id|> [EOS] <eos> <turn|> <|tool_response> [e~[".split(),
]
ALWAYS_SHOWN = "<|channel|> <|message|> <|start|> <|constrain|>".split()


class GgufVocab:
    """Tokens with their types and scores, and the ids and switches of a GGUF file.

    Parameters
    ----------
    metadata : mapping of str to value
        Keys such as "tokenizer.ggml.tokens"; arrays as lists or NumPy arrays.
    where : str
        The file, for error messages.

    Attributes
    ----------
    kind : str
        tokenizer.ggml.model.
    pre : str
        tokenizer.ggml.pre, "" where there is none.
    tokens : list of str
    ids : dict of str to int
    types : (n,) int32 ndarray
    scores : (n,) float32 ndarray
    special_ids : dict of str to int
        "bos", "eos", "unknown" ... to their ids.
    end_of_generation : list of int
        Ids after which a model has nothing more to say.
    """

    def __init__(self, metadata: Mapping[str, Any], where: str):
        self.metadata = metadata
        self.where = where
        self.kind = self.get("model", str)
        if self.kind not in DEFAULT_IDS:
            raise TokenizerError(f"{where}: unknown tokenizer.ggml.model {self.kind[:40]!r}; known are {', '.join(DEFAULT_IDS)}")
        self.pre = self.get("pre", str, "")
        self.tokens = self._read_tokens()
        self.ids = dict(zip(self.tokens, range(len(self.tokens)), strict=True))
        if len(self.ids) != len(self.tokens):
            again = next(i for i, t in enumerate(self.tokens) if self.ids[t] != i)
            raise TokenizerError(f"{where}: tokenizer.ggml.tokens[{again}] {self.tokens[again][:40]!r} is there twice")
        self.types = self._numbers("token_type", np.int32, NORMAL)
        self.types[(self.types < UNDEFINED) | (self.types > BYTE)] = UNDEFINED
        self.scores = self._numbers("scores", np.float32, 0.0)
        self.special_ids = self._read_special_ids()
        self.end_of_generation = self._correct_types()

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """Value of tokenizer.ggml.<name>; an error where it is of another kind, or missing without a default."""
        value = self.metadata.get(f"tokenizer.ggml.{name}")
        if value is None:
            if default is None:
                raise TokenizerError(f"{self.where}: tokenizer.ggml.{name} is missing")
            return default
        if isinstance(value, np.generic):
            value = value.item()
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise TokenizerError(f"{self.where}: tokenizer.ggml.{name} must be {kind.__name__}, not {type(value).__name__}")
        return value

    def merges(self, default: list | None = None) -> list | Strings:
        """tokenizer.ggml.merges: as they lie in the file, where the metadata come from one."""
        in_place = getattr(self.metadata, "in_place", None)
        found = in_place and in_place("tokenizer.ggml.merges")
        return self.get("merges", list, default) if found is None else found

    def of_type(self, *types: int) -> list[int]:
        """Ids of the tokens of these types."""
        return np.flatnonzero(np.isin(self.types, types)).tolist()

    def _read_tokens(self) -> list[str]:
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if not isinstance(tokens, list) or not tokens or not set(map(type, tokens)) <= {str}:
            raise TokenizerError(f"{self.where}: tokenizer.ggml.tokens must be a list of strings")
        # What is no UTF-8 in a file is read as lone surrogates, of which merges know nothing.
        errors = "strict" if self.kind in ("gpt2", "whitespace", "gemma4") else "surrogateescape"
        try:
            "".join(tokens).encode("utf-8", errors)
        except UnicodeEncodeError:
            broken = next(i for i, token in enumerate(tokens) if any("\ud800" <= c <= "\udfff" for c in token))
            raise TokenizerError(f"{self.where}: tokenizer.ggml.tokens[{broken}] is not valid UTF-8") from None
        if "" in tokens:
            tokens = [token or f"[EMPTY_{i}]" for i, token in enumerate(tokens)]
        return tokens

    def array(self, name: str) -> np.ndarray | None:
        """The numbers of tokenizer.ggml.<name>, or None where it is not there."""
        found = self.metadata.get(f"tokenizer.ggml.{name}")
        if found is None or isinstance(found, np.ndarray):
            return found
        if not isinstance(found, list) or not all(isinstance(value, (int, float, np.number)) for value in found):
            raise TokenizerError(f"{self.where}: tokenizer.ggml.{name} must be a list of numbers")
        return np.array(found, np.float64)

    def _numbers(self, name: str, dtype: type, default: float) -> np.ndarray:
        values, count = self.array(name), len(self.tokens)
        if values is None:
            return np.full(count, default, dtype)
        if values.ndim != 1 or values.dtype.kind not in "iuf" or len(values) < count:
            raise TokenizerError(f"{self.where}: tokenizer.ggml.{name} must hold a number for each of the {count} tokens")
        with np.errstate(all="ignore"):
            converted = values[:count].astype(dtype)
        if not np.isfinite(values[:count]).all() or not np.isfinite(converted).all():
            raise TokenizerError(f"{self.where}: tokenizer.ggml.{name} holds a number that is not finite")
        return converted

    def _read_special_ids(self) -> dict[str, int]:
        out = dict(DEFAULT_IDS[self.kind])
        if self.pre in NO_DEFAULT_BOS:
            del out["bos"]
        for name in ID_KEYS:
            found = self.get(f"{name}_token_id", int, -1)
            if 0 <= found < len(self.tokens):
                out[name] = found
        return {name: i for name, i in out.items() if i < len(self.tokens)}

    def _correct_types(self) -> list[int]:
        """Makes tokens special by their spelling, as llama.cpp does; returns the ids that end a generation."""
        for purpose, spellings in BY_SPELLING.items():
            found = [self.ids[s] for s in spellings if s in self.ids]
            if purpose not in self.special_ids and found:
                self.special_ids[purpose] = min(found)
                self.types[min(found)] = CONTROL
        ends = {self.ids[s] for s in END_OF_GENERATION if s in self.ids}
        self.types[list(ends)] = CONTROL
        self.types[[self.ids[s] for s in ALWAYS_SHOWN if s in self.ids]] = USER_DEFINED
        ends |= {self.special_ids[name] for name in ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep") if name in self.special_ids}
        spelled = {self.tokens[i]: i for i in ends}
        calls = {"<|call|>", "<|calls|>"} & spelled.keys()
        if "<|end|>" in spelled and calls and {"<|return|>", "<|flush|>"} & spelled.keys():
            ends.discard(spelled["<|end|>"])
            self.types[spelled["<|end|>"]] = USER_DEFINED
        if "<|tool_response>" in spelled and "</s>" in spelled:
            ends.discard(spelled["</s>"])
            self.types[spelled["</s>"]] = NORMAL
        return sorted(ends)
