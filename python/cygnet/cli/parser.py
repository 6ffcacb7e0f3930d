"""Argument parsing that all commands share: one-line errors, and the options that mean the same everywhere."""

from __future__ import annotations

import argparse
import os
import sys

TASKS = "causal-lm, seq2seq, encoder, sequence-classification, token-classification, question-answering, masked-lm ..."
WEIGHTS = ("auto", "float32", "bfloat16", "float16", "int8", "int4")
CACHE_DTYPES = ("auto", "float32", "float16")


class Parser(argparse.ArgumentParser):
    """The parser of one command; a wrong argument is one line and exit status 2."""

    def __init__(self, command: str, about: str):
        super().__init__(prog=f"cygnet {command}", description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
        self.add_argument("-v", "--verbose", action="store_true", help="tell on standard error what is loaded and chosen")

    def error(self, message: str):
        sys.stderr.write(f"{self.prog}: {message}; see {self.prog} --help\n")
        raise SystemExit(2)


def utf8_text(argument: str) -> str:
    """An argument as UTF-8 text, whatever encoding the locale names; the type of all arguments that models read."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeDecodeError as error:
        raise argparse.ArgumentTypeError(f"not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from None
    except UnicodeEncodeError:
        return argument  # handed over by a program rather than by a shell


def add_model_options(parser: Parser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument("-m", "--model", metavar="SOURCE", help="folder, file, pkg:NAME or a Hugging Face id on this machine; see cygnet models")
    group.add_argument("--weights", choices=WEIGHTS, default="auto", help="how weights are held in memory (auto: as the file has them)")
    group.add_argument("-t", "--threads", type=int, metavar="N", help="number of threads (default: what the process may use)")
    group.add_argument("--max-context", type=int, metavar="N", help="longest sequence in tokens")
    group.add_argument(
        "--cache-dtype", choices=CACHE_DTYPES, default="auto", help="how keys and values are kept (auto: float16 unless weights are float32)"
    )
    group.add_argument("--task", metavar="TASK", help=f"load the model for another task than its config names: {TASKS}")


def add_generation_options(parser: Parser) -> None:
    group = parser.add_argument_group("generation")
    group.add_argument("-n", "--max-new-tokens", type=int, metavar="N", help="longest answer in tokens")
    group.add_argument("--temperature", type=float, metavar="T", help="0 always takes the likeliest token; higher is more random")
    group.add_argument("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens")
    group.add_argument("--top-p", type=float, metavar="P", help="sample from the likeliest tokens that together have probability P")
    group.add_argument("--min-p", type=float, metavar="P", help="leave out tokens below P times the likeliest one's probability")
    group.add_argument("--repetition-penalty", type=float, metavar="R", help="above 1 makes tokens that occurred less likely")
    group.add_argument("--presence-penalty", type=float, metavar="A", help="taken from the logits of tokens that the answer holds")
    group.add_argument("--frequency-penalty", type=float, metavar="B", help="the same for each time that the answer holds them")
    group.add_argument("--seed", type=int, metavar="S", help="the same seed gives the same text")
    group.add_argument("--num-beams", type=int, metavar="B", help="beam search with B beams")
    group.add_argument("--stop", action="append", type=utf8_text, metavar="TEXT", help="end before this text; may be given several times")


def add_decoder_options(parser: Parser) -> None:
    """What only models that continue a prompt are asked for: the form of an answer, a draft model, a prompt that is too long."""
    group = parser.add_argument_group("form of the answer (extra: structured)")
    group.add_argument("--json-schema", metavar="SCHEMA", help="a file with a JSON schema, the schema itself, or true for any JSON")
    group.add_argument("--regex", type=utf8_text, metavar="PATTERN", help="a regular expression that the whole answer matches")
    group.add_argument("--grammar", metavar="FILE", help="a file with a Lark grammar")
    group = parser.add_argument_group("speculation (the same answer in fewer passes where guesses come true)")
    group.add_argument("--draft", metavar="SOURCE", help="a smaller model with the same vocabulary, which guesses")
    group.add_argument("--speculation", choices=("prompt-lookup", "draft-model"), help="where guesses come from (default: --draft, if given)")
    parser.add_argument("--truncate", action="store_true", help="cut the front of a prompt that is too long for the model")


_OPTIONS = (
    "max_new_tokens temperature top_k top_p min_p repetition_penalty presence_penalty frequency_penalty seed num_beams stop num_return_sequences "
    "regex speculation"
).split()


def generation_options(args) -> dict:
    """The generation options that were given."""
    from cygnet.cli.inputs import read_schema, read_whole

    given = {name: value for name in _OPTIONS if (value := getattr(args, name, None)) is not None}
    if getattr(args, "json_schema", None) is not None:
        given["json_schema"] = read_schema(args.json_schema)
    if getattr(args, "grammar", None) is not None:
        given["grammar"] = read_whole(args.grammar)
    if getattr(args, "draft", None) is not None:
        given.setdefault("speculation", "draft-model")
    if getattr(args, "truncate", False):
        given["truncate"] = True
    return given


def add_input_options(parser: Parser, what: str = "TEXT") -> None:
    group = parser.add_argument_group("input")
    about = "the text, in quotes if it has several words; without any, standard input is read"
    group.add_argument("texts", nargs="*", type=utf8_text, metavar=what, help=about)
    group.add_argument("-f", "--file", metavar="FILE", help="read from a file instead; - is standard input")


def add_line_options(parser: Parser) -> None:
    """Input of many texts: one a line, or JSON lines."""
    add_input_options(parser)
    parser.add_argument("--jsonl", action="store_true", help="input lines are JSON: texts, or objects with a field (assumed for FILE.jsonl)")
    parser.add_argument("--field", default="text", metavar="NAME", help="field of the objects (default: text)")


def add_json_option(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
