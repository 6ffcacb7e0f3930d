"""What the format tests share: refusals that are quick and small, mutation fuzzing, the bytes of PyTorch files without PyTorch."""

import time
from pathlib import Path

import numpy as np
import pytest

from cygnet.errors import CygnetError, FormatError
from cygnet.formats import open_weights

STATUS, CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MAX_SECONDS = 1  # a collection of all that a large test process holds may fall into it
MAX_GROWTH = 10 << 20
MUTATIONS = 200


def _memory(field):
    return next(int(line.split()[1]) * 1024 for line in STATUS.read_text().splitlines() if line.startswith(field))


def _reset_peak():
    """Make VmHWM start from now; False where the system has no such thing."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


@pytest.fixture
def refused(tmp_path):
    """Function (name, content, words...): opening that file fails with all words in the message, quickly and without taking memory."""

    def check(name, content, *words):
        path = tmp_path / name
        path.write_bytes(content)
        measured = _reset_peak()
        before = _memory("VmRSS") if measured else 0
        start = time.process_time()
        with pytest.raises(FormatError) as caught:
            with open_weights(path) as weights:
                for tensor in weights.values():
                    tensor.raw()
        assert time.process_time() - start < MAX_SECONDS
        assert not measured or _memory("VmHWM") - before < MAX_GROWTH
        for word in (str(path), *words):
            assert word in str(caught.value)

    return check


@pytest.fixture
def survives_mutations(tmp_path):
    """Function (path): every damaged copy of a file opens and reads, or fails with one of our errors."""

    def check(path, *, seed=0):
        content = path.read_bytes()
        random = np.random.default_rng(seed)
        target = tmp_path / f"mutated{path.suffix}"
        outcomes = {True: 0, False: 0}
        for _ in range(MUTATIONS):
            target.write_bytes(_mutate(content, random))
            outcomes[_opens(target)] += 1
        return outcomes

    return check


def _mutate(content, random):
    data = bytearray(content)
    for _ in range(random.integers(1, 4)):
        # Damage is most telling near the start and the end, where formats keep their headers and directories.
        near = int(random.integers(0, max(1, min(len(data), 512))))
        place = near if random.random() < 0.6 else max(0, len(data) - 1 - near)
        kind = random.integers(0, 4)
        if kind == 0 and data:
            data[place] = int(random.integers(0, 256))
        elif kind == 1 and data:
            data[place] ^= 1 << int(random.integers(0, 8))
        elif kind == 2:
            data[place:place] = bytes(random.integers(0, 256, int(random.integers(1, 9)), np.uint8))
        else:
            del data[place : place + int(random.integers(1, 9))]
    return bytes(data) if random.random() < 0.9 else bytes(data[: int(random.integers(0, len(data) + 1))])


def _opens(path):
    try:
        with open_weights(path) as weights:
            for tensor in weights.values():
                if tensor.dtype != "C64" and tensor.nbytes < 1 << 24:
                    tensor.to_float32()
            for key in weights.metadata:
                weights.metadata[key]
    except CygnetError:
        return False
    return True
