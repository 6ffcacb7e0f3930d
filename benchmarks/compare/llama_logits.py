"""Logits of llama.cpp after every token, for accuracy.py: a JSON list of ids a line on standard input, float32 rows as bytes on standard output.

Runs under the Python of the comparison's engines; PYTHONPATH holds the harness. Argument: the entry of an engine as JSON.
"""

import json
import os
import sys

import numpy as np
from engines import LlamaCpp  # of the harness


def logits(engine, ids):
    """(len(ids), vocabulary) float32 of a fresh sequence."""
    library = engine.L
    engine._clear()
    batch = library.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = token, i, 1, 0, 1
    if library.llama_decode(engine.ctx, batch):
        raise RuntimeError("llama_decode failed")
    rows = np.ctypeslib.as_array(library.llama_get_logits(engine.ctx), shape=(len(ids), engine.vocab)).copy()
    library.llama_batch_free(batch)
    return rows


def main():
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints stays out of the answer
    engine = LlamaCpp()
    engine.load(json.loads(sys.argv[1]))
    for line in sys.stdin:
        out.write(logits(engine, json.loads(line)).tobytes())
        out.flush()


if __name__ == "__main__":
    main()
