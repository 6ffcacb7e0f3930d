"""What CausalLM and Seq2Seq share: prompts become requests, the scheduler runs them, streams and results come back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

from cygnet.errors import OptionError
from cygnet.files import read_json
from cygnet.generation.config_defaults import config_defaults
from cygnet.generation.option_checks import flag
from cygnet.generation.options import ALIASES, GenerationOptions
from cygnet.generation.result import Delta, Generation
from cygnet.generation.tasks import Request
from cygnet.models.aliases import Text
from cygnet.models.base import Model, Parts, as_batch, is_ids, is_single

if TYPE_CHECKING:
    from cygnet.generation.handle import Handle
    from cygnet.generation.scheduler import Scheduler
    from cygnet.tokenizers.tokenizer import Tokenizer

# Settings of older config.json files that say how to generate; newer ones keep them in generation_config.json.
_OLD_CONFIG_KEYS = (
    "num_beams num_beam_groups diversity_penalty length_penalty early_stopping no_repeat_ngram_size repetition_penalty min_length max_length "
    "bad_words_ids do_sample temperature top_k top_p typical_p"
).split()


class TextStream:
    """The text of one continuation, piece by piece as it becomes certain; closing it stops the work.

    An iterator: every piece comes once, and `next(stream)` waits for one. Also a context manager; `result` holds the whole at the end. The model
    goes on generating while nobody reads: leave the `with` block, `close` the stream or drop it to stop the work.

    Examples
    --------
    >>> with model.stream("Once upon a time") as pieces:      # doctest: +SKIP
    ...     for piece in pieces:
    ...         print(piece, end="", flush=True)
    """

    def __init__(self, handle: Handle, finish: Callable[[Generation], Generation]):
        self._handle = handle
        self._finish = finish
        self._deltas = iter(handle)
        self._result: Generation | None = None
        self._pieces = 0

    def deltas(self) -> Iterator[Delta]:
        """The same, token by token, with ids, log-probabilities and the finish reason; what was iterated already does not come again."""
        return self._deltas

    def __iter__(self) -> TextStream:
        return self

    def __next__(self) -> str:
        for delta in self._deltas:
            if delta.text:
                self._pieces += 1
                return delta.text
        raise StopIteration

    @property
    def result(self) -> Generation:
        """The whole continuation; waits for its end."""
        if self._result is None:
            self._result = self._finish(self._handle.result()[0])
        return self._result

    def __repr__(self) -> str:
        return f"<TextStream {'finished' if self._handle.done else 'running'}, {self._pieces} pieces read>"

    def close(self) -> None:
        """Stops the work within one step; what was generated until then is kept in `result`."""
        self._handle.cancel()

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class GenerativeModel(Model):
    """A model that generates text."""

    def __init__(self, parts: Parts):
        super().__init__(parts)
        self._draft = parts.draft
        self.defaults = self._default_options()

    @overload
    def generate(self, prompts: Text | Iterable[Text], *, num_return_sequences: int, truncate: bool = ..., **options: Any) -> list[Any]: ...
    @overload
    def generate(self, prompts: Text, *, truncate: bool = ..., **options: Any) -> Generation: ...
    @overload
    def generate(self, prompts: Iterable[Text], *, truncate: bool = ..., **options: Any) -> list[Generation]: ...

    def generate(self, prompts: Text | Iterable[Text], *, truncate: bool = False, **options: Any) -> Any:
        """Continuations of a prompt, or of each of several in one batch.

        Parameters
        ----------
        prompts : str, list of int, or a list of them
            Text or token ids.
        truncate : bool
            Cut a prompt that does not fit the context instead of raising; the result's `truncated_tokens` tells how much is gone.
        **options
            Fields of `cygnet.GenerationOptions`: max_new_tokens, temperature (0 is greedy), top_k, top_p, min_p, repetition_penalty,
            num_beams, stop, seed, logprobs, num_return_sequences ... What is not given is taken from the model's generation_config.json.

        Returns
        -------
        Generation, or a list of them
            For num_return_sequences above 1 a list of Generation in place of each.

        Raises
        ------
        ContextOverflow
            A prompt is longer than the context; names both lengths.
        OptionError
            An option is unknown, out of range, or contradicts another.
        """
        requests, cut = self._requests(prompts, truncate, self.options(**options))
        results = self._several(self.scheduler.run(requests), cut)
        return results[0] if is_single(prompts) else results

    @overload
    async def agenerate(self, prompts: Text | Iterable[Text], *, num_return_sequences: int, truncate: bool = ..., **options: Any) -> list[Any]: ...
    @overload
    async def agenerate(self, prompts: Text, *, truncate: bool = ..., **options: Any) -> Generation: ...
    @overload
    async def agenerate(self, prompts: Iterable[Text], *, truncate: bool = ..., **options: Any) -> list[Generation]: ...

    async def agenerate(self, prompts: Text | Iterable[Text], *, truncate: bool = False, **options: Any) -> Any:
        """`generate` for asyncio: joins the batch that runs, and a cancelled task stops its work. Texts are tokenised beside the event loop."""
        requests, cut = await beside_the_loop(self._requests, prompts, truncate, self.options(**options))
        handles = [self.scheduler.submit(request) for request in requests]
        try:
            results = self._several([await handle.aresult() for handle in handles], cut)
        finally:
            for handle in handles:
                handle.cancel()
        return results[0] if is_single(prompts) else results

    def stream(self, prompt: Text, *, truncate: bool = False, **options: Any) -> TextStream:
        """The continuation of one prompt as it is made; parameters as in `generate`."""
        return self._text_stream(*self._submit(prompt, truncate, self.options(**options)))

    async def astream(self, prompt: Text, *, truncate: bool = False, **options: Any) -> AsyncIterator[str]:
        """`stream` for asyncio: an asynchronous iterator of pieces of text."""
        handle, _ = await beside_the_loop(self._submit, prompt, truncate, self.options(**options))
        async for piece in texts_of(handle):
            yield piece

    def options(self, **given: Any) -> GenerationOptions:
        """The options that hold for a call: what is given, else the model's own defaults."""
        return GenerationOptions.create(self.defaults, **given)

    @cached_property
    def scheduler(self) -> Scheduler:
        """Runs all requests of this model, from any thread, in one batch."""
        from cygnet.generation.scheduler import Scheduler

        vocabulary = None
        if self._tokenizer is not None:
            from cygnet.models.structured import vocabulary_of

            # Without a reference to the model itself, so that dropping the model frees it at once.
            vocabulary = partial(vocabulary_of, self._tokenizer, self.engine.vocab_size, self.options().end_ids)
        return Scheduler(self.engine, draft=self._draft, vocabulary=vocabulary)

    def close(self) -> None:
        """Stops what runs, whose callers get Cancelled, and frees the weights and caches."""
        scheduler = self.__dict__.pop("scheduler", None)
        self._draft = None
        super().close()  # first, so that no other thread makes a new scheduler
        if scheduler is not None:
            scheduler.close()

    def _request(self, prompt, options: GenerationOptions, truncate: bool) -> tuple[Request, int]:
        """The request for one prompt, and the number of its tokens that were cut off."""
        raise NotImplementedError

    def _requests(self, prompts, truncate: bool, options: GenerationOptions) -> tuple[list[Request], list[int]]:
        flag("truncate", truncate)
        pairs = [self._request(prompt, options, truncate) for prompt in as_batch(prompts, "prompts")]
        return [request for request, _ in pairs], [cut for _, cut in pairs]

    def _submit(self, prompt, truncate: bool, options: GenerationOptions) -> tuple[Handle, int]:
        flag("truncate", truncate)
        if not isinstance(prompt, str) and not is_ids(prompt):
            raise OptionError("a stream continues one prompt: text or a list of token ids is wanted")
        if options.num_return_sequences > 1:
            raise OptionError("a stream gives one continuation: num_return_sequences must be 1")
        request, cut = self._request(prompt, options, truncate)
        return self.scheduler.submit(request), cut

    def _text_stream(self, handle: Handle, cut: int) -> TextStream:
        return TextStream(handle, partial(_completed, self._tokenizer, cut))

    def _several(self, results: Sequence[list[Generation]], cut: Sequence[int]) -> list:
        done = [[_completed(self._tokenizer, n, g) for g in own] for own, n in zip(results, cut, strict=True)]
        return [own[0] if len(own) == 1 else own for own in done]

    def _text_decoder(self, before: Sequence[int] = ()):
        """A function that makes a decoder for one continuation; `before` are ids whose text the continuation directly follows."""
        if self._tokenizer is None:
            return None

        def make():
            decoder = self._tokenizer.stream_decoder()
            for token in before:
                decoder.push(token)
            return decoder

        return make

    def _default_options(self) -> dict:
        """What generation_config.json says, else config.json, else the tokens that the model's files name."""
        tokens = self.spec.tokens
        named = {
            "eos_token_ids": tokens.eos,
            "forced_bos": tokens.forced_bos,
            "forced_eos": () if tokens.forced_eos is None else (tokens.forced_eos,),
            "suppress_tokens": tokens.suppress,
        }
        stated = read_json(self.folder / "generation_config.json", None)
        if stated is None:
            stated = {key: self.config[key] for key in _OLD_CONFIG_KEYS if self.config.get(key) is not None}
        # Control tokens are the spec's: the loader has already put them in their order of precedence.
        stated = {key: value for key, value in config_defaults(stated).items() if ALIASES.get(key, key) not in named}
        return {**stated, **{key: value for key, value in named.items() if value not in (None, ())}}


def _completed(tokenizer: Tokenizer | None, cut: int, found: Generation) -> Generation:
    """A continuation with what its caller knows: tokens cut off its prompt, and how the vocabulary spells the tokens of its log-probabilities."""
    if cut:
        found = replace(found, truncated_tokens=cut)
    if found.logprobs is None or tokenizer is None:
        return found
    name = tokenizer.id_to_token
    return replace(found, logprobs=[t._replace(token=name(t.id), top_tokens=tuple(name(i) for i, _ in t.top)) for t in found.logprobs])


async def texts_of(handle: Handle) -> AsyncIterator[str]:
    """The text of a request, piece by piece."""
    async for delta in handle:
        if delta.text:
            yield delta.text


async def beside_the_loop(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that may take a while, as tokenising a long text does, without holding up the event loop."""
    import asyncio  # here, because it takes a good part of the time in which the command line starts

    return await asyncio.to_thread(work, *arguments)
