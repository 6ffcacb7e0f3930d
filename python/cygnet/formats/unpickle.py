"""A pickle interpreter that knows tensors and containers and nothing else.

PyTorch checkpoints are pickles, and a pickle is a program that may call anything. This one runs on its own stack machine: globals stay names, only
the handful in `KNOWN_GLOBALS` can be called, and each of those only checks its arguments and builds a plain description. Nothing is imported.
Opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py, whose `genops` decodes their arguments.
"""

from typing import NamedTuple

from cygnet.errors import FormatError
from cygnet.formats.tensor import MAX_RANK

# torch.FloatStorage and its kin, and torch.float32 and its kin.
STORAGE_TYPES = {
    "DoubleStorage": "F64",
    "FloatStorage": "F32",
    "HalfStorage": "F16",
    "BFloat16Storage": "BF16",
    "LongStorage": "I64",
    "IntStorage": "I32",
    "ShortStorage": "I16",
    "CharStorage": "I8",
    "ByteStorage": "U8",
    "BoolStorage": "BOOL",
    "ComplexFloatStorage": "C64",
    "UntypedStorage": "U8",
}
TORCH_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}


# What a pickle may do, in opcodes and elements handed to calls: a tensor takes some 40 of them and, with its entry in the archive, 300 bytes of file.
STEPS = 250_000
BYTES_A_STEP = 16
MORE_STEPS = 20_000_000
MAX_MARKS = 1000


class StorageType(NamedTuple):
    dtype: str


class ElementType(NamedTuple):
    dtype: str


class Storage(NamedTuple):
    """A run of bytes named by `key`: `count` elements of `dtype` from element `first` on."""

    key: str
    dtype: str
    first: int
    count: int


class StridedTensor(NamedTuple):
    """A tensor before its bytes are looked up: a view of a storage, in elements of `dtype`."""

    dtype: str
    storage: Storage
    offset: int
    shape: tuple
    strides: tuple


class _Global(NamedTuple):
    name: str
    call: object


class _Refused(ValueError):
    """What the pickle does that is not read; `unpickle` adds the file."""


def _natural(value):
    return type(value) is int and 0 <= value < 2**63


def _is_shape(value):
    return type(value) is tuple and len(value) <= MAX_RANK and all(map(_natural, value))


def _pairs(items):
    """A dict of alternating keys and values. Keys are plain: hashing nested tuples, or numbers chosen to collide, can be made to take forever."""
    keys = items[::2]
    if not all(isinstance(key, (str, bytes, int, float, type(None))) for key in keys):
        raise _Refused("a dict whose keys are not plain")
    if any(isinstance(key, int) and not -(2**63) <= key < 2**63 for key in keys):
        raise _Refused("a dict with keys of more than 64 bits")
    return dict(zip(keys, items[1::2], strict=True))


def _ordered_dict(pairs=()):
    return _pairs([item for key, value in pairs for item in (key, value)])


def _rebuild_tensor(storage, offset, shape, strides, *_):
    return _strided(storage, storage.dtype if isinstance(storage, Storage) else None, offset, shape, strides)


def _rebuild_tensor_v3(storage, offset, shape, strides, requires_grad, hooks, dtype, *_):
    if not isinstance(dtype, ElementType):
        raise _Refused("torch._utils._rebuild_tensor_v3 without a dtype")
    return _strided(storage, dtype.dtype, offset, shape, strides)


def _strided(storage, dtype, offset, shape, strides):
    if not (isinstance(storage, Storage) and _natural(offset) and _is_shape(shape) and _is_shape(strides) and len(shape) == len(strides)):
        raise _Refused("a tensor whose storage, offset, sizes or strides are not what PyTorch writes")
    return StridedTensor(dtype, storage, offset, shape, strides)


def _rebuild_parameter(data, *_):
    if not isinstance(data, StridedTensor):
        raise _Refused("a parameter that is not a tensor")
    return data


