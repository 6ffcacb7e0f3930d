"""States how far quantised weights are from float32, and checks it: exit status 1 where a statement does not hold.

    python benchmarks/accuracy.py --bench PEERS/bench.py --home HOME [--tokens 8192]

SmolLM2 reads windows of the language reference that comes with Python; every form's next-token distributions are compared with those of float32:
perplexity, and mean Kullback-Leibler divergence. llama.cpp reads the same token ids from the same files, through the comparison harness
(benchmarks/compare). MiniLM's int8 vectors are compared with its float32 ones. Then logits and vectors are compared bit for bit over batches,
threads and cached prefixes.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import cygnet
from cygnet.architectures.registry import load_spec
from cygnet.engine import Engine

sys.path.insert(0, str(Path(__file__).parent / "compare"))
from harness import HERE, arguments, peers_python, workloads  # noqa: E402

WINDOW = 512
HALF = "float32, keys and values in float16"
INT4 = {  # our form -> what llama.cpp reads; the float32 weights are those of the Q4_1 file, which other 4-bit types can only approximate
    "Q4_0": "Q4_0",
    "Q4_1": "Q4_1",
    "Q4_K_M": "Q4_K_M",
    "int4 of float32": "Q4_1",
}


class Statements:
    """What was claimed and whether it held."""

    def __init__(self):
        self.failed = 0

    def check(self, holds, text):
        print(f"{'holds' if holds else 'DOES NOT HOLD':14} {text}", flush=True)
        self.failed += not holds


class Distance:
    """How a form reads the text: each token's surprise, and each distribution's divergence from the reference's."""

    def __init__(self):
        self.surprises, self.divergences = [], []

    def add(self, ids, logits, reference):
        """`logits` and the reference's log-probabilities after each of the ids but the last."""
        log_probabilities = log_softmax(logits)
        following = np.array(ids[1:])
        self.surprises += (-log_probabilities[np.arange(len(following)), following]).tolist()
        self.divergences += (np.exp(reference) * (reference - log_probabilities)).sum(axis=1, dtype=np.float64).tolist()

    @property
    def perplexity(self):
        return float(np.exp(np.mean(self.surprises)))

    @property
    def divergence(self):
        return float(np.mean(self.divergences))

    def change(self, exact):
        """By what part the perplexity is above that of `exact`, and the standard error of that, from the differences token by token."""
        difference = np.subtract(self.surprises, exact.surprises)
        return float(np.expm1(difference.mean())), float(difference.std() / np.sqrt(len(difference)))

    def not_above(self, other):
        """Whether this form's distributions are no farther from the reference than another's, up to two standard errors of the differences."""
        difference = np.subtract(self.divergences, other.divergences)
        return difference.mean() <= 2 * difference.std() / np.sqrt(len(difference))


def log_softmax(logits):
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True, dtype=np.float64)).astype(np.float32)


