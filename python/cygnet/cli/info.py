"""`cygnet info`: what this installation runs with; with --model also what a model is."""

from __future__ import annotations

from cygnet.cli.output import print_json
from cygnet.cli.parser import Parser, add_json_option


def configure(parser: Parser) -> None:
    add_json_option(parser)
    parser.add_argument("-m", "--model", metavar="SOURCE", help="describe this model too")


def run(args) -> None:
    from cygnet.system_info import info

    facts = info()
    if args.model:
        facts["model"] = _model_facts(args.model)
    if args.json:
        print_json(facts)
        return
    _print(facts)


def _print(facts: dict, indent: str = "") -> None:
    width = max(map(len, facts))
    for name, value in facts.items():
        if isinstance(value, dict):
            print(f"{indent}{name}:")
            _print(value, indent + "  ")
        else:
            print(f"{indent}{name:{width}}  {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


def _model_facts(source: str) -> dict:
    from cygnet.architectures.registry import load_spec
    from cygnet.hub import resolve

    path = resolve(source)
    spec = load_spec(path).spec
    stack = spec.decoder or spec.encoder
    layers = [s for s in (spec.encoder, spec.decoder) if s is not None]
    facts = {
        "path": str(path),
        "family": spec.family,
        "kind": spec.kind.value,
        "task": spec.task.value,
        "layers": " + ".join(str(len(s.layers)) for s in layers),
        "hidden_size": spec.hidden_size,
        "vocab_size": spec.vocab_size,
        "max_positions": spec.max_positions or "unlimited",
    }
    if stack.layers:
        attention = stack.layers[0].attention
        facts |= {"heads": attention.heads, "kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    return facts