def _size(values=()):
    if not all(map(_natural, values)):
        raise _Refused("a torch.Size that holds something else than sizes")
    return tuple(values)


def _known_globals():
    known = {
        "collections.OrderedDict": _Global("collections.OrderedDict", _ordered_dict),
        "torch._utils._rebuild_tensor": _Global("torch._utils._rebuild_tensor", _rebuild_tensor),
        "torch._utils._rebuild_tensor_v2": _Global("torch._utils._rebuild_tensor_v2", _rebuild_tensor),
        "torch._utils._rebuild_tensor_v3": _Global("torch._utils._rebuild_tensor_v3", _rebuild_tensor_v3),
        "torch._utils._rebuild_parameter": _Global("torch._utils._rebuild_parameter", _rebuild_parameter),
        "torch._utils._rebuild_parameter_with_state": _Global("torch._utils._rebuild_parameter_with_state", _rebuild_parameter),
        "torch.Size": _Global("torch.Size", _size),
    }
    for module in ("torch", "torch.cuda", "torch.storage"):
        known |= {f"{module}.{name}": StorageType(dtype) for name, dtype in STORAGE_TYPES.items()}
    return known | {f"torch.{name}": ElementType(dtype) for name, dtype in TORCH_DTYPES.items()}


KNOWN_GLOBALS = _known_globals()


