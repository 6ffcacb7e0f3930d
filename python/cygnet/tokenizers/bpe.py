"""BPE: merges of neighbouring symbols in the order they were learned (Sennrich et al. 2016, arXiv:1508.07909)."""

from __future__ import annotations

from functools import cache

from cygnet._core._bpe import MAX_ID, Bpe, ByteLevelLane, Merges, SpaceSignLane
from cygnet._core._lane import Lane
from cygnet.errors import TokenizerError
from cygnet.tokenizers.byte_alphabet import BYTE_TO_CHAR, BYTE_TOKENS, CHAR_TO_BYTE, to_bytes
from cygnet.tokenizers.components import Normalizer, Piece, PreTokenizer
from cygnet.tokenizers.json_fields import Fields, read_vocab
from cygnet.tokenizers.pretokenizers import ByteLevel
from cygnet.tokenizers.space_sign import space_sign_rule
from cygnet.tokenizers.split_rules import compiled_rule, flatten, without_nfc


@cache
def alphabet_table() -> bytes:
    """For each code point below 512 the byte it spells in the byte-level alphabet, and whether it spells one."""
    table = bytearray(1024)
    for char, byte in CHAR_TO_BYTE.items():
        table[2 * ord(char)] = byte
        table[2 * ord(char) + 1] = 1
    return bytes(table)


