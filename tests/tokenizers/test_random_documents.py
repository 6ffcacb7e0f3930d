"""Ids and offsets of random tokenizer.json documents beside the `tokenizers` library; compare_documents.py compares all, and as many as you like.

CYGNET_PEER_DOCUMENTS sets how many.
"""

import os

import pytest

pytest.importorskip("tokenizers", minversion="0.15")  # a version: this folder has the same name

from compare_documents import compare_document  # noqa: E402

DOCUMENTS = int(os.environ.get("CYGNET_PEER_DOCUMENTS", "30"))
FACETS = {"ids", "offsets", "plain ids", "plain offsets", "pair ids", "pair offsets", "raises"}


@pytest.mark.parametrize("seed", range(1000, 1000 + DOCUMENTS))
def test_same_as_the_library(seed, tmp_path):
    found = compare_document(seed, tmp_path / "tokenizer.json", texts=6)
    if found is None:
        pytest.skip("the library refuses the document")
    assert {facet: values for facet, values in found.items() if facet in FACETS} == {}
