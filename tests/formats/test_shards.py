"""Models in several files: by index and by numbered names; everything that can be missing."""

import json

import numpy as np
import pytest

from cygnet.errors import FormatError, ModelNotFound
from cygnet.formats import open_weights
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.safetensors import write_safetensors

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.float16), "c": np.array([7], np.int64)}
SHARDS = {"model-00001-of-00002.safetensors": ["a"], "model-00002-of-00002.safetensors": ["b", "c"]}


def write_index(folder, weight_map, name="model.safetensors.index.json"):
    (folder / name).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))


@pytest.fixture
def folder(tmp_path):
    for shard, names in SHARDS.items():
        write_safetensors(tmp_path / shard, {name: ARRAYS[name] for name in names}, {"format": "pt"})
    write_index(tmp_path, {name: shard for shard, names in SHARDS.items() for name in names})
    return tmp_path


def test_equals_the_single_file(folder):
    with open_weights(folder) as weights:
        assert list(weights) == ["a", "b", "c"] and weights.kind == "safetensors" and weights.metadata == {"format": "pt"}
        assert [path.name for path in weights.files] == list(SHARDS)
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(weights[name].numpy(), array)
        stored = weights["a"]
    with pytest.raises(FormatError, match="00001-of-00002.safetensors: the file is closed"):
        stored.raw()


def test_index_file_itself(folder):
    with open_weights(folder / "model.safetensors.index.json") as weights:
        assert len(weights) == 3


def test_stray_files_are_ignored(folder):
    write_safetensors(folder / "other.safetensors", {"a": np.zeros((2, 3)), "stray": np.zeros(1)})
    (folder / "broken.safetensors").write_bytes(b"nonsense")
    (folder / "pytorch_model.bin").write_bytes(b"nonsense")
    with open_weights(folder) as weights:
        assert list(weights) == ["a", "b", "c"]
        np.testing.assert_array_equal(weights["a"].numpy(), ARRAYS["a"])


def test_tensors_the_index_does_not_list_are_ignored(folder):
    write_index(folder, {"a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"})
    with open_weights(folder) as weights:
        assert list(weights) == ["a", "c"]


@pytest.mark.parametrize("shard", SHARDS)
def test_missing_shard(folder, shard):
    (folder / shard).unlink()
    with pytest.raises(FormatError, match=f"1 of 2 shards are missing: {shard}"):
        open_weights(folder)


def test_tensor_absent_from_its_shard(folder):
    write_index(folder, {"a": "model-00002-of-00002.safetensors"})
    with pytest.raises(FormatError, match="tensor 'a' is listed in 'model-00002-of-00002.safetensors', which does not hold it"):
        open_weights(folder)


def test_damaged_shard(folder):
    (folder / "model-00002-of-00002.safetensors").write_bytes(bytes(4))
    with pytest.raises(FormatError, match="00002-of-00002.safetensors: 4 bytes"):
        open_weights(folder)


@pytest.mark.parametrize("name", ["../x.safetensors", "/etc/passwd", "a/../../x", "..", "C:\\x", "..\\x", "\\\\server\\x", ""])
def test_paths_outside_the_folder(folder, name):
    write_safetensors(folder.parent / "x.safetensors", {"a": ARRAYS["a"]})
    write_index(folder, {"a": name})
    with pytest.raises(FormatError, match="outside the model's folder"):
        open_weights(folder)


def test_shards_below_the_folder_and_linked(folder):
    # A hub cache keeps the files elsewhere and links to them.
    (folder / "blobs").mkdir()
    (folder / "model-00001-of-00002.safetensors").rename(folder / "blobs" / "first")
    (folder / "model-00001-of-00002.safetensors").symlink_to(folder / "blobs" / "first")
    (folder / "sub").mkdir()
    (folder / "model-00002-of-00002.safetensors").rename(folder / "sub" / "second.safetensors")
    write_index(folder, {"a": "model-00001-of-00002.safetensors", "b": "sub/second.safetensors"})
    with open_weights(folder) as weights:
        np.testing.assert_array_equal(weights["b"].numpy(), ARRAYS["b"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[]",
        "{}",
        '{"weight_map": []}',
        '{"weight_map": {}}',
        '{"weight_map": {"a": 3}}',
        '{"weight_map": ' + "[" * 100_000,
        '{"weight_map": "\xff"}',
    ],
)
def test_damaged_index(folder, text):
    (folder / "model.safetensors.index.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError, match=r"index\.json"):
        open_weights(folder)


@pytest.fixture
def split(tmp_path):
    for number, (name, array) in enumerate(list(ARRAYS.items())[:2]):
        metadata = {"split.count": np.uint16(2), "split.no": np.uint16(number), "split.tensors.count": np.int32(2)}
        write_gguf(
            tmp_path / f"m-0000{number + 1}-of-00002.gguf", {name: array}, metadata | ({"general.architecture": "llama"} if number == 0 else {})
        )
    return tmp_path


@pytest.mark.parametrize("opened", ["", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"])
def test_split_gguf(split, opened):
    with open_weights(split / opened) as weights:
        assert list(weights) == ["a", "b"] and weights.metadata["general.architecture"] == "llama" and len(weights.files) == 2
        np.testing.assert_array_equal(weights["b"].numpy(), ARRAYS["b"])


def test_split_gguf_with_a_part_missing(split):
    (split / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(FormatError, match="1 of 2 parts are missing: m-00002-of-00002.gguf"):
        open_weights(split)


def test_split_gguf_misnamed(split):
    (split / "m-00001-of-00002.gguf").rename(split / "first.gguf")
    with pytest.raises(FormatError, match="-NNNNN-of-00002.gguf"):
        open_weights(split / "first.gguf")


def test_split_gguf_out_of_order(split):
    (split / "m-00002-of-00002.gguf").write_bytes((split / "m-00001-of-00002.gguf").read_bytes())
    with pytest.raises(FormatError, match="split.no is 0, not 1"):
        open_weights(split)


def test_split_gguf_with_a_tensor_twice(split):
    metadata = {"split.count": np.uint16(2), "split.no": np.uint16(1)}
    write_gguf(split / "m-00002-of-00002.gguf", {"a": ARRAYS["a"]}, metadata)
    with pytest.raises(FormatError, match="tensor 'a' is in an earlier part too"):
        open_weights(split)


def test_several_gguf_files(split):
    write_gguf(split / "other.gguf", ARRAYS, {})
    with pytest.raises(ModelNotFound, match="several GGUF files, name one of them: m-00001-of-00002.gguf, .*other.gguf"):
        open_weights(split)
