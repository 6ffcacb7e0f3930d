"""`cygnet generate`: continues a text, printed as it is made."""

from __future__ import annotations

import sys
from contextlib import nullcontext

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import (
    Parser,
    add_decoder_options,
    add_generation_options,
    add_input_options,
    add_json_option,
    add_model_options,
    generation_options,
)
from cygnet.cli.progress import Waiting
from cygnet.errors import OptionError

# A prompt of so many characters takes long enough to read for a word about it.
LONG_PROMPT = 4000


def configure(parser: Parser) -> None:
    add_input_options(parser, "PROMPT")
    add_model_options(parser)
    add_generation_options(parser)
    add_decoder_options(parser)
    add_json_option(parser)
    parser.add_argument("--num-return-sequences", type=int, metavar="N", help="N continuations of each prompt, sampled or the best beams")
    parser.add_argument("--echo", action="store_true", help="print the prompt in front")
    parser.add_argument("--logprobs", type=int, metavar="N", help="with --json: log-probabilities of the tokens and of the N likeliest at each place")


def run(args) -> None:
    prompts = whole_texts(args)
    if args.logprobs is not None and not args.json:
        raise OptionError("--logprobs needs --json: the text alone has no place for them")
    options = generation_options(args)
    model = open_model(args, "CausalLM", "Seq2Seq")
    if args.json or args.num_return_sequences is not None:
        _print_finished(args, prompts, model.generate(prompts, logprobs=args.logprobs, **options))
        return
    for index, prompt in enumerate(prompts):
        if len(prompts) > 1 and not args.echo:
            print(("\n" if index else "") + heading(prompt))
        sys.stdout.write(prompt if args.echo else "")
        with model.stream(prompt, **options) as pieces:
            print_pieces(pieces, len(prompt))


def print_pieces(pieces, prompt_length: int) -> str:
    """Prints a stream as it comes and returns its text; while a long prompt is read, a terminal says so."""
    text = ""
    with Waiting("reading the prompt") if prompt_length > LONG_PROMPT else nullcontext() as waiting:
        for piece in pieces:
            if waiting is not None and not text:
                waiting.finish()
            text += piece
            sys.stdout.write(piece)
            sys.stdout.flush()
    print()
    return text


def heading(prompt: str) -> str:
    """What stands above the answer to one of several prompts."""
    line = " ".join(prompt.split())
    return f"==> {line if len(line) <= 60 else line[:57] + '...'} <=="


def _print_finished(args, prompts: list[str], found: list) -> None:
    for prompt, results in zip(prompts, found, strict=True):
        for result in results if isinstance(results, list) else [results]:
            if args.json:
                print_json(as_json(prompt, result))
            else:
                print(heading(prompt))
                print((prompt if args.echo else "") + result.text)


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
        out["logprobs"] = [_token_json(t) for t in result.logprobs]
    if result.truncated_tokens:
        out["truncated_tokens"] = result.truncated_tokens
    return out


def _token_json(found) -> dict:
    tokens = found.top_tokens or [None] * len(found.top)
    top = [{"id": i, "token": token, "logprob": value} for (i, value), token in zip(found.top, tokens, strict=True)]
    return {"id": found.id, "token": found.token, "logprob": found.logprob, "top": top}
