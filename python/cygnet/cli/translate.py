"""`cygnet translate`: a text in another language, line by line."""

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
    parser.add_argument("--from", dest="source_language", metavar="LANG", help="language of the text, for models of many languages")
    parser.add_argument("--to", dest="target_language", metavar="LANG", help="language to translate to")


def run(args) -> None:
    texts = whole_texts(args)
    model = open_model(args, "Seq2Seq")
    found = model.translate(texts, source=args.source_language, target=args.target_language, **generation_options(args))
    for text, translation in zip(texts, found, strict=True):
        if args.json:
            print_json({"text": text, "translation": translation.text, "truncated": translation.truncated})
        else:
            print(translation.text)
