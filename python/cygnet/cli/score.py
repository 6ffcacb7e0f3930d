"""`cygnet score`: how likely a model finds a text."""

from __future__ import annotations

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json, print_table
from cygnet.cli.parser import Parser, add_input_options, add_json_option, add_model_options
from cygnet.cli.progress import Waiting
from cygnet.errors import OptionError


def configure(parser: Parser) -> None:
    add_input_options(parser)
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--stride", type=int, metavar="N", help="score a text beyond the context in windows that start N tokens apart")
    parser.add_argument("--tokens", action="store_true", help="print every token with its log-probability")


def run(args) -> None:
    texts = whole_texts(args)
    model = open_model(args, "CausalLM")
    window = {} if args.stride is None else {"stride": args.stride}
    for text in texts:
        with Waiting("scoring"):
            score = model.score(text, **window)
        if not len(score.logprobs):
            raise OptionError(f"there is nothing to score in {text!r:.40}: a text needs two tokens, each is scored after those before it")
        ids = model.encode_text(text)
        pieces = [model.tokenizer.id_to_token(token) for token in ids[len(ids) - len(score.logprobs) :]]
        if args.json:
            logprobs = [float(x) for x in score.logprobs]
            print_json({"text": text, "perplexity": float(score.perplexity), "tokens": pieces, "logprobs": logprobs})
            continue
        if args.tokens:
            print_table([[f"{x:9.4f}", repr(piece)] for piece, x in zip(pieces, score.logprobs, strict=True)], ["  logprob", "token"])
        print(f"perplexity {score.perplexity:.4f}, {len(score.logprobs)} tokens, mean log-probability {float(score.logprobs.mean()):.4f}")
