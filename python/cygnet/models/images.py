"""Vision Transformers: images to labels or vectors (Dosovitskiy et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from cygnet.errors import FormatError, MissingDependency, OptionError
from cygnet.files import read_json
from cygnet.models.aliases import Float32, Image
from cygnet.models.base import Model
from cygnet.models.classifier import Classification
from cygnet.models.heads import softmax
from cygnet.models.pooling import normalize
from cygnet.models.text_model import numbers

# Images of one forward pass.
BATCH_IMAGES = 16
# preprocessor_config.json numbers ways of resizing as Pillow does; this one is its default for these models.
BILINEAR = 2


class ImageModel(Model):
    """A Transformer that reads images.

    An image is a (channels, height, width) float array, which goes in as it is; or a (height, width, channels) uint8 array, a Pillow image or the
    path of an image file, which are resized, scaled and normalised as the model's preprocessor_config.json says (needs the extra `cygnet[vision]`).
    """

    def prepare(self, image: Image) -> Float32:
        """The (channels, height, width) float32 array that the model sees of an image.

        Raises
        ------
        OptionError
            Neither an array of a fitting shape nor an image.
        MissingDependency
            Pillow is needed and not installed.
        """
        patches = self.spec.encoder.embedding.patches
        wanted = (patches.channels, patches.image_size, patches.image_size)
        if isinstance(image, np.ndarray) and image.dtype.kind == "f":
            if image.shape != wanted:
                raise OptionError(f"an array of pixel values must have shape {wanted}, not {image.shape}")
            return image.astype(np.float32)
        pixels = np.asarray(self._sized(_opened(image), patches.image_size), np.float32)
        settings = self._preprocessing
        if settings.get("do_rescale", True):
            pixels = pixels * np.float32(settings.get("rescale_factor", 1 / 255))
        if settings.get("do_normalize", True):
            mean, std = (np.array(settings.get(key, [0.5] * 3), np.float32) for key in ("image_mean", "image_std"))
            pixels = (pixels - mean) / std
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def hidden_states(self, images: Iterable[Image]) -> list[Float32]:
        """Last hidden states of each image: (1 + patches, D) float32, the class token first."""
        return self._run(images, lambda hidden, offsets: [hidden[a:b].copy() for a, b in zip(offsets[:-1], offsets[1:], strict=True)])

    def _run(self, images, finish) -> list:
        results: list = []
        prepared = [self.prepare(image) for image in images]
        for first in range(0, len(prepared), BATCH_IMAGES):
            hidden, offsets = self.engine.hidden(prepared[first : first + BATCH_IMAGES])
            results += finish(hidden, offsets)
        return results

    def _sized(self, image, side: int):
        settings = self._preprocessing
        resample = settings.get("resample", BILINEAR)
        if settings.get("do_center_crop"):
            size = settings.get("size", side)
            short = size.get("shortest_edge", side) if isinstance(size, dict) else size
            scale = short / min(image.size)
            image = image.resize((max(side, round(image.width * scale)), max(side, round(image.height * scale))), resample)
            left, top = (image.width - side) // 2, (image.height - side) // 2
            return image.crop((left, top, left + side, top + side))
        return image.resize((side, side), resample)

    @cached_property
    def _preprocessing(self) -> dict:
        settings = read_json(self.folder / "preprocessor_config.json", None)
        if settings is None:
            raise FormatError(f"{self.folder} has no preprocessor_config.json: give float arrays of pixel values, already scaled and normalised")
        return settings


class ImageClassifier(ImageModel):
    """A Vision Transformer that gives each image a label."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the head's outputs."""
        return self.spec.labels

    @overload
    def classify(self, images: Sequence[Image]) -> list[Classification]: ...
    @overload
    def classify(self, images: Image) -> Classification: ...

    def classify(self, images: Image) -> Any:
        """The label of an image, or of each of a list of them.

        Returns
        -------
        Classification, or a list of them
        """
        single = not isinstance(images, (list, tuple))
        results = []
        for logits in self.forward([images] if single else images):
            values = softmax(logits)
            order = np.argsort(-values, kind="stable")
            scores = {self.labels[i]: float(values[i]) for i in order}
            results.append(Classification(self.labels[order[0]], float(values[order[0]]), scores))
        return results[0] if single else results

    def forward(self, images: Iterable[Image]) -> list[Float32]:
        """Logits (labels,) float32 of each image of a list."""
        return self._run(images, lambda hidden, offsets: list(numbers(self.engine.head(hidden, offsets), "logits")))


class ImageEncoder(ImageModel):
    """A Vision Transformer without a head."""

    def embed(self, images: Iterable[Image]) -> Float32:
        """The class token's state of each image of a list, divided by its L2 norm: (n, d) float32."""
        states = [rows[0] for rows in self.hidden_states(images)]
        return normalize(np.stack(states)) if states else np.zeros((0, self.spec.hidden_size), np.float32)

    def forward(self, images: Iterable[Image]) -> list[Float32]:
        """Last hidden states of each image of a list: (1 + patches, D) float32."""
        return self.hidden_states(images)

    def pooled(self, images: Iterable[Image]) -> list[Float32]:
        """What the model's pooler makes of each image: (D,) float32."""
        return self._run(images, lambda hidden, offsets: list(self.engine.head(hidden, offsets, which="pooler")))


def _opened(image):
    """A Pillow image in RGB."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise MissingDependency('reading images needs Pillow: pip install "cygnet[vision]"; or give float arrays of pixel values') from None
    if isinstance(image, (str, Path)):
        try:
            image = Image.open(image)
        except UnidentifiedImageError:
            raise FormatError(f"{image} is no image file of a known kind") from None
    elif isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim not in (2, 3):
            raise OptionError(
                f"an image array is (height, width, channels) uint8, or (channels, height, width) float; not {image.shape} {image.dtype}"
            )
        image = Image.fromarray(image)
    if not isinstance(image, Image.Image):
        raise OptionError(f"an image is wanted, not {type(image).__name__}")
    return image.convert("RGB")
