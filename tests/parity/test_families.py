"""Every family against transformers: random tiny models, made here, read from their files and run in float32."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tiny_models import TINY, TORCH, make, make_torch_transformer  # noqa: E402

from cygnet.architectures.registry import load_spec  # noqa: E402
from cygnet.architectures.spec import Pool, Task  # noqa: E402
from cygnet.engine import DECODER_TASKS, Engine  # noqa: E402
from cygnet.reference.model import ReferenceModel, ReferenceOutput  # noqa: E402

pytestmark = pytest.mark.parity
TOLERANCE = 2e-4  # of the largest difference, relative to the root mean square where that is above one
LENGTHS = (1, 7, 23)
ROWS = [(model_type, index) for model_type, variants in TINY.items() for index in range(len(variants))]


def reference(folder):
    """The NumPy forward pass: a function of sequences, type ids and decoder ids."""
    loaded = load_spec(folder)
    return ReferenceModel(loaded.spec, loaded.weights).forward, loaded.spec


def engine(folder):
    """The compiled engine in float32, as a function like the reference's."""
    loaded = load_spec(folder)
    compiled = Engine(loaded.spec, loaded.weights, weights="float32", threads=1, cache_bytes=1 << 24)

    def run(inputs, type_ids=None, decoder_ids=None):
        if loaded.spec.head is not None and loaded.spec.task in DECODER_TASKS:
            pieces = generated(compiled, inputs, decoder_ids)
            return [ReferenceOutput(piece, logits=piece if loaded.spec.head.steps else None) for piece in pieces]
        hidden, offsets = compiled.hidden(inputs, **({"type_ids": type_ids} if type_ids else {}))
        heads = {"logits": "head", "pooled": "pooler"}
        found = {key: compiled.head(hidden, offsets, which) for key, which in heads.items() if compiled.has_head(which)}
        by_token = loaded.spec.head is not None and loaded.spec.head.pool is Pool.ALL
        parts = [slice(offsets[i], offsets[i + 1]) for i in range(len(inputs))]
        return [
            ReferenceOutput(hidden[part], **{key: values[part if key == "logits" and by_token else i] for key, values in found.items()})
            for i, part in enumerate(parts)
        ]

    return run, loaded.spec


def generated(compiled, inputs, decoder_ids):
    """What the decoder's head gives at every position."""
    sources = [None] * len(inputs) if decoder_ids is None else compiled.encode(inputs)
    texts = inputs if decoder_ids is None else decoder_ids
    sequences = [compiled.sequence(source) if source is not None else compiled.sequence() for source in sources]
    logits = compiled.forward(list(zip(sequences, texts, strict=True)), rows="all")
    return np.split(logits, np.cumsum([len(ids) for ids in texts])[:-1])


RUNNERS = {"reference": reference, "engine": engine}


def error(got, want):
    """Largest absolute difference, over the root mean square of what is wanted if that is above one."""
    want = np.asarray(want, np.float64)
    assert np.shape(got) == want.shape
    return float(np.abs(got - want).max() / max(1.0, np.sqrt((want**2).mean())))


def inputs(model, seed):
    """Sequences of several lengths, free of padding; images where the model sees."""
    random = np.random.default_rng(seed)
    config = model.config
    if model.main_input_name == "pixel_values":
        return [random.standard_normal((config.num_channels, config.image_size, config.image_size)).astype(np.float32) for _ in range(2)]
    # Ids below 4 are padding and other control tokens of some family; Marian pads with its last one.
    return [random.integers(4, config.vocab_size - 1, length).tolist() for length in LENGTHS]


def expected(model, sequence, types, decoder_ids):
    """What transformers gives for one sequence."""
    if model.main_input_name == "pixel_values":
        arguments = {"pixel_values": torch.from_numpy(sequence)[None]}
    else:
        ids = torch.tensor([sequence])
        arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if types is not None:
            arguments["token_type_ids"] = torch.tensor([types])
        if decoder_ids is not None:
            arguments["decoder_input_ids"] = torch.tensor([decoder_ids])
    with torch.no_grad():
        return {key: value[0].numpy() for key, value in model(**arguments).items() if torch.is_tensor(value)}


def compare(output, want, spec):
    """Errors of everything both sides have."""
    if spec.task is Task.QUESTION_ANSWERING:
        return [error(output.logits[:, 0], want["start_logits"]), error(output.logits[:, 1], want["end_logits"])]
    errors = []
    logits = want.get("logits", want.get("prediction_logits"))
    if logits is not None:
        errors.append(error(output.logits.reshape(logits.shape), logits))
    if "last_hidden_state" in want:
        errors.append(error(output.hidden, want["last_hidden_state"]))
    assert (spec.pooler is not None) == ("pooler_output" in want)
    if spec.pooler is not None:
        errors.append(error(output.pooled, want["pooler_output"]))
    if "encoder_last_hidden_state" in want and output.encoder is not None:
        errors.append(error(output.encoder.hidden, want["encoder_last_hidden_state"]))
    assert errors
    return errors


def check(run, spec, model, seed=0):
    """One batch of sequences through both."""
    sequences = inputs(model, seed)
    random = np.random.default_rng(seed + 1)
    types = decoders = None
    if getattr(model.config, "type_vocab_size", 0) > 1:
        types = [random.integers(0, model.config.type_vocab_size, len(ids)).tolist() for ids in sequences]
    if spec.task in DECODER_TASKS and spec.encoder is not None:
        decoders = [random.integers(4, spec.vocab_size - 1, length).tolist() for length in (9, 1, 14)]
    if spec.decoder is not None and spec.task is Task.SEQUENCE_CLASSIFICATION and spec.encoder is not None:
        for place, ids in enumerate(sequences):
            ids[len(ids) - 1 - place] = model.config.eos_token_id
    outputs = run(sequences, type_ids=types, decoder_ids=decoders)
    rest = zip(sequences, types or [None] * len(sequences), decoders or [None] * len(sequences), outputs, strict=True)
    return max(max(compare(output, expected(model, ids, kinds, to), spec)) for ids, kinds, to, output in rest)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_float32(row, runner, tmp_path):
    class_name, settings = TINY[row[0]][row[1]]
    model = make(class_name, settings, tmp_path, seed=row[1])
    run, spec = RUNNERS[runner](tmp_path)
    assert check(run, spec, model) < TOLERANCE


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
# RoFormer's half precision files round the rotary angles too, which transformers then uses.
@pytest.mark.parametrize("model_type", [name for name in TINY if name != "roformer"])
def test_half_precision_files(model_type, dtype, runner, tmp_path):
    class_name, settings = TINY[model_type][0]
    model = make(class_name, settings, tmp_path, dtype, seed=7)
    run, spec = RUNNERS[runner](tmp_path)
    assert check(run, spec, model) < TOLERANCE


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("index", range(len(TORCH["torch_transformer"])))
def test_torch_transformer(index, runner, tmp_path):
    forward = make_torch_transformer(TORCH["torch_transformer"][index], tmp_path, seed=index)
    run, _ = RUNNERS[runner](tmp_path)
    random = np.random.default_rng(index)
    sources = [random.integers(3, 50, length).tolist() for length in LENGTHS]
    targets = [random.integers(3, 60, length).tolist() for length in (5, 1, 12)]
    for ids, to, output in zip(sources, targets, run(sources, decoder_ids=targets), strict=True):
        assert error(output.logits, forward(ids, to)) < TOLERANCE
