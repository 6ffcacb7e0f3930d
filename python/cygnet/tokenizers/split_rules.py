"""Which pre-tokenizers have a compiled scanner, and the regular expressions that the scanners stand for."""

from __future__ import annotations

from itertools import product

from cygnet.records import record
from cygnet.tokenizers.components import Normalizer, PreTokenizer
from cygnet.tokenizers.normalizers import Sequence as NormalizerSequence
from cygnet.tokenizers.normalizers import UnicodeForm
from cygnet.tokenizers.pretokenizers import GPT2_PATTERN, ByteLevel, Sequence, Split


@record
class SplitRule:
    """A rule of csrc/scan_split.c.

    Attributes
    ----------
    words : str
        "gpt2", "cl100k", "o200k", "deepseek" or "none".
    digits : int
        Numbers in a group, 0 without limit (cl100k and o200k).
    cuts : tuple of str
        What is cut out before words are formed: "each_number", "three_numbers", "number_run", "cjk".
    prefix_space : bool
    """

    words: str
    digits: int = 0
    cuts: tuple[str, ...] = ()
    prefix_space: bool = False


_CONTRACTIONS = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "'(?i:[sdmt]|ll|ve|re)", "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])")
_LETTERS = (r"[^\r\n\p{L}\p{N}]?\p{L}+", r"[^\r\n\p{L}\p{N}]?+\p{L}+", r"[^\r\n\p{L}\p{N}]?+\p{L}++")
_NUMBERS = {r"\p{N}{1,3}": 3, r"\p{N}{1,3}+": 3, r"\p{N}": 1, r"\p{N}+": 0}
_SIGNS = (r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}]++[\r\n]*", r" ?[^\s\p{L}\p{N}]++[\r\n]*+")
_LINES = (r"\s*[\r\n]+", r"\s*[\r\n]")
_SPACES = r"\s+(?!\S)|\s+"

_O200K_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
)
_O200K_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"

CL100K_PATTERN = "|".join((_CONTRACTIONS[1], _LETTERS[1], r"\p{N}{1,3}", _SIGNS[1], _LINES[1], _SPACES))
LLAMA3_PATTERN = "|".join((_CONTRACTIONS[0], _LETTERS[0], r"\p{N}{1,3}", _SIGNS[0], _LINES[0], _SPACES))
QWEN2_PATTERN = "|".join((_CONTRACTIONS[0], _LETTERS[0], r"\p{N}", _SIGNS[0], _LINES[0], _SPACES))
O200K_PATTERN = "|".join((_O200K_WORDS, r"\p{N}{1,3}", _O200K_SIGNS, _LINES[0], _SPACES))
CJK_PATTERN = "[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK_PATTERN = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _known() -> dict[str, SplitRule]:
    """Every spelling of the expressions that a scanner covers. Possessive or not makes no difference to what they match."""
    rules = {GPT2_PATTERN: SplitRule("gpt2"), DEEPSEEK_PATTERN: SplitRule("deepseek")}
    rules[r"'(?:[sdmt]|ll|ve|re)" + GPT2_PATTERN.partition("'d")[2]] = SplitRule("gpt2")
    for (number, digits), lines in product(_NUMBERS.items(), _LINES):
        for contraction, letters, signs in product(_CONTRACTIONS, _LETTERS, _SIGNS):
            rules["|".join((contraction, letters, number, signs, lines, _SPACES))] = SplitRule("cl100k", digits)
        rules["|".join((_O200K_WORDS, number, _O200K_SIGNS, lines, _SPACES))] = SplitRule("o200k", digits)
    return rules


KNOWN = _known()


def compiled_rule(pre_tokenizer: PreTokenizer | None) -> SplitRule | None:
    """The scanner that cuts as a byte-level pre-tokenizer does, or None."""
    stages = flatten(pre_tokenizer)
    if not stages or not isinstance(stages[-1], ByteLevel):
        return None
    *splits, last = stages
    if last.add_prefix_space and splits:
        return None
    rules = [rule_of_split(s) for s in splits] + ([SplitRule("gpt2")] if last.use_regex else [])
    if None in rules:
        return None
    return combine(rules, last.add_prefix_space)


def combine(rules: list[SplitRule], prefix_space: bool) -> SplitRule | None:
    """One rule for several applied in turn: any number of cuts, then at most one that forms words."""
    words = SplitRule("none")
    cuts: list[str] = []
    for i, rule in enumerate(rules):
        if rule.words == "none":
            cuts += rule.cuts
        elif i == len(rules) - 1:
            words = rule
        else:
            return None
    if sum(c != "cjk" for c in cuts) > 1:
        return None
    return SplitRule(words.words, words.digits, tuple(cuts), prefix_space)


def without_nfc(normalizer: Normalizer | None) -> Normalizer | None:
    """None for no normalizer, an empty one, or NFC: nearly all text is in that form already, which is checked before a lane is taken."""
    if isinstance(normalizer, NormalizerSequence) and len(normalizer.normalizers) <= 1:
        normalizer = normalizer.normalizers[0] if normalizer.normalizers else None
    return None if isinstance(normalizer, UnicodeForm) and normalizer.form == "NFC" else normalizer


def flatten(pre_tokenizer: PreTokenizer | None) -> list[PreTokenizer]:
    if pre_tokenizer is None:
        return []
    if isinstance(pre_tokenizer, Sequence):
        return [inner for stage in pre_tokenizer.stages for inner in flatten(stage)]
    return [pre_tokenizer]


def rule_of_split(stage: PreTokenizer) -> SplitRule | None:
    if not isinstance(stage, Split) or (stage.behaviour, stage.invert) not in (("Isolated", False), ("Removed", True)):
        return None if not is_number_run(stage) else SplitRule("none", cuts=("number_run",))
    if stage.behaviour == "Isolated":
        cut = {r"\p{N}": "each_number", r"\p{N}{1,3}": "three_numbers", r"\p{N}+": "number_run", CJK_PATTERN: "cjk"}.get(stage.source)
        if cut:
            return SplitRule("none", cuts=(cut,))
    return KNOWN.get(stage.source)


def is_number_run(stage: PreTokenizer) -> bool:
    return isinstance(stage, Split) and stage.behaviour == "Contiguous" and not stage.invert and stage.source == r"\p{N}"
