"""What a caller holds of a submitted request: its stream, its result, and the means to cancel it, for threads and for asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from queue import Empty, SimpleQueue

from cygnet.errors import Cancelled
from cygnet.generation.result import Delta

# Waits are sliced, because on some systems a signal cannot interrupt a wait without a time limit.
_WAIT_SLICE = 0.5


class Ticket:
    """The state that the scheduler's thread and the caller share."""

    def __init__(self):
        self._ended = threading.Condition()
        self._deltas: SimpleQueue[Delta | None] = SimpleQueue()  # None only wakes whoever waits for the next one
        self._listener: Callable[[], None] | None = None
        self.cancelled = False
        self.closed: Cancelled | None = None  # set where it was not the caller who cancelled
        self.done = False
        self.error: BaseException | None = None
        self.results: list = []

    def emit(self, delta: Delta) -> None:
        self._deltas.put(delta)
        if self._listener is not None:
            self._tell_listener()

    def finish(self, results: list) -> None:
        self.results = results
        self._end()

    def fail(self, error: BaseException) -> None:
        self.error = error
        self._end()

    def close(self) -> None:
        """Cancels a request because its model is closed; its caller, who did not ask for that, gets an error and not a part of the answer."""
        if not self.cancelled:
            self.closed = Cancelled("the model was closed while it worked on this request: keep it open until all results are there")
            self.cancelled = True

    def abandon_after_fork(self) -> None:
        """In a forked child: no thread will ever work on it, and its locks may have been held in the parent."""
        self._ended = threading.Condition()
        self._deltas = SimpleQueue()
        self._listener = None
        self.fail(Cancelled("this request belongs to the process that forked this one; submit it again here"))

    def _end(self) -> None:
        with self._ended:
            self.done = True
            self._ended.notify_all()
        self._deltas.put(None)
        self._tell_listener()

    def _tell_listener(self) -> None:
        with self._ended:
            if self._listener is not None:
                self._listener()

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Calls `listener` after each change, from the scheduler's thread."""
        with self._ended:
            self._listener = listener

    def take(self, timeout: float = 0) -> Delta | None:
        """The next delta, waited for so many seconds; None if none has come, or none will come any more."""
        try:
            return self._deltas.get(timeout > 0, timeout or None)
        except Empty:
            return None

    def wait(self, timeout: float) -> None:
        """Until it is done, or the time is over."""
        with self._ended:
            self._ended.wait_for(lambda: self.done, timeout)


class Handle:
    """A submitted request. Iterating gives its deltas as they come; a handle that is dropped or closed cancels what still runs.

    Parameters
    ----------
    ticket : Ticket
    cancel : function
        Tells the scheduler.
    """

    def __init__(self, ticket: Ticket, cancel: Callable[[Ticket], None]):
        self._ticket = ticket
        self._cancel = cancel

    @property
    def done(self) -> bool:
        return self._ticket.done

    def cancel(self) -> None:
        """Stops the request within one forward pass, from any thread; its result then says "cancelled"."""
        if not self._ticket.done:
            self._cancel(self._ticket)

    close = cancel

    def result(self, timeout: float | None = None) -> list:
        """Waits for the end.

        Parameters
        ----------
        timeout : float or None
            In seconds; None waits for ever.

        Returns
        -------
        list of Generation
            One for each sample or returned beam.

        Raises
        ------
        TimeoutError
            The request goes on.
        Exception
            What went wrong in the request.
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._ticket.done:
                left = _WAIT_SLICE if end is None else min(_WAIT_SLICE, end - time.monotonic())
                if left <= 0:
                    raise TimeoutError(f"the request was not done within {timeout} s")
                self._ticket.wait(left)
        except KeyboardInterrupt:
            self.cancel()
            raise
        return self._outcome()

    def __iter__(self) -> Iterator[Delta]:
        try:
            while True:
                finished = self._ticket.done
                delta = self._ticket.take(0 if finished else _WAIT_SLICE)
                if delta is not None:
                    yield delta
                elif finished:
                    break
            self._outcome()
        finally:
            self.cancel()

    async def aresult(self) -> list:
        """result() for asyncio; cancelling the awaiting task cancels the request."""
        async with _Watch(self) as watch:
            while not self._ticket.done:
                await watch.change()
        return self._outcome()

    async def __aiter__(self) -> AsyncIterator[Delta]:
        async with _Watch(self) as watch:
            while True:
                finished = self._ticket.done
                delta = self._ticket.take()
                if delta is not None:
                    yield delta
                elif finished:
                    break
                else:
                    await watch.change()
        self._outcome()

    def _outcome(self) -> list:
        if self._ticket.error is not None:
            raise self._ticket.error
        return self._ticket.results

    def __del__(self):
        self.cancel()


class _Watch:
    """Wakes an event loop whenever a ticket changes; cancels the request if its body is left early."""

    def __init__(self, handle: Handle):
        import asyncio  # here, because it takes a good part of the time in which the command line starts

        self._handle = handle
        self._event, self._loop = asyncio.Event(), asyncio.get_running_loop()

    async def __aenter__(self) -> _Watch:
        loop, event, handle = self._loop, self._event, self._handle

        def wake():
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                # The loop was closed under its tasks: nobody waits any more.
                handle.cancel()

        self._handle._ticket.listen(wake)
        self._event.set()
        return self

    async def change(self) -> None:
        await self._event.wait()
        self._event.clear()

    async def __aexit__(self, *exception) -> None:
        self._handle._ticket.listen(None)
        self._handle.cancel()
