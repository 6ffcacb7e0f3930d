"""`cygnet classify`: a label for each line of text, or for each pair of texts (premise and hypothesis)."""

from __future__ import annotations

from cygnet.cli.inputs import line_pairs, line_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option, add_line_options, add_model_options
from cygnet.errors import OptionError


def configure(parser: Parser) -> None:
    add_line_options(parser)
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--pair", metavar="TEXT", help="second text, for models that judge pairs: the hypothesis for every premise")
    parser.add_argument("--pairs", action="store_true", help="lines are pairs: two texts with a tab between, or JSON arrays of two texts")


def run(args) -> None:
    if args.pair is not None and args.pairs:
        raise OptionError("--pair gives one second text for all, --pairs reads them from the lines: choose one")
    model = open_model(args, "SequenceClassifier", "CrossEncoder")
    if args.pairs:
        pairs = line_pairs(args)
        texts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
    else:
        texts = list(line_texts(args))
        seconds = None if args.pair is None else [args.pair] * len(texts)
    for index, (text, found) in enumerate(zip(texts, model.classify(texts, seconds), strict=True)):
        second = {} if seconds is None else {"pair": seconds[index]}
        if args.json:
            print_json({"text": text, **second, "label": found.label, "score": found.score, "scores": found.scores, "truncated": found.truncated})
        else:
            print("\t".join([found.label, f"{found.score:.4f}", text, *second.values()]))
