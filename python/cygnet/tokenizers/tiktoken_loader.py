"""tiktoken rank files: a line for each token, its bytes in base64 and its rank; the rank is the id and the order of merging.

The file holds no split rule and no special tokens: both come from tokenizer_config.json beside it ("pat_str", special tokens in
"added_tokens_decoder"), else from the file's name, as published with the vocabularies of OpenAI.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from cygnet.errors import TokenizerError
from cygnet.files import read_bytes
from cygnet.tokenizers import decoders
from cygnet.tokenizers.added_tokens import AddedToken
from cygnet.tokenizers.bpe import BPE
from cygnet.tokenizers.byte_alphabet import to_chars
from cygnet.tokenizers.folder_tokens import declared_by_id
from cygnet.tokenizers.json_fields import Fields
from cygnet.tokenizers.patterns import compile_pattern
from cygnet.tokenizers.pretokenizers import GPT2_PATTERN, ByteLevel, Sequence, Split
from cygnet.tokenizers.settings import read_object, read_settings
from cygnet.tokenizers.split_rules import CL100K_PATTERN, LLAMA3_PATTERN, O200K_PATTERN
from cygnet.tokenizers.tokenizer import Tokenizer

CL100K_SPECIAL = {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}
# By number of ranks: the split rule and the special tokens.
PUBLISHED = {
    50256: (GPT2_PATTERN, {"<|endoftext|>": 50256}),
    50280: (GPT2_PATTERN, {"<|endoftext|>": 50256, "<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283}),
    100256: (CL100K_PATTERN, CL100K_SPECIAL),
    199998: (O200K_PATTERN, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),
    128000: (LLAMA3_PATTERN, {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001}),
}


def load(path: Path) -> Tokenizer:
    """Tokenizer from a tiktoken rank file.

    Raises
    ------
    TokenizerError
        Where a line is damaged, a rank is given twice, or nothing says how text is split.
    """
    ranks = read_ranks(path)
    config = Fields(read_object(path.parent / "tokenizer_config.json"), str(path.parent / "tokenizer_config.json"))
    pattern, special = PUBLISHED.get(len(ranks), (None, {}))
    pattern = config.string("pat_str", pattern)
    if pattern is None:
        raise TokenizerError(f'{path}: {len(ranks)} ranks are of no published vocabulary; give the split rule as "pat_str" in {config.where}')
    special = {**special, **{token.content: token.id for token in declared_by_id(config)}}
    split = Split(compile_pattern(pattern, f"{config.where}: pat_str"), "Isolated", source=pattern)
    return Tokenizer(
        BPE({to_chars(token): rank for token, rank in ranks.items()}, merges_of_ranks(ranks), ignore_merges=True, where=str(path)),
        pre_tokenizer=Sequence([split, ByteLevel(add_prefix_space=False, use_regex=False)]),
        decoder=decoders.ByteLevel(),
        added_tokens=[AddedToken(token, token_id, special=True) for token, token_id in special.items()],
        settings={"eos_token": "<|endoftext|>", **read_settings(path.parent)},
    )


def read_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes to rank, in the order of ranks."""
    out: dict[bytes, int] = {}
    for number, line in enumerate(read_bytes(path, TokenizerError).splitlines(), 1):
        if not line:
            continue
        try:
            token, rank = line.split()
            out[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise TokenizerError(f"{path}:{number}: must be base64 and a rank, not {line[:60]!r}") from None
    if len(set(out.values())) != len(out) or min(out.values(), default=0) < 0:
        raise TokenizerError(f"{path}: a rank is negative or given twice")
    return dict(sorted(out.items(), key=lambda item: item[1]))


def merges_of_ranks(ranks: dict[bytes, int]) -> list[list[str]]:
    """The merge that makes each token: the two tokens its bytes come to by merges of lower rank only."""
    merges = []
    for token, rank in ranks.items():
        if len(token) > 1:
            parts = merge_below(ranks, token, rank)
            if len(parts) == 2:
                merges.append([to_chars(part) for part in parts])
    return merges


def merge_below(ranks: dict[bytes, int], token: bytes, limit: int) -> list[bytes]:
    """Bytes of a token merged by all ranks below the limit."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        candidates = [(ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:], strict=False))]
        rank, i = min(candidates)
        if rank >= limit:
            break
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts
