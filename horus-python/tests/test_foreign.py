"""Arguments that are arrays of other libraries, on the host and on a GPU, by the protocols of CuPy, PyTorch and JAX: no GPU is needed."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest
from horus_image import exposure, filters, measure, morphology, ndimage, segmentation, transform

import horus_image as hi

Array = np.ndarray[Any, Any]


class OfGpu:
    """An array that is said to be in memory of a GPU, and tells how often it was copied."""

    def __init__(self, array: Any, gpu: int = 0) -> None:
        self.inner = np.array(array)
        self.gpu, self.copies = gpu, 0

    shape = property(lambda self: self.inner.shape)
    ndim = property(lambda self: self.inner.ndim)
    dtype = property(lambda self: self.inner.dtype)
    size = property(lambda self: self.inner.size)

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, key: Any) -> Any:
        return type(self)(self.inner[key], self.gpu)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.gpu

    def __dlpack__(self, **_: Any) -> Any:
        raise AssertionError("there is no such memory")

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"typestr": self.inner.dtype.str, "shape": self.inner.shape, "data": (1 << 40, False), "strides": None, "version": 3}

    def copied(self) -> Array:
        self.copies += 1
        return self.inner.copy()


class CuPy(OfGpu):
    """As CuPy's: NumPy makes no array of it, and nothing of NumPy's is stored in it but by `set`."""

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(f"Unsupported type {type(value)}")

    def get(self) -> Array:
        return self.copied()

    def set(self, array: Array) -> None:
        assert array.shape == self.shape and array.dtype == self.dtype and array.flags.c_contiguous
        self.inner[...] = array


class Torch:
    """As PyTorch's on the host."""

    def __init__(self, array: Any) -> None:
        self.inner = np.array(array)

    shape = property(lambda self: self.inner.shape)
    ndim = property(lambda self: self.inner.ndim)
    dtype = property(lambda self: f"torch.{self.inner.dtype}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.inner if dtype is None else self.inner.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **more: Any) -> Any:
        return self.inner.__dlpack__()

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, key: Any) -> Torch:
        return Torch(self.inner[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.inner[key] = value


class TorchOnGpu(OfGpu):
    """As PyTorch's on a GPU, which copies itself by `cpu`, and takes its own arrays."""

    __module__ = "torch"

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, Torch):
            raise TypeError(f"can't assign a {type(value)}")
        self.inner[key] = value.inner

    def cpu(self) -> Torch:
        return Torch(self.copied())


class Jax(Torch):
    """As JAX's on the host, which nobody writes to."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.inner.view() if dtype is None else self.inner.astype(dtype)
        array.flags.writeable = False
        return array

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("JAX arrays are immutable and do not support in-place item assignment.")


class JaxOnGpu(OfGpu):
    """As JAX's on a GPU, of which NumPy makes an array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.copied()
        return array if dtype is None else array.astype(dtype)


KINDS: Final[list[Callable[[Any], Any]]] = [CuPy, Torch, TorchOnGpu, Jax, JaxOnGpu]


@pytest.fixture(autouse=True)
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(asarray=Torch))  # type: ignore[misc]


PHOTO: Final = np.random.default_rng(1).random((12, 14)).astype(np.float32)
BYTES: Final = (PHOTO * 255).astype(np.uint8)
MASK: Final = PHOTO > 0.4
LABELS: Final = (PHOTO * 4).astype(np.int32)
CROSS: Final = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
VOLUME: Final = np.random.default_rng(2).random((3, 6, 7))
MARKERS: Final = np.zeros(PHOTO.shape, np.int32)
MARKERS[2, 2], MARKERS[9, 9] = 1, 2
Call = Callable[[Callable[[Any], Any]], Any]

CALLS: Final[dict[str, Call]] = {
    "correlate": lambda f: ndimage.correlate(PHOTO, f(CROSS)),
    "convolve": lambda f: ndimage.convolve(PHOTO, weights=f(CROSS.astype("f4")), origin=f(np.array([0, 1]))),
    "correlate1d": lambda f: ndimage.correlate1d(PHOTO, f([1.0, 2.0, 3.0])),
    "convolve1d": lambda f: ndimage.convolve1d(PHOTO, f(np.array([1, 2, 3, 4]))),
    "gaussian_filter": lambda f: ndimage.gaussian_filter(PHOTO, f([1.0, 2.0]), order=f(np.array([0, 1])), cval=f(np.array(2.0))),
    "gaussian_filter of a list": lambda f: ndimage.gaussian_filter(PHOTO, [f(1.0), f(2.0)], radius=(3, 2)),
    "gaussian_laplace": lambda f: ndimage.gaussian_laplace(PHOTO, f([1.0, 2.0])),
    "uniform_filter": lambda f: ndimage.uniform_filter(PHOTO, f(np.array([3, 5])), axes=f(np.array([0, 1]))),
    "minimum_filter": lambda f: ndimage.minimum_filter(PHOTO, footprint=f(CROSS == 1)),
    "maximum_filter": lambda f: ndimage.maximum_filter(PHOTO, size=f(np.array([3, 5]))),
    "median_filter": lambda f: ndimage.median_filter(PHOTO, footprint=f(CROSS)),
    "percentile_filter": lambda f: ndimage.percentile_filter(PHOTO, f(np.array(30.0)), footprint=f(CROSS)),
    "rank_filter": lambda f: ndimage.rank_filter(PHOTO, f(np.array(2)), footprint=f(CROSS)),
    "grey_erosion": lambda f: ndimage.grey_erosion(PHOTO, footprint=f(CROSS == 1), structure=f(CROSS * 0.1)),
    "grey_closing": lambda f: ndimage.grey_closing(BYTES, structure=f(CROSS)),
    "white_tophat": lambda f: ndimage.white_tophat(PHOTO, footprint=f(CROSS)),
    "binary_erosion": lambda f: ndimage.binary_erosion(MASK, f(CROSS), mask=f(PHOTO > 0.2)),
    "binary_dilation": lambda f: ndimage.binary_dilation(MASK, structure=f(CROSS == 1), iterations=2, mask=f((PHOTO > 0.2).astype("i8"))),
    "binary_propagation": lambda f: ndimage.binary_propagation(MASK & (PHOTO > 0.8), f(CROSS), f(MASK)),
    "binary_fill_holes": lambda f: ndimage.binary_fill_holes(MASK, f(CROSS)),
    "binary_hit_or_miss": lambda f: ndimage.binary_hit_or_miss(MASK, f(CROSS), f(1 - CROSS)),
    "iterate_structure": lambda f: ndimage.iterate_structure(f(CROSS), 2),
    "label": lambda f: ndimage.label(MASK, f(CROSS))[0],
    "sum": lambda f: ndimage.sum(PHOTO, f(LABELS), f([1, 2, 3])),
    "sum_labels of one": lambda f: ndimage.sum_labels(PHOTO, f(LABELS), f(np.array(2))),
    "mean of wide labels": lambda f: ndimage.mean(PHOTO, f(LABELS.astype("i8") + 2**40), f(np.array([1, 2]) + 2**40)),
    "mean of unsigned labels": lambda f: ndimage.mean(PHOTO, f(LABELS.astype("u8")), f(np.array([1, 2], "u8"))),
    "median": lambda f: ndimage.median(PHOTO, f(LABELS), f([1, 2])),
    "histogram": lambda f: np.stack(ndimage.histogram(PHOTO, 0, 1, 4, f(LABELS), f([1, 2]))),
    "center_of_mass": lambda f: ndimage.center_of_mass(PHOTO, labels=f(LABELS), index=f([1, 2])),
    "maximum": lambda f: ndimage.maximum(PHOTO, f(LABELS), f([1, 2])),
    "measures of an image": lambda f: ndimage.variance(hi.asarray(PHOTO), f(LABELS), f([1, 2])),
    "affine_transform": lambda f: ndimage.affine_transform(PHOTO, f([[0.9, 0.1], [-0.1, 0.9]]), f([1.0, 2.0]), order=1),
    "affine_transform of an image": lambda f: ndimage.affine_transform(hi.asarray(PHOTO), f(np.diag([0.5, 0.7])), order=1).compute(),
    "shift": lambda f: ndimage.shift(PHOTO, f([1.5, -2.0])),
    "zoom": lambda f: ndimage.zoom(PHOTO, f([2.0, 0.5]), order=1),
    "map_coordinates": lambda f: ndimage.map_coordinates(PHOTO, f([[1.5, 2.0], [3.0, 4.25]]), order=1),
    "map_coordinates of a list": lambda f: ndimage.map_coordinates(PHOTO, [f([1.5, 2.0]), f([3.0, 4.25])], order=1),
    "map_coordinates of whole numbers": lambda f: ndimage.map_coordinates(hi.asarray(PHOTO), f(np.indices(PHOTO.shape)), order=1).compute(),
    "distance_transform_edt": lambda f: ndimage.distance_transform_edt(MASK, f([2.0, 1.0])),
    "threshold_otsu": lambda f: filters.threshold_otsu(hist=(f([1, 2, 0, 5]), f([0.0, 1.0, 2.0, 3.0]))),
    "apply_hysteresis_threshold": lambda f: filters.apply_hysteresis_threshold(PHOTO, f(np.array(0.3)), f(PHOTO * 0 + 0.8)),
    "canny": lambda f: filters.canny(PHOTO, mask=f(MASK)),
    "sobel": lambda f: filters.sobel(PHOTO, mask=f(MASK)),
    "reconstruction": lambda f: filters.reconstruction(BYTES // 2, BYTES, footprint=f(np.ones((3, 3)))),
    "gaussian": lambda f: filters.gaussian(PHOTO, f([1.0, 2.0])),
    "frangi": lambda f: filters.frangi(PHOTO, sigmas=f([1.0, 2.0])),
    "watershed": lambda f: segmentation.watershed(PHOTO, f(MARKERS.astype("i8")), mask=f(MASK), connectivity=f(np.ones((3, 3)))),
    "clear_border": lambda f: segmentation.clear_border(MASK, mask=f(PHOTO > 0.2)),
    "remove_small_objects": lambda f: morphology.remove_small_objects(MASK, max_size=f(np.array(4))),
    "expand_labels": lambda f: segmentation.expand_labels(MARKERS, 5, f([2.0, 1.0])),
    "peak_local_max": lambda f: measure.peak_local_max(f(PHOTO), footprint=f(np.ones((3, 3)))),
    "regionprops_table": lambda f: measure.regionprops_table(f(LABELS), PHOTO, ("intensity_mean",))["intensity_mean"],
    "hough_line": lambda f: transform.hough_line(MASK, f(np.linspace(-1, 1, 5)))[0],
    "match_histograms": lambda f: exposure.match_histograms(BYTES, BYTES[::-1] // 2),
    "lookup": lambda f: hi.asarray(BYTES).lookup(f(np.arange(256.0)[::-1])).compute(),
    "paste": lambda f: hi.asarray(PHOTO).paste(f(PHOTO[:3, :3]), 4, 5).compute(),
    "where": lambda f: hi.where(f(MASK), hi.asarray(PHOTO), f(PHOTO * 2)).compute(),
    "operators": lambda f: (hi.asarray(PHOTO) * f(PHOTO) + f(np.float32(2))).compute(),
    "reflected operators of a function": lambda f: np.add(hi.asarray(PHOTO), f(PHOTO)).compute(),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_arguments_are_arrays_of_any_library(name: str, kind: Callable[[Any], Any]) -> None:
    made: list[OfGpu] = []

    def given(array: Any) -> Any:
        found = kind(array)
        if isinstance(found, OfGpu):
            made.append(found)
        return found

    for _ in range(3):  # Programs are kept of the second call, and run by the third.
        np.testing.assert_array_equal(CALLS[name](given), CALLS[name](np.asarray))
    assert all(array.copies == 1 for array in made), "each is copied once"


@pytest.mark.parametrize("kind", [Torch, Jax], ids=lambda kind: kind.__name__)
def test_images_are_arrays_of_any_library(kind: Callable[[Any], Any]) -> None:
    assert ndimage.find_objects(kind(LABELS)) == ndimage.find_objects(LABELS)
    np.testing.assert_array_equal(ndimage.sobel(kind(PHOTO)), ndimage.sobel(PHOTO))
    np.testing.assert_array_equal(filters.sobel(kind(PHOTO)), filters.sobel(PHOTO))
    np.testing.assert_array_equal(hi.asarray(kind(PHOTO)), PHOTO)
    np.testing.assert_array_equal(morphology.remove_small_objects(kind(LABELS), max_size=40), morphology.remove_small_objects(LABELS, max_size=40))
    np.testing.assert_array_equal(segmentation.relabel_sequential(kind(LABELS))[0], LABELS)
    np.testing.assert_array_equal(segmentation.clear_border(kind(LABELS)), segmentation.clear_border(LABELS))
    np.testing.assert_array_equal(exposure.match_histograms(kind(BYTES), kind(BYTES[::-1] // 2)), exposure.match_histograms(BYTES, BYTES[::-1] // 2))


@pytest.mark.parametrize("kind", [CuPy, Torch, TorchOnGpu], ids=lambda kind: kind.__name__)
def test_results_are_written_into_arrays_of_any_library(kind: Callable[[Any], Any]) -> None:
    for dtype in (np.float32, np.float64, np.uint8, np.float16):
        for given in (PHOTO, BYTES):
            output = kind(np.zeros(PHOTO.shape, dtype))
            assert ndimage.gaussian_filter(given, 1.0, output=output) is output
            np.testing.assert_array_equal(output.inner, ndimage.gaussian_filter(given, 1.0, output=dtype))
    output = kind(np.zeros(PHOTO.shape, bool))
    assert ndimage.binary_erosion(MASK, output=output) is output
    np.testing.assert_array_equal(output.inner, ndimage.binary_erosion(MASK))
    output = kind(np.zeros((6, 7), np.float32))
    assert ndimage.zoom(PHOTO, 0.5, output, order=1) is output
    np.testing.assert_array_equal(output.inner, ndimage.zoom(PHOTO, 0.5, order=1))
    assert ndimage.map_coordinates(PHOTO, kind(np.zeros((2, 6, 7))), output) is output
    output = kind(np.zeros(PHOTO.shape, np.int64))
    assert ndimage.label(MASK, output=output) == ndimage.label(MASK)[1]
    np.testing.assert_array_equal(output.inner, ndimage.label(MASK)[0])
    distances, indices = kind(np.zeros(PHOTO.shape)), kind(np.zeros((2, *PHOTO.shape), np.int32))
    assert ndimage.distance_transform_edt(MASK, return_indices=True, distances=distances, indices=indices) is None
    wanted = ndimage.distance_transform_edt(MASK, return_indices=True)
    np.testing.assert_array_equal(distances.inner, wanted[0])
    np.testing.assert_array_equal(indices.inner, wanted[1])
    for function in (morphology.remove_small_objects, morphology.remove_small_holes, segmentation.clear_border):
        output = kind(np.zeros(PHOTO.shape, bool))
        assert function(MASK, out=output) is output
        np.testing.assert_array_equal(output.inner, function(MASK))
    output = kind(np.zeros(PHOTO.shape, np.float32))
    assert np.add(hi.asarray(PHOTO), 1, out=output) is output
    np.testing.assert_array_equal(output.inner, PHOTO + 1)
    with pytest.raises(TypeError, match="not stored|Cannot cast"):
        np.add(hi.asarray(PHOTO), 1, out=kind(np.zeros(PHOTO.shape, np.int32)))
    with pytest.raises(RuntimeError, match="output shape"):
        ndimage.sobel(PHOTO, output=kind(np.zeros((2, 2), np.float32)))


def test_arrays_that_nobody_writes_to_are_refused() -> None:
    with pytest.raises(TypeError, match="Jax are not written to"):
        ndimage.sobel(PHOTO, output=Jax(PHOTO))
    with pytest.raises(TypeError, match="lazy image is not written"):
        ndimage.sobel(hi.asarray(PHOTO), output=Torch(PHOTO))


def test_a_session_of_the_host_refuses_to_make_images_of_arrays_on_a_gpu() -> None:
    with hi.session(device="cpu") as session, pytest.raises(ValueError, match=r"the array is on a GPU, and the session computes on .*copy"):
        hi.asarray(Interface(PHOTO), session=session)


class Interface:
    """An array on a GPU with CUDA's array interface alone."""

    def __init__(self, array: Array) -> None:
        self.inner = OfGpu(array)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.inner.__cuda_array_interface__


def test_arrays_on_two_gpus_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from horus_image import _foreign

    image = hi.asarray(PHOTO)
    array = _foreign.DeviceArray(CuPy(PHOTO), 1 << 40, np.dtype("f4"), PHOTO.shape, (56, 4), 1, None)
    # A session that is said to compute on the first GPU.
    monkeypatch.setattr(image.session, "_gpu", 0)
    for call in (lambda: image + array, lambda: image.paste(array, 0, 0), lambda: hi.where(image > 0.5, image, array)):
        with pytest.raises(ValueError, match="the array is on GPU 1, and the session computes on GPU 0"):
            call()
    with pytest.raises(ValueError, match="the array is on GPU 1, and the session computes on GPU 0"):
        ndimage.map_coordinates(image, [array, image])
    monkeypatch.setitem(_foreign._sessions, 0, image.session)
    first = _foreign.DeviceArray(CuPy(PHOTO), 1 << 40, np.dtype("f4"), PHOTO.shape, (56, 4), 0, None)
    with pytest.raises(ValueError, match="the array is on GPU 1, and the session computes on GPU 0"):
        hi.jit(lambda a, b: a + b)(first, array)


HALVES: Final = PHOTO.astype(np.float16)


def test_halves_are_computed_in_single_precision_and_written() -> None:
    image = hi.asarray(HALVES)
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image, HALVES.astype(np.float32))
    for function in (
        lambda a, **more: ndimage.gaussian_filter(a, 1.5, **more),
        lambda a, **more: ndimage.zoom(a, 2.0, order=1, **more),
        lambda a, **more: ndimage.median_filter(a, 3, **more),
        lambda a, **more: ndimage.grey_dilation(a, size=3, **more),
    ):
        wanted = function(HALVES.astype(np.float32))
        found = function(HALVES)
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, wanted.astype(np.float16))
        assert function(PHOTO, output=np.float16).dtype == np.float16
        assert function(HALVES, output=np.float32).dtype == np.float32
        np.testing.assert_array_equal(function(HALVES, output=np.float32), wanted)
        into = np.zeros(wanted.shape, np.float16)
        assert function(HALVES, output=into) is into
        np.testing.assert_array_equal(into, found)
    np.testing.assert_array_equal(ndimage.gaussian_filter(Torch(HALVES), 1.5), ndimage.gaussian_filter(HALVES, 1.5))
    np.testing.assert_array_equal(ndimage.binary_erosion(HALVES), ndimage.binary_erosion(PHOTO))
    np.testing.assert_allclose(ndimage.mean(HALVES, LABELS, [1, 2]), ndimage.mean(HALVES.astype("f8"), LABELS, [1, 2]))
    assert (hi.asarray(PHOTO) + HALVES).dtype == np.float32


def test_labels_of_64_bits_are_checked_to_fit() -> None:
    for dtype in (np.int64, np.uint64):
        wide = MARKERS.astype(dtype)
        found = segmentation.watershed(PHOTO, wide)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, segmentation.watershed(PHOTO, MARKERS))
        np.testing.assert_array_equal(ndimage.sum(PHOTO, LABELS.astype(dtype), np.array([1, 2], dtype)), ndimage.sum(PHOTO, LABELS, [1, 2]))
        assert ndimage.find_objects(LABELS.astype(dtype)) == ndimage.find_objects(LABELS)
        wide[0, 0] = 2**40
        with pytest.raises((ValueError, NotImplementedError), match="32 bits"):
            segmentation.watershed(PHOTO, wide)
        np.testing.assert_array_equal(ndimage.sum(PHOTO, wide, [2**40, 1]), [PHOTO[0, 0], PHOTO[2, 2]])
        with pytest.raises(ValueError, match=f"find_objects: a label of {2**40}"):
            ndimage.find_objects(wide)
        # Both types have numbers that floats do not hold.
        wide[0, 0], wide[0, 1] = 2**62, 2**62 + 1
        for index in (np.int64, np.uint64):
            asked = np.array([2**62 + 1, 2**62, 2**62 + 2], index)
            np.testing.assert_array_equal(ndimage.maximum(PHOTO, wide, asked), [PHOTO[0, 1], PHOTO[0, 0], 0.0])
    with_most = MARKERS.astype(np.uint64)
    with_most[0, 0] = 2**63 + 9
    np.testing.assert_array_equal(ndimage.maximum(PHOTO, with_most, np.array([2**63 + 9], np.uint64)), [PHOTO[0, 0]])
    np.testing.assert_array_equal(ndimage.maximum(PHOTO, MARKERS.astype(np.int64) - 5, np.array([2**64 - 5], np.uint64)), [0.0])
