"""Extractive question answering: the stretch of a context that answers a question (Rajpurkar et al. 2016; Devlin et al. 2019)."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from cygnet.errors import OptionError
from cygnet.models.heads import HeadModel, softmax

# Longest window of question and context where the model's own limit is not shorter.
WINDOW = 384


class Answer(NamedTuple):
    """A stretch of the context; context[start:end] is the text. An empty one says that the context holds no answer."""

    text: str
    start: int
    end: int
    score: float


class QuestionAnswerer(HeadModel):
    """A Transformer that marks the answer to a question in a text."""

    @overload
    def answer(self, question: str, context: str, *, top_k: Literal[1] = ..., **limits: Any) -> Answer: ...
    @overload
    def answer(self, question: str, context: str, *, top_k: int, **limits: Any) -> list[Answer]: ...

    def answer(
        self,
        question: str,
        context: str,
        *,
        top_k: int = 1,
        max_answer_tokens: int = 15,
        stride: int = 128,
        no_answer: bool = False,
    ) -> Any:
        """The best answer, or with top_k above 1 the best ones.

        Parameters
        ----------
        question, context : str
            A long context is read in overlapping windows; nothing is cut.
        top_k : int
        max_answer_tokens : int
            Longest answer.
        stride : int
            Tokens that neighbouring windows share.
        no_answer : bool
            Whether "not in the context" may be the answer, for models trained with such questions.

        Returns
        -------
        Answer, or a list of at most top_k of them, best first
            The score is the probability of its start times that of its end, within its window.

        Raises
        ------
        OptionError
            The question or the context is empty, or an option is out of range.
        """
        for name, text in (("question", question), ("context", context)):
            if not isinstance(text, str) or not text.strip():
                raise OptionError(f"the {name} is {text!r:.40}: a text is wanted")
        if top_k < 1 or max_answer_tokens < 1 or stride < 0:
            raise OptionError("top_k and max_answer_tokens must be at least 1 and stride at least 0")
        windows = self._windows(question, context, stride)
        outputs = self.logits([w.ids for w in windows], [w.type_ids for w in windows])
        found: dict[tuple[int, int], Answer] = {}
        nothing = 1.0
        for window, logits in zip(windows, outputs, strict=True):
            candidates, null = _candidates(window, logits, top_k, max_answer_tokens)
            nothing = min(nothing, null)
            for start, end, score in candidates:
                if (start, end) not in found or score > found[start, end].score:
                    found[start, end] = Answer(context[start:end], start, end, score)
        answers = [*found.values(), *([Answer("", 0, 0, nothing)] if no_answer else [])]
        answers = sorted(answers, key=lambda answer: -answer.score)[:top_k]
        return answers[0] if top_k == 1 else answers

    def _windows(self, question: str, context: str, stride: int) -> list:
        limit = min(WINDOW, self.max_length or WINDOW)
        room = limit - len(self.tokenizer.encode(question, "").ids)
        if room < 1:
            raise OptionError(f"the question leaves no room for the context within {limit} tokens: shorten it")
        options = {"max_length": limit, "truncation": "only_second", "stride": min(stride, room // 2), "return_overflow": True}
        encoding = self.tokenizer.encode(question, context)
        if len(encoding.ids) > limit:
            encoding = self.tokenizer.encode(question, context, **options)
        return [encoding, *encoding.overflowing]


def _candidates(window, logits: np.ndarray, top_k: int, longest: int) -> tuple[list[tuple[int, int, float]], float]:
    """(start, end, score) of a window's best answers in characters of the context, and the score of "no answer", which the first token stands for."""
    inside = np.array([sequence == 1 for sequence in window.sequence_ids])
    if not inside.any():
        return [], 1.0
    considered = inside.copy()
    considered[0] = True
    start, end = (softmax(np.where(considered, logits[:, column], -np.inf)) for column in (0, 1))
    null = float(start[0] * end[0])
    start, end = np.where(inside, start, 0), np.where(inside, end, 0)
    scores = np.tril(np.triu(np.outer(start, end)), longest - 1)
    best = np.argsort(-scores, axis=None, kind="stable")[:top_k]
    spans = zip(*np.unravel_index(best, scores.shape), strict=True)
    found = [(window.offsets[i][0], window.offsets[j][1], float(scores[i, j])) for i, j in spans if inside[i] and inside[j] and i <= j]
    return found, null
