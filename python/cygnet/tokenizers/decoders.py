"""Decoders: tokens back to text. Each maps a list of tokens to a list of tokens; the text is their concatenation."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from cygnet.tokenizers.byte_alphabet import CHAR_TO_BYTE
from cygnet.tokenizers.decoder_base import DecoderBase, PerToken, Stage, TextStream, Wait
from cygnet.tokenizers.expressions import Expression

BYTE_TOKEN = Expression(r"<0x(?:[0-9A-Fa-f]{2}|\+[0-9A-Fa-f])>")
CLEAN_UP = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
]


def clean_up_spaces(text: str) -> str:
    """Takes out the spaces that English word tokenizers leave before punctuation and contractions."""
    for old, new in CLEAN_UP:
        text = text.replace(old, new)
    return text


class ByteLevel(DecoderBase):
    """GPT-2's alphabet back to bytes, all of them read as UTF-8; a token with another character stands for its own UTF-8."""

    fuses = True

    def stage(self) -> Stage:
        return _ByteLevelStage()


class _ByteLevelStage:
    def __init__(self):
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: str) -> list[str]:
        try:
            data = bytes([CHAR_TO_BYTE[c] for c in token])
        except KeyError:
            data = token.encode()
        return [self._utf8.decode(data)]

    def finish(self) -> list[str]:
        return [self._utf8.decode(b"", True)]


class Fuse(DecoderBase):
    """All tokens become one."""

    fuses = True
    keeps_text = True

    def stage(self) -> Stage:
        return PerToken(lambda _, token: token)


class ByteFallback(DecoderBase):
    """Runs of <0x..> tokens read as UTF-8; a run that is not valid gives one U+FFFD a byte."""

    def stage(self) -> Stage:
        return _ByteFallbackStage()


class _ByteFallbackStage:
    def __init__(self):
        self._run = bytearray()

    def push(self, token: str) -> list[str]:
        if BYTE_TOKEN.fullmatch(token):
            self._run.append(int(token[3:5], 16))
            return []
        return [*self.finish(), token]

    def finish(self) -> list[str]:
        run, self._run = self._run, bytearray()
        if not run:
            return []
        try:
            return [run.decode()]
        except UnicodeDecodeError:
            return ["�"] * len(run)


class WordPiece(DecoderBase):
    """A space before each word, none before a continuation, whose prefix goes."""

    def __init__(self, prefix: str = "##", cleanup: bool = True):
        self.prefix = prefix
        self.cleanup = cleanup

    def stage(self) -> Stage:
        return PerToken(self.token)

    def token(self, index: int, token: str) -> str:
        if index:
            token = token[len(self.prefix) :] if token.startswith(self.prefix) else " " + token
        return clean_up_spaces(token) if self.cleanup else token


class Metaspace(DecoderBase):
    """The visible sign back to a space; the first token's signs go where one was put before the text."""

    def __init__(self, replacement: str = "▁", prepend_scheme: str = "always"):
        self.replacement = replacement
        self.prepended = prepend_scheme != "never"

    def stage(self) -> Stage:
        return PerToken(self.token)

    def token(self, index: int, token: str) -> str:
        return token.replace(self.replacement, "" if index == 0 and self.prepended else " ")


class BPEDecoder(DecoderBase):
    """The end-of-word mark becomes a space, at the end of the text nothing."""

    def __init__(self, suffix: str = "</w>"):
        self.suffix = suffix

    def chain(self, tokens: list[str]) -> list[str]:
        if not self.suffix:
            return tokens
        return [token.replace(self.suffix, " " if i < len(tokens) else "") for i, token in enumerate(tokens, 1)]

    def stage(self) -> Stage:
        return _BPEDecoderStage(self.suffix)

    def whole_stage(self) -> Stage:
        return _OneLate(self.chain)


class _BPEDecoderStage:
    """Gives at once what a token says whether or not it is the last, and keeps both ways to go on."""

    def __init__(self, suffix: str):
        self._suffix = suffix
        self._if_more = self._if_last = ""

    def push(self, token: str) -> list[str]:
        before = self._if_more
        inner, last = (token.replace(self._suffix, mark) if self._suffix else token for mark in (" ", ""))
        shared = next((i for i, (a, b) in enumerate(zip(inner, last, strict=False)) if a != b), min(len(inner), len(last)))
        self._if_more, self._if_last = inner[shared:], last[shared:]
        return [before + inner[:shared]]

    def finish(self) -> list[str]:
        return [self._if_last]


