"""A word tokenizer with chat marks, and models of scripted logits around it."""

from pathlib import Path

import numpy as np

from cygnet.architectures.spec import EmbeddingSpec, ModelKind, ModelSpec, StackSpec, Task, TokenIds
from cygnet.models.base import Parts
from cygnet.tokenizers import Tokenizer
from tests.generation.fakes import HashEngine, ScriptEngine

MARKS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "</think>", "eng_Latn", "fra_Latn"]
WORDS = [
    "<unk>",
    *MARKS,
    *"a b c d e f g h i j k l m n o p q r s t u v w x y z user assistant system . : < > | im_start im_end think / \n".split(" "),
]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def word_tokenizer(add_bos=False, **settings):
    """Single letters and names are tokens, white space between them is not; decoding joins by spaces."""
    document = {
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(WORDS)}, "unk_token": "<unk>"},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "WhitespaceSplit"},
                {"type": "Split", "pattern": {"Regex": r"\w+|[^\w]"}, "behavior": "Isolated", "invert": False},
            ],
        },
        "added_tokens": [
            {"id": WORDS.index(m), "content": m, "special": m != "</think>"} | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            for m in MARKS
        ],
    }
    if add_bos:
        document["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [WORDS.index("<s>")], "tokens": ["<s>"]}},
        }
    tokenizer = Tokenizer.from_json(document)
    tokenizer.settings.update(settings)
    return tokenizer


def parts(folder: Path, *, engine=None, tokenizer=None, tokens=None, max_context=40, kind=ModelKind.DECODER, config=None) -> Parts:
    """What CausalLM and Seq2Seq are made from."""
    engine = engine or HashEngine(len(WORDS), max_context=max_context)
    stack = StackSpec(hidden_size=8, embedding=EmbeddingSpec(len(WORDS), 8), layers=(), final_norm=None)
    spec = ModelSpec(
        family="test",
        kind=kind,
        task=Task.CAUSAL_LM if kind is ModelKind.DECODER else Task.SEQ2SEQ,
        hidden_size=8,
        vocab_size=len(WORDS),
        max_positions=max_context,
        encoder=None if kind is ModelKind.DECODER else stack,
        decoder=stack,
        tokens=tokens or TokenIds(bos=1, eos=(2,)),
    )
    return Parts(spec, engine, tokenizer or word_tokenizer(chat_template=CHATML), folder, config or {}, max_context)


def script(words, prompt_length=1, **options):
    """An engine that says these words and then the first end token."""
    return ScriptEngine([WORDS.index(word) for word in words], len(WORDS), prompt_length, **options)


def log_softmax(rows):
    rows = np.asarray(rows, np.float64)
    return rows - np.log(np.exp(rows - rows.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True)) - rows.max(axis=-1, keepdims=True)
