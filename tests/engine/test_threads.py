"""The team of threads: every unit of every stage is done once, whoever comes late."""

import subprocess
import sys
import threading

import pytest

from cygnet._core import _threads


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("units", [0, 1, 2, 1000])
def test_every_unit_of_every_stage_is_done_once(threads, units):
    for _ in range(50):
        assert _threads.probe(threads, units) == [3] * units


def test_callers_on_many_threads_share_one_team():
    wrong = []

    def call():
        for _ in range(100):
            if _threads.probe(3, 50) != [3] * 50:
                wrong.append(threading.get_ident())

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_works_beside_busy_processes():
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        for _ in range(300):
            assert _threads.probe(4, 64) == [3] * 64
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


@pytest.mark.parametrize("threads", [0, 256])
def test_refuses_absurd_numbers(threads):
    with pytest.raises(ValueError, match="1..255"):
        _threads.probe(threads, 1)
