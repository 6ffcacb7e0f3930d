"""When a continuation ends: end ids, stop ids, stop strings across token borders, a stop function, the length."""

from __future__ import annotations

from typing import Protocol


class TextDecoder(Protocol):
    """Turns ids into text one by one, as cygnet.tokenizers.StreamDecoder does."""

    def push(self, token_id: int) -> str:
        """The text that this id completes; often empty."""

    def flush(self) -> str:
        """What is still held back, once no id will follow."""


class StopMatcher:
    """Lets text through up to the earliest occurrence of any stop string, however the text is cut into pieces.

    A piece's tail that may begin a stop string is held back until it is decided. The text let through always equals the whole text cut at
    the earliest place where a stop string starts.

    Parameters
    ----------
    stops : sequence of str
        None of them empty.

    Examples
    --------
    >>> matcher = StopMatcher(["stop"])
    >>> matcher.push("go st"), matcher.push("op!"), matcher.found
    ('go ', '', 'stop')
    """

    def __init__(self, stops):
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None

    def push(self, text: str) -> str:
        """The text that no stop string can take back any more."""
        if not self._stops or not text:
            return text
        buffer = self._held + text
        pending = self._pending(buffer)
        start, stop = self._earliest(buffer)
        # An unfinished stop string that starts before a finished one may still turn out to be the earliest.
        if stop is not None and start <= pending:
            self.found, self._held = stop, ""
            return buffer[:start]
        self._held = buffer[pending:]
        return buffer[:pending]

    def flush(self) -> str:
        """The text held back, once nothing follows; cut if it holds a stop string."""
        buffer, self._held = self._held, ""
        start, self.found = self._earliest(buffer)
        return buffer[:start]

    def _earliest(self, buffer: str) -> tuple[int, str | None]:
        """Where the first stop string starts, the longest of those that start there; the buffer's length if there is none."""
        best, found = len(buffer), None
        for stop in self._stops:
            at = buffer.find(stop)
            if at >= 0 and (at < best or found is None or (at == best and len(stop) > len(found))):
                best, found = at, stop
        return best, found

    def _pending(self, buffer: str) -> int:
        """Where the longest tail starts that is the beginning of a stop string; the buffer's length if there is none."""
        best = len(buffer)
        for stop in self._stops:
            at = max(len(buffer) - len(stop) + 1, 0)
            while at < best:
                at = buffer.find(stop[0], at, best)
                if at < 0:
                    break
                if stop.startswith(buffer[at:]):
                    best = at
                    break
                at += 1
        return best


class TextTracker:
    """Text of one continuation: decoder, stop strings, and everything let through so far.

    Parameters
    ----------
    decoder : TextDecoder or None
        None keeps no text.
    stops : sequence of str
    """

    def __init__(self, decoder: TextDecoder | None, stops=()):
        self._decoder = decoder
        self._matcher = StopMatcher(stops)
        self._pieces: list[str] = []

    @property
    def found(self) -> str | None:
        """The stop string that was met."""
        return self._matcher.found

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def prefix(self, token_ids) -> str:
        """Text of forced ids, in which stop strings are not looked for."""
        return self._keep("".join(map(self._decoder.push, token_ids))) if self._decoder else ""

    def push(self, token_id: int) -> str:
        """The text that this id makes certain."""
        return self._keep(self._matcher.push(self._decoder.push(token_id))) if self._decoder else ""

    def finish(self) -> str:
        """The text that is certain now that no id follows."""
        if not self._decoder or self._matcher.found:
            return ""
        text = self._matcher.push(self._decoder.flush())
        return self._keep(text if self._matcher.found else text + self._matcher.flush())

    def _keep(self, text: str) -> str:
        if text:
            self._pieces.append(text)
        return text
