"""Work that goes on beside the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """A call in a thread of its own.

    Parameters
    ----------
    work : callable
        Takes nothing; what it raises, `result` raises.

    Examples
    --------
    >>> Background(lambda: 6 * 7).result()
    42
    """

    def __init__(self, work: Callable[[], object]):
        self._work: Callable[[], object] | None = work
        self._value: object = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cygnet-background")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        self._work = None

    def result(self) -> object:
        """What the work returned, once it is done."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value
