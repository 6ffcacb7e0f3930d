"""`cygnet chat`: a conversation on the terminal, or one answer to a message given as an argument or on standard input.

Ctrl-C stops an answer and keeps the conversation; lines that begin with a slash are commands.
"""

from __future__ import annotations

import sys

from cygnet.cli.inputs import whole_texts
from cygnet.cli.model import open_model
from cygnet.cli.output import print_json
from cygnet.cli.parser import (
    Parser,
    add_decoder_options,
    add_generation_options,
    add_input_options,
    add_json_option,
    add_model_options,
    generation_options,
    utf8_text,
)
from cygnet.errors import CygnetError

HELP = """\
/system TEXT  set the system message and begin anew
/clear        begin anew
/undo         take back the last message and its answer
/retry        answer the last message again
/save FILE    write the conversation as JSON
/help         this list
/quit         end (also Ctrl-D)
A line that ends in a backslash goes on in the next one. Ctrl-C stops an answer."""


NOTHING = "There is no message yet."


def configure(parser: Parser) -> None:
    add_input_options(parser, "MESSAGE")
    add_model_options(parser)
    add_generation_options(parser)
    add_decoder_options(parser)
    add_json_option(parser)
    parser.add_argument("--system", type=utf8_text, metavar="TEXT", help="system message")


def run(args) -> None:
    interactive = not args.texts and not args.file and sys.stdin is not None and sys.stdin.isatty()
    messages = [] if interactive else [{"role": "user", "content": " ".join(whole_texts(args))}]
    model = open_model(args, "CausalLM")
    conversation = Conversation(model, args.system, generation_options(args))
    if interactive:
        converse(conversation)
    elif args.json:
        from cygnet.cli.generate import as_json

        print_json(as_json(messages[0]["content"], model.chat(conversation.messages + messages, **conversation.options)))
    else:
        conversation.say(messages[0]["content"])


class Conversation:
    """The messages so far, and how answers are made.

    Parameters
    ----------
    model : CausalLM
    system : str or None
    options : dict
        Generation options.
    """

    def __init__(self, model, system: str | None, options: dict):
        self.model, self.system, self.options = model, system, options
        self.clear()

    def clear(self) -> None:
        self.messages = [{"role": "system", "content": self.system}] if self.system else []

    def say(self, text: str) -> None:
        """Adds a message, prints the answer as it is made, and keeps both; a message that cannot be answered is not kept."""
        self.messages.append({"role": "user", "content": text})
        answer = ""
        try:
            with self.model.chat_stream(self.messages, **self.options) as pieces:
                for piece in pieces:
                    answer += piece
                    sys.stdout.write(piece)
                    sys.stdout.flush()
        except CygnetError:
            self.messages.pop()
            raise
        except KeyboardInterrupt:
            if sys.stdin is None or not sys.stdin.isatty():
                raise
        print()
        self.messages.append({"role": "assistant", "content": answer})

    def undo(self) -> str | None:
        """Takes back the last message of the user and all behind it; returns its text."""
        while self.messages and self.messages[-1]["role"] != "system":
            message = self.messages.pop()
            if message["role"] == "user":
                return message["content"]
        return None

    def save(self, path: str) -> None:
        import json

        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.messages, file, ensure_ascii=False, indent=1)


def converse(conversation: Conversation) -> None:
    """Reads messages and commands until the end of input."""
    try:
        import readline  # noqa: F401  input() edits lines and remembers them once this is imported
    except ImportError:
        pass
    print("Type a message; /help lists commands.")
    while (text := _read()) is not None:
        try:
            if text.startswith("/"):
                if not _command(conversation, text):
                    return
            elif text.strip():
                conversation.say(text)
        except (CygnetError, OSError) as error:
            print(f"cygnet chat: {' '.join(str(error).split())}", file=sys.stderr)


def _read() -> str | None:
    """The next message; None at the end of input. Ctrl-C throws away what was typed."""
    lines: list[str] = []
    while True:
        try:
            line = input("... " if lines else "> ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            lines = []
            continue
        if line.endswith("\\"):
            lines.append(line[:-1])
            continue
        return "\n".join([*lines, line])


def _command(conversation: Conversation, text: str) -> bool:
    """Runs a slash command; False ends the conversation."""
    name, _, rest = text[1:].strip().partition(" ")
    if name in ("quit", "exit"):
        return False
    rest = rest.strip()
    if name == "help":
        print(HELP)
    elif name == "system":
        conversation.system = rest or None
        conversation.clear()
        print("The conversation begins anew" + (" with this system message." if rest else " without a system message."))
    elif name == "clear":
        conversation.clear()
        print("The conversation begins anew.")
    elif name == "undo":
        last = conversation.undo()
        print(NOTHING if last is None else f"Taken back: {last}")
    elif name == "retry":
        last = conversation.undo()
        if last is None:
            print(NOTHING)
        else:
            conversation.say(last)
    elif name == "save":
        if rest:
            conversation.save(rest)
        print(f"{len(conversation.messages)} messages written to {rest}" if rest else "/save needs the name of a file.")
    else:
        print(f"There is no command /{name}; /help lists them.")
    return True