def unpickle(stream, where, storages=None, *, file_size=0):
    """Run one pickle.

    Parameters
    ----------
    stream : binary file or bytes
        Read up to and including the pickle's STOP.
    where : str
        The file, for messages.
    storages : dict, optional
        Receives the element type of each storage that the pickle names.
    file_size : int
        Bytes of the file that the pickle comes from: what it may do grows with what the file holds.

    Returns
    -------
    object
        None, bool, int, float, str, bytes, tuple, list, dict and `StridedTensor`.

    Raises
    ------
    FormatError
        If the pickle is damaged, uses a global or an opcode that no plain checkpoint needs (names it), or does more than a checkpoint needs.

    Examples
    --------
    >>> import pickle
    >>> unpickle(pickle.dumps({"step": 3}), "example")
    {'step': 3}
    >>> unpickle(b"cos\\nsystem\\n.", "example")
    Traceback (most recent call last):
    cygnet.errors.FormatError: example: the pickle asks for os.system, which is refused: only tensors and containers are read
    """
    import pickletools  # here, because it is slow to import and few models need it

    machine = _Machine({} if storages is None else storages, STEPS + min(file_size // BYTES_A_STEP, MORE_STEPS))
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except _Refused as refusal:
        raise FormatError(f"{where}: the pickle asks for {refusal}, which is refused: only tensors and containers are read") from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError(f"{where}: the pickle is damaged: {error or type(error).__name__}") from None
    raise FormatError(f"{where}: the pickle is cut short")


class _Machine:
    """Stack, marks and memo of the pickle language."""

    def __init__(self, storages, steps):
        self.storages = storages
        self.steps = steps
        self.stack = []
        self.marks = []
        self.memo = {}

    def pop(self):
        return self.stack.pop()

    def pop_mark(self):
        items, self.stack = self.stack, self.marks.pop()
        return items

    def step(self, name, argument):
        """Run one opcode."""
        self.spend(1)
        if name in _PUSHES:
            self.stack.append(argument)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        elif name not in _IGNORED:
            action = _ACTIONS.get(name)
            if action is None:
                raise _Refused(f"the opcode {name}")
            action(self, argument)

    def spend(self, steps):
        self.steps -= steps
        if self.steps < 0:
            raise _Refused("more work than the tensors of a file of this size need")

    def mark(self, _):
        if len(self.marks) == MAX_MARKS:
            raise _Refused(f"more than {MAX_MARKS} containers inside each other")
        self.marks.append(self.stack)
        self.stack = []

    def drop(self, _):
        if self.stack:
            self.pop()
        else:
            self.pop_mark()

    def drop_to_mark(self, _):
        self.pop_mark()

    def duplicate(self, _):
        self.stack.append(self.stack[-1])

    def put(self, index):
        self.memo[len(self.memo) if index is None else index] = self.stack[-1]

    def get(self, index):
        self.stack.append(self.memo[index])

    def tuple_from_mark(self, _):
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def list_from_mark(self, _):
        items = self.pop_mark()
        self.stack.append(items)

    def dict_from_mark(self, _):
        items = self.pop_mark()
        self.stack.append(_pairs(items))

    def append(self, _):
        value = self.pop()
        self._top(list).append(value)

    def append_all(self, _):
        values = self.pop_mark()
        self._top(list).extend(values)

    def set_item(self, _):
        value, key = self.pop(), self.pop()
        self._top(dict).update(_pairs([key, value]))

    def set_items(self, _):
        items = self.pop_mark()
        self._top(dict).update(_pairs(items))

    def build(self, _):
        """State of an object: state dicts carry a `_metadata` attribute, which is not needed."""
        self.pop()
        self._top(dict)

    def global_name(self, argument):
        self.push_global(argument.replace(" ", ".", 1))

    def stack_global(self, _):
        name, module = self.pop(), self.pop()
        self.push_global(f"{module}.{name}")

    def push_global(self, name):
        if name not in KNOWN_GLOBALS:
            raise _Refused(name)
        self.stack.append(KNOWN_GLOBALS[name])

    def reduce(self, _):
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, _Global) or not isinstance(arguments, tuple):
            raise _Refused(f"a call of {type(function).__name__} objects")
        self.spend(sum(len(value) for value in arguments if isinstance(value, (list, tuple))))
        try:
            self.stack.append(function.call(*arguments))
        except _Refused:
            raise
        except (TypeError, ValueError):
            raise _Refused(f"{function.name} with arguments that PyTorch does not write") from None

    def persistent(self, _):
        """('storage', type, key, device, elements[, view]): the only persistent object PyTorch writes."""
        fields = self.pop()
        if not isinstance(fields, tuple) or not 5 <= len(fields) <= 6:
            raise _Refused("a persistent object that is not a storage")
        kind, storage_type, key, _device, count, *view = fields
        if kind not in ("storage", b"storage") or not isinstance(storage_type, StorageType) or not isinstance(key, str) or not _natural(count):
            raise _Refused("a persistent object that is not a storage")
        if self.storages.setdefault(key, storage_type.dtype) != storage_type.dtype:
            raise _Refused(f"storage {key!r} with two element types")
        first = 0
        if view and view[0] is not None:
            first, count = self._storage_view(view[0])
        self.stack.append(Storage(key, storage_type.dtype, first, count))

    def _storage_view(self, view):
        """(name, first element, elements): how PyTorch before 0.4 wrote a storage that is part of another."""
        if not isinstance(view, tuple) or len(view) != 3 or not _natural(view[1]) or not _natural(view[2]):
            raise _Refused("a view of a storage that is not what PyTorch writes")
        return view[1], view[2]

    def _top(self, kind):
        if type(self.stack[-1]) is not kind:
            raise _Refused(f"a change of {type(self.stack[-1]).__name__} objects")
        return self.stack[-1]


_IGNORED = {"PROTO", "FRAME"}
_PUSHES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_CONSTANTS = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}


def _tuple_of(count):
    def action(machine, _):
        if len(machine.stack) < count:
            raise IndexError("stack underflow")
        machine.stack[-count:] = [tuple(machine.stack[-count:])]

    return action


_ACTIONS = {
    "MARK": _Machine.mark,
    "POP": _Machine.drop,
    "POP_MARK": _Machine.drop_to_mark,
    "DUP": _Machine.duplicate,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "TUPLE": _Machine.tuple_from_mark,
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "LIST": _Machine.list_from_mark,
    "DICT": _Machine.dict_from_mark,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.append_all,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "BUILD": _Machine.build,
    "GLOBAL": _Machine.global_name,
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.reduce,
    "BINPERSID": _Machine.persistent,
}
