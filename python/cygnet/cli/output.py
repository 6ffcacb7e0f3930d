"""What commands print: JSON lines, tables, bar charts, and a progress bar on terminals."""

from __future__ import annotations

import json
import sys
import time


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


class Progress:
    """Count and rate of finished items on standard error, a few times a second; nothing where that is no terminal."""

    INTERVAL = 0.2

    def __init__(self, what: str, total: int | None = None):
        self.what, self.total = what, total
        self.shown = sys.stderr.isatty()
        self.start = self.last = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if self.shown and (now - self.last > self.INTERVAL or done == self.total):
            self.last = now
            sys.stderr.write(
                f"\r\x1b[K{self._bar(done)}{done}{f'/{self.total}' if self.total else ''} {self.what}, {done / max(now - self.start, 1e-9):.0f}/s"
            )
            sys.stderr.flush()

    def _bar(self, done: int) -> str:
        if not self.total:
            return ""
        filled = 30 * done // self.total
        return "[" + "#" * filled + " " * (30 - filled) + "] "

    def finish(self) -> None:
        """Takes the bar away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
