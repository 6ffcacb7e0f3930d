"""Members of a zip archive, mapped in place where they are stored uncompressed (npz and PyTorch archives are)."""

import zipfile
import zlib

import numpy as np

from cygnet.errors import FormatError
from cygnet.formats.mapping import Mapping

LOCAL_HEADER = 30
# Deflate cannot shrink by more than this: a larger claim is a lie.
MAX_RATIO = 1032


class ZipMembers:
    """A zip archive as names to bytes.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    FormatError
        If the archive is damaged, encrypted, compressed in another way than deflate, or names a member twice.
    """

    def __init__(self, path):
        self.mapping = Mapping(path)
        self.path = self.mapping.path
        self._members = {}
        try:
            with zipfile.ZipFile(self.path) as archive:
                for info in archive.infolist():
                    self._add(info)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError) as error:
            self.mapping.close()
            raise error if isinstance(error, FormatError) else FormatError(f"{self.path}: the zip archive is damaged: {error}") from None

    def _add(self, info):
        where = f"{self.path}: member {info.filename!r}"
        if info.filename in self._members:
            raise FormatError(f"{where} is there twice")
        if info.flag_bits & 1:
            raise FormatError(f"{where} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(f"{where} uses compression method {info.compress_type}; stored and deflated members are read")
        stored = info.compress_type == zipfile.ZIP_STORED
        if info.file_size > info.compress_size * MAX_RATIO + 64 or stored and info.file_size != info.compress_size:
            raise FormatError(f"{where} claims {info.file_size} bytes and has {info.compress_size}")
        header = bytes(self.mapping.view(info.header_offset, LOCAL_HEADER))
        if header[:4] != b"PK\x03\x04":
            raise FormatError(f"{where} does not start where the directory says")
        name_length, extra_length = int.from_bytes(header[26:28], "little"), int.from_bytes(header[28:30], "little")
        start = info.header_offset + LOCAL_HEADER + name_length + extra_length
        self.mapping.view(start, info.compress_size)
        self._members[info.filename] = start, info.compress_size, info.file_size, stored

    def __iter__(self):
        return iter(self._members)

    def __contains__(self, name):
        return name in self._members

    def size(self, name):
        """Bytes of a member when unpacked."""
        return self._members[name][2]

    def is_stored(self, name):
        """Whether `view` costs nothing."""
        return self._members[name][3]

    def view(self, name, offset, nbytes):
        """Bytes of a member: a view of the mapped file, or a decompressed copy, as (nbytes,) uint8."""
        start, packed, size, stored = self._members[name]
        if not 0 <= offset <= offset + nbytes <= size:
            raise FormatError(f"{self.path}: bytes {offset} to {offset + nbytes} lie outside member {name!r} of {size} bytes")
        if stored:
            return self.mapping.view(start + offset, nbytes)
        return np.frombuffer(self._inflate(name, start, packed, offset + nbytes), np.uint8)[offset:]

    def _inflate(self, name, start, packed, wanted):
        """The first `wanted` bytes of a deflated member."""
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(self.mapping.view(start, packed), wanted) if wanted else b""
        except zlib.error as error:
            raise FormatError(f"{self.path}: member {name!r} is damaged: {error}") from None
        if len(data) != wanted:
            raise FormatError(f"{self.path}: member {name!r} ends after {len(data)} bytes, {wanted} were expected")
        return data

    def release(self, name, offset, nbytes):
        """Let go of the mapped pages of a stored member."""
        start, _, _, stored = self._members[name]
        if stored:
            self.mapping.release(start + offset, nbytes)

    def close(self):
        self.mapping.close()
