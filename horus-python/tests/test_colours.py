"""Arrays whose last axis are channels: calls that do nothing along it are SciPy's, bit by bit where those of a plane are, and of one kind of program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import scipy.ndimage as sp
import skimage.color
import skimage.filters

import horus_image as hi
from horus_image import _colours, filters, ndimage

Array = np.ndarray[Any, Any]
KERNEL = np.array([[1, 2, 1], [0, 3, -1], [-1, -2, -1]])[:, :, None]
DISC = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 1]], bool)[:, :, None]

CALLS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "gaussian": ("gaussian_filter", ((2, 1.5, 0),), {}),
    "gaussian along some": ("gaussian_filter", (1.2,), {"axes": (0, 1)}),
    "gaussian of one axis among some": ("gaussian_filter", ((0.0, 1.2),), {"axes": (2, 1)}),
    "derivative": ("gaussian_filter", ((2, 1, 0),), {"order": (0, 1, 2), "mode": ["nearest", "wrap", "mirror"], "radius": (3, 4, 5)}),
    "gaussian of a line": ("gaussian_filter1d", (1.5,), {"axis": 1}),
    "laplace": ("laplace", (), {"axes": (-3, -2)}),
    "laplacian of a gaussian": ("gaussian_laplace", (1.1,), {"axes": (0, 1)}),
    "uniform": ("uniform_filter", ((5, 4, 1),), {"origin": (1, -1, 0)}),
    "mean of a line": ("uniform_filter1d", (7,), {"axis": 0, "mode": "constant", "cval": 3}),
    "minimum": ("minimum_filter", ((3, 5, 1),), {"mode": ("wrap", "reflect", "nearest")}),
    "maximum": ("maximum_filter", (), {"footprint": DISC, "mode": "constant"}),
    "maximum of a line": ("maximum_filter1d", (4,), {"axis": -2, "origin": 1}),
    "median": ("median_filter", ((3, 3, 1),), {}),
    "median along some": ("median_filter", (5,), {"axes": (1, 0)}),
    "rank": ("rank_filter", (4,), {"size": (3, 4, 1), "mode": "mirror"}),
    "percentile": ("percentile_filter", (30,), {"footprint": DISC}),
    "correlate": ("correlate", (KERNEL,), {"mode": "wrap"}),
    "convolve": ("convolve", (KERNEL,), {"origin": (1, 0, 0)}),
    "correlate of a line": ("correlate1d", ([1, 2, -1],), {"axis": 0}),
    "convolve of a line": ("convolve1d", ([1, 2, -1, 4],), {"axis": 1, "origin": -1}),
    "erosion": ("grey_erosion", ((5, 5, 1),), {}),
    "dilation": ("grey_dilation", (), {"footprint": DISC}),
    "opening": ("grey_opening", (), {"structure": np.arange(9).reshape(3, 3, 1) % 3}),
    "gradient": ("morphological_gradient", ((3, 3, 1),), {}),
    "zoom": ("zoom", ((0.5, 1.5, 1),), {"order": 1}),
    "zoom of splines": ("zoom", ((1.4, 0.7, 1),), {}),
    "shift": ("shift", ((2, -1.5, 0),), {"order": 1, "mode": "nearest"}),
    "rotate": ("rotate", (30,), {"order": 1}),
    "rotate in place": ("rotate", (-75,), {"reshape": False, "axes": (0, 1), "mode": "reflect"}),
}


def picture(channels: int, dtype: Any, seed: int = 3) -> Array:
    numbers = np.random.default_rng(seed).random((23, 37, channels))
    # Integers from which the numbers of a structure can be subtracted.
    return (numbers if np.dtype(dtype).kind == "f" else 10 + 200 * numbers).astype(dtype)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32, np.float64])
def test_calls_that_do_nothing_along_channels_are_those_of_scipy(name: str, dtype: Any) -> None:
    function, args, kwargs = CALLS[name]
    for channels in (2, 3, 4, 5):
        array = picture(channels, dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(sp, function)(array, *args, **kwargs)
        # Thrice: the program of the second call is kept, and the third runs it.
        for turn in range(3):
            got = getattr(ndimage, function)(array if turn < 2 else picture(channels, dtype), *args, **kwargs)
            assert got.dtype == want.dtype and got.shape == want.shape
            assert got.flags.c_contiguous
            bound = 0 if np.dtype(dtype).kind != "f" else 1e-5 if dtype == np.float32 else 1e-11
            if function in ("zoom", "rotate", "shift"):
                # Positions have 32 fractional bits; what is half between two integers is rounded by the last bit.
                bound = max(bound, 1e-8) if np.dtype(dtype).kind == "f" else 1
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=0, atol=bound, err_msg=f"{name} {channels} {turn}")


SQUARE, CROSS = np.ones((3, 3, 1), bool), sp.generate_binary_structure(2, 1)[:, :, None]
MASK = "a mask"

MORPHOLOGY: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "binary erosion": ("binary_erosion", (SQUARE,), {"border_value": 1}),
    "binary erosion along some": ("binary_erosion", (), {"axes": (0, 1)}),
    "binary erosions within": ("binary_erosion", (DISC,), {"iterations": 2, "mask": MASK, "origin": (1, 0, 0)}),
    "binary dilation": ("binary_dilation", (DISC,), {"iterations": 3}),
    "binary dilation along one": ("binary_dilation", (), {"axes": (1,), "mask": MASK}),
    "binary dilations until nothing changes": ("binary_dilation", (CROSS,), {"iterations": -1, "mask": MASK}),
    "binary dilations that lean to one side": ("binary_dilation", (DISC,), {"iterations": -1, "mask": MASK}),
    "binary opening": ("binary_opening", (SQUARE,), {}),
    "binary closing": ("binary_closing", (DISC,), {"origin": (0, -1, 0)}),
    "binary propagation": ("binary_propagation", (SQUARE,), {"mask": MASK}),
    "binary propagation from the edges": ("binary_propagation", (), {"mask": MASK, "border_value": 1, "axes": (-2, -3)}),
    "binary holes": ("binary_fill_holes", (), {"axes": (0, 1)}),
    "binary holes by squares": ("binary_fill_holes", (SQUARE,), {}),
    "binary holes by another element": ("binary_fill_holes", (DISC,), {}),
    "binary hit or miss": ("binary_hit_or_miss", (np.array([[1, 0], [1, 1]])[:, :, None],), {}),
    "binary hit and miss": ("binary_hit_or_miss", (np.ones((1, 2, 1)), np.arange(2).reshape(2, 1, 1)), {"origin1": (0, -1, 0), "origin2": (-1, 0, 0)}),
}


def of_calls(calls: dict[str, Any], name: str, shape: tuple[int, ...]) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A call, with a mask of a shape."""
    function, args, kwargs = calls[name]
    mask = np.random.default_rng(5).random(shape) > 0.25
    return function, args, {of: mask if value is MASK else value for of, value in kwargs.items()}


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arrays of colours that are made."""
    arrays: list[Any] = []
    make = _colours.Colours.__init__

    def noted(self: Any, array: Any) -> None:
        arrays.append(array)
        make(self, array)

    monkeypatch.setattr(_colours.Colours, "__init__", noted)
    return arrays


@pytest.mark.parametrize("name", MORPHOLOGY)
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_morphology_that_does_nothing_along_channels_is_that_of_scipy(name: str, dtype: Any, entered: list[Any]) -> None:
    for channels in (1, 3, 4):
        numbers = picture(channels, np.float64)
        function, args, kwargs = of_calls(MORPHOLOGY, name, numbers.shape)
        above = {"binary_opening": 0.15, "binary_erosion": 0.3, "binary_fill_holes": 0.4, "binary_hit_or_miss": 0.4}.get(function, 0.8)
        array = ((numbers > above) * (1 if dtype is bool else numbers + 1)).astype(dtype)
        want = getattr(sp, function)(array, *args, **kwargs)
        assert want.any() and not want.all()
        for _ in range(3):
            got = getattr(ndimage, function)(array, *args, **kwargs)
            assert got.dtype == bool and got.flags.c_contiguous
            np.testing.assert_array_equal(got, want)
        output = np.empty_like(want)
        assert getattr(ndimage, function)(array, *args, **kwargs, output=output) is output
        np.testing.assert_array_equal(output, want)
        assert entered


@pytest.mark.parametrize("name", [*CALLS, *MORPHOLOGY])
def test_many_channels(name: str, entered: list[Any]) -> None:
    """They are samples of pixels if that takes less time than a volume."""
    for channels in (8, 9, 64, 65):
        entered.clear()
        function, args, kwargs = of_calls({**CALLS, **MORPHOLOGY}, name, (23, 37, channels))
        array = picture(channels, np.float64)
        array = array > 0.6 if name in MORPHOLOGY else array
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want, got = (getattr(of, function)(array, *args, **kwargs) for of in (sp, ndimage))
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=0, atol=1e-8)
        few = function in ("rotate", "rank_filter", "percentile_filter")
        # Axes in falling order are those of a volume, whatever is done along them.
        assert bool(entered) == (channels <= (8 if few else 64) and name != "gaussian of one axis among some")


def _with_frames_along(axis: int, function: str, name: str, value: Any) -> Any:
    """An argument of a call for arrays whose last axis becomes another."""
    order = [0, 1]
    order.insert(axis, 2)
    if name in ("axis", "axes"):
        return order.index(value % 3) if name == "axis" else tuple(order.index(one % 3) for one in value)
    if isinstance(value, np.ndarray):
        return np.moveaxis(value, 2, axis)
    each = isinstance(value, (tuple, list)) and len(value) == 3 and not function.endswith("1d")
    return tuple(value[one] for one in order) if each else value


@pytest.mark.parametrize("name", [*CALLS, *MORPHOLOGY])
@pytest.mark.parametrize("axis", [0, 1])
def test_stacks_with_nothing_done_along_their_frames_are_those_of_scipy(name: str, axis: int) -> None:
    function, args, kwargs = of_calls({**CALLS, **MORPHOLOGY}, name, (23, 37, 5))
    if function == "rotate":
        kwargs = {"axes": (1, 0), **kwargs}
    args = tuple(_with_frames_along(axis, function, "", value) for value in args)
    kwargs = {of: _with_frames_along(axis, function, of, value) for of, value in kwargs.items()}
    for dtype in (np.uint8, np.float32, np.float64):
        # In C order, in that of another array, and every other frame, mirrored.
        stack, half = (np.moveaxis(of, 2, axis) for of in (picture(5, dtype), picture(10, dtype)[..., ::2]))
        for array in (stack.copy(), stack, half[::-1]):
            given = array > np.mean(array) if name in MORPHOLOGY else array
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want, got = (getattr(of, function)(given, *args, **kwargs) for of in (sp, ndimage))
            assert got.dtype == want.dtype and got.shape == want.shape
            bound = 1e-5 if dtype == np.float32 else 1e-8
            if want.dtype.kind != "f":
                bound = 1 if function in ("zoom", "rotate", "shift") else 0
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=0, atol=bound)


def test_elements_of_all_axes_are_those_of_volumes(entered: list[Any]) -> None:
    array = picture(3, np.float64) > 0.6
    for call in (
        lambda of: of.binary_dilation(array),
        lambda of: of.binary_erosion(array, np.ones((3, 3, 3))),
        lambda of: of.binary_fill_holes(array),
        lambda of: of.binary_hit_or_miss(array, None, CROSS),
        lambda of: of.binary_hit_or_miss(array, CROSS, np.ones((1, 1, 3))),
        lambda of: of.binary_dilation(array, SQUARE, mask=array, axes=(2, 0, 1)),
    ):
        np.testing.assert_array_equal(call(ndimage), call(sp))
    assert not entered


def test_masks_of_colours_may_be_images() -> None:
    array, mask = picture(3, np.float64) > 0.8, picture(3, np.float64, 4) > 0.3
    want = sp.binary_dilation(array, CROSS, 2, mask)
    for image in (hi.asarray(mask), hi.asarray(mask, channels=True)):
        np.testing.assert_array_equal(ndimage.binary_dilation(array, CROSS, 2, image), want)
    lazy = ndimage.binary_dilation(hi.asarray(array, channels=True), CROSS[..., 0], 2, mask)
    np.testing.assert_array_equal(np.asarray(lazy), want)


VOLUMES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "gaussian": ("gaussian_filter", ((0.8, 2, 1.5, 0),), {}),
    "gaussian of planes": ("gaussian_filter", ((0, 2, 1.5, 0),), {"mode": ("wrap", "wrap", "mirror", "nearest")}),
    "gaussian along some": ("gaussian_filter", (1.2,), {"axes": (0, 2)}),
    "gaussian of a line": ("gaussian_filter1d", (1.5,), {"axis": -4}),
    "laplace": ("laplace", (), {"axes": (0, 1, 2)}),
    "uniform": ("uniform_filter", ((3, 5, 4, 1),), {"origin": (1, 0, -1, 0)}),
    "maximum": ("maximum_filter", (), {"footprint": np.stack([DISC, ~DISC, DISC]), "mode": "constant"}),
    "median": ("median_filter", ((3, 3, 3, 1),), {}),
    "median along some": ("median_filter", (3,), {"axes": (1, 2)}),
    "correlate": ("correlate", (np.stack([KERNEL, -KERNEL, KERNEL]),), {"mode": "wrap"}),
    "erosion": ("grey_erosion", ((3, 3, 3, 1),), {}),
    "zoom": ("zoom", ((2, 0.5, 1.5, 1),), {"order": 1}),
    "shift": ("shift", ((1, -1.5, 0.5, 0),), {"order": 1, "mode": "nearest"}),
    "rotate": ("rotate", (30,), {"order": 1, "axes": (1, 2), "reshape": False}),
    "binary erosion": ("binary_erosion", (np.stack([CROSS] * 3),), {"border_value": 1}),
    "binary propagation": ("binary_propagation", (np.ones((3, 3, 3, 1)),), {"mask": MASK}),
    "binary holes": ("binary_fill_holes", (), {"axes": (0, 1, 2)}),
}


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes_of_channels_are_those_of_scipy(name: str) -> None:
    for channels in (1, 3):
        for dtype in (np.uint8, np.float32, np.float64):
            array = np.stack([picture(channels, dtype, seed) for seed in range(5)])
            function, args, kwargs = of_calls(VOLUMES, name, array.shape)
            if function.startswith("binary"):
                array = array > (0.7 if np.dtype(dtype).kind == "f" else 100)
            want, got = (getattr(of, function)(array, *args, **kwargs) for of in (sp, ndimage))
            assert got.dtype == want.dtype and got.shape == want.shape and got.flags.c_contiguous
            bound = 1e-5 if dtype is np.float32 else 1e-8
            if want.dtype.kind != "f":
                bound = 1 if function in ("zoom", "rotate", "shift") else 0
            np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=0, atol=bound)


def test_volumes_of_channels_that_are_filtered_along_them_are_refused() -> None:
    array = np.zeros((3, 4, 5, 3))
    for call in (lambda: ndimage.gaussian_filter(array, 1), lambda: ndimage.sobel(array, 0), lambda: ndimage.rotate(array, 30, (0, 1))):
        with pytest.raises(NotImplementedError, match="4 axes"):
            call()
    assert ndimage.zoom(array, (0.1, 1, 1, 1)).shape == (0, 4, 5, 3)
    assert ndimage.zoom(array[0], (0.1, 1, 1)).shape == (0, 5, 3)


@pytest.mark.parametrize("channels", [2, 4])
def test_alpha_of_a_file_is_a_channel_like_others(channels: int, tmp_path: Path) -> None:
    array = picture(channels, np.uint8)
    PIL.Image.fromarray(array).save(tmp_path / "alpha.png")
    image = hi.open(tmp_path / "alpha.png")
    assert image.channels and image.shape == array.shape
    matrix = [[0.9, 0.1], [-0.2, 1.1]]
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("zoom", (1.7,), {}),
        ("rotate", (30,), {}),
        ("rotate", (-50,), {"reshape": False, "mode": "mirror"}),
        ("shift", ((1.25, -2.5),), {"mode": "nearest"}),
        ("affine_transform", (matrix,), {"mode": "wrap"}),
        ("gaussian_filter", (1.5,), {}),
        ("median_filter", (3,), {}),
    ]
    for function, args, kwargs in calls:
        for order in (0, 1, 3) if function in ("zoom", "rotate", "shift", "affine_transform") else (None,):
            more = kwargs if order is None else {**kwargs, "order": order}
            got = getattr(ndimage, function)(image, *args, **more)
            want = np.stack([getattr(sp, function)(array[..., k], *args, **more) for k in range(channels)], axis=-1)
            # What is half between two integers is rounded by the last bit of a position.
            np.testing.assert_allclose(got.compute().astype(int), want, rtol=0, atol=0 if order is None else 1)
            # Alpha stays alpha: of two channels, or four, there is one grey, or three colours.
            assert got.luminance().shape == got.shape[:2]
    smooth = filters.gaussian(image, 2).compute()
    np.testing.assert_allclose(smooth, skimage.filters.gaussian(array, 2, channel_axis=-1), rtol=0, atol=1e-12)


def test_grey_by_the_weights_of_others() -> None:
    array = picture(3, np.uint8)
    image = hi.asarray(array, channels=True)
    unit = image.astype(np.float32) / 255
    np.testing.assert_allclose((unit * [0.2125, 0.7154, 0.0721]).sum(axis=-1).compute(), skimage.color.rgb2gray(array), rtol=0, atol=1e-6)
    np.testing.assert_allclose(image.luminance().compute(), array @ [0.299, 0.587, 0.114] / 255, rtol=0, atol=1e-6)


def test_halves_of_colours_are_computed_in_single_precision() -> None:
    array = picture(3, np.float16)
    got = ndimage.gaussian_filter(array, (2, 2, 0))
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, ndimage.gaussian_filter(array.astype(np.float32), (2, 2, 0)).astype(np.float16))


def _of_rows_and_columns(name: str, value: Any) -> Any:
    """An argument of a call for a plane."""
    if name == "axis":
        return value % 3
    if isinstance(value, np.ndarray):
        return value[:, :, 0]
    return value[:2] if isinstance(value, (tuple, list)) and len(value) == 3 and name != "weights" else value


@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if "axes" not in call[2] and not name.endswith("of a line")])
def test_each_channel_is_that_of_its_plane(name: str) -> None:
    """To the bit: a picture of channels is nothing but its planes."""
    function, args, kwargs = CALLS[name]
    array = picture(3, np.float32)
    whole = getattr(ndimage, function)(array, *args, **kwargs)
    alone = [_of_rows_and_columns("", value) for value in args], {of: _of_rows_and_columns(of, value) for of, value in kwargs.items()}
    for channel in range(3):
        plane = getattr(ndimage, function)(np.ascontiguousarray(array[:, :, channel]), *alone[0], **alone[1])
        assert whole[:, :, channel].tobytes() == plane.tobytes()


def test_a_program_of_channels_reads_pixels_as_they_lie() -> None:
    """No operation of it changes the order of samples."""
    array = picture(3, np.float32)
    with hi.session(device="cpu", explain=True) as session:
        ndimage.gaussian_filter(array, (2, 2, 0))
        ndimage.median_filter(array, (3, 3, 1))
        ndimage.rotate(array, 30, order=1)
        told = session.explain()
    assert "interleave" not in told and "1 interleaved" not in told
    assert "3 samples" in told


def test_output_and_other_orders_of_memory() -> None:
    array = picture(3, np.uint8)
    want = sp.gaussian_filter(array, (2, 2, 0))
    output = np.empty_like(array)
    assert ndimage.gaussian_filter(array, (2, 2, 0), output=output) is output
    np.testing.assert_array_equal(output, want)
    wide = np.empty(array.shape, np.float64)
    ndimage.median_filter(array, (3, 3, 1), output=wide)
    np.testing.assert_array_equal(wide, sp.median_filter(array, (3, 3, 1)))
    with pytest.raises(RuntimeError, match="output shape not correct"):
        ndimage.gaussian_filter(array, (2, 2, 0), output=np.empty((23, 37), np.uint8))
    planes = np.moveaxis(np.moveaxis(array, -1, 0).copy(), 0, -1)
    for other in (planes, array[:, ::-1], np.asfortranarray(array), array[::2, 1:, :], array.transpose(1, 0, 2)):
        np.testing.assert_array_equal(ndimage.gaussian_filter(other, (2, 2, 0)), sp.gaussian_filter(other, (2, 2, 0)))


@pytest.mark.parametrize(
    "call",
    [
        lambda of, a: of.gaussian_filter(a, 2),
        lambda of, a: of.gaussian_filter(a, (2, 0, 1)),
        lambda of, a: of.uniform_filter(a, (3, 3, 2)),
        lambda of, a: of.minimum_filter(a, footprint=np.ones((3, 3, 2))),
        lambda of, a: of.correlate(a, np.ones((3, 3, 3))),
        lambda of, a: of.zoom(a, (1, 1, 2), order=1),
        lambda of, a: of.rotate(a, 30, axes=(1, 2), order=1),
        lambda of, a: of.laplace(a),
    ],
)
def test_calls_that_do_something_along_channels_are_those_of_volumes(call: Callable[[Any, Array], Array]) -> None:
    array = picture(3, np.float64)
    np.testing.assert_allclose(call(ndimage, array), call(sp, array), rtol=0, atol=1e-8)


@pytest.mark.parametrize("arguments", [{"sigma": (2, 2)}, {"sigma": (2, 2, 0, 0)}, {"sigma": (2, 2, 0), "mode": ["wrap"]}, {"sigma": 1, "axes": (0, 5)}])
def test_wrong_arguments_are_the_same_errors(arguments: dict[str, Any]) -> None:
    array = picture(3, np.float64)
    with pytest.raises((RuntimeError, ValueError)) as ours:
        ndimage.gaussian_filter(array, **arguments)
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        sp.gaussian_filter(array, **arguments)
    assert type(ours.value) is type(theirs.value)


@pytest.mark.parametrize("order", range(1, 6))
def test_samples_that_are_taken_for_coefficients_change_along_channels(order: int) -> None:
    pixels = np.random.default_rng(5).standard_normal((9, 11, 3))
    for call in (
        lambda of: of.shift(pixels, (0.5, 1, 0), order=order, mode="mirror", prefilter=False),
        lambda of: of.zoom(pixels, (2, 1.5, 1), order=order, mode="mirror", prefilter=False),
    ):
        # Positions of planes have 32 fractional bits.
        np.testing.assert_allclose(call(ndimage), call(sp), rtol=0, atol=1e-8)


def test_an_array_has_alpha_where_the_program_says_so() -> None:
    rng = np.random.default_rng(11)
    array = rng.integers(0, 256, (12, 14, 4), np.uint8)
    hidden = array.copy()
    array[2:9, 3:8, 3] = hidden[2:9, 3:8, 3] = 0
    hidden[2:9, 3:8, :3] = 255
    image = hi.asarray(array, channels=True)
    with pytest.raises(ValueError, match=r"no luminance: take one of them.*say that the last is alpha \(`with_alpha\(\)`\)"):
        image.luminance()
    said = image.with_alpha()
    np.testing.assert_array_equal(said, image)
    np.testing.assert_allclose(said.luminance(), array[..., :3] @ [0.299, 0.587, 0.114] / 255, atol=1e-6)
    other = hi.asarray(hidden, channels=True)
    np.testing.assert_array_equal(said.resize((7, 6)), other.with_alpha().resize((7, 6)))
    assert np.any(np.asarray(image.resize((7, 6))) != np.asarray(other.resize((7, 6))))
    np.testing.assert_array_equal(said.with_alpha(False).resize((7, 6)), image.resize((7, 6)))
    with pytest.raises(ValueError, match="no channels"):
        hi.asarray(array[..., 0]).with_alpha()
