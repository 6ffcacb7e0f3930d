"""Translators in Marian's own files against the transformers model they were written from."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from marian_files import MARIAN, make_marian  # noqa: E402
from test_families import LENGTHS, RUNNERS, TOLERANCE, error  # noqa: E402

import cygnet  # noqa: E402

pytestmark = pytest.mark.parity
ROWS = MARIAN["marian-nmt"]


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("index", range(len(ROWS)))
def test_logits(index, runner, tmp_path):
    model = make_marian(*ROWS[index], tmp_path, seed=index)
    run, spec = RUNNERS[runner](tmp_path)
    words = ROWS[index][0]["vocab_size"]
    random = np.random.default_rng(index)
    sources = [random.integers(2, words, length).tolist() for length in LENGTHS]
    targets = [[words, *random.integers(2, words, length).tolist()] for length in (0, 7, 40)]
    for ids, to, output in zip(sources, targets, run(sources, decoder_ids=targets), strict=True):
        with torch.no_grad():
            # No decoder key is padding, though the start shares the padding's number.
            mask = torch.ones(1, len(to), dtype=torch.long)
            want = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([to]), decoder_attention_mask=mask, use_cache=False).logits[0]
        assert error(output.logits[:, :words], want[:, :words].numpy()) < TOLERANCE
        assert np.isneginf(output.logits[:, words]).all()


def test_load_and_generate(tmp_path):
    model = make_marian(*ROWS[0], tmp_path, seed=5)
    words = ROWS[0][0]["vocab_size"]
    source = [5, 9, 17, 30, 0]
    with cygnet.load(tmp_path, weights="float32") as loaded:
        assert isinstance(loaded, cygnet.Seq2Seq)
        greedy = loaded.generate(source, temperature=0, max_new_tokens=6).ids
        assert len(loaded.generate(source, num_beams=3, max_new_tokens=6).ids)
    read = [words]
    for token in greedy:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([read]), use_cache=False).logits[0, -1]
        assert token == int(logits[:words].argmax())
        read.append(token)
