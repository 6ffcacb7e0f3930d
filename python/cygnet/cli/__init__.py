"""The command line: `cygnet COMMAND ...`, also `python -m cygnet`.

Each command is a module of this package with `configure(parser)` and `run(args)`; only the one that is asked for is imported, because the time
from the start of the process to the first token counts. What goes wrong is one line on standard error: exit status 2 for bad input, 130
for Ctrl-C, and a closed pipe ends in silence.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

COMMANDS = {
    "generate": "continue a text",
    "chat": "talk with a model",
    "embed": "turn texts into vectors",
    "classify": "label texts",
    "tag": "find entities in texts",
    "answer": "answer a question from a text",
    "fill": "fill in masked words",
    "rerank": "order documents by a query",
    "translate": "translate texts",
    "summarize": "summarise texts",
    "score": "log-probabilities and perplexity of texts",
    "tokenize": "show the pieces a text is cut into",
    "models": "list the models on this machine",
    "info": "version, instruction set, threads, libraries",
    "bench": "measure speed",
    "convert": "write a model in another form",
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    from cygnet.errors import CygnetError, OptionError

    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    try:
        if sys.stdout is None:
            raise OptionError("standard output is closed: there is nowhere to write to")
        return _run(argv)
    except CygnetError as error:
        return _fail(argv, str(error))
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        return _fail(argv, "out of memory")
    except OSError as error:
        _silence_stdout()
        return _fail(argv, f"{error.filename}: {error.strerror}" if error.filename is not None else str(error))
    except UnicodeDecodeError as error:
        return _fail(argv, str(error))


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(usage())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        from cygnet import __version__

        print(f"cygnet {__version__}")
        return 0
    name = argv[0]
    if name.startswith("-"):
        return _fail([], f"the first argument is a command, and {name} is an option; see cygnet --help")
    if name not in COMMANDS:
        return _fail([], f"no command is called {name!r}{_near(name)}; see cygnet --help")
    from cygnet.cli.parser import Parser

    module = import_module(f"cygnet.cli.{name}")
    parser = Parser(name, COMMANDS[name])
    module.configure(parser)
    args = parser.parse_args(argv[1:])
    if sys.stdout is not None and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    if args.verbose:
        import logging

        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
    status = module.run(args)
    sys.stdout.flush()
    return status or 0


def usage() -> str:
    """The text of `cygnet --help`."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {about}" for name, about in COMMANDS.items()]
    head = "usage: cygnet COMMAND [options]\n\nTransformer models on the CPU.\n\ncommands:\n"
    return head + "\n".join(lines) + "\n\ncygnet COMMAND --help tells a command's options; cygnet --version the version.\n"


def _fail(argv: list[str], message: str) -> int:
    name = f"cygnet {argv[0]}" if argv and argv[0] in COMMANDS else "cygnet"
    sys.stderr.write(f"{name}: {' '.join(message.split())}\n")
    return 2


def _near(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _silence_stdout() -> None:
    """Keeps the interpreter from complaining when it flushes what a broken pipe or a full disk does not take."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
