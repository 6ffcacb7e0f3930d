"""Heads on the scripted engine: classification, reranking, tagging, question answering, masks."""

import numpy as np
import pytest

from cygnet.architectures.spec import Pool
from cygnet.errors import ContextOverflow, NumericError, OptionError, UnsupportedModel
from cygnet.models.classifier import CrossEncoder, SequenceClassifier
from cygnet.models.heads import sigmoid, softmax
from cygnet.models.masked_lm import MaskedLM
from cygnet.models.question_answerer import QuestionAnswerer
from cygnet.models.token_classifier import TokenClassifier


def words(n):
    return " ".join(chr(ord("a") + i % 26) for i in range(n))


def test_softmax_and_sigmoid_stay_finite():
    assert softmax(np.array([1e4, 0, -1e4], np.float32)).tolist() == [1, 0, 0]
    np.testing.assert_allclose(sigmoid(np.array([-1e4, 0, 1e4], np.float32)), [0, 0.5, 1])


class TestSequenceClassifier:
    LABELS = ("low", "mid", "high")

    def test_classify(self, parts):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS))
        found = model.classify("a b")
        expected = softmax(model.forward(model.tokenizer.encode("a b").ids))
        assert found.label == self.LABELS[expected.argmax()]
        assert found.scores == pytest.approx(dict(zip(self.LABELS, expected, strict=True)))
        assert list(found.scores.values()) == sorted(found.scores.values(), reverse=True)
        assert model.classify(["a b", "c"])[0] == found
        assert model.classify([]) == []

    def test_empty_text_is_its_special_tokens(self, parts):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS))
        batch = model.classify(["a", "", "  "])
        assert batch[1] == batch[2] == model.classify("") and batch[0] == model.classify("a")

    def test_no_tokens_at_all(self, parts):
        with pytest.raises(OptionError, match="text 0 has no tokens"):
            SequenceClassifier(parts(Pool.FIRST, self.LABELS)).classify([[]])

    def test_pairs_have_types(self, parts):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS))
        encoding = model.tokenizer.encode("a", "b")
        expected = softmax(model.forward(encoding.ids, type_ids=encoding.type_ids))
        assert list(model.classify("a", "b").scores.values()) == pytest.approx(sorted(expected, reverse=True))
        with pytest.raises(OptionError, match="2 texts and 1 pairs"):
            model.classify(["a", "b"], ["c"])

    def test_pairs_in_one_list(self, parts):
        with pytest.raises(OptionError, match=r"item 0 is \('a', 'b'\).*pairs=\[...\]"):
            SequenceClassifier(parts(Pool.FIRST, self.LABELS)).classify([("a", "b")])
        with pytest.raises(OptionError, match="texts: text, token ids, or a list of these is wanted, not {1}"):
            SequenceClassifier(parts(Pool.FIRST, self.LABELS)).classify({1})

    def test_problems_that_are_not_known(self, parts):
        with pytest.raises(UnsupportedModel, match="problem_type = 'zzz'"):
            SequenceClassifier(parts(Pool.FIRST, self.LABELS, config={"problem_type": "zzz"}))

    @pytest.mark.parametrize("wrong", [np.nan, np.inf])
    def test_damaged_weights_give_no_label(self, parts, wrong):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS))
        model.engine.head_weight[1, 2] = wrong
        with pytest.raises(NumericError, match="logits are not all finite"):
            model.classify("a")

    def test_truncation_is_told(self, parts):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS, max_context=8))
        assert [c.truncated for c in model.classify(["a", words(20)])] == [False, True]
        assert model.classify("a", words(20)).truncated
        with pytest.raises(ContextOverflow, match="text 0 has 22 tokens, the limit is 8"):
            model.classify(words(20), truncate=False)
        with pytest.raises(ContextOverflow, match="pair 0 has 24 tokens, the limit is 8"):
            model.classify("a", words(20), truncate=False)

    @pytest.mark.parametrize("problem, function", [("multi_label_classification", sigmoid), ("regression", lambda x: x), (None, softmax)])
    def test_problem_types(self, parts, problem, function):
        model = SequenceClassifier(parts(Pool.FIRST, self.LABELS, config={"problem_type": problem}))
        expected = function(model.forward(model.tokenizer.encode("a").ids))
        assert sorted(model.classify("a").scores.values()) == pytest.approx(sorted(expected), rel=1e-6)


