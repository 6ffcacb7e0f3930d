"""Which normalizers have a compiled form, and that form: the chain of steps that a lane begins with."""

from __future__ import annotations

import re

from cygnet._core._normalize import PrependStep, ReplaceLiteral, ReplaceSpaces, ReplaceWhiteSpace, Step, StripStep, chained
from cygnet._core._normalize_characters import LowercaseStep, NmtStep, StripAccentsStep
from cygnet._core._normalize_charsmap import CharsmapStep
from cygnet._core._normalize_forms import FormStep
from cygnet.tokenizers import normalizers
from cygnet.tokenizers.components import Normalizer

# Each step calls the next; sequences of more are left to the stages.
MOST_STEPS = 32
# One character again and again: a space, or any white space.
RUN = re.compile(r"( |\\s)(?:(\+)|\{([1-9]\d{0,3}),\})")
SIGNS = frozenset("\\.^$*+?{}[]()|")


def flatten(normalizer: Normalizer | None) -> list[Normalizer]:
    """The normalizers of a sequence one by one."""
    if isinstance(normalizer, normalizers.Sequence):
        return [inner for stage in normalizer.normalizers for inner in flatten(stage)]
    return [] if normalizer is None else [normalizer]


def chain_of(stages: list[Normalizer]) -> tuple[Step | None, bool]:
    """The first step of the compiled form (None where nothing is to be done), and whether there is one."""
    if len(stages) > MOST_STEPS:
        return None, False
    steps: list[Step] = []
    for stage in stages:
        if isinstance(stage, normalizers.Precompiled) and stage.charsmap.empty:
            continue
        step = step_of(stage)
        if step is None:
            return None, False
        steps.append(step)
    return chained(steps), True


def step_of(stage: Normalizer) -> Step | None:
    """The step of one normalizer; None where it has none."""
    make = MAKERS.get(type(stage))
    return None if make is None else make(stage)


def replace_step(stage: normalizers.Replace) -> Step | None:
    pattern, content = stage.pattern.pattern, stage.content
    if stage.pattern.literal or not SIGNS.intersection(pattern):
        return ReplaceLiteral(pattern, content) if pattern else None
    run = RUN.fullmatch(pattern)
    if run is None:
        return None
    return (ReplaceSpaces if run[1] == " " else ReplaceWhiteSpace)(int(run[3] or 1), content)


MAKERS = {
    normalizers.Lowercase: lambda s: LowercaseStep(),
    normalizers.Nmt: lambda s: NmtStep(normalizers.NMT_REMOVED, normalizers.NMT_SPACES),
    normalizers.Precompiled: lambda s: CharsmapStep(s.charsmap),
    normalizers.Prepend: lambda s: PrependStep(s.prefix),
    normalizers.Replace: replace_step,
    normalizers.Strip: lambda s: StripStep(s.left, s.right),
    normalizers.StripAccents: lambda s: StripAccentsStep(),
    normalizers.UnicodeForm: lambda s: FormStep(s.compatibility, s.composed),
}