class BPE:
    """Byte pair encoding.

    Parameters
    ----------
    vocab : dict of str -> int
    merges : list or bytes
        "left right" or [left, right], the most important first; bytes are JSON text of such a list.
    unk_token : str, optional
        For characters outside the vocabulary; None drops them.
    continuing_subword_prefix : str
        What the vocabulary puts before a symbol that does not begin a word.
    end_of_word_suffix : str
        What it puts after the last one.
    fuse_unk : bool
        Neighbouring unknown characters are one token.
    byte_fallback : bool
        An unknown character becomes the tokens <0x..> of its bytes, where all of them are there.
    ignore_merges : bool
        A word that is in the vocabulary is that token.
    where : str
        Path in the file, for error messages.

    Raises
    ------
    TokenizerError
        Where a merge names tokens outside the vocabulary, or an id is too large.
    """

    def __init__(
        self,
        vocab: dict[str, int],
        merges: list | bytes,
        *,
        unk_token: str | None = None,
        continuing_subword_prefix: str = "",
        end_of_word_suffix: str = "",
        fuse_unk: bool = False,
        byte_fallback: bool = False,
        ignore_merges: bool = False,
        where: str = "model",
    ):
        largest = max(vocab.values(), default=-1)
        if largest > MAX_ID:
            raise TokenizerError(f"{where}.vocab has the id {largest}; BPE ids go up to {MAX_ID}")
        self.vocab = vocab
        names: list[str | None] = [None] * (largest + 1)
        for token, token_id in vocab.items():
            names[token_id] = token
        # A tuple of strings is nothing to the garbage collector, which goes through a list each time.
        self.names = tuple(names)
        self.vocab_size = len(vocab)
        self.prefix = continuing_subword_prefix
        self.suffix = end_of_word_suffix
        self.unk_token = unk_token
        self.options = {"fuse_unk": fuse_unk, "byte_fallback": byte_fallback, "ignore_merges": ignore_merges}
        self.merges = Merges(vocab, merges, continuing_subword_prefix, f"{where}.merges")
        self.where = where
        self._core: Bpe | None = None

    def core(self, byte_level: bool = False) -> Bpe:
        """The compiled tables; how words are given to them is fixed by the first call."""
        if self._core is None:
            byte_ids = [self.vocab.get(spelling, -1) for spelling in (BYTE_TO_CHAR if byte_level else BYTE_TOKENS)]
            self._core = Bpe(
                self.vocab,
                self.merges,
                byte_level=byte_level,
                byte_ids=byte_ids,
                unk_id=self._unk_id(complete=byte_level and min(byte_ids) >= 0),
                prefix=self.prefix,
                suffix=self.suffix,
                alphabet=alphabet_table(),
                **self.options,
            )
        return self._core

    def _unk_id(self, complete: bool) -> int:
        if self.unk_token is None:
            return -1
        found = self.vocab.get(self.unk_token, -1)
        if found < 0 and not complete:
            raise TokenizerError(f"{self.where}.unk_token {self.unk_token[:40]!r} is not in the vocabulary")
        return found

    def _spells_bytes_twice(self) -> bool:
        """Whether a byte whose character in the byte-level alphabet is unknown has that character's own bytes to fall back on."""
        if not self.options["byte_fallback"] or all(char in self.vocab for char in BYTE_TO_CHAR):
            return False
        return any(token in self.vocab for token in BYTE_TOKENS)

    def tokenize(self, text: str) -> list[Piece]:
        core = self.core()
        word = to_bytes(text) if core.byte_level else text.encode()
        ids, sizes = core.pieces(word)
        if core.byte_level and sum(sizes) < len(word):
            # Where bytes were dropped, the library counts on in the bytes of the spelled word.
            return by_characters(ids, [len(self.names[i].encode()) for i in ids], text)
        if core.byte_level or (text.isascii() and sum(sizes) <= len(text)):
            return _in_place(ids, sizes)
        return by_characters(ids, sizes, text)

    def symbols(self, text: str) -> list[int]:
        """Ids of a word's symbols before any merge."""
        core = self.core()
        return core.symbols(to_bytes(text) if core.byte_level else text.encode())

    def token_to_id(self, token: str) -> int | None:
        return self.vocab.get(token)

    def id_to_token(self, token_id: int) -> str | None:
        return self.names[token_id] if 0 <= token_id < len(self.names) else None

    def fast_lane(self, normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> Lane | None:
        stages = flatten(pre_tokenizer)
        byte_level = bool(stages) and isinstance(stages[-1], ByteLevel) and not (self.prefix or self.suffix or self._spells_bytes_twice())
        core = self.core(byte_level)
        if not byte_level:
            rule = space_sign_rule(normalizer, stages)
            return None if rule is None else SpaceSignLane(core, rule.sign, rule.prepend, rule.replace_spaces, rule.split)
        split = compiled_rule(pre_tokenizer) if without_nfc(normalizer) is None else None
        return None if split is None else ByteLevelLane(core, split.words, split.cuts, split.digits, split.prefix_space)


def _in_place(ids: list[int], sizes: list[int]) -> list[Piece]:
    out, at = [], 0
    for token_id, size in zip(ids, sizes, strict=True):
        out.append((token_id, at, at + size))
        at += size
    return out


def by_characters(ids: list[int], sizes: list[int], text: str) -> list[Piece]:
    """Ranges in characters: a token that covers part of a character covers it whole; bytes of a spelled prefix lie in the last one."""
    of_byte = [i for i, char in enumerate(text) for _ in char.encode()]
    of_byte += of_byte[-1:] * (sum(sizes) - len(of_byte))
    out, at = [], 0
    for token_id, size in zip(ids, sizes, strict=True):
        out.append((token_id, of_byte[at], of_byte[at + size - 1] + 1))
        at += size
    return out


def from_fields(fields: Fields) -> BPE:
    """BPE from its object in tokenizer.json."""
    dropout = fields.get("dropout", (int, float), None)
    if dropout:
        raise TokenizerError(f"{fields.where}.dropout is {dropout}: merges left out at random are for training; set it to null")
    return BPE(
        read_vocab(fields.get("vocab", (dict, bytes)), f"{fields.where}.vocab"),
        fields.get("merges", (list, bytes)),
        unk_token=fields.string("unk_token", None),
        continuing_subword_prefix=fields.string("continuing_subword_prefix", ""),
        end_of_word_suffix=fields.string("end_of_word_suffix", ""),
        fuse_unk=fields.flag("fuse_unk", False),
        byte_fallback=fields.flag("byte_fallback", False),
        ignore_merges=fields.flag("ignore_merges", False),
        where=fields.where,
    )
