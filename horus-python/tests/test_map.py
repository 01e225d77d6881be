"""Programs that are computed for many pictures at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import horus_image as hi
from horus_image import ndimage


def pictures(count: int, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.random.default_rng(count).random((count, *shape)) * 200).astype(dtype)


def each(program: Callable[[hi.Image], hi.Image], arrays: Any, channels: bool = False) -> list[np.ndarray[Any, Any]]:
    return [program(hi.asarray(array, channels=channels)).compute() for array in arrays]


def brightest(image: hi.Image) -> hi.Image:
    return image - image.max(keepdims=True)


def looks(image: hi.Image) -> hi.Image:
    return image * float(image.max())


PROGRAMS: list[Callable[[hi.Image], hi.Image]] = [
    lambda image: ndimage.gaussian_filter(image, 2.0),
    lambda image: ndimage.median_filter(image, 3) > 50,
    lambda image: ndimage.rotate(image, 30.0, order=1),
    lambda image: ndimage.zoom(image, 0.5, order=1),
    lambda image: image[1:, ::2].astype(np.uint8),
    lambda image: ndimage.label(image > 100)[0],
    lambda image: image,
    brightest,
    looks,
]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.float64])
def test_results_are_those_of_each_picture(program: Callable[[hi.Image], hi.Image], dtype: Any) -> None:
    arrays = pictures(7, (12, 15), dtype)
    together = hi.map(program, arrays)
    assert isinstance(together, np.ndarray)
    alone = np.stack(each(program, arrays))
    assert together.dtype == alone.dtype
    np.testing.assert_array_equal(together, alone)
    before = together.copy()
    arrays[:] = 0
    np.testing.assert_array_equal(together, before)


def test_pictures_have_channels_masks_or_one_row() -> None:
    colours = pictures(5, (9, 8, 3), np.uint8)
    smooth = hi.map(lambda image: ndimage.gaussian_filter(image.astype(np.float32), 1.0, axes=(0, 1)), colours, channels=True)
    np.testing.assert_array_equal(smooth, each(lambda image: ndimage.gaussian_filter(image.astype(np.float32), 1.0, axes=(0, 1)), colours, True))
    masks = pictures(4, (6, 7)) > 100
    np.testing.assert_array_equal(hi.map(lambda mask: ~mask, masks), ~masks)
    rows = pictures(4, (20,))
    np.testing.assert_array_equal(hi.map(lambda row: row * 2, rows), rows * 2)
    np.testing.assert_array_equal(hi.map(lambda image: image + 1, pictures(3, (1, 1))), pictures(3, (1, 1)) + 1)
    view = pictures(6, (10, 12))[::2, ::-1, 1::3]
    np.testing.assert_array_equal(hi.map(lambda image: image * 2, view), view * 2)


def test_pictures_of_several_kinds_come_in_order() -> None:
    calls = []

    def program(image: hi.Image) -> hi.Image:
        calls.append(image.shape)
        return ndimage.gaussian_filter(image, 1.0)

    shapes = [(8, 8), (5, 7), (8, 8), (1, 1), (5, 7), (8, 8)]
    arrays = [pictures(i + 1, shape)[0] for i, shape in enumerate(shapes)]
    arrays[2] = arrays[2].astype(np.float64)
    found = hi.map(program, arrays)
    assert isinstance(found, list)
    assert len(calls) == 4
    for result, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(result, ndimage.gaussian_filter(array, 1.0))
        assert result.dtype == array.dtype
    assert hi.map(program, []) == []
    assert [len(part) for part in hi.map(program, (arrays[0],))] == [8]


def test_no_pictures_have_results_of_a_shape_and_type() -> None:
    found = hi.map(lambda image: ndimage.zoom(image, 2, order=0) > 1, np.zeros((0, 4, 5)))
    assert found.shape == (0, 8, 10)
    assert found.dtype == np.bool_


def test_several_results_are_a_tuple_or_a_list() -> None:
    arrays = pictures(3, (6, 6))
    smooth, mask = hi.map(lambda image: (ndimage.gaussian_filter(image, 1.0), image > 100), arrays)
    np.testing.assert_array_equal(mask, arrays > 100)
    assert smooth.shape == arrays.shape
    found = hi.map(lambda image: [image, image * 2], list(arrays))
    assert all(isinstance(pair, list) for pair in found)
    np.testing.assert_array_equal(found[1][1], arrays[1] * 2)
    np.testing.assert_array_equal(hi.map(hi.jit(lambda image: image * 2), arrays), arrays * 2)


def test_many_pictures_are_one_evaluation() -> None:
    with hi.session(device="cpu", explain=True) as session:
        hi.map(lambda image: ndimage.gaussian_filter(image, 1.0), pictures(100, (16, 16)))
        told = session.explain()
        assert "100 pictures as the levels of a volume" in told
        hi.map(looks, pictures(2, (16, 16)))
        assert "picture by picture: the operation reads values" in session.explain()


def test_what_is_no_picture_is_an_error() -> None:
    for array in (np.zeros(3), np.zeros((2, 3, 4, 5))):
        with pytest.raises(ValueError, match="does not count pictures"):
            hi.map(lambda image: image, array)
    with pytest.raises(ValueError, match="does not count pictures"):
        hi.map(lambda image: image, np.zeros((2, 3, 4)), channels=True)
    with pytest.raises(TypeError, match="must return an image"):
        hi.map(lambda image: 3.0, np.zeros((2, 3, 4)))
    with pytest.raises(TypeError, match="complex"):
        hi.map(lambda image: image, np.zeros((2, 3, 4), complex))


def test_an_error_names_the_picture() -> None:
    def program(image: hi.Image) -> hi.Image:
        if float(image.max()) > 2:
            raise RuntimeError("too bright")
        return image

    arrays = np.arange(4, dtype=np.float32).reshape(4, 1, 1) * np.ones((4, 3, 3), np.float32)
    with pytest.raises(RuntimeError, match="too bright") as caught:
        hi.map(program, arrays)
    assert getattr(caught.value, "__notes__", ["map: of picture 3"]) == ["map: of picture 3"]