class _OneLate:
    """Gives each token when the next one tells that it is not the last."""

    def __init__(self, chain: Callable[[list[str]], list[str]]):
        self._chain = chain
        self._held: list[str] = []

    def push(self, token: str) -> list[str]:
        given = self._chain([*self._held, token])[:-1]
        self._held = [token]
        return given

    def finish(self) -> list[str]:
        return self._chain(self._held)


class CTC(DecoderBase):
    """Repeated tokens once, padding out, word delimiters as spaces."""

    def __init__(self, pad_token: str = "<pad>", word_delimiter_token: str = "|", cleanup: bool = True):
        self.pad_token = pad_token
        self.word_delimiter_token = word_delimiter_token
        self.cleanup = cleanup

    def stage(self) -> Stage:
        return _CTCStage(self)


class _CTCStage:
    def __init__(self, decoder: CTC):
        self._decoder = decoder
        self._last: str | None = None

    def push(self, token: str) -> list[str]:
        if token == self._last:
            return []
        self._last = token
        text = token.replace(self._decoder.pad_token, "") if self._decoder.pad_token else token
        if self._decoder.cleanup:
            text = clean_up_spaces(text).replace(self._decoder.word_delimiter_token, " ")
        return [text] if text else []

    def finish(self) -> list[str]:
        return []


class Replace(DecoderBase):
    """A literal string or a regular expression replaced in each token."""

    def __init__(self, pattern: str | Expression, content: str):
        self.pattern = pattern
        self.content = content

    def stage(self) -> Stage:
        return PerToken(self.token)

    def token(self, index: int, token: str) -> str:
        if isinstance(self.pattern, str):
            return token.replace(self.pattern, self.content) if self.pattern else token
        if not token:
            return token  # where nothing matches, not even the empty pattern
        parts, done = [], 0
        for start, end in self.pattern.spans(token):
            parts += (token[done:start], self.content)
            done = end
        return "".join(parts) + token[done:]

    def growing(self) -> Wait | _GrowingReplace:
        return _GrowingReplace(self.pattern, self.content) if isinstance(self.pattern, str) else Wait(self.chain)


class _GrowingReplace:
    """Replaces a literal in a growing token; holds back an end that may begin it."""

    def __init__(self, pattern: str, content: str):
        self._pattern = pattern
        self._content = content
        self._held = ""

    def push(self, text: str) -> str:
        if not self._pattern:
            return text
        *whole, tail = (self._held + text).split(self._pattern)
        keep = next((n for n in range(min(len(tail), len(self._pattern) - 1), 0, -1) if self._pattern.startswith(tail[-n:])), 0)
        self._held = tail[len(tail) - keep :]
        return "".join([part + self._content for part in whole]) + tail[: len(tail) - keep]

    def finish(self) -> str:
        return self._held


class Strip(DecoderBase):
    """Up to `start` copies of a character off the left of each token and up to `stop` off the right."""

    def __init__(self, content: str, start: int, stop: int):
        self.content = content
        self.start = start
        self.stop = stop

    def stage(self) -> Stage:
        return PerToken(self.token)

    def token(self, index: int, token: str) -> str:
        left = min(self.start, len(token) - len(token.lstrip(self.content)))
        token = token[left:]
        right = min(self.stop, len(token) - len(token.rstrip(self.content)))
        return token[: len(token) - right]

    def growing(self) -> _GrowingStrip:
        return _GrowingStrip(self)


class _GrowingStrip:
    """Strips a growing token: the left as it comes, the right by holding back what may be cut."""

    def __init__(self, strip: Strip):
        self._content = strip.content
        self._left = strip.start
        self._stop = strip.stop
        self._held = ""

    def push(self, text: str) -> str:
        if self._left:
            cut = min(self._left, len(text) - len(text.lstrip(self._content)))
            self._left = self._left - cut if cut == len(text) else 0
            text = text[cut:]
        text = self._held + text
        keep = min(self._stop, len(text) - len(text.rstrip(self._content)))
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        return ""


class Sequence(DecoderBase):
    """Several decoders, one after the other."""

    def __init__(self, decoders: list[DecoderBase]):
        self.decoders = [inner for d in decoders for inner in (d.decoders if isinstance(d, Sequence) else [d])]

    def chain(self, tokens: list[str]) -> list[str]:
        for decoder in self.decoders:
            tokens = decoder.chain(tokens)
        return tokens

    def stream(self) -> TextStream:
        return TextStream(self.decoders)
