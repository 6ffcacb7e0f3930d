"""Seq2Seq: encoder-decoder models that turn one text into another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygnet.architectures.spec import Task
from cygnet.errors import ContextOverflow, OptionError
from cygnet.generation.config_defaults import config_defaults
from cygnet.generation.option_checks import flag
from cygnet.generation.options import GenerationOptions
from cygnet.generation.result import Generation, Usage
from cygnet.generation.tasks import Request
from cygnet.models.aliases import Float32, Ids, Text
from cygnet.models.base import as_batch, as_rows, is_ids, is_single
from cygnet.models.generative import _OLD_CONFIG_KEYS, GenerativeModel
from cygnet.models.languages import Languages, find_languages
from cygnet.models.shortlist import Shortlist, find_shortlist
from cygnet.models.text_pieces import split_line, split_lines

if TYPE_CHECKING:
    from cygnet.generation.scoring import Score

# Longest piece of a text, in tokens, for models whose positions set no limit.
DEFAULT_SOURCE_LIMIT = 512


@dataclass(frozen=True)
class Converted:
    """A translation or a summary.

    Attributes
    ----------
    text : str
    truncated : bool
        Whether something was left out: the end of a source that was cut on request, or the end of an answer that reached its longest length.
    usage : Usage
    """

    text: str
    truncated: bool
    usage: Usage


class Seq2Seq(GenerativeModel):
    """An encoder-decoder Transformer.

    `generate` takes source texts; for models of many languages give `source_language` and `target_language`.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("path/to/opus-mt-en-de")         # doctest: +SKIP
    >>> model.translate("Hello, world!").text                  # doctest: +SKIP
    'Hallo, Welt!'
    """

    @overload
    def generate(self, prompts: Text | Iterable[Text], *, num_return_sequences: int, truncate: bool = ..., **options: Any) -> list[Any]: ...
    @overload
    def generate(self, prompts: Text, *, truncate: bool = ..., **options: Any) -> Generation: ...
    @overload
    def generate(self, prompts: Iterable[Text], *, truncate: bool = ..., **options: Any) -> list[Generation]: ...

    def generate(
        self,
        prompts: Text | Iterable[Text],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
        truncate: bool = False,
        **options: Any,
    ) -> Any:
        """See GenerativeModel.generate; the languages are named as the model's vocabulary has them, or by a prefix that only one has."""
        requests, cut = self._language_requests(prompts, source_language, target_language, truncate, self.options(**options))
        results = self._several(self.scheduler.run(requests), cut)
        return results[0] if is_single(prompts) else results

    @overload
    def translate(self, texts: str, *, source: str | None = ..., target: str | None = ..., **options: Any) -> Converted: ...
    @overload
    def translate(self, texts: Iterable[str], *, source: str | None = ..., target: str | None = ..., **options: Any) -> list[Converted]: ...

    def translate(self, texts: str | Iterable[str], *, source: str | None = None, target: str | None = None, **options: Any) -> Any:
        """Translations of a text, or of each of several, line by line.

        Every line break is kept and blank lines stay blank. A line beyond the model's limit is cut between sentences (a sentence between words,
        a word between tokens) and put together again; nothing is left out.

        Parameters
        ----------
        texts : str or list of str
        source, target : str, optional
            Languages, for models of many.
        **options
            Generation options, as in `generate`.

        Returns
        -------
        Converted, or a list of them

        Raises
        ------
        OptionError
            A language is not known (lists the codes), or is missing where the model needs it.
        """
        batch = as_batch(texts)
        if not all(isinstance(text, str) for text in batch):
            raise OptionError("translate needs texts; generate takes token ids")
        lead = self._task_prefix(source, target)
        plans = [self._pieces(text, lead, source) for text in batch]
        work = [piece for plan in plans for piece, _ in plan if piece.strip()]
        given = self._room_for_answers(work, options)
        requests, _ = self._language_requests([lead + piece for piece in work], source, target, False, self.options(**given))
        answers = iter([own[0] for own in self.scheduler.run(requests)])
        results = [_put_together(plan, answers) for plan in plans]
        return results[0] if is_single(texts) else results

    @overload
    def summarize(self, texts: Text, *, truncate: bool = ..., **options: Any) -> Converted: ...
    @overload
    def summarize(self, texts: Iterable[Text], *, truncate: bool = ..., **options: Any) -> list[Converted]: ...

    def summarize(self, texts: Text | Iterable[Text], *, truncate: bool = False, **options: Any) -> Any:
        """Summaries of a text, or of each of several; length settings come from the model's own summarization parameters.

        Parameters
        ----------
        texts : str or list of str
        truncate : bool
            Read only the start of a text that is too long for the model, instead of raising.
        **options
            Generation options, as in `generate`.

        Returns
        -------
        Converted, or a list of them

        Raises
        ------
        ContextOverflow
            A text is too long; names both lengths.
        """
        task = (self.config.get("task_specific_params") or {}).get("summarization") or {}
        stated = config_defaults({key: task[key] for key in _OLD_CONFIG_KEYS if task.get(key) is not None})
        chosen = GenerationOptions.create({**self.defaults, **stated}, **options)
        batch = [task.get("prefix", "") + text if isinstance(text, str) else text for text in as_batch(texts)]
        requests, cut = self._requests(batch, truncate, chosen)
        found = [own[0] for own in self.scheduler.run(requests)]
        results = [Converted(g.text.strip(), bool(n) or g.finish_reason == "length", g.usage) for g, n in zip(found, cut, strict=True)]
        return results[0] if is_single(texts) else results

    @overload
    def forward(self, ids: Ids, decoder_ids: Ids) -> Float32: ...
    @overload
    def forward(self, ids: Iterable[Ids], decoder_ids: Iterable[Ids]) -> list[Float32]: ...

    def forward(self, ids: Ids | Iterable[Ids], decoder_ids: Ids | Iterable[Ids]) -> Any:
        """Logits of decoder tokens after a source, both as they are; the decoder's hidden states where the checkpoint has no head.

        Parameters
        ----------
        ids : list of int, or list of lists of int
            Source tokens.
        decoder_ids : the same
            What the decoder reads, its start token first.

        Returns
        -------
        (T, V) float32, or a list of them; (T, D) without a head
        """
        single = is_ids(ids)
        sources = [self.check_ids(row) for row in as_rows(ids)]
        targets = [self.check_ids(row) for row in ([decoder_ids] if single else as_rows(decoder_ids))]
        if len(sources) != len(targets):
            raise OptionError(f"{len(sources)} sources and {len(targets)} decoder inputs: equal numbers are wanted")
        outputs = []
        for source, target in zip(self.engine.encode(sources), targets, strict=True):
            sequence = self.engine.sequence(source)
            try:
                logits = self.engine.forward([(sequence, target)], rows="all") if target else np.zeros((0, self.engine.vocab_size), np.float32)
            finally:
                sequence.release()
                source.release()
            outputs.append(logits)
        return outputs[0] if single else outputs

    @overload
    def encoder_states(self, ids: Ids) -> Float32: ...
    @overload
    def encoder_states(self, ids: Iterable[Ids]) -> list[Float32]: ...

    def encoder_states(self, ids: Ids | Iterable[Ids]) -> Any:
        """Last hidden states of the encoder for source tokens as they are: (T, D) float32, or a list of them."""
        single = is_ids(ids)
        rows = [self.check_ids(row) for row in as_rows(ids)]
        hidden, offsets = self.engine.hidden(rows)
        states = [hidden[a:b].copy() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        return states[0] if single else states

    @overload
    def score(self, texts: Text, targets: Text, *, source: str | None = ..., target: str | None = ...) -> Score: ...
    @overload
    def score(self, texts: Iterable[Text], targets: Iterable[Text], *, source: str | None = ..., target: str | None = ...) -> list[Score]: ...

    def score(self, texts: Text | Iterable[Text], targets: Text | Iterable[Text], *, source: str | None = None, target: str | None = None) -> Any:
        """How likely the model finds each token of a target text, given the source text and the target tokens before it.

        Parameters
        ----------
        texts, targets : str, list of int, or lists of them
            Texts of a target get its end token; token ids are taken as they are.
        source, target : str, optional
            Languages, for models of many.

        Returns
        -------
        Score, or a list of them
        """
        from cygnet.generation.scoring import score_pairs

        self._check_output_layer()
        sources, wanted = as_batch(texts), as_batch(targets, "targets")
        if len(sources) != len(wanted):
            raise OptionError(f"{len(sources)} texts and {len(wanted)} targets: equal numbers are wanted")
        start, forced = self._target_start(target)
        rows = [self.encode_source(text, source) for text in sources]
        ends = [[*forced, *self._target_ids(text)] for text in wanted]
        results = score_pairs(self.scheduler, rows, ends, [start])
        return results[0] if is_single(texts) else results

    # ---- languages

    @cached_property
    def languages(self) -> Languages | None:
        """The language marks of a model of many languages."""
        if self._tokenizer is None:
            return None
        settings = self._tokenizer.settings
        tokens = [(token.content, token.id) for token in self._tokenizer.added.tokens]
        return find_languages(tokens, settings.get("tokenizer_class", ""), bool(settings.get("legacy_behaviour")))

    def encode_source(self, text: Text, language: str | None = None) -> list[int]:
        """Token ids of a source text with its language's mark where the family puts it; ids are handed back."""
        if not isinstance(text, str) or self.languages is None or language is None:
            return self.encode_text(text)
        ids = list(self.tokenizer.encode(text, add_special_tokens=False).ids)
        mark = self.languages.id_of(language, "source language")
        end = [self.tokenizer.eos_id] if self.tokenizer.eos_id is not None else list(self.spec.tokens.eos[:1])
        return [*ids, *end, mark] if self.languages.behind else [mark, *ids, *end]

    def _language_requests(self, prompts, source: str | None, target: str | None, truncate: bool, options: GenerationOptions):
        flag("truncate", truncate)
        if self.languages is None and (source or target) and not self._named_in_text(target) and self._task_prefix(source, target) == "":
            raise OptionError("this model knows no language marks: leave the languages out")
        start, forced = self._target_start(target)
        if forced:
            options = replace(options, forced_bos=forced[0])
        lead = f">>{target}<< " if self._named_in_text(target) else ""
        batch = [lead + p if lead and isinstance(p, str) else p for p in as_batch(prompts, "prompts")]
        pairs = [self._source_request(self.encode_source(p, source), start, options, truncate) for p in batch]
        return [request for request, _ in pairs], [cut for _, cut in pairs]

    def _target_start(self, target: str | None) -> tuple[int, list[int]]:
        """What the decoder starts from, and the language mark it must produce first."""
        if self.languages is None or target is None:
            return self._decoder_start, []
        mark = self.languages.id_of(target, "target language")
        return (mark, []) if self.languages.starts_decoder else (self._decoder_start, [mark])

    def _target_ids(self, text) -> list[int]:
        """Token ids of a target: those of a text in the answer's language, then the end token; ids as they are."""
        if not isinstance(text, str):
            return self.check_ids(text)
        tokenizer = self.tokenizer.target or self.tokenizer
        return [*tokenizer.encode(text, add_special_tokens=False).ids, *self.spec.tokens.eos[:1]]

    def _named_in_text(self, target: str | None) -> bool:
        """Whether the target language is named by a mark in front of the text (Marian models of many languages)."""
        return (
            target is not None and self.languages is None and self._tokenizer is not None and self._tokenizer.token_to_id(f">>{target}<<") is not None
        )

    def _task_prefix(self, source: str | None, target: str | None) -> str:
        """The words in front of a text that ask for a translation (T5), from the model's own config."""
        task = (self.config.get("task_specific_params") or {}).get(f"translation_{source}_to_{target}") or {}
        return task.get("prefix", "")

    # ---- requests

    @cached_property
    def shortlist(self) -> Shortlist | None:
        """The words that translations may use, where the model brings a list of them."""
        return find_shortlist(self.folder)

    @cached_property
    def _decoder_start(self) -> int:
        tokens = self.spec.tokens
        start = next((token for token in (tokens.decoder_start, tokens.bos, tokens.pad) if token is not None), None)
        if start is None:
            raise OptionError(f"the config of {self.source} names no decoder_start_token_id, bos_token_id or pad_token_id: decoding has no start")
        return start

    def _request(self, prompt, options: GenerationOptions, truncate: bool) -> tuple[Request, int]:
        return self._source_request(self.encode_source(prompt), self._decoder_start, options, truncate)

    def _source_request(self, ids: Sequence[int], start: int, options: GenerationOptions, truncate: bool) -> tuple[Request, int]:
        self._check_output_layer()
        cut = 0
        if self.max_context is not None and len(ids) > self.max_context:
            if not truncate:
                limit = f"the model takes {self.max_context}"
                raise ContextOverflow(f"the source has {len(ids)} tokens, {limit}: shorten it, or cut it with truncate=True (--truncate)")
            cut = len(ids) - self.max_context
            ids = [*ids[: self.max_context - 1], ids[-1]]
        if self.shortlist is not None and options.allowed_tokens is None:
            allowed = self.shortlist.of(ids)
            options = replace(options, allowed_tokens=lambda _: allowed)
        return Request([start], options, self._text_decoder(), list(ids)), cut

    def _check_output_layer(self) -> None:
        if self.spec.task is not Task.SEQ2SEQ:
            raise OptionError("this checkpoint has no output layer: forward and encoder_states are what it can do")

    def _pieces(self, text: str, lead: str, language: str | None) -> list[tuple[str, str]]:
        """Pieces of a text with what stands behind each; all of them joined are the text."""
        # A translation may take more tokens than its source, and the decoder has no more positions than the encoder.
        limit = DEFAULT_SOURCE_LIMIT if self.max_context is None else max(1, self.max_context * 2 // 3)

        def count(piece: str) -> int:
            return len(self.encode_source(lead + piece, language))

        def cut(piece: str, size: int) -> int:
            offsets = self.tokenizer.encode(piece, add_special_tokens=False).offsets
            return offsets[max(0, min(len(offsets), size - count("") - 1) - 1)][1]

        pieces = []
        for line, end in split_lines(text):
            parts = split_line(line, limit, count, cut)
            pieces += [*parts[:-1], (parts[-1][0], parts[-1][1] + end)]
        return pieces

    def _room_for_answers(self, pieces: Sequence[str], given: dict) -> dict:
        """The given options, with a length limit that leaves every piece room for a translation where nobody set one."""
        if any(name in given or name in self.defaults for name in ("max_new_tokens", "max_length")) or not pieces:
            return given
        longest = max(len(self.tokenizer.encode(piece).ids) for piece in pieces)
        room = 2 * longest + 16
        return {**given, "max_new_tokens": room if self.max_context is None else min(room, self.max_context - 1)}


def _put_together(plan: list[tuple[str, str]], answers) -> Converted:
    """The answers to a text's pieces, in place of them; blank pieces stay as they are."""
    text, truncated, read, written = "", False, 0, 0
    for piece, behind in plan:
        if piece.strip():
            answer: Generation = next(answers)
            truncated |= answer.finish_reason == "length"
            read += answer.usage.prompt_tokens
            written += answer.usage.completion_tokens
            piece = piece[: len(piece) - len(piece.lstrip())] + answer.text.strip()
        text += piece + behind
    return Converted(text, truncated, Usage(read, written))
