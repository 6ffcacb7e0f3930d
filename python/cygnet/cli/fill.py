"""`cygnet fill`: likely words for the masks of each line of text."""

from __future__ import annotations

from cygnet.cli.inputs import line_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option, add_line_options, add_model_options


def configure(parser: Parser) -> None:
    add_line_options(parser)
    add_model_options(parser)
    add_json_option(parser)
    parser.add_argument("--top-k", type=int, default=5, metavar="K", help="words for each mask (default: 5)")


def run(args) -> None:
    model = open_model(args, "MaskedLM")
    texts = list(line_texts(args))
    for text, fills in zip(texts, model.fill_mask(texts, top_k=args.top_k), strict=True):
        masks = fills if isinstance(fills[0], list) else [fills]
        if args.json:
            print_json({"text": text, "masks": [[fill._asdict() for fill in mask] for mask in masks]})
        else:
            for mask in masks:
                print("\t".join(f"{fill.token} {fill.score:.4f}" for fill in mask))
