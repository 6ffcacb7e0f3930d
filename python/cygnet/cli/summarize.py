"""`cygnet summarize`: a short form of a text."""

from __future__ import annotations

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_generation_options, add_input_options, add_json_option, add_model_options, generation_options


def configure(parser: Parser) -> None:
    add_input_options(parser)
    add_model_options(parser)
    add_generation_options(parser)
    add_json_option(parser)
    parser.add_argument("--truncate", action="store_true", help="read only the start of a text that is too long for the model")


def run(args) -> None:
    texts = whole_texts(args)
    model = open_model(args, "Seq2Seq")
    for text, summary in zip(texts, model.summarize(texts, truncate=args.truncate, **generation_options(args)), strict=True):
        if args.json:
            print_json({"text": text, "summary": summary.text, "truncated": summary.truncated})
        else:
            print(summary.text)
