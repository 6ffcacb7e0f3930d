"""Views of stored tensors: selections stay lazy and quantised, the rest is computed."""

import numpy as np
import pytest
from small import tensor

from cygnet.architectures.transforms import (
    ShapeMismatch,
    StoredRows,
    add_one,
    flattened,
    heads_of,
    interleaved_pairs,
    ones,
    part_of,
    per_head,
    plain,
    rows,
    transposed,
)
from cygnet.formats.tensor import Tensor

MATRIX = np.arange(24, dtype=np.float32).reshape(6, 4)


def view(transform, array, shape, part="weight"):
    return transform([tensor("w", array)], part, shape)


def test_plain_is_the_stored_tensor():
    got = view(plain, MATRIX, (6, 4))
    source, chosen = got.row_source()
    assert np.array_equal(got.to_float32(), MATRIX) and chosen == slice(0, 6) and source.shape == (6, 4)
    assert np.array_equal(got.to_float32(slice(2, 5)), MATRIX[2:5])


def test_axes_of_length_one_do_not_count():
    assert view(plain, MATRIX[None, :1], (4,)).shape == (4,)
    with pytest.raises(ShapeMismatch, match=r"\[6, 4\], expected \[4, 6\]"):
        view(plain, MATRIX, (4, 6))


def test_parts_of_fused_rows():
    got = view(part_of(1, 3), MATRIX, (2, 4))
    assert np.array_equal(got.to_float32(), MATRIX[2:4]) and got.row_source()[1] == slice(2, 4)
    assert np.array_equal(got.to_float32(slice(1, 2)), MATRIX[3:4])
    assert np.array_equal(view(part_of(1, 3), np.arange(6), (2,), "bias").to_float32(), [2, 3])


def test_heads_interleaved_in_one_tensor():
    fused = np.arange(12, dtype=np.float32)[:, None] * np.ones((1, 2), np.float32)
    got = view(heads_of(2, 2, 6), fused, (4, 2))
    assert np.array_equal(got.to_float32()[:, 0], [2, 3, 8, 9])
    assert np.array_equal(got.to_float32(slice(1, 3))[:, 0], [3, 8])
    assert got.to_float32(slice(2, 2)).shape == (0, 2)


def test_rotary_pairs_are_put_back():
    halves = np.arange(16).reshape(2, 2, 4)  # heads, halves, pairs
    stored = halves.swapaxes(1, 2).reshape(16, 1) * np.ones((1, 3))
    got = view(interleaved_pairs(2), stored, (16, 3))
    assert np.array_equal(got.to_float32()[:, 0], np.arange(16))
    assert got.row_source()[1].tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]


def test_experts_in_one_tensor_are_rows_of_a_matrix():
    experts = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    got = view(part_of(2, 3), experts, (2, 4))
    source, chosen = got.row_source()
    assert np.array_equal(got.to_float32(), experts[2]) and source.shape == (6, 4) and chosen == slice(4, 6)


def test_block_types_keep_their_blocks():
    raw = np.random.default_rng(0).integers(0, 255, (4, 2, 34), dtype=np.uint8)
    raw[..., :2] = np.float16(0.5).tobytes()[0], np.float16(0.5).tobytes()[1]
    stored = Tensor("w", "Q8_0", (4, 64), lambda: raw.reshape(-1))
    got = rows(np.array([3, 1]))([stored], "weight", (2, 64))
    source, chosen = got.row_source()
    assert got.dtype == "Q8_0"
    assert np.array_equal(np.concatenate([source.raw_rows(row, row + 1) for row in chosen]), raw[[3, 1]].reshape(-1))
    assert np.array_equal(got.to_float32(), stored.to_float32()[[3, 1]])


def test_rows_beyond_the_tensor_are_a_mismatch():
    for select in (slice(4, 8), np.array([0, 9])):
        with pytest.raises(ShapeMismatch, match="has 6 rows"):
            view(rows(select), MATRIX, (4, 4))


def test_square_matrices_are_transposed_too():
    square = MATRIX[:4]
    got = view(transposed(), square, (4, 4))
    assert np.array_equal(got.to_float32(), square.T) and got.row_source() is None
    assert np.array_equal(view(transposed(1, 2), MATRIX, (2, 6)).to_float32(), MATRIX[:, 2:].T)
    assert np.array_equal(view(transposed(1, 2), np.arange(4), (2,), "bias").to_float32(), [2, 3])
    with pytest.raises(ShapeMismatch, match="in, out"):
        view(transposed(), MATRIX, (6, 4))


def test_norms_that_count_from_one():
    got = view(add_one, np.array([0.5, -1.0]), (2,))
    assert got.to_float32().tolist() == [1.5, 0.0] and got.row_source() is None and got.dtype == "F32"


def test_norms_of_heads():
    both = [tensor("a", [1.0, 2.0]), tensor("b", [3.0, 4.0])]
    assert per_head(2)(both, "weight", (2,)).to_float32().tolist() == [[1, 2], [3, 4]]
    assert per_head(2)([tensor("w", [[1.0, 2.0], [3.0, 4.0]])], "weight", (2,)).shape == (2, 2)
    with pytest.raises(ShapeMismatch, match="2 tensors, expected 3"):
        per_head(3)(both, "weight", (2,))


def test_convolution_over_patches_is_a_matrix():
    kernel = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    assert np.array_equal(view(flattened, kernel, (2, 12)).to_float32(), kernel.reshape(2, 12))
    with pytest.raises(ShapeMismatch):
        view(flattened, kernel, (3, 8))


def test_tensors_no_file_holds():
    made = ones([], "weight", (3,))
    assert made.to_float32().tolist() == [1, 1, 1] and made.to_float32(slice(1, 3)).tolist() == [1, 1]


def test_release_reaches_the_tensor():
    released = []
    stored = Tensor("w", "F32", (1,), lambda: np.zeros(4, np.uint8), lambda: released.append(True))
    StoredRows(stored).release()
    assert released == [True]