class TestCrossEncoder:
    def test_rerank(self, parts):
        model = CrossEncoder(parts(Pool.FIRST, ("LABEL_0",)))
        documents = ["a b", "c", "d e f", "c"]
        ranked = model.rerank("q", documents)
        scores = model.score([("q", document) for document in documents])
        assert [r.index for r in ranked] == sorted(range(4), key=lambda i: -scores[i])
        assert [r.document for r in ranked] == [documents[r.index] for r in ranked]
        assert model.rerank("q", documents, top_k=2) == ranked[:2]
        assert model.rerank("q", []) == [] and model.score([]).shape == (0,)
        assert ((scores > 0) & (scores < 1)).all()

    def test_activation_of_the_config(self, parts):
        plain = CrossEncoder(parts(Pool.FIRST, ("LABEL_0",))).score([("a", "b")])
        raw = CrossEncoder(parts(Pool.FIRST, ("LABEL_0",), config={"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}))
        np.testing.assert_allclose(plain, sigmoid(raw.score([("a", "b")])), rtol=1e-6)

    @pytest.mark.parametrize("query, documents", [(3, ["a"]), ("a", [3]), ("a", [[5]])])
    def test_wrong_input(self, parts, query, documents):
        with pytest.raises(OptionError):
            CrossEncoder(parts(Pool.FIRST, ("LABEL_0",))).rerank(query, documents)


class Scripted(TokenClassifier):
    """Labels tokens by a table instead of by a forward pass."""

    table = {}

    def logits(self, rows, type_ids=None):
        self.rows = rows
        choice = [[self.labels.index(self.table.get(self.tokenizer.id_to_token(token), "O")) for token in row] for row in rows]
        return [5 * np.eye(len(self.labels), dtype=np.float32)[c] for c in choice]


class TestTokenClassifier:
    LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")

    def model(self, parts, max_context=32, **table):
        model = Scripted(parts(Pool.ALL, self.LABELS, max_context=max_context))
        model.table = {token: label.replace("_", "-") for token, label in table.items()}
        return model

    def test_entities_are_joined(self, parts):
        model = self.model(parts, b="B_PER", c="I_PER", d="B_PER", f="I_LOC", g="I_LOC", h="I_PER")
        found = model.tag("a b c d e f g h")
        assert [(e.label, e.text, e.start, e.end) for e in found] == [
            ("PER", "b c", 2, 5), ("PER", "d", 6, 7), ("LOC", "f g", 10, 13), ("PER", "h", 14, 15),
        ]  # fmt: skip
        assert all(0.9 < e.score < 1 for e in found)

    def test_without_joining(self, parts):
        found = self.model(parts, b="B_PER", c="I_PER").tag("a b  c", aggregation="none")
        assert [(e.label, e.start, e.end) for e in found] == [("B-PER", 2, 3), ("I-PER", 5, 6)]

    @pytest.mark.parametrize("aggregation", ["first", "average", "max"])
    def test_word_aggregations(self, parts, aggregation):
        assert [e.text for e in self.model(parts, b="B_PER", c="I_PER").tag("a b c", aggregation=aggregation)] == ["b c"]

    @pytest.mark.parametrize("length", [5, 6, 7, 13, 30, 31, 60])
    @pytest.mark.parametrize("limit", [6, 7, 12, 32])
    def test_long_texts_are_read_whole(self, parts, length, limit):
        table = {chr(ord("a") + i): "B_PER" for i in range(26)}
        model = self.model(parts, limit, **table)
        text = words(length)
        assert [(e.start, e.text) for e in model.tag(text)] == [(2 * i, text[2 * i]) for i in range(length)]
        assert all(len(row) <= limit for row in model.rows)

    def test_batch_and_empty(self, parts):
        model = self.model(parts, b="B_PER")
        assert model.tag(["b", "", "  ", "a b"]) == [model.tag("b"), [], [], model.tag("a b")]
        assert model.tag([]) == []

    def test_wrong_input(self, parts):
        with pytest.raises(OptionError, match="one of none, simple"):
            self.model(parts).tag("a", aggregation="median")
        with pytest.raises(OptionError, match="needs texts"):
            self.model(parts).tag([5, 6])

    def test_forward(self, parts):
        model = TokenClassifier(parts(Pool.ALL, self.LABELS))
        assert model.forward([5, 6, 7]).shape == (3, 5)
        assert [r.shape for r in model.forward([[5], [6, 7]])] == [(1, 5), (2, 5)]


class TestQuestionAnswerer:
    def test_best_span_by_exhaustive_search(self, parts):
        model = QuestionAnswerer(parts(Pool.ALL, (), features=2))
        context = "a b c d e f"
        encoding = model.tokenizer.encode("q", context)
        logits = model.forward(encoding.ids, type_ids=encoding.type_ids).astype(np.float64)
        considered = [0] + [i for i, s in enumerate(encoding.sequence_ids) if s == 1]
        start, end = (np.exp(logits[considered, c]) / np.exp(logits[considered, c]).sum() for c in (0, 1))
        spans = {(i, j): start[i] * end[j] for i in range(1, len(considered)) for j in range(i, min(i + 3, len(considered)))}
        best = sorted(spans, key=lambda s: -spans[s])[:4]
        answers = model.answer("q", context, top_k=4, max_answer_tokens=3)
        assert [(a.start // 2 + 1, (a.end - 1) // 2 + 1) for a in answers] == best
        assert [a.score for a in answers] == pytest.approx([spans[s] for s in best], rel=1e-5)
        assert all(context[a.start : a.end] == a.text for a in answers)
        assert model.answer("q", context, max_answer_tokens=3) == answers[0]

    def test_windows_of_a_long_context(self, parts):
        model = QuestionAnswerer(parts(Pool.ALL, (), features=2, max_context=10))
        answer = model.answer("q", words(40))
        assert answer.text == words(40)[answer.start : answer.end]
        assert max(map(max, model.engine.batches)) <= 10

    def test_no_answer(self, parts):
        model = QuestionAnswerer(parts(Pool.ALL, (), features=2))
        model.logits = lambda rows, types: [np.array([[9.0, 9.0]] + [[0.0, 0.0]] * (len(row) - 1), np.float32) for row in rows]
        assert model.answer("q", "a b", no_answer=True).text == ""
        assert model.answer("q", "a b").text != ""

    @pytest.mark.parametrize("question, context", [("", "a"), ("a", " "), (None, "a"), ("a", 3), (words(40), "a")])
    def test_wrong_texts(self, parts, question, context):
        with pytest.raises(OptionError):
            QuestionAnswerer(parts(Pool.ALL, (), features=2)).answer(question, context)

    @pytest.mark.parametrize("option", [{"top_k": 0}, {"max_answer_tokens": 0}, {"stride": -1}])
    def test_wrong_options(self, parts, option):
        with pytest.raises(OptionError):
            QuestionAnswerer(parts(Pool.ALL, (), features=2)).answer("q", "a", **option)


class TestMaskedLM:
    def model(self, parts):
        return MaskedLM(parts(Pool.ALL, (), features=31))

    def test_fill_mask(self, parts):
        model = self.model(parts)
        fills = model.fill_mask("a [MASK] c", top_k=3)
        ids = model.tokenizer.encode("a [MASK] c").ids
        expected = softmax(model.forward(ids)[2])
        assert [f.id for f in fills] == np.argsort(-expected)[:3].tolist()
        assert [f.score for f in fills] == pytest.approx(sorted(expected, reverse=True)[:3])
        assert fills[0].text == model.tokenizer.decode([ids[1], fills[0].id, ids[3]])

    def test_several_masks_and_texts(self, parts):
        model = self.model(parts)
        both = model.fill_mask("[MASK] b [MASK]", top_k=2)
        assert [len(fills) for fills in both] == [2, 2]
        batch = model.fill_mask(["a [MASK]", "[MASK] b [MASK]"], top_k=2)
        assert batch == [model.fill_mask("a [MASK]", top_k=2), both]
        assert model.fill_mask([]) == []

    @pytest.mark.parametrize("texts, options", [("a b", {}), (["a [MASK]", ""], {}), ("[MASK]", {"top_k": 0})])
    def test_wrong_input(self, parts, texts, options):
        with pytest.raises(OptionError):
            self.model(parts).fill_mask(texts, **options)

    def test_tokenizer_without_a_mask(self, parts):
        model = self.model(parts)
        del model.tokenizer.settings["mask_token"]
        with pytest.raises(OptionError, match="names no mask token"):
            model.fill_mask("a")
