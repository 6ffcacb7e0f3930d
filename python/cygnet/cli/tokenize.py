"""`cygnet tokenize`: the pieces a text is cut into, and how they came about."""

from __future__ import annotations

from cygnet.cli.inputs import whole_texts
from cygnet.cli.output import print_json, print_table
from cygnet.cli.parser import Parser, add_input_options, add_json_option


def configure(parser: Parser) -> None:
    add_input_options(parser)
    add_json_option(parser)
    parser.add_argument("-m", "--model", metavar="SOURCE", help="model or tokenizer: folder, file, pkg:NAME or a Hugging Face id on this machine")
    parser.add_argument("--no-special", action="store_true", help="add no special tokens around the text")
    parser.add_argument("--plain", action="store_true", help="read the spelling of special tokens as ordinary text")
    parser.add_argument("--count", action="store_true", help="print the number of tokens only")
    parser.add_argument("--explain", action="store_true", help="show the merges of each word, step by step (byte pair encoding)")


def run(args) -> None:
    texts = whole_texts(args)
    tokenizer = _tokenizer(args.model)
    for text in texts:
        if args.explain:
            from cygnet.tokenizers.explanation import explain, lines

            print("\n".join(lines(explain(tokenizer, text))))
            continue
        encoding = tokenizer.encode(text, add_special_tokens=not args.no_special, parse_special=not args.plain)
        if args.count:
            print(len(encoding.ids))
        elif args.json:
            print_json({"text": text, "ids": encoding.ids, "tokens": encoding.tokens, "offsets": encoding.offsets})
        else:
            rows = [[str(i), repr(token), repr(text[a:b])] for i, token, (a, b) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)]
            print_table(rows, ["id", "token", "text"])


def _tokenizer(source: str | None):
    from cygnet.cli.model import fitting_model
    from cygnet.tokenizers import Tokenizer

    tokenizer = Tokenizer.from_pretrained(source or fitting_model(("CausalLM",)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
