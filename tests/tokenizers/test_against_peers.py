"""A few strange texts through each real tokenizer beside its library; compare_with_peers.py runs as many as you like.

CYGNET_PEER_TEXTS sets how many.
"""

import os

import pytest
from compare_with_peers import compare, engine_of, open_peer

from tests.conftest import conformance_folder

TEXTS = int(os.environ.get("CYGNET_PEER_TEXTS", "40"))
LIBRARIES = {"hf": "tokenizers", "spm": "sentencepiece", "gguf": "llama_cpp"}
FOLDER = conformance_folder()
FOLDERS = sorted(meta.parent for meta in (FOLDER / "tokenizers").glob("*/meta.json")) if FOLDER else []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_same_as_the_library(folder, tmp_path):
    pytest.importorskip(LIBRARIES[engine_of(folder)], minversion="0.1")  # a version: this folder has the same name
    differing, report = compare(open_peer(folder, tmp_path), TEXTS, seed=1)
    assert differing == 0, "\n".join(report)
