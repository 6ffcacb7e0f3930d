"""`cygnet tag`: the entities of each line of text."""

from __future__ import annotations

from cygnet.cli.inputs import line_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option, add_line_options, add_model_options


def configure(parser: Parser) -> None:
    add_line_options(parser)
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--aggregation", default="simple", metavar="WAY", help="none, simple, first, average or max (default: simple)")


def run(args) -> None:
    model = open_model(args, "TokenClassifier")
    texts = list(line_texts(args))
    for text, entities in zip(texts, model.tag(texts, aggregation=args.aggregation), strict=True):
        if args.json:
            print_json({"text": text, "entities": [entity._asdict() for entity in entities]})
        else:
            for entity in entities:
                print(f"{entity.label}\t{entity.start}\t{entity.end}\t{entity.score:.4f}\t{entity.text}")
