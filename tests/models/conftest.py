"""A small tokenizer and a scripted engine, so that what surrounds the forward pass is tested by itself."""

import numpy as np
import pytest

from cygnet.architectures.spec import EmbeddingSpec, HeadSpec, HeadStep, ModelKind, ModelSpec, Pool, StackSpec, Task
from cygnet.models.base import Parts
from cygnet.tokenizers import Tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a b c d e f g h i j k l m n o p q r s t u v w x y z".split()]
SPECIAL = WORDS[:5]


def special(name, type_id=0):
    return {"SpecialToken": {"id": name, "type_id": type_id}}


@pytest.fixture
def tokenizer():
    """Words of one letter, [CLS] in front, [SEP] behind each text, types 0 and 1."""
    document = {
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "added_tokens": [
            {"id": i, "content": c, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
            for i, c in enumerate(SPECIAL)
        ],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [
                special("[CLS]"),
                {"Sequence": {"id": "A", "type_id": 0}},
                special("[SEP]"),
                {"Sequence": {"id": "B", "type_id": 1}},
                special("[SEP]", 1),
            ],
            "special_tokens": {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")},
        },
    }
    tokenizer = Tokenizer.from_json(document)
    tokenizer.settings["mask_token"] = "[MASK]"
    return tokenizer


class FakeEngine:
    """Token states that depend on the token, on the whole sequence, and on the type; one fixed linear head."""

    threads = 1

    def __init__(self, spec):
        random = np.random.default_rng(7)
        self.spec = spec
        self.table = random.standard_normal((spec.vocab_size, spec.hidden_size)).astype(np.float32)
        self.head_weight = random.standard_normal((spec.head.steps[-1].features, spec.hidden_size)).astype(np.float32) if spec.head else None
        self.batches = []

    def hidden(self, rows, type_ids=None):
        self.batches.append([len(row) for row in rows])
        states = []
        for i, row in enumerate(rows):
            vectors = self.table[np.array(row)]
            types = np.zeros(len(row)) if type_ids is None else np.array(type_ids[i])
            states.append((vectors + 0.5 * vectors.mean(axis=0) + types[:, None]).astype(np.float32))
        return np.concatenate(states), np.cumsum([0, *map(len, rows)])

    def head(self, hidden, offsets, which="head"):
        if which == "pooler":
            return np.tanh(hidden[offsets[:-1]])
        rows = hidden if self.spec.head.pool is Pool.ALL else hidden[offsets[:-1]]
        return (rows[:, None] * self.head_weight).sum(axis=-1)


@pytest.fixture
def parts(tokenizer, tmp_path):
    """parts(pool=None, labels=(), **changes): what a model class is made from; a head where a pool is given."""

    def make(pool=None, labels=(), features=None, max_context=32, config=None, with_tokenizer=True):
        stack = StackSpec(hidden_size=8, embedding=EmbeddingSpec(len(WORDS), 8, type_count=2), layers=(), final_norm=None)
        head = HeadSpec(pool, (HeadStep("out", features or len(labels)),)) if pool else None
        spec = ModelSpec(
            family="test",
            kind=ModelKind.ENCODER,
            task=Task.ENCODER,
            hidden_size=8,
            vocab_size=len(WORDS),
            max_positions=max_context,
            encoder=stack,
            head=head,
            labels=tuple(labels),
        )
        return Parts(spec, FakeEngine(spec), tokenizer if with_tokenizer else None, tmp_path, config or {}, max_context)

    return make
