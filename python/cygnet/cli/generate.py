"""`cygnet generate`: continues a text, printed as it is made."""

from __future__ import annotations

import sys

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_generation_options, add_input_options, add_json_option, add_model_options, generation_options


def configure(parser: Parser) -> None:
    add_input_options(parser, "PROMPT")
    add_model_options(parser)
    add_generation_options(parser)
    add_json_option(parser)
    parser.add_argument("--echo", action="store_true", help="print the prompt in front")
    parser.add_argument("--logprobs", type=int, metavar="N", help="with --json: log-probabilities of the tokens and of the N likeliest at each place")


def run(args) -> None:
    prompts = whole_texts(args)
    model = open_model(args, "CausalLM", "Seq2Seq")
    options = generation_options(args)
    if args.json:
        for prompt, result in zip(prompts, model.generate(prompts, logprobs=args.logprobs, **options), strict=True):
            print_json(as_json(prompt, result))
        return
    for prompt in prompts:
        sys.stdout.write(prompt if args.echo else "")
        with model.stream(prompt, **options) as pieces:
            for piece in pieces:
                sys.stdout.write(piece)
                sys.stdout.flush()
        print()


def as_json(prompt: str, result) -> dict:
    """A finished continuation as JSON."""
    out = {
        "prompt": prompt,
        "text": result.text,
        "ids": list(result.ids),
        "finish_reason": result.finish_reason,
        "usage": result.usage._asdict(),
    }
    if result.seed is not None:
        out["seed"] = result.seed
    if result.logprobs is not None:
        out["logprobs"] = [{"id": t.id, "logprob": t.logprob, "top": [list(pair) for pair in t.top]} for t in result.logprobs]
    return out
