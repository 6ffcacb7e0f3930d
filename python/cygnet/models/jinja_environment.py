"""The Jinja2 environment in which chat templates run: sandboxed, with the white-space rules and helpers that model authors write for.

Templates come with checkpoints and are not trusted: the sandbox denies attribute tricks and changes of its arguments. The helpers (tojson,
strftime_now, raise_exception, the `generation` block, break and continue) are those of the Hugging Face chat template documentation.
"""

from __future__ import annotations

import json
from datetime import datetime

from jinja2 import TemplateError as JinjaError
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class GenerationBlock(Extension):
    """`{% generation %}...{% endgeneration %}` marks the assistant's own text for training; here its body is rendered as it stands."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


def raise_exception(message):
    """Lets a template refuse a conversation."""
    raise JinjaError(message)


def strftime_now(format):
    """The present local time in a strftime format."""
    return datetime.now().strftime(format)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    """JSON as written for a model: no HTML escapes, non-ASCII characters left as they are."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment
