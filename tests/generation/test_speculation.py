"""Speculation: the ids of plain decoding, in fewer passes where drafts come true."""

import numpy as np
import pytest

from cygnet.errors import OptionError
from cygnet.generation.options import GenerationOptions
from cygnet.generation.scheduler import Scheduler
from cygnet.generation.tasks import Request

from .fakes import HashEngine, Letters, ScriptEngine


class Copying(HashEngine):
    """Mostly goes on as after an earlier occurrence of its last two tokens."""

    def logits(self, ids, source):
        row = super().logits(ids, source)
        for at in range(len(ids) - 3, 0, -1):
            if ids[at - 1 : at + 1] == ids[-2:]:
                row[ids[at + 1]] += 6
                break
        return row


def run(engine, prompt, *, draft=None, decoder=None, **options):
    scheduler = Scheduler(engine, draft=draft, reuse_prefixes=False)
    result = scheduler.submit(Request(prompt, GenerationOptions(**options), decoder)).result()
    scheduler.close()
    engine.assert_clean()
    if draft is not None:
        draft.assert_clean()
    return result


PROMPT = [int(i) for i in np.random.default_rng(3).integers(0, 40, 30)] * 2
SETTINGS = [
    {},
    {"temperature": 0.7, "seed": 5},
    {"temperature": 1.5, "seed": 6, "top_p": 0.9, "num_return_sequences": 3},
    {"repetition_penalty": 1.2, "no_repeat_ngram_size": 4},
    {"eos_token_ids": (3, 5), "min_new_tokens": 6},
    {"logprobs": 2, "presence_penalty": 0.5},
    {"forced_eos": 2, "eos_token_ids": 2},
]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("limit", [1, 2, 40])
def test_ids_are_those_of_plain_decoding(options, limit):
    options = {**options, "max_new_tokens": max(limit, options.get("min_new_tokens", 0))}
    plain = run(Copying(), PROMPT, **options)
    for drafts in (1, 8, 30):
        assert run(Copying(), PROMPT, speculation="prompt-lookup", draft_tokens=drafts, **options) == plain
    for seed in (0, 1):
        assert run(Copying(), PROMPT, speculation="draft-model", draft=Copying(seed=seed), **options) == plain


def test_copying_takes_fewer_passes():
    for kwargs in ({"speculation": "prompt-lookup"}, {"speculation": "draft-model", "draft": Copying(scale=1.0, seed=1)}):
        engine = Copying(scale=1.0)
        [result] = run(engine, PROMPT, max_new_tokens=60, draft_tokens=16, **kwargs)
        assert len(result.ids) == 60 and len(engine.batches) < 25


def test_a_stop_string_within_accepted_drafts_ends_the_text_there():
    strings = [chr(97 + i) for i in range(64)]
    script = [1, 2, 3, 4, 5, 6] * 5
    plain, fast = (
        run(
            ScriptEngine(script, prompt_length=6),
            [1, 2, 3, 4, 5, 6],
            decoder=lambda: Letters(strings),
            stop="efgb",
            max_new_tokens=30,
            speculation=kind,
        )
        for kind in (None, "prompt-lookup")
    )
    assert plain == fast and fast[0].text == "bcd"


def test_a_small_draft_context_or_memory_only_stops_the_drafts():
    plain = run(Copying(), PROMPT, max_new_tokens=30)
    for draft in (Copying(max_context=70), Copying(blocks=16), Copying(blocks=1)):
        assert run(Copying(), PROMPT, speculation="draft-model", draft=draft, max_new_tokens=30) == plain


def test_a_draft_model_is_needed_and_must_fit():
    with pytest.raises(OptionError, match="draft model"):
        run(Copying(), [1], speculation="draft-model")
    with pytest.raises(OptionError, match="vocabulary"):
        Scheduler(Copying(), draft=Copying(vocab_size=41))
