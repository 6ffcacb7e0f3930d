"""Progress on standard error: on a terminal with rich or without, and never elsewhere."""

import io
import sys
from types import SimpleNamespace

import pytest

from cygnet.cli import progress
from cygnet.cli.progress import Progress, Waiting


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(progress, "DELAY", 0)
    monkeypatch.setattr(progress, "INTERVAL", 0)
    return shown


def test_nothing_elsewhere(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=shown))
    monkeypatch.setattr(progress, "DELAY", 0)
    with Progress("texts", 10) as bar, Waiting("loading"):
        bar(5)
    assert shown.getvalue() == ""


def test_a_plain_line_without_rich(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with Progress("texts", 10) as bar:
        bar(5)
        assert "[###############               ] 5/10 texts, " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_bar_with_rich(terminal, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "120")
    with Progress("texts", 10) as bar:
        bar(5)
        bar._shown._progress.refresh()
        assert "5/10" in terminal.getvalue() and "texts" in terminal.getvalue()


def test_what_is_quick_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 60)
    with Progress("texts", 10) as bar:
        bar(10)
    assert terminal.getvalue() == ""


def test_waiting(terminal):
    with Waiting("loading m"):
        assert terminal.getvalue() == "\r\x1b[Kloading m ..."
    assert terminal.getvalue().endswith("\r\x1b[K")
