"""`cygnet rerank`: lines of text ordered by how well they answer a query."""

from __future__ import annotations

from cygnet.cli.inputs import line_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option, add_line_options, add_model_options, utf8_text


def configure(parser: Parser) -> None:
    parser.add_argument("query", type=utf8_text, metavar="QUERY", help="the query")
    add_line_options(parser)
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--top-k", type=int, metavar="K", help="print the best K only")


def run(args) -> None:
    model = open_model(args, "CrossEncoder")
    for found in model.rerank(args.query, list(line_texts(args)), top_k=args.top_k):
        if args.json:
            print_json(found._asdict())
        else:
            print(f"{found.score:.4f}\t{found.index}\t{found.document}")
