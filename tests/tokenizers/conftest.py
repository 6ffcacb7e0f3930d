"""Fixtures of the tokenizer tests."""

import lzma
import shutil

import pytest


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """A function that gives a conformance file unpacked: itself, or a copy where it is compressed."""
    done = {}

    def unpack(path):
        if path.suffix != ".xz":
            return path
        if path not in done:
            folder = tmp_path_factory.mktemp(path.parent.name)
            done[path] = folder / path.stem
            with lzma.open(path) as packed, done[path].open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        return done[path]

    return unpack
