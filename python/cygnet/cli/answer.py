"""`cygnet answer`: the stretch of a text that answers a question."""

from __future__ import annotations

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_input_options, add_json_option, add_model_options, utf8_text


def configure(parser: Parser) -> None:
    parser.add_argument("question", type=utf8_text, metavar="QUESTION", help="the question")
    add_input_options(parser, "CONTEXT")
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--no-answer", action="store_true", help="allow the answer that the text does not say it")


def run(args) -> None:
    contexts = whole_texts(args)
    model = open_model(args, "QuestionAnswerer")
    for context in contexts:
        found = model.answer(args.question, context, no_answer=args.no_answer)
        if args.json:
            print_json(found._asdict())
        else:
            print(f"{found.text}\t{found.score:.4f}")
