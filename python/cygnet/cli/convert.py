"""`cygnet convert`: writes a model with its weights in another form."""

from __future__ import annotations

from cygnet.cli.parser import WEIGHTS, Parser
from cygnet.cli.progress import Progress

LIMITS = (
    "int8 and int4 are blocks of 32 in a row: matrices that are stored transposed (GPT-2) or whose rows are no multiple of 32 stay at 16 bits, which "
    "is told at the end; int8 in a file (Q8_0) is a little less exact than --weights int8 at load"
)


def configure(parser: Parser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="folder, file, pkg:NAME or a Hugging Face id on this machine")
    parser.add_argument("target", metavar="TARGET", help="new folder; a new file for a GGUF source")
    parser.add_argument("--weights", choices=[kind for kind in WEIGHTS if kind != "auto"], required=True, help=f"form of the matrices; {LIMITS}")
    parser.add_argument("-t", "--threads", type=int, metavar="N", help="number of threads (default: what the process may use)")


def run(args) -> None:
    from cygnet.models.convert import convert

    with Progress("matrices") as progress:
        told: list[str] = []
        target = convert(args.source, args.target, weights=args.weights, threads=args.threads, progress=progress, notice=told.append)
    files = [file for file in target.rglob("*") if file.is_file()] if target.is_dir() else [target]
    print(f"{target}: {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")
    for sentence in told:
        print(sentence)
