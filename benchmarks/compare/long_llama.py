"""llama.cpp with prompts longer than one of its batches: they are evaluated in pieces, as its own programs do."""

from engines import LlamaCpp  # of the harness

BATCH = 2048


class LongLlamaCpp(LlamaCpp):
    def _eval(self, ids):
        for first in range(0, len(ids), BATCH):
            super()._eval(ids[first : first + BATCH])
