"""`cygnet info`: what this installation runs with; with --model also what a model is."""

from __future__ import annotations

from math import prod

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
        value = "not set" if value is None else value
        if isinstance(value, dict):
            print(f"{indent}{name}:")
            _print(value, indent + "  ")
        else:
            print(f"{indent}{name:{width}}  {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


def _model_facts(source: str) -> dict:
    from cygnet.architectures.registry import load_spec
    from cygnet.formats import open_weights
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
    with open_weights(path) as weights:
        facts |= _weight_facts(weights)
    return facts | _tokenizer_facts(path)


def _weight_facts(weights) -> dict:
    """Number of parameters, bytes, and the share of each stored type in them."""
    types: dict[str, int] = {}
    for tensor in weights.values():
        types[tensor.dtype] = types.get(tensor.dtype, 0) + tensor.nbytes
    total = sum(types.values())
    shares = sorted(types.items(), key=lambda item: -item[1])
    return {
        "format": weights.kind,
        "parameters": sum(prod(tensor.shape) for tensor in weights.values()),
        "megabytes": round(total / 1e6, 1),
        "weights": [f"{name} {100 * share / max(total, 1):.0f}%" for name, share in shares],
    }


def _tokenizer_facts(path) -> dict:
    from cygnet.models.load import load_tokenizer

    tokenizer = load_tokenizer(path)
    if tokenizer is None:
        return {"tokenizer": "none"}
    return {"tokenizer": repr(tokenizer), "chat_template": "yes" if tokenizer.chat_template else "no"}
