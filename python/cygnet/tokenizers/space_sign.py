"""Pipelines that only turn spaces into a visible sign, as SentencePiece does: which of them a compiled lane covers."""

from __future__ import annotations

from cygnet.records import record
from cygnet.tokenizers.components import Normalizer, PreTokenizer
from cygnet.tokenizers.normalizers import Prepend, Replace
from cygnet.tokenizers.normalizers import Sequence as NormalizerSequence
from cygnet.tokenizers.pretokenizers import Metaspace, Split


@record
class SpaceSign:
    """What happens to spaces.

    Attributes
    ----------
    sign : str
    prepend : str
        "never"; "sign" before every stretch of text, "missing" where it does not begin with one, "first" so at the beginning of the text.
    replace_spaces : bool
    split : bool
        Each sign begins a word.
    """

    sign: str = "▁"
    prepend: str = "never"
    replace_spaces: bool = True
    split: bool = False


def space_sign_rule(normalizer: Normalizer | None, stages: list[PreTokenizer]) -> SpaceSign | None:
    """The rule that a normalizer and pre-tokenizers come to, or None where they do more."""
    if normalizer is None and len(stages) == 1 and isinstance(stages[0], Metaspace):
        metaspace = stages[0]
        prepend = {"always": "missing", "first": "first", "never": "never"}[metaspace.prepend_scheme]
        return SpaceSign(metaspace.replacement, prepend, True, metaspace.cut)
    rule = _normalizer_rule(normalizer)
    if rule is None or not all(_never_splits(stage, rule) for stage in stages):
        return None
    return rule


def _normalizer_rule(normalizer: Normalizer | None) -> SpaceSign | None:
    parts = normalizer.normalizers if isinstance(normalizer, NormalizerSequence) else [normalizer] if normalizer else []
    rule = SpaceSign(replace_spaces=False)
    for part in parts:
        if isinstance(part, Prepend) and part.prefix == rule.sign and not rule.replace_spaces and rule.prepend == "never":
            rule = SpaceSign(rule.sign, "sign", False)
        elif isinstance(part, Replace) and part.pattern.pattern in (" ", r"\ ") and part.content == rule.sign:
            rule = SpaceSign(rule.sign, rule.prepend, True)
        else:
            return None
    return rule


def _never_splits(stage: PreTokenizer, rule: SpaceSign) -> bool:
    """Whether a stage leaves the text whole: a split at spaces, when none is left."""
    if not isinstance(stage, Split) or (stage.invert and stage.behaviour == "Removed"):
        return False
    return rule.replace_spaces and stage.pattern.pattern in (" ", r"\ ")
