"""Marian's binary files and its .npz: values, settings, and damaged files refused."""

import struct

import numpy as np
import pytest
from marian_writer import FLOAT32, SETTINGS, write_marian

from cygnet.formats import open_weights
from cygnet.formats.marian import recognises

YAML = """type: transformer
dim-emb: 24
transformer-preprocess: ""
tied-embeddings-all: true
dim-vocabs:
  - 100
  - 90
input-types: []
empty:
factor: 2.5
version: v1.9.56 94aeaa46 2021-04-28
list: [a, 2]
"""
VALUES = {
    **{"type": "transformer", "dim-emb": 24, "transformer-preprocess": "", "tied-embeddings-all": True, "dim-vocabs": [100, 90], "input-types": []},
    **{"empty": None, "factor": 2.5, "version": "v1.9.56 94aeaa46 2021-04-28", "list": ["a", 2]},
}
RANDOM = np.random.default_rng(0)
ARRAYS = {
    "Wemb": RANDOM.standard_normal((5, 3)).astype(np.float32),
    "l1_W": RANDOM.standard_normal((3, 4)).astype(np.float32),
    "l1_b": RANDOM.standard_normal((1, 4)).astype(np.float32),
}


@pytest.mark.parametrize("quantise", [(), ("Wemb", "l1_W")])
def test_values_and_settings(tmp_path, quantise):
    write_marian(tmp_path / "model.any.name.bin", ARRAYS, YAML, quantise)
    (tmp_path / "lex.bin").write_bytes(bytes(64))
    with open_weights(tmp_path) as weights:
        assert weights.kind == "marian" and dict(weights.metadata) == VALUES and list(weights) == list(ARRAYS)
        for name, array in ARRAYS.items():
            step = np.abs(array).max() / 127 if name in quantise else 0
            assert weights[name].shape == array.shape and weights[name].dtype == "F32"
            np.testing.assert_allclose(weights[name].to_float32(), array, atol=step / 2 + 1e-7)
            np.testing.assert_array_equal(weights[name].to_float32(slice(1, 3)), weights[name].to_float32()[1:3])
            weights[name].release()


def test_npz_with_settings(tmp_path):
    np.savez(tmp_path / "model.npz", **ARRAYS, **{SETTINGS: np.frombuffer(YAML.encode() + b"\0", np.int8)})
    with open_weights(tmp_path) as weights:
        assert weights.kind == "marian" and dict(weights.metadata) == VALUES and list(weights) == list(ARRAYS)
        np.testing.assert_array_equal(weights["l1_W"].to_float32(), ARRAYS["l1_W"])


def file(*entries, version=1, count=None, padding=0):
    """Bytes of a file from (name, type, shape, data, bytes announced)."""
    head = struct.pack("<QQ", version, len(entries) if count is None else count)
    head += b"".join(struct.pack("<4Q", len(name) + 1, kind, len(shape), announced) for name, kind, shape, _, announced in entries)
    head += b"".join(name.encode() + b"\0" for name, *_ in entries) + b"".join(struct.pack(f"<{len(e[2])}i", *e[2]) for e in entries)
    return head + struct.pack("<Q", padding) + bytes(min(padding, 64)) + b"".join(data for _, _, _, data, _ in entries)


W = ("w", FLOAT32, (2,), bytes(8), 8)
REFUSED = {
    "no settings": (file(W), "special:model.yml"),
    "too many": (file(W, count=1 << 20), "the list of tensors", "bytes"),
    "beyond the end": (file(("w", FLOAT32, (2,), bytes(8), 1 << 60)), "'w'", "left"),
    "shape larger than data": (file(("w", FLOAT32, (1 << 30, 1 << 30), bytes(8), 8)), "'w'", "8"),
    "negative shape": (file(("w", FLOAT32, (-2,), bytes(8), 8)), "'w'", "-2"),
    "packed for a processor": (file(W, ("p", 0x1001, (2,), bytes(8), 8)), "'p'", "0x1001"),
    "padding": (file(W, padding=1 << 62), "padding"),
    "twice": (file(W, W), "twice"),
    "yaml": (file((SETTINGS, 0x101, (9,), b"a:\n  b: c", 9)), "not understood"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, refused):
    content, *words = REFUSED[case]
    refused("model.bin", content, *words)


def test_mutations(tmp_path, survives_mutations):
    write_marian(tmp_path / "model.bin", ARRAYS, YAML, ("l1_W",))
    outcomes = survives_mutations(tmp_path / "model.bin")
    assert outcomes[True] and outcomes[False]


def test_what_is_recognised(tmp_path):
    write_marian(tmp_path / "model.bin", ARRAYS)
    head = (tmp_path / "model.bin").read_bytes()[:64]
    assert recognises(head) and not recognises(head[:40]) and not recognises(bytes(64)) and not recognises(b"GGUF" + head[4:])
