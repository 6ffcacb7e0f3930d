"""What commands print: JSON lines, tables, bar charts."""

from __future__ import annotations

import json
import sys


def print_json(value) -> None:
    """One JSON value on one line, non-ASCII characters as they are."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def print_table(rows: list[list[str]], head: list[str]) -> None:
    """Left-aligned columns."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_bars(values: dict[str, float], width: int = 50) -> None:
    """One bar a name; the largest value fills the width, and each ends with its share of the sum.

    Bars are drawn in eighths of a character where standard output can write block elements, in whole # elsewhere.
    """
    longest, total = max(values.values(), default=0) or 1, sum(values.values()) or 1
    blocks = _can_print("█")
    names = max(map(len, values), default=0)
    for name, value in values.items():
        bar = _blocks(width * value / longest) if blocks else "#" * round(width * value / longest)
        print(f"{name.ljust(names)}  {bar} {100 * value / total:.0f}%")


def _blocks(length: float) -> str:
    whole, eighths = divmod(round(8 * length), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
