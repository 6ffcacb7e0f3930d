"""One step of many tasks: their feeds in one ragged forward pass, their logits back to each."""

from __future__ import annotations

from collections.abc import Sequence

from cygnet.generation.engine_protocol import Engine
from cygnet.generation.step_budget import prompt_budget
from cygnet.generation.tasks import ALL, NONE, Feed, Task


def run_step(engine: Engine, tasks: Sequence[Task], prompt_tokens: int, chunk_tokens: int | None = None, failed=None) -> None:
    """Feeds every task once and lets it advance.

    Parameters
    ----------
    engine : Engine
    tasks : sequence of Task
        Earlier ones read their prompts first.
    prompt_tokens : int
        Prompt tokens of this pass, over all tasks, if nobody waits for his next token.
    chunk_tokens : int, optional
        Prompt tokens whose time a step may take otherwise, with what the others feed; prompt_tokens by default.
    failed : function of Task and BaseException, or None
        Told when a task's own code raises; without it the error leaves this function.

    Raises
    ------
    Exception
        Whatever engine.forward raises; then no task has advanced.
    """
    planned: list[tuple[Task, list[Feed]]] = []

    def plan(task, budget):
        try:
            feeds = task.plan(budget)
        except BaseException as error:
            if failed is None:
                raise
            failed(task, error)
            return 0
        if feeds:
            planned.append((task, feeds))
        return sum(len(feed.ids) for feed in feeds)

    reading = [task for task in tasks if task.reading]
    for task in tasks:
        if not task.reading:
            plan(task, 0)
    budget = prompt_tokens
    if planned and reading:
        chunk = prompt_tokens if chunk_tokens is None else chunk_tokens
        budget = prompt_budget(engine, chunk, [feed for _, own in planned for feed in own], reading[0].read)
    for task in reading:
        budget -= plan(task, budget)
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
