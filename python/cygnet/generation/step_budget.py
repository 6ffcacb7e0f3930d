"""How many prompt tokens a step may read beside running answers, so that nobody waits for his next token longer than one full chunk alone takes.

A step's time is about its multiply-adds. Those of the tokens that are decoded in the step are taken from the chunk's.
"""

from __future__ import annotations

from collections.abc import Sequence as Ids

from cygnet.generation.engine_protocol import Engine
from cygnet.generation.tasks import NONE, Feed

# One token alone over many keys waits for memory where a chunk's tokens share what is read: so many times as long a key.
_LONELY = 3

# What a step of a small model costs beside its multiply-adds, in prompt tokens: by itself, and for each answer whose token is chosen.
_STEP, _ANSWER = 8, 1.5

# Where the answers alone take a whole chunk's time, prompts still go on, by this part of a chunk.
_LEAST = 8


def prompt_budget(engine: Engine, chunk: int, decoded: Ids[Feed], read: int) -> int:
    """Prompt tokens of a step.

    Parameters
    ----------
    engine : Engine
    chunk : int
        Tokens of a full chunk.
    decoded : sequence of Feed
        What the running answers feed in this step.
    read : int
        How much of its prompt the first reader has read: deep in a prompt a token costs more.

    Returns
    -------
    int
        From chunk / 8, and at least 1, to `chunk`.
    """
    token = engine.token_cost(read + chunk // 2, False)
    taken = _STEP + sum(_ANSWER + _cost(engine, feed) / token for feed in decoded)
    return max(chunk - round(taken + 0.5), -(-chunk // _LEAST)) if decoded else chunk


def _cost(engine: Engine, feed: Feed) -> float:
    keys = feed.sequence.length + len(feed.ids)
    return len(feed.ids) * engine.token_cost(_LONELY * keys, feed.rows != NONE)
