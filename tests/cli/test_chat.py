"""`cygnet chat`: single answers, and conversations typed on a terminal."""

import builtins
import json
import sys
from types import SimpleNamespace

import pytest

from cygnet.cli import chat


def test_one_answer(run, model):
    instance = model()
    assert run("chat", "-m", "m", "--system", "Be brief", "how", "are", "you") == (0, " you are how\n", "")
    assert instance.calls[0][1] == [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "how are you"}]
    assert run("chat", "-m", "m", stdin="a b\n")[1] == " b a\n"
    assert json.loads(run("chat", "-m", "m", "--json", "a b")[1])["text"] == " b a"


@pytest.fixture
def talk(model, monkeypatch, capsys):
    """talk(*lines): what a terminal shows; a line may be an exception to raise."""
    instance = model()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))

    def call(*lines, system=None):
        typed = iter([*lines, EOFError()])

        def read(prompt=""):
            line = next(typed)
            if isinstance(line, BaseException):
                raise line
            return line

        monkeypatch.setattr(builtins, "input", read)
        conversation = chat.Conversation(instance, system, {})
        chat.converse(conversation)
        captured = capsys.readouterr()
        return conversation, captured.out, captured.err

    call.model = instance
    return call


def contents(conversation):
    return [message["content"] for message in conversation.messages]


def test_history_grows(talk):
    conversation, out, _ = talk("a b", "c d")
    assert contents(conversation) == ["a b", " b a", "c d", " d c"]
    assert len(talk.model.calls[1][1]) == 3
    assert " b a\n" in out and " d c\n" in out


def test_ctrl_c_stops_the_answer_and_keeps_the_chat(talk):
    talk.model.interrupt_after = 1
    conversation, _, _ = talk("a b c", "d")
    assert contents(conversation)[:2] == ["a b c", " c"]
    assert contents(conversation)[2] == "d"


def test_ctrl_c_at_the_prompt_forgets_the_line(talk):
    assert contents(talk("half \\", KeyboardInterrupt(), "a b")[0]) == ["a b", " b a"]


def test_lines_that_go_on(talk):
    assert contents(talk("a\\", "b")[0])[0] == "a\nb"


def test_commands(talk, tmp_path):
    path = tmp_path / "saved.json"
    conversation, out, _ = talk("/help", "a", "/system New", "b c", "d", "/undo", "/retry", "", f"/save {path}", "/quit", "never")
    assert contents(conversation) == ["New", "b c", " c b"]
    assert json.loads(path.read_text()) == conversation.messages
    assert "/undo" in out
    assert contents(talk("a", "/clear", "/undo", "/retry")[0]) == []
    assert contents(talk("a", "/clear", system="S")[0]) == ["S"]


def test_every_command_answers(talk, tmp_path):
    _, out, _ = talk("/foo", "/undo", "/retry", "/save", "/clear", "/system Be brief", "a", f"/save {tmp_path / 'x'}", "/undo")
    for line in (
        "There is no command /foo; /help lists them.",
        "There is no message yet.",
        "/save needs the name of a file.",
        "The conversation begins anew.",
        "The conversation begins anew with this system message.",
        f"3 messages written to {tmp_path / 'x'}",
        "Taken back: a",
    ):
        assert line in out.splitlines()
    assert "/retry" not in out


def test_a_message_that_cannot_be_answered_is_not_kept(talk, tmp_path):
    conversation, _, err = talk("too long", f"/save {tmp_path}", "a")
    assert contents(conversation) == ["a", " a"]
    assert err.splitlines()[0] == "cygnet chat: the prompt has 101 tokens, the model's context is 100: shorten it"
    assert len(err.splitlines()) == 2
