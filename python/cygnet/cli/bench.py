"""`cygnet bench`: how fast a model runs here."""

from __future__ import annotations

import time

from cygnet.cli.model import open_model
from cygnet.cli.output import print_bars, print_json, print_table
from cygnet.cli.parser import Parser, add_json_option, add_model_options
from cygnet.errors import OptionError


def configure(parser: Parser) -> None:
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--prompt-tokens", type=int, default=256, metavar="N", help="length of the prompt (default: 256)")
    parser.add_argument("--new-tokens", type=int, default=64, metavar="N", help="tokens decoded after it (default: 64)")
    parser.add_argument("--batch", type=int, default=1, metavar="N", help="sequences decoded side by side (default: 1)")
    parser.add_argument("--texts", type=int, default=128, metavar="N", help="texts embedded (default: 128)")
    parser.add_argument("--text-tokens", type=int, default=32, metavar="N", help="length of these texts (default: 32)")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="repetitions, the best counts (default: 3)")
    parser.add_argument("--profile", action="store_true", help="show where the time goes, as a table and as bars")


def run(args) -> None:
    for name in ("prompt_tokens", "new_tokens", "batch", "texts", "text_tokens", "runs"):
        if getattr(args, name) < 1:
            raise OptionError(f"--{name.replace('_', '-')} must be at least 1")
    start = time.perf_counter()
    model = open_model(args, "CausalLM", "Encoder")
    results = {"load_seconds": time.perf_counter() - start}
    if args.profile:
        model.engine.profile(True)
    results |= _decoder_speed(model, args) if type(model).__name__ == "CausalLM" else _encoder_speed(model, args)
    stages = model.engine.profile(False) if args.profile else {}
    facts = {"model": str(model.source), "weights": args.weights, "threads": model.engine.threads}
    if args.json:
        print_json({**facts, **results, **({"profile": stages} if stages else {})})
        return
    shown = {**facts, **{name: f"{value:.4g}" for name, value in results.items()}}
    print_table([[name, str(value)] for name, value in shown.items()], ["what", "value"])
    if stages:
        _print_profile(stages)


def _print_profile(stages: dict[str, float]) -> None:
    """Seconds of each stage, longest first, as a table and as bars."""
    ordered = dict(sorted(stages.items(), key=lambda stage: -stage[1]))
    total = sum(ordered.values()) or 1
    print()
    print_table([[name, f"{seconds:.3f}", f"{100 * seconds / total:.0f}%"] for name, seconds in ordered.items()], ["stage", "seconds", "share"])
    print()
    print_bars(ordered)


def _decoder_speed(model, args) -> dict:
    """Tokens a second of reading a prompt and of decoding after it; the likeliest tokens are taken."""
    needed = args.prompt_tokens + args.new_tokens
    if model.max_context is not None and needed > model.max_context:
        raise OptionError(f"--prompt-tokens and --new-tokens are {needed} together, the context is {model.max_context}")
    prompt = _ids(model, args.prompt_tokens)
    prefill, decode = [], []
    for _ in range(args.runs):
        sequences = [model.engine.sequence() for _ in range(args.batch)]
        start = time.perf_counter()
        logits = model.engine.forward([(sequence, prompt) for sequence in sequences], rows="last")
        middle = time.perf_counter()
        for _ in range(args.new_tokens):
            logits = model.engine.forward([(s, [int(token)]) for s, token in zip(sequences, logits.argmax(axis=1), strict=True)], rows="last")
        prefill.append(middle - start)
        decode.append(time.perf_counter() - middle)
        for sequence in sequences:
            sequence.release()
    return {
        "prefill_tokens_per_second": args.batch * args.prompt_tokens / min(prefill),
        "decode_tokens_per_second": args.batch * args.new_tokens / min(decode),
        "milliseconds_per_token": 1e3 * min(decode) / args.new_tokens,
    }


def _encoder_speed(model, args) -> dict:
    texts = [_ids(model, args.text_tokens, first) for first in range(args.texts)]
    took = []
    for _ in range(args.runs):
        start = time.perf_counter()
        model.embed(texts)
        took.append(time.perf_counter() - start)
    return {"texts_per_second": args.texts / min(took), "tokens_per_second": args.texts * args.text_tokens / min(took)}


def _ids(model, count: int, first: int = 0) -> list[int]:
    """Token ids spread over the vocabulary, the same in every run."""
    return [(first + 7919 * i) % model.spec.vocab_size for i in range(1, count + 1)]
