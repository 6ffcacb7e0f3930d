"""Writes Marian's binary format: float32 tensors as they are, matrices of bytes with a multiplier."""

import struct

import numpy as np

FLOAT32, INT8, BYTES = 0x404, 0x4101, 0x101
SETTINGS = "special:model.yml"


def write_marian(path, arrays, settings="type: transformer\n", quantise=()):
    """`arrays` by name; those named in `quantise` are stored as int8, turned around unless they are embeddings."""
    entries = [entry(name, np.ascontiguousarray(array, np.float32), name in quantise) for name, array in arrays.items()]
    entries.append((SETTINGS.encode() + b"\0", BYTES, (len(settings) + 1,), settings.encode() + b"\0"))
    head = struct.pack("<QQ", 1, len(entries))
    head += b"".join(struct.pack("<4Q", len(name), kind, len(shape), len(data)) for name, kind, shape, data in entries)
    head += b"".join(name for name, _, _, _ in entries)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in entries)
    padding = -(len(head) + 8) % 256
    path.write_bytes(head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for _, _, _, data in entries))


def entry(name, array, quantised):
    encoded = name.encode() + b"\0"
    if not quantised:
        return encoded, FLOAT32, array.shape, array.tobytes()
    multiplier = np.float32(127 / np.abs(array).max())
    codes = np.rint(array * multiplier).astype(np.int8)
    data = (codes if "Wemb" in name else codes.T).tobytes() + struct.pack("<f", multiplier)
    return encoded, INT8, array.shape, data + bytes(-len(data) % 256)
