"""`cygnet classify`: a label for each line of text."""

from __future__ import annotations

from cygnet.cli.inputs import line_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option, add_line_options, add_model_options


def configure(parser: Parser) -> None:
    add_line_options(parser)
    add_model_options(parser)
    add_json_option(parser)


def run(args) -> None:
    model = open_model(args, "SequenceClassifier", "CrossEncoder")
    texts = list(line_texts(args))
    for text, found in zip(texts, model.classify(texts), strict=True):
        if args.json:
            print_json({"text": text, "label": found.label, "score": found.score, "scores": found.scores, "truncated": found.truncated})
        else:
            print(f"{found.label}\t{found.score:.4f}\t{text}")
