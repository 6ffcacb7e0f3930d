"""How far a command is, on standard error where that is a terminal: with rich (extra `cli`) a bar, else a plain line; elsewhere nothing."""

from __future__ import annotations

import sys
import time

# Seconds before anything is shown: what is over sooner needs no bar.
DELAY = 0.3
INTERVAL = 0.1


class Progress:
    """Count and rate of finished items.

    Parameters
    ----------
    what : str
        What is counted.
    total : int, optional
    """

    def __init__(self, what: str, total: int | None = None):
        self.what, self.total = what, total
        self._start = time.monotonic()
        self._last = self._start + DELAY - INTERVAL
        self._shown: _RichBar | _PlainBar | None = None

    def __call__(self, done: int, total: int | None = None) -> None:
        """Tells that so many items are finished."""
        now = time.monotonic()
        self.total = total or self.total
        if not on_terminal() or now - self._last < INTERVAL:
            return
        self._last = now
        if self._shown is None:
            self._shown = _bar(self.what, self.total)
        self._shown.show(done, done / max(now - self._start, 1e-9))

    def finish(self) -> None:
        """Takes the bar away."""
        if self._shown is not None:
            self._shown.remove()
            self._shown = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.finish()


class Waiting:
    """A line that says what is waited for, until the end of the block or `finish`."""

    def __init__(self, what: str):
        self.what = what
        self._shown = False

    def __enter__(self) -> Waiting:
        if on_terminal():
            _write(f"\r\x1b[K{self.what} ...")
            self._shown = True
        return self

    def finish(self) -> None:
        """Takes the line away."""
        if self._shown:
            _write("\r\x1b[K")
            self._shown = False

    def __exit__(self, *exception: object) -> None:
        self.finish()


def on_terminal() -> bool:
    """Whether standard error is one."""
    return sys.stderr is not None and sys.stderr.isatty()


def _bar(what: str, total: int | None) -> _RichBar | _PlainBar:
    try:
        return _RichBar(what, total)
    except ImportError:
        return _PlainBar(what, total)


class _RichBar:
    def __init__(self, what: str, total: int | None):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = [BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()]
        columns += [TextColumn("left:"), TimeRemainingColumn()] if total else []
        self._progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._what, self._task = what, self._progress.add_task(what, total=total)
        self._progress.start()

    def show(self, done: int, rate: float) -> None:
        self._progress.update(self._task, completed=done, description=f"{self._what}, {rate:.0f}/s")

    def remove(self) -> None:
        self._progress.stop()


class _PlainBar:
    def __init__(self, what: str, total: int | None):
        self._what, self._total = what, total

    def show(self, done: int, rate: float) -> None:
        bar = ""
        if self._total:
            filled = 30 * min(done, self._total) // self._total
            bar = "[" + "#" * filled + " " * (30 - filled) + "] "
        _write(f"\r\x1b[K{bar}{done}{f'/{self._total}' if self._total else ''} {self._what}, {rate:.0f}/s")

    def remove(self) -> None:
        _write("\r\x1b[K")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
