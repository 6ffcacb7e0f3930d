"""Images: arrays as they are, pictures through the model's own preprocessing."""

import json
import shutil

import numpy as np
import pytest

import cygnet
from cygnet.errors import FormatError, OptionError
from cygnet.models.heads import softmax


@pytest.fixture
def folder(conformance, tmp_path):
    """The small Vision Transformer, with a preprocessor_config.json of its own."""
    target = tmp_path / "vit"
    shutil.copytree(conformance / "models" / "vit-cls", target)
    settings = {"size": {"height": 16, "width": 16}, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.2], "resample": 2}
    (target / "preprocessor_config.json").write_text(json.dumps(settings))
    return target


def pixels(seed=0):
    return np.random.default_rng(seed).standard_normal((3, 16, 16)).astype(np.float32)


def test_classify(folder):
    with cygnet.load(folder) as model:
        found = model.classify([pixels(i) for i in range(20)])
        logits = model.forward([pixels(3)])[0]
        assert found[3].label == model.labels[logits.argmax()] and len(found) == 20
        assert list(found[3].scores.values()) == pytest.approx(sorted(softmax(logits), reverse=True), rel=1e-5)
        assert model.classify(pixels(3)).label == found[3].label
        assert model.classify([]) == []


def test_vectors(folder):
    with cygnet.load(folder, task="encoder") as model:
        vectors = model.embed([pixels(0), pixels(1)])
        assert vectors.shape == (2, 32) and model.embed([]).shape == (0, 32)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        assert [rows.shape for rows in model.forward([pixels()])] == [(17, 32)]


def test_preprocessing(folder):
    Image = pytest.importorskip("PIL.Image")
    array = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    expected = ((array / np.float32(255) - [0.5, 0.4, 0.3]) / [0.5, 0.25, 0.2]).transpose(2, 0, 1)
    with cygnet.load(folder) as model:
        np.testing.assert_allclose(model.prepare(array), expected, atol=1e-5)
        Image.fromarray(array).save(folder / "picture.png")
        np.testing.assert_allclose(model.prepare(folder / "picture.png"), expected, atol=1e-5)
        assert model.prepare(Image.new("L", (40, 20))).shape == (3, 16, 16)
        with pytest.raises(FormatError, match="no image file"):
            model.prepare(folder / "config.json")


@pytest.mark.parametrize("image", [np.zeros((3, 8, 16), np.float32), np.zeros((16, 16, 3), np.int64), np.zeros(5, np.uint8), 3])
def test_wrong_images(folder, image):
    if not (isinstance(image, np.ndarray) and image.dtype.kind == "f"):
        pytest.importorskip("PIL")
    with cygnet.load(folder) as model, pytest.raises(OptionError):
        model.classify([image])


def test_no_preprocessing_known(conformance):
    pytest.importorskip("PIL")
    with cygnet.load(conformance / "models" / "vit-cls") as model, pytest.raises(FormatError, match="preprocessor_config.json"):
        model.prepare(np.zeros((16, 16, 3), np.uint8))
