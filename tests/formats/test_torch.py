"""PyTorch checkpoints, both containers, against what PyTorch itself stored; and pickles that want more than tensors."""

import io
import os
import pickle
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cygnet.errors import FormatError
from cygnet.formats import open_weights
from cygnet.formats.torch_legacy import MAGIC, PROTOCOL
from cygnet.formats.unpickle import unpickle

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "formats"

# The bytes of checkpoints, opcode by opcode.


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    data = value.to_bytes(10, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def ask(module, name):
    return b"c" + f"{module}\n{name}\n".encode()


def tuple_of(*items):
    return b"(" + b"".join(items) + b"t"


def storage(key="0", kind="FloatStorage", count=4, extra=b""):
    return tuple_of(text("storage"), ask("torch", kind), text(key), text("cpu"), number(count), extra) + b"Q"


def tensor(place, offset=0, shape=(4,), strides=(1,), rebuild="_rebuild_tensor_v2", last=b"\x89N"):
    sizes = [tuple_of(*map(number, numbers)) for numbers in (shape, strides)]
    return ask("torch._utils", rebuild) + tuple_of(place, number(offset), *sizes, last) + b"R"


def state_dict(**tensors):
    return b"\x80\x02}(" + b"".join(text(name) + value for name, value in tensors.items()) + b"u."


def zip_bytes(program, storages=None, *, root="archive/", compress=zipfile.ZIP_STORED, **members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compress) as archive:
        archive.writestr(f"{root}data.pkl", program)
        for key, data in ({"0": np.arange(4, dtype=np.float32).tobytes()} if storages is None else storages).items():
            archive.writestr(f"{root}data/{key}", data)
        for name, data in members.items():
            archive.writestr(root + name, data)
    return stream.getvalue()


def legacy_bytes(program, storages=None, *, magic=MAGIC, protocol=PROTOCOL, system=None, keys=None):
    if storages is None:
        storages = {"0": np.arange(4, dtype=np.float32)} if b"storage" in program else {}
    head = [pickle.dumps(value, 2) for value in (magic, protocol, {"little_endian": True} if system is None else system)]
    tail = [struct.pack("<q", array.size) + array.tobytes() for array in storages.values()]
    return b"".join([*head, program, pickle.dumps(list(storages) if keys is None else keys, 2), *tail])


# What PyTorch wrote.


@pytest.mark.parametrize(
    "name, values", [("zip.pt", "values"), ("legacy.pt", "values"), ("protocol4.pt", "values"), ("newer.pt", "newer"), ("nested.pt", "nested")]
)
def test_equals_what_torch_stored(name, values):
    expected = np.load(FIXTURES / f"{values}.npz")
    with open_weights(FIXTURES / name) as weights:
        assert weights.kind == "torch" and set(weights) == set(expected.files)
        for key, tensor_ in weights.items():
            assert tensor_.shape == expected[key].shape and tensor_.nbytes == tensor_.raw().size
            np.testing.assert_array_equal(tensor_.to_float32(), expected[key], err_msg=key)


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_types_and_views(name):
    with open_weights(FIXTURES / name) as weights:
        dtypes = {
            "float64": "F64",
            "float16": "F16",
            "bfloat16": "BF16",
            "int8": "I8",
            "int64": "I64",
            "flags": "BOOL",
            "bytes": "U8",
            "parameter": "F32",
        }
        for key, dtype in dtypes.items():
            assert weights[key].dtype == dtype
        # Contiguous tensors are views: tied ones of the same bytes, parts of one storage side by side.
        assert weights["plain"].raw().ctypes.data == weights["tied"].raw().ctypes.data
        assert weights["shared_head"].raw().ctypes.data + 32 == weights["shared_tail"].raw().ctypes.data
        np.testing.assert_array_equal(weights["strided"].to_float32(slice(1, 2)), weights["strided"].to_float32()[1:2])
        for key in weights:
            weights[key].release()
        np.testing.assert_array_equal(weights["strided"].to_float32(), weights["plain"].to_float32()[::2, 1::2])


def test_equals_conformance_models(conformance):
    torch = pytest.importorskip("torch")
    for path in sorted((conformance / "models").glob("*/*.bin")) + sorted((conformance / "models").glob("*/*.pt")):
        with open_weights(path.parent) as weights:
            expected = torch.load(path, weights_only=True)
            assert set(weights) == set(expected)
            for key, value in expected.items():
                np.testing.assert_array_equal(weights[key].to_float32(), value.float().numpy())


CONTAINERS = {"zip": zip_bytes, "legacy": legacy_bytes}


@pytest.mark.parametrize("container", CONTAINERS)
def test_handmade_checkpoint(tmp_path, container):
    path = tmp_path / "model.bin"
    path.write_bytes(CONTAINERS[container](state_dict(w=tensor(storage()), tail=tensor(storage(), offset=1, shape=(1, 2), strides=(2**40, 1)))))
    with open_weights(path) as weights:
        assert weights["w"].to_float32().tolist() == [0, 1, 2, 3]
        assert weights["tail"].to_float32().tolist() == [[1, 2]]


def test_deflated_archive(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(zip_bytes(state_dict(w=tensor(storage(), offset=1, shape=(2,))), compress=zipfile.ZIP_DEFLATED))
    with open_weights(path) as weights:
        assert weights["w"].to_float32().tolist() == [1, 2]
        weights["w"].release()


def test_view_of_a_storage_of_old_files(tmp_path):
    path = tmp_path / "model.bin"
    view = tuple_of(text("view"), number(1), number(2))
    path.write_bytes(legacy_bytes(state_dict(w=tensor(storage(extra=view), shape=(2,)))))
    with open_weights(path) as weights:
        assert weights["w"].to_float32().tolist() == [1, 2]


def test_what_is_no_tensor_is_left_out(tmp_path):
    path = tmp_path / "model.pt"
    content = state_dict(
        w=tensor(storage()),
        step=number(3),
        name=text("x"),
        none=b"N",
        sizes=b"]" + number(1) + b"a",
        inner=b"}" + text("b") + tensor(storage()) + b"s",
    )
    path.write_bytes(zip_bytes(content))
    with open_weights(path) as weights:
        assert list(weights) == ["w", "inner.b"]


# Pickles that want more.


class Attack:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def attacks(canary):
    """Pickles by Python itself that would create the canary file, each with the global that gives it away."""
    import functools

    command = f"touch {canary}"
    return {
        "os.system": (pickle.dumps(Attack(os.system, command), 2), f"{os.system.__module__}.system"),
        "eval": (pickle.dumps(Attack(eval, f"open({str(canary)!r}, 'w')"), 2), "__builtin__.eval"),
        "eval, protocol 4": (pickle.dumps(Attack(eval, f"open({str(canary)!r}, 'w')"), 4), "builtins.eval"),
        "exec, protocol 0": (pickle.dumps(Attack(exec, f"open({str(canary)!r}, 'w')"), 0), "__builtin__.exec"),
        "open": (pickle.dumps(Attack(open, str(canary), "w"), 4), "io.open"),
        "partial": (pickle.dumps(functools.partial(os.system, command), 2), "functools.partial"),
        "inside a dict": (pickle.dumps({"weight": Attack(os.system, command)}, 2), "system"),
        "getattr": (b"\x80\x02c__builtin__\ngetattr\n.", "__builtin__.getattr"),
        "old-style instance": (b"(S'" + command.encode() + b"'\nios\nsystem\n.", "the opcode INST"),
        "object": (b"(cos\nsystem\nS'" + command.encode() + b"'\no.", "os.system"),
        "new object": (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "the opcode NEWOBJ"),
        "extension registry": (b"\x80\x02\x82\x01.", "the opcode EXT1"),
        "nested module": (b"\x80\x02ctorch.nn.modules.linear\nLinear\n)R.", "torch.nn.modules.linear.Linear"),
        "dotted name": (b"\x80\x04\x8c\x05torch\x8c\x17serialization.os.system\x93.", "torch.serialization.os.system"),
        "load from bytes": (b"\x80\x02ctorch.storage\n_load_from_bytes\n.", "torch.storage._load_from_bytes"),
        "import through torch": (b"\x80\x02ctorch\nload\n.", "torch.load"),
        "buffers": (b"\x80\x05\x97.", "the opcode NEXT_BUFFER"),
        "persistent by name": (b"\x80\x02Pname\n.", "the opcode PERSID"),
    }


ATTACKS = list(attacks(Path("canary")))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks(tmp_path, refused, attack, container):
    canary = tmp_path / "canary"
    program, word = attacks(canary)[attack]
    refused("model.bin", CONTAINERS[container](program), word)
    assert not canary.exists()


def test_the_attacks_would_work(tmp_path):
    """Python's own unpickler runs them: the canary is one."""
    for attack in ("os.system", "eval", "eval, protocol 4", "exec, protocol 0", "open"):
        canary = tmp_path / attack.replace(" ", "")
        pickle.loads(attacks(canary)[attack][0])
        assert canary.exists()


LAUGHS = b"\x80\x02]q\x00" + b"".join(b"]q%c(h%ch%ce" % (i, i - 1, i - 1) for i in range(1, 60)) + b"."
REBUILD = ask("torch._utils", "_rebuild_tensor_v2")
ODD_PROGRAMS = {
    "storage offset out of range": (state_dict(w=tensor(storage(), offset=1)), "'w'", "outside its storage '0' of 4 elements"),
    "shape out of range": (state_dict(w=tensor(storage(), shape=(5,))), "'w'", "outside its storage"),
    "stride out of range": (state_dict(w=tensor(storage(), shape=(2, 2), strides=(3, 1))), "'w'", "outside its storage"),
    "storage larger than its member": (state_dict(w=tensor(storage(count=5))), "'w'"),
    "storage of a wider type": (state_dict(w=tensor(storage(kind="DoubleStorage"))), ""),
    "negative offset": (state_dict(w=tensor(storage(), offset=-1)), "strides are not what PyTorch writes"),
    "negative size": (state_dict(w=tensor(storage(), shape=(-1,))), "are not what PyTorch writes"),
    "negative stride": (state_dict(w=tensor(storage(), strides=(-1,), offset=3)), "are not what PyTorch writes"),
    "product above 63 bits": (state_dict(w=tensor(storage(), shape=(2**40, 2**40), strides=(0, 0))), "'w'", "more than the whole file"),
    "expanded beyond the file": (state_dict(w=tensor(storage(), shape=(2**30,), strides=(0,))), "'w'", "more than the whole file"),
    "size and strides that differ": (state_dict(w=tensor(storage(), strides=(1, 1))), "are not what PyTorch writes"),
    "hundred dimensions": (state_dict(w=tensor(storage(), shape=(1,) * 100, strides=(1,) * 100)), "are not what PyTorch writes"),
    "sizes that are text": (state_dict(w=REBUILD + tuple_of(storage(), number(0), text("ab"), text("cd")) + b"R"), "PyTorch"),
    "tensor of no storage": (state_dict(w=tensor(number(3))), "are not what PyTorch writes"),
    "tensor without arguments": (state_dict(w=REBUILD + b")R"), "torch._utils._rebuild_tensor_v2"),
    "parameter of text": (state_dict(w=ask("torch._utils", "_rebuild_parameter") + tuple_of(text("x"), b"\x88", b"N") + b"R"), "a parameter"),
    "third form without a dtype": (state_dict(w=tensor(storage(), rebuild="_rebuild_tensor_v3", last=b"\x89N" + text("f"))), "without a dtype"),
    "size of text": (b"\x80\x02" + ask("torch", "Size") + tuple_of(tuple_of(text("x"))) + b"R.", "torch.Size"),
    "call of a storage type": (b"\x80\x02" + ask("torch", "FloatStorage") + b")R.", "a call of StorageType"),
    "call of a number": (b"\x80\x02K\x01)R.", "a call of int"),
    "state for a tensor": (b"\x80\x02" + tensor(storage()) + b"}b.", "a change of StridedTensor"),
    "state for a function": (b"\x80\x02" + ask("torch._utils", "_rebuild_parameter") + b"}b.", "a change of _Global"),
    "unknown persistent object": (
        b"\x80\x02" + tuple_of(text("module"), ask("torch", "FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q.",
        "persistent",
    ),
    "persistent number": (b"\x80\x02K\x01Q.", "persistent"),
    "storage with two types": (state_dict(a=tensor(storage()), b=tensor(storage(kind="IntStorage"))), "two element types"),
    "storage type by text": (b"\x80\x02" + tuple_of(text("storage"), text("FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q.", "persistent"),
    "storage that is not there": (state_dict(w=tensor(storage(key="9"))), ""),
    "storage outside the archive": (state_dict(w=tensor(storage(key="../data.pkl", kind="ByteStorage"))), ""),
    "empty pickle": (b"", ""),
    "no stop": (b"\x80\x02}", "damaged"),
    "stack underflow": (b"\x80\x02R.", "damaged"),
    "tuple underflow": (b"\x80\x02\x86.", "damaged"),
    "no mark": (b"\x80\x02t.", "damaged"),
    "nothing at stop": (b"\x80\x02.", "damaged"),
    "memo that is not set": (b"\x80\x02h\x05.", "damaged"),
    "huge memo index": (b"\x80\x02}r\xff\xff\xff\x7f.", "no tensors by name"),
    "huge text": (b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"x.", "damaged"),
    "huge integer": (b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\1.", "damaged"),
    "unknown opcode": (b"\x80\x02\xff.", "damaged"),
    "odd number of items": (b"\x80\x02}(K\x01u.", "damaged"),
    "list as a key": (b"\x80\x02}]K\x01s.", "keys are not plain"),
    "append to a dict": (b"\x80\x02}K\x01a.", "a change of dict"),
    "set item of a list": (b"\x80\x02]K\x01K\x01s.", "a change of list"),
    "list of lists of lists": (LAUGHS, "no tensors by name"),
    "call of a list of lists": (LAUGHS[:-1] + b")R.", "a call of list"),
    "key of nested tuples": (b"\x80\x02}K\x01\x85" + b"2\x86" * 60 + b"K\x01s.", "keys are not plain"),
    "a list at the top": (b"\x80\x02]" + tensor(storage()) + b"a.", "no tensors by name"),
    "no tensors": (b"\x80\x02}" + text("step") + b"K\x01s.", "no tensors by name"),
    "dict in itself": (b"\x80\x02}q\x00" + text("model") + b"h\x00s.", "no tensors by name"),
    "dicts in each other": (b"\x80\x02}q\x00" + text("model") + b"}q\x01" + text("model") + b"h\x00ssh\x00.", "no tensors by name"),
    "deep dicts": (b"\x80\x02" + (b"}" + text("a")) * 5000 + b"K\x01" + b"s" * 5000 + b".", "nested too deeply"),
    "shared dicts, many paths": (
        b"\x80\x02}q\x00" + b"".join(b"}(" + b"".join(text(c) + b"h%c" % (i - 1) for c in "abcdefghij") + b"uq%c" % i for i in range(1, 20)) + b".",
        "no tensors by name",
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("case", ODD_PROGRAMS)
def test_odd_programs(refused, case, container):
    program, *words = ODD_PROGRAMS[case]
    refused("model.bin", CONTAINERS[container](program), *words)


GOOD = state_dict(w=tensor(storage()))
ODD_ARCHIVES = {
    "empty zip": (zip_bytes(GOOD)[-22:], ""),
    "cut in the middle": (zip_bytes(GOOD)[:200], "zip archive is damaged"),
    "directory cut": (zip_bytes(GOOD)[:-10], "zip archive is damaged"),
    "two pickles": (zip_bytes(GOOD, **{"inner/data.pkl": GOOD}), "has 2"),
    "big-endian": (zip_bytes(GOOD, byteorder=b"big"), "big-endian"),
    "storage missing": (zip_bytes(GOOD, {}), "'archive/data/0' is not in the archive"),
    "storage cut": (zip_bytes(GOOD, {"0": bytes(8)}), "needs 16 bytes of storage '0', which holds 8"),
    "magic alone": (b"PK\3\4", "zip archive is damaged"),
    "legacy, other magic": (legacy_bytes(GOOD, magic=5), ""),
    "legacy, other protocol": (legacy_bytes(GOOD, protocol=1002), "1001"),
    "legacy, big-endian": (legacy_bytes(GOOD, system={"little_endian": False}), "little-endian"),
    "legacy, no system": (legacy_bytes(GOOD, system=[]), "little-endian"),
    "legacy, keys are no list": (legacy_bytes(GOOD, keys=3), "list of storages"),
    "legacy, key twice": (legacy_bytes(GOOD, keys=["0", "0"]), "list of storages"),
    "legacy, key unknown": (legacy_bytes(GOOD, keys=["0", "7"]), "list of storages"),
    "legacy, no keys": (legacy_bytes(GOOD, {}), "storage '0' is not in the file"),
    "legacy, storage cut": (legacy_bytes(GOOD)[:-4], "storage '0' of 16 bytes does not fit"),
    "legacy, storage count 2**63": (legacy_bytes(GOOD)[:-24] + struct.pack("<Q", 2**63) + bytes(16), "does not fit"),
    "legacy, nothing after the magic": (pickle.dumps(MAGIC, 2), "damaged"),
    "plain pickle": (pickle.dumps({"w": [1.0]}, 2), ""),
    "empty": (b"", ""),
    "text": (b"hello", ""),
}


@pytest.mark.parametrize("case", ODD_ARCHIVES)
def test_odd_archives(refused, case):
    content, *words = ODD_ARCHIVES[case]
    refused("model.bin", content, *words)


def corrupt(content, old, new):
    assert old in content and len(old) == len(new)
    return content.replace(old, new)


def zip_twice():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, pytest.warns(UserWarning):
        archive.writestr("a/data.pkl", GOOD)
        archive.writestr("a/data.pkl", GOOD)
    return stream.getvalue()


def test_zip_abuses(refused):
    refused("twice.pt", zip_twice(), "is there twice")
    good = zip_bytes(GOOD)
    start = good.index(b"PK\1\2")
    directory = good[start:]
    # Flag bit 0 of the first directory entry says encrypted; offset 10 is its compression method; offset 24 its unpacked size.
    refused("encrypted.pt", good[:start] + directory[:8] + b"\1" + directory[9:], "is encrypted")
    refused("method.pt", good[:start] + directory[:10] + b"\x0c" + directory[11:], "compression method 12")
    refused("size.pt", good[:start] + directory[:24] + b"\xff\xff\xff\x7f" + directory[28:], "claims 2147483647 bytes")
    refused("local.pt", b"PK\3\4" + corrupt(good, b"PK\3\4", b"PK\3\5")[4:], "")
    bomb = zip_bytes(GOOD + bytes(1 << 20), compress=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 4096
    refused("lie.pt", corrupt(bomb, struct.pack("<I", len(GOOD) + (1 << 20)), struct.pack("<I", 2**31 - 1)), "claims 2147483647 bytes")


@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt", "protocol4.pt"])
def test_mutations(survives_mutations, name):
    outcomes = survives_mutations(FIXTURES / name)
    assert outcomes[False] > 20


def test_plain_pickles_are_data():
    value = {"a": [1, 2.5, None, True, "text", b"bytes", (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ()], 7: {"b": {}}, "big": 2**100}
    for protocol in range(5):
        if protocol > 2:
            assert unpickle(pickle.dumps(value, protocol), "x") == value
        else:
            value_without_bytes = {"a": [item for item in value["a"] if not isinstance(item, bytes)], 7: value[7], "big": value["big"]}
            assert unpickle(pickle.dumps(value_without_bytes, protocol), "x") == value_without_bytes


def test_opcodes_that_python_does_not_write():
    assert unpickle(b"K\x01K\x020.", "x") == 1
    assert unpickle(b"K\x01(K\x02K\x031.", "x") == 1
    assert unpickle(b"(K\x01K\x02l.", "x") == [1, 2]
    assert unpickle(b"(K\x01K\x02d.", "x") == {1: 2}
    assert unpickle(b"K\x012\x86.", "x") == (1, 1)
    with pytest.raises(FormatError, match="^x: "):
        unpickle(b"K\x01", "x")


# Programs of a few bytes a step, repeated: each takes memory or time that has nothing to do with tensors.
BOMBS = {
    "marks": b"(" * 4_000_000,
    "lists": b"]" * 4_000_000,
    "dicts": b"}" * 4_000_000,
    "nested tuples": b")" + b"\x85" * 4_000_000,
    "copies": b"N" + b"2" * 4_000_000,
    "calls": b"ccollections\nOrderedDict\nq\x000((" + b"NN\x86" * 60_000 + b"ltq\x010" + b"h\x00h\x01R0" * 60_000 + b"N",
    "sizes": b"ctorch\nSize\nq\x000((" + b"K\x01" * 60_000 + b"ttq\x010" + b"h\x00h\x01R0" * 60_000 + b"N",
    "colliding keys": b"}(" + b"".join(number(i * (2**61 - 1)) + b"N" for i in range(100_000)) + b"u",
}


@pytest.mark.parametrize("container", ["deflated", "legacy"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(tmp_path, bomb, container):
    program = b"\x80\x02" + BOMBS[bomb] + b"."
    data = zip_bytes(program, compress=zipfile.ZIP_DEFLATED) if container == "deflated" else legacy_bytes(program)
    path = tmp_path / "bomb.bin"
    path.write_bytes(data)
    start = time.process_time()
    with pytest.raises(FormatError, match="which is refused"):
        open_weights(path)
    assert time.process_time() - start < 2


def test_a_deflated_pickle_longer_than_any_need_is_not_unpacked(refused):
    refused("long.bin", zip_bytes(b"\x80\x02" + b"(" * 20_000_000 + b".", compress=zipfile.ZIP_DEFLATED), "the limit for a file of")


def test_what_a_pickle_may_do_grows_with_its_file():
    program = pickle.dumps(list(range(1_500_000)), 2)
    with pytest.raises(FormatError, match="more work"):
        unpickle(program, "example")
    assert len(unpickle(program, "example", file_size=16 * 1_500_000)) == 1_500_000
