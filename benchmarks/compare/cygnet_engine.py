"""cygnet as one of the engines that a comparison asks in turns: each method does the work and returns its seconds.

Only the public classes are used, in the way any program would use them.
"""

import time

import cygnet

clock = time.perf_counter


class Cygnet:
    """`load` takes the entry of a suite file: model (a path), weights (the option of cygnet.load) and threads."""

    def load(self, args):
        self.model = cygnet.load(args["model"], weights=args.get("weights", "auto"), threads=args["threads"])

    def _generate(self, ids, n):
        start = clock()
        results = self.model.generate(ids, max_new_tokens=n, min_new_tokens=n, temperature=0)
        return clock() - start, results

    def prefill(self, ids):
        """A fresh sequence, all ids read, the next token known."""
        return self._generate([self._fresh(ids)], 1)[0]

    def decode(self, ids, n):
        """The first token's arrival to the last one's: n single steps."""
        options = {"max_new_tokens": n + 1, "min_new_tokens": n + 1, "temperature": 0}
        arrivals = [clock() for delta in self.model.stream(self._fresh(ids), **options).deltas() if delta.id is not None]
        if len(arrivals) != n + 1:
            raise RuntimeError(f"{len(arrivals)} tokens instead of {n + 1}")
        return arrivals[-1] - arrivals[0]

    def _fresh(self, ids):
        """No call finds the prompt of an earlier one in the prefix memory: the first token differs from call to call."""
        self.calls = getattr(self, "calls", 0) + 1
        return [(ids[0] + self.calls) % 1000 + 10, *ids[1:]]

    def embed(self, texts):
        start = clock()
        self.model.embed(texts)
        return clock() - start

    def translate(self, batch, n, beams):
        start = clock()
        self.model.generate(batch, max_new_tokens=n, min_new_tokens=n, num_beams=beams, length_penalty=1.0)
        return clock() - start

    def concurrent(self, prompts, n):
        start = clock()
        results = self.model.generate(prompts, max_new_tokens=n, min_new_tokens=n, temperature=0)
        seconds = clock() - start
        if any(len(result.ids) != n for result in results):
            raise RuntimeError("a request came back short")
        return seconds
