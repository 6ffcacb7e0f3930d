"""One step of many tasks: their feeds in one ragged forward pass, their logits back to each."""

from __future__ import annotations

from collections.abc import Sequence

from cygnet.generation.engine_protocol import Engine
from cygnet.generation.tasks import ALL, NONE, Feed, Task


def run_step(engine: Engine, tasks: Sequence[Task], budget: int, failed=None) -> None:
    """Feeds every task once and lets it advance.

    Parameters
    ----------
    engine : Engine
    tasks : sequence of Task
        Earlier ones get prompt budget first.
    budget : int
        Prompt tokens of this pass, over all tasks.
    failed : function of Task and BaseException, or None
        Told when a task's own code raises; without it the error leaves this function.

    Raises
    ------
    Exception
        Whatever engine.forward raises; then no task has advanced.
    """
    planned: list[tuple[Task, list[Feed]]] = []
    for task in tasks:
        try:
            feeds = task.plan(budget)
        except BaseException as error:
            if failed is None:
                raise
            failed(task, error)
            continue
        if feeds:
            planned.append((task, feeds))
            if task.reading:
                budget -= sum(len(feed.ids) for feed in feeds)
    if not planned:
        return
    feeds = [feed for _, own in planned for feed in own]
    logits = engine.forward([(feed.sequence, feed.ids) for feed in feeds], rows=_rows(feeds))
    first = 0
    for task, own in planned:
        count = sum(map(_row_count, own))
        try:
            task.advance(logits[first : first + count])
        except BaseException as error:
            if failed is None:
                raise
            failed(task, error)
        first += count


def _row_count(feed: Feed) -> int:
    return len(feed.ids) if feed.rows == ALL else 0 if feed.rows == NONE else 1


def _rows(feeds: list[Feed]) -> str | list[int]:
    """The forward pass's `rows`: a word if one fits all feeds, else a count for each."""
    kinds = {feed.rows for feed in feeds}
    return kinds.pop() if len(kinds) == 1 else list(map(_row_count, feeds))
