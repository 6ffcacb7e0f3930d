"""Chat templates: a list of messages becomes the prompt that a model was trained on.

Renders Jinja2 templates as Hugging Face's `apply_chat_template` does (same environment, same variables, same result), and says which parts of
the prompt are the template's own marks and which are text that must never be read as control tokens.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from cygnet.errors import OptionError, TemplateError
from cygnet.models.aliases import Messages
from cygnet.models.guard import GUARD, Guard, Prompt, strip_guards

# Used where a checkpoint has no template: ChatML if its marks are control tokens of the vocabulary, else a plain transcript.
CHATML_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TRANSCRIPT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'].capitalize() }}: {{ message['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
TRANSCRIPT_STOP = "\nUser:"

_END_MARK = GUARD + "\ufdd1"  # stands behind the message that is to be continued while the template runs
_READS_PARTS = re.compile(r"for\s+\w+\s+in\s+\w+(\.content|\[['\"]content['\"]\])|content\s+is\s+(not\s+)?(string|iterable|mapping)")


class ChatTemplate:
    """A chat template and the control tokens it may use.

    Parameters
    ----------
    source : str or mapping of str to str
        Jinja2 source, or several by name; "tool_use" is taken when tools are given and "default" otherwise.
    variables : mapping
        Special tokens by name (bos_token, eos_token ...) that the template may print.
    control_tokens : iterable of str
        Spellings that the tokenizer reads as control tokens.

    Examples
    --------
    >>> from cygnet.models.chat import ChatTemplate
    >>> template = ChatTemplate("{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}", {})
    >>> template.render([{"role": "user", "content": "Hello"}])
    '[user]Hello'
    """

    stop: tuple[str, ...] = ()

    def __init__(self, source: str | Mapping[str, str], variables: Mapping[str, str], control_tokens: Iterable[str] = ()):
        self.sources = {"default": source} if isinstance(source, str) else dict(source)
        self.variables = dict(variables)
        self.guard = Guard(control_tokens)

    @classmethod
    def default(cls, variables: Mapping[str, str], control_tokens: Iterable[str]) -> ChatTemplate:
        """The template of a checkpoint that has none: ChatML where its marks are control tokens, else a transcript of `User:` and `Assistant:`."""
        control_tokens = tuple(control_tokens)
        if {"<|im_start|>", "<|im_end|>"} <= set(control_tokens):
            return cls(CHATML_TEMPLATE, variables, control_tokens)
        template = cls(TRANSCRIPT_TEMPLATE, variables, control_tokens)
        template.stop = (TRANSCRIPT_STOP,)
        return template

    def render(
        self,
        messages: Messages,
        *,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """The prompt as text.

        Parameters
        ----------
        messages : list of mappings
            Each with a role and a content (text, or a list of text parts).
        add_generation_prompt : bool
            End with the header of the assistant's answer.
        continue_final_message : bool
            End with the text of the last message, open, so that the model goes on with it.
        tools, documents : list of mappings or None
            Handed to the template.
        **variables
            Further variables of the template (enable_thinking ...).

        Raises
        ------
        TemplateError
            The template refuses the conversation (with its own message), or is broken.
        OptionError
            The messages are no conversation, or both ways to end are asked for.
        """
        messages = self._checked(messages, add_generation_prompt, continue_final_message)
        return self._run(messages, add_generation_prompt, continue_final_message, tools, documents, variables)

    def prompt(
        self,
        messages: Messages,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> Prompt:
        """The prompt with the spans in which control tokens are only text; parameters as in `render`.

        Messages, tools and documents are data: a control token spelled in them stays text. The one exception is what the model itself said
        earlier: marks that the template looks for in an assistant's message (the end of its reasoning, say) keep their meaning.
        """
        messages = self._checked(messages, add_generation_prompt, continue_final_message)
        spelled = self.guard.found_in([messages, tools or [], documents or [], list(variables.values())])

        def run(own_guard: Guard) -> str:
            guarded = [self._guarded(message, own_guard) for message in messages]
            data = self.guard.protect([tools, documents, variables])
            return self._run(guarded, add_generation_prompt, continue_final_message, *data)

        rendered = run(self.guard)
        if spelled and strip_guards(rendered) != self._run(messages, add_generation_prompt, continue_final_message, tools, documents, variables):
            rendered = run(self.guard.without(self._marks_looked_for(messages, run, rendered)))
        return self.guard.release(rendered)

    def _marks_looked_for(self, messages, run, rendered: str) -> set[str]:
        """Control tokens in assistants' messages whose guards change what the template does."""
        spelled = self.guard.found_in([message for message in messages if message["role"] == "assistant"])
        return {token for token in spelled if strip_guards(run(self.guard.without({token}))) != strip_guards(rendered)}

    def _guarded(self, message: Mapping, own_guard: Guard) -> dict:
        guard = own_guard if message["role"] == "assistant" else self.guard
        return {key: value if key == "role" else guard.protect(value) for key, value in message.items()}

    def __repr__(self) -> str:
        names = "" if list(self.sources) == ["default"] else f" {', '.join(self.sources)}:"
        return f"<ChatTemplate{names} {sum(map(len, self.sources.values()))} characters, {len(self.guard.tokens)} control tokens>"

    def _checked(self, messages, add_generation_prompt: bool, continue_final_message: bool) -> list[dict]:
        if add_generation_prompt and continue_final_message:
            raise OptionError("add_generation_prompt starts a new message and continue_final_message goes on with the last one: choose one")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not isinstance(messages, Sequence) or not messages:
            raise OptionError("a conversation is a list with at least one message, each a mapping with 'role' and 'content'")
        checked = [self._checked_message(index, message) for index, message in enumerate(messages)]
        if continue_final_message and not isinstance(checked[-1].get("content"), str):
            raise OptionError("continue_final_message needs a last message with text to go on with")
        return checked

    def _checked_message(self, index: int, message) -> dict:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise OptionError(f"message {index} is {message!r:.80}: a mapping with 'role' and 'content' is wanted")
        message = dict(message)
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            for part in content:
                if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
                    raise OptionError(f"message {index} holds {part!r:.80}: this model reads parts {{'type': 'text', 'text': ...}} only")
            if not self._reads_parts:
                message["content"] = "\n".join(part["text"] for part in content)
        elif content is not None and not isinstance(content, str):
            raise OptionError(f"the content of message {index} is a {type(content).__name__}: text is wanted")
        elif content is None and "tool_calls" not in message:
            raise OptionError(f"message {index} has no content")
        return message

    @cached_property
    def _reads_parts(self) -> bool:
        """Whether the template takes contents that are lists of parts; else they are joined by line breaks."""
        return any(_READS_PARTS.search(source) for source in self.sources.values())

    def _run(self, messages, add_generation_prompt, continue_final_message, tools, documents, variables) -> str:
        name = "tool_use" if tools and "tool_use" in self.sources else "default"
        if name not in self.sources:
            raise TemplateError(f"the model has chat templates named {', '.join(sorted(self.sources))} and no default one")
        if continue_final_message:
            messages = [*messages[:-1], {**messages[-1], "content": messages[-1]["content"] + _END_MARK}]
        text = _render(
            self.sources[name],
            {
                **self.variables,
                **variables,
                "messages": copy.deepcopy(messages),
                "tools": tools,
                "documents": documents,
                "add_generation_prompt": add_generation_prompt,
            },
        )
        if not continue_final_message:
            return text
        if _END_MARK not in text:
            raise TemplateError("the chat template leaves out the last message, so that it cannot be continued")
        return text[: text.rindex(_END_MARK)]


def _render(source: str, variables: dict) -> str:
    from jinja2 import TemplateError as JinjaError

    try:
        return _compiled(source).render(variables)
    except JinjaError as error:
        raise TemplateError(f"the chat template refuses this conversation: {error.message or error}") from error
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise TemplateError(f"the chat template fails on this conversation: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=16)
def _compiled(source: str):
    from jinja2 import TemplateSyntaxError

    from cygnet.models.jinja_environment import make_environment

    try:
        return make_environment().from_string(source)
    except TemplateSyntaxError as error:
        raise TemplateError(f"the chat template cannot be read: line {error.lineno}: {error.message}") from error
