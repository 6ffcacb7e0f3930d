"""A lock that a forked child gets anew: the thread that held it at the fork is not there any more."""

from __future__ import annotations

import os
import threading
import weakref

_locks: weakref.WeakSet[ForkedLock] = weakref.WeakSet()


class ForkedLock:
    """A reentrant lock for `with`."""

    def __init__(self):
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self):
        self._lock.acquire()
        return self

    def __exit__(self, *exception):
        self._lock.release()


def _renew() -> None:
    for lock in list(_locks):
        lock._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