class LlamaLogits:
    """llama.cpp's logits, from a process of the peers' Python."""

    def __init__(self, bench, home, model, threads, vocabulary):
        entry = json.dumps({"model": model, "threads": threads, "context": WINDOW})
        environment = {"PYTHONPATH": str(Path(bench).resolve().parent)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([peers_python(home), str(HERE / "llama_logits.py"), entry], env=environment, **pipes)
        self.vocabulary = vocabulary

    def __call__(self, ids):
        self.process.stdin.write(json.dumps(ids).encode() + b"\n")
        self.process.stdin.flush()
        data = self.process.stdout.read(4 * len(ids) * self.vocabulary)
        if len(data) != 4 * len(ids) * self.vocabulary:
            raise RuntimeError("llama.cpp gave no logits")
        return np.frombuffer(data, np.float32).reshape(len(ids), self.vocabulary)


def engine_of(path, weights="auto", threads=None, **options):
    loaded = load_spec(path)
    return Engine(loaded.spec, loaded.weights, weights=weights, threads=threads, **options)


def logits_of(engine, ids, pieces=1):
    """(len(ids), V): logits after every token, read in so many pieces."""
    sequence = engine.sequence()
    cuts = [len(ids) * i // pieces for i in range(pieces + 1)]
    rows = [engine.forward([(sequence, ids[a:b])], rows="all") for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    sequence.release()
    return np.concatenate(rows)


def windows(home, tokens):
    """Lists of WINDOW ids, about `tokens` in all, from all over the language reference that comes with Python."""
    text = "\n".join(topics[name] for name in sorted(topics))
    ids = list(cygnet.Tokenizer.from_pretrained(home / "smollm2").encode(text).ids)
    count = max(1, tokens // WINDOW)
    return [ids[start : start + WINDOW] for start in range(0, len(ids) - WINDOW, len(ids) // count)][:count]


def forms(args):
    """Name -> a function from ids to logits: our weight forms, and llama.cpp's files."""
    home, threads = Path(args.home), args.threads
    float_folder = home / "smollm2"
    engines = {
        "float32": engine_of(float_folder, "float32", threads),
        HALF: engine_of(float_folder, "float32", threads, cache_dtype="float16"),
        "int8": engine_of(float_folder, "int8", threads),
    }
    for name in ("Q4_0", "Q4_1", "Q4_K_M"):
        engines[name] = engine_of(home / f"smollm2-{name}.gguf", "auto", threads)
    engines["int4 of float32"] = engine_of(float_folder, "int4", threads)
    found = {name: lambda ids, engine=engine: logits_of(engine, ids) for name, engine in engines.items()}
    vocabulary = engines["float32"].vocab_size
    for name in dict.fromkeys(INT4.values()):
        found[f"llama.cpp {name}"] = LlamaLogits(args.bench, home, str(home / f"smollm2-{name}.gguf"), threads, vocabulary)
    return found


def language_model(args, statements):
    """Distances of all forms from float32."""
    found, pieces = forms(args), windows(Path(args.home), args.tokens)
    distances = {name: Distance() for name in found}
    for ids in pieces:
        reference = log_softmax(found["float32"](ids)[:-1])
        for name, logits in found.items():
            distances[name].add(ids, logits(ids)[:-1], reference)
    exact = distances["float32"]
    text = f"Python {platform.python_version()}'s language reference in windows of {WINDOW}"
    print(f"SmolLM2-135M, {len(exact.surprises)} tokens of {text}")
    print(f"{'form':38} {'perplexity':>11} {'change':>8} {'error':>7} {'divergence':>11}")
    for name, own in distances.items():
        change, error = own.change(exact)
        print(f"{name:38} {own.perplexity:11.4f} {change:8.2%} {error:7.2%} {own.divergence:11.6f}")
    print()
    for name, most in (("int8", 0.005), (HALF, 0.0005)):
        change, error = distances[name].change(exact)
        text = f"{name}: perplexity within {most:.2%} of float32, two standard errors allowed ({change:.2%}, {error:.2%} each)"
        statements.check(abs(change) <= most + 2 * error, text)
    for name, file in INT4.items():
        ours, theirs = distances[name], distances[f"llama.cpp {file}"]
        text = f"{name}: divergence {ours.divergence:.6f} not above llama.cpp's with {file}, {theirs.divergence:.6f} (two standard errors allowed)"
        statements.check(ours.not_above(theirs), text)


def embeddings(args, statements):
    """Angles between int8 and float32 vectors."""
    texts = workloads(args.bench).passages(256)
    exact, rounded = (cygnet.load(f"{args.home}/minilm", weights=w, threads=args.threads).embed(texts) for w in ("float32", "int8"))
    cosines = (exact * rounded).sum(axis=1)
    text = f"MiniLM int8: cosine with float32 above 0.999 for each of {len(texts)} texts (least {cosines.min():.5f}, mean {cosines.mean():.5f})"
    statements.check(bool(cosines.min() > 0.999), text)


def same_bits(args, statements):
    """Logits and vectors over placements that must not matter."""
    compared = different = 0
    random = np.random.default_rng(0)
    for weights in ("float32", "int8", "int4"):
        engines = [engine_of(f"{args.home}/smollm2", weights, threads) for threads in (1, 2, 3)]
        prompts = [random.integers(5, engines[0].vocab_size, n).tolist() for n in (1, 2, 7, 33, 64, 130)]
        alone = [logits_of(engines[0], ids) for ids in prompts]
        for engine in engines:
            sequences = [engine.sequence() for _ in prompts]
            batch = engine.forward(list(zip(sequences, prompts, strict=True)), rows="all")
            for ids, wanted, found in zip(prompts, alone, np.split(batch, np.cumsum([len(ids) for ids in prompts])[:-1]), strict=True):
                for candidate in (found, logits_of(engine, ids), logits_of(engine, ids, min(len(ids), 5))):
                    compared += len(wanted)
                    different += int((candidate.view(np.uint32) != wanted.view(np.uint32)).any(axis=1).sum())
            engine.close()
    texts = workloads(args.bench).passages(64)
    for weights in ("float32", "int8"):
        models = [cygnet.load(f"{args.home}/minilm", weights=weights, threads=threads) for threads in (1, 2, 3)]
        alone = np.concatenate([models[0].embed([text]) for text in texts])
        for model in models:
            compared += len(texts)
            different += int((model.embed(texts).view(np.uint32) != alone.view(np.uint32)).any(axis=1).sum())
    statements.check(not different, f"the same bits alone, in a batch, on 1 to 3 threads, from a cached prefix: {compared} rows, {different} differ")


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=8192, help="tokens that are read")
    args = parser.parse_args()
    statements = Statements()
    language_model(args, statements)
    embeddings(args, statements)
    same_bits(args, statements)
    return min(statements.failed, 1)


if __name__ == "__main__":
    sys.exit(main())
