"""The conformance operations that choose tokens, answered by cygnet: `logits` and `beam_search`."""

from __future__ import annotations

import numpy as np

from cygnet._core._processors import History, Processors, force
from cygnet._core._sampling import Sampler
from cygnet.generation.batch import run_step
from cygnet.generation.beam_task import BeamTask
from cygnet.generation.options import GenerationOptions
from cygnet.generation.prefix_cache import PrefixCache
from cygnet.generation.tasks import Request

_NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0}


def logits(inputs, params):
    """A processor, or a chain of them, on (B, V) logits with (B, n) history."""
    rows = np.array(inputs["logits"], np.float32, order="C")
    for step in params["steps"] if params["processor"] == "chain" else [params]:
        for row, ids in zip(rows, inputs["ids"], strict=True):
            _process(row, ids.tolist(), step)
    weights = np.exp(rows.astype(np.float64) - rows.max(-1, keepdims=True))
    return {"logits": rows, "probs": weights / weights.sum(-1, keepdims=True)}


def _process(row, ids, step):
    kind = step["processor"]
    if kind == "forced_eos":
        if len(ids) == step["max_length"] - 1:
            force(row, step["eos_token_id"])
    elif kind in _PROCESSORS:
        prompt, options = _PROCESSORS[kind](step, len(ids))
        history = History(ids[:prompt])
        for token in ids[prompt:]:
            history.append(token)
        Processors(**options).apply(row, history)
    else:
        name = {"typical": "typical_p"}.get(kind, kind)
        value = step["epsilon"] if "epsilon" in step else step[name]
        Sampler(**{**_NEUTRAL, name: value}, min_tokens_to_keep=step.get("min_tokens_to_keep", 1)).filter(row)


# For each processor: how much of the history is prompt, and the options.
_PROCESSORS = {
    "repetition_penalty": lambda p, n: (n, {"repetition_penalty": p["penalty"]}),
    "frequency_presence": lambda p, n: (0, {"frequency_penalty": p["frequency"], "presence_penalty": p["presence"]}),
    "no_repeat_ngram": lambda p, n: (n, {"no_repeat_ngram_size": p["size"]}),
    "bad_words": lambda p, n: (n, {"bad_words": p["bad_words_ids"]}),
    "suppress": lambda p, n: (n, {"suppress": p["tokens"]}),
    "min_length": lambda p, n: (0, {"min_new_tokens": p["min_length"], "end_ids": p["eos_token_id"]}),
    "min_new_tokens": lambda p, n: (p["prompt_length"], {"min_new_tokens": p["min_new_tokens"], "end_ids": p["eos_token_id"]}),
    "sequence_bias": lambda p, n: (n, {"bias": [(tuple(ids), value) for ids, value in p["bias"]]}),
}


class _TableEngine:
    """The least engine that beam search needs: logits looked up by step and last token, sequences that count."""

    class Sequence:
        def __init__(self, length=0):
            self.length = length

        def fork(self):
            return type(self)(self.length)

        def truncate(self, length):
            self.length = length

        def announce(self, length):
            pass

        def release(self):
            self.length = 0

    max_context, block_tokens, blocks_free = None, 16, 1

    def __init__(self, table):
        self.table, self.vocab_size = table, table.shape[-1]

    def sequence(self, source=None):
        return self.Sequence()

    def variant(self, length):
        return 0

    def forward(self, batch, rows="last"):
        logits = [self.table[sequence.length, ids[-1]] for sequence, ids in batch]
        for sequence, ids in batch:
            sequence.length += len(ids)
        return np.array(logits, np.float32)


def beam_search(inputs, params):
    """All finished beams over a table of logits (steps, V, V), best first."""
    params = dict(params)
    start, beams = params.pop("start"), params["num_beams"]
    engine = _TableEngine(inputs["table"])
    task = BeamTask(Request([start], GenerationOptions.create(None, num_return_sequences=beams, **params)), None)
    task.begin(engine, PrefixCache(engine), None)
    while not task.finished:
        run_step(engine, [task], 1)
    results = task.results()
    longest = max(len(result.ids) for result in results)
    return {
        "ids": np.array([result.ids + [-1] * (longest - len(result.ids)) for result in results]),
        "scores": np.array([result.score for result in results]),
    }
