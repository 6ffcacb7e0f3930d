"""The real tokenizers of the conformance folder where it is there."""

import lzma
import shutil

import pytest

from cygnet import Tokenizer


@pytest.fixture(scope="session")
def real(conformance, tmp_path_factory):
    """name -> path of the tokenizer.json of a real tokenizer."""
    folder = tmp_path_factory.mktemp("tokenizers")

    def unpack(name):
        target = folder / f"{name}.json"
        packed = conformance / "tokenizers" / name / "tokenizer.json.xz"
        if not target.exists() and packed.exists():
            target.write_bytes(lzma.decompress(packed.read_bytes()))
        elif not target.exists():
            shutil.copy(packed.with_suffix(""), target)
        return target

    return unpack


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """path -> the same file where it is not compressed, else an unpacked copy."""
    done = {}

    def unpack(path):
        if path.suffix != ".xz":
            return path
        if path not in done:
            done[path] = tmp_path_factory.mktemp(path.parent.name) / path.stem
            done[path].write_bytes(lzma.decompress(path.read_bytes()))
        return done[path]

    return unpack


@pytest.fixture(scope="session")
def load(real):
    """name -> Tokenizer of a real tokenizer, loaded once."""
    loaded = {}

    def get(name):
        if name not in loaded:
            loaded[name] = Tokenizer.from_file(real(name))
        return loaded[name]

    return get
