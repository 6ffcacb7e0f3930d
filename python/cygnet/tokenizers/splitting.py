"""What happens to the matches of a splitting rule: the five behaviours of tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]

BEHAVIOURS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def runs(length: int, matches: Iterable[Range], invert: bool = False) -> list[tuple[int, int, bool]]:
    """Matches and the stretches between them, in order, each with whether it counts as a delimiter."""
    out: list[tuple[int, int, bool]] = []
    done = 0
    for start, end in matches:
        if done != start:
            out.append((done, start, invert))
        out.append((start, end, not invert))
        done = end
    if done != length:
        out.append((done, length, invert))
    return out


def ranges(stretches: list[tuple[int, int, bool]], behaviour: str) -> list[Range]:
    """Ranges that remain when each delimiter is treated as the behaviour says."""
    if behaviour == "Removed":
        return [(start, end) for start, end, delimiter in stretches if not delimiter]
    if behaviour == "Isolated":
        return [(start, end) for start, end, _ in stretches]
    if behaviour == "Contiguous":
        return _contiguous(stretches)
    if behaviour == "MergedWithPrevious":
        return _merged_with_previous(stretches)
    mirrored = [(-end, -start, delimiter) for start, end, delimiter in reversed(stretches)]
    return [(-end, -start) for start, end in reversed(_merged_with_previous(mirrored))]


def _contiguous(stretches: list[tuple[int, int, bool]]) -> list[Range]:
    out: list[Range] = []
    previous = False
    for start, end, delimiter in stretches:
        if delimiter == previous and out:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        previous = delimiter
    return out


def _merged_with_previous(stretches: list[tuple[int, int, bool]]) -> list[Range]:
    out: list[Range] = []
    previous = False
    for start, end, delimiter in stretches:
        if delimiter and not previous and out:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
        previous = delimiter
    return out
