"""What decoders are: a list of tokens to a list of tokens at once, or token by token, each giving what no later token can change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Stage(Protocol):
    """Incremental form of a decoder."""

    def push(self, token: str) -> list[str]: ...

    def finish(self) -> list[str]: ...


class DecoderBase:
    """A decoder by its chain() over all tokens and its stage() over one at a time."""

    fuses = False  # whether all tokens become one
    keeps_text = False  # whether it does no more than that

    def chain(self, tokens: list[str]) -> list[str]:
        stage = self.stage()
        out = [part for token in tokens for part in stage.push(token)] + stage.finish()
        return ["".join(out)] if self.fuses else out

    def stage(self) -> Stage:
        raise NotImplementedError

    def whole_stage(self) -> Stage:
        """A stage whose tokens are those of chain(), for decoders that follow; stage() may cut them where only the text matters."""
        return self.stage()

    def decode(self, tokens: list[str]) -> str:
        return "".join(self.chain(tokens))

    def stream(self) -> TextStream:
        return TextStream([self])


class TextStream:
    """Incremental decoding through a chain of decoders.

    After a decoder that fuses all tokens into one, the rest of the chain sees a single growing token: those that can follow its
    growth do (see Strip and Replace), others wait for its end.
    """

    def __init__(self, decoders: list[DecoderBase]):
        cut = next((i + 1 for i, d in enumerate(decoders) if d.fuses), len(decoders))
        self._stages = [d.stage() if d is decoders[-1] else d.whole_stage() for d in decoders[:cut]]
        self._growing = [d.growing() if hasattr(d, "growing") else Wait(d.chain) for d in decoders[cut:] if not d.keeps_text]

    def push(self, token: str) -> str:
        tokens = [token]
        for stage in self._stages:
            tokens = [out for t in tokens for out in stage.push(t)]
        return self._grow("".join(tokens))

    def flush(self) -> str:
        tokens: list[str] = []
        for stage in self._stages:
            tokens = [out for t in tokens for out in stage.push(t)] + stage.finish()
        text = "".join(tokens)
        for part in self._growing:
            text = part.push(text) + part.finish()
        return text

    def _grow(self, text: str) -> str:
        for part in self._growing:
            text = part.push(text)
        return text


class PerToken:
    """A stage that maps each token alone, knowing its place."""

    def __init__(self, function: Callable[[int, str], str]):
        self._function = function
        self._index = 0

    def push(self, token: str) -> list[str]:
        self._index += 1
        return [self._function(self._index - 1, token)]

    def finish(self) -> list[str]:
        return []


class Wait:
    """A growing token that can only be treated once it is complete."""

    def __init__(self, chain: Callable[[list[str]], list[str]]):
        self._chain = chain
        self._parts: list[str] = []

    def push(self, text: str) -> str:
        self._parts.append(text)
        return ""

    def finish(self) -> str:
        return "".join(self._chain(["".join(self._parts)]))
