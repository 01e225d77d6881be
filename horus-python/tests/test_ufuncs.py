"""Functions of NumPy and operators of Python on lazy images: `f(image).compute()` is `f(image.compute())`, or a clear error."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from horus_image._ufuncs import UFUNCS

import horus_image as hi

Array = np.ndarray[Any, Any]

ALL: Final = {name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
TYPES: Final = [np.dtype(code) for code in ("?", "u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")]
FOREIGN: Final = {np.dtype(code) for code in ("i8", "u8", "f2")}
"""Types of results that images do not have."""

ULPS: Final = {np.dtype("f8"): 3.0, np.dtype("f4"): 1.5}
"""Units in the last place of results: those of NumPy 2.4 on this machine are up to 0.8 and 3."""


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def pixels(dtype: np.dtype[Any]) -> Array:
    """Numbers of the whole range, small ones, and limits."""
    rng = np.random.default_rng(dtype.itemsize)
    if dtype.kind == "b":
        return rng.random((7, 9)) < 0.5
    if dtype.kind == "f":
        array = (rng.standard_normal((7, 9)) * 5).astype(dtype)
        array[0, :6] = 0.0, -0.0, np.nan, np.inf, -np.inf, 3.0
        return array
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    array = rng.integers(least, most, (7, 9), dtype, endpoint=True)
    small = rng.integers(-9 if least else 0, 33, (7, 9)).astype(dtype)
    array = np.where(rng.random((7, 9)) < 0.5, array, small)
    array[0, :3] = least, most, 0
    return array


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """The results, or the kind of error."""
    try:
        found = function(*args)
    except (TypeError, OverflowError) as error:
        return type(error)
    return found if isinstance(found, tuple) else (found,)


def same(ours: Any, theirs: Any, what: Any) -> None:
    """Values, types, signs of zeros; or errors, of types that images do not have too."""
    if theirs is TypeError or theirs is OverflowError:
        assert ours is theirs, what
        return
    if ours is TypeError:
        assert theirs[0].dtype in FOREIGN, what
        return
    for image, array in zip(ours, theirs, strict=True):
        assert isinstance(image, hi.Image) and image.dtype == array.dtype, what
        found = image.compute()
        np.testing.assert_array_equal(found, array, err_msg=str(what))
        if array.dtype.kind == "f":
            number = array == array
            np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(array)[number], err_msg=str(what))


OPERATORS: Final[list[Callable[..., Any]]] = [
    operator.floordiv,
    operator.mod,
    divmod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    np.fmod,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_whole_operations_of_two_images_are_those_of_numpy(function: Callable[..., Any]) -> None:
    for one, other in itertools.product(TYPES, TYPES):
        a, b = pixels(one), pixels(other)[::-1].copy()
        wanted = outcome(function, a, b)
        for x, y in ((hi.asarray(a), hi.asarray(b)), (hi.asarray(a), b), (a, hi.asarray(b))):
            same(outcome(function, x, y), wanted, (one, other))


@pytest.mark.parametrize("function", OPERATORS[:9], ids=lambda f: f.__name__)
def test_whole_operations_of_images_and_numbers_are_those_of_numpy(function: Callable[..., Any]) -> None:
    for dtype, number in itertools.product(TYPES, (True, 0, 3, -2, 7, 40, 300, 2.5, -0.0, np.uint8(3), np.float32(2))):
        array = pixels(dtype)
        same(outcome(function, hi.asarray(array), number), outcome(function, array, number), (dtype, number))
        same(outcome(function, number, hi.asarray(array)), outcome(function, number, array), (number, dtype))


@pytest.mark.parametrize("function", [np.less, np.equal, np.greater_equal, np.not_equal, np.true_divide, np.hypot, np.copysign], ids=lambda f: f.__name__)
def test_integers_that_meet_in_64_bits_are_compared_and_divided(function: np.ufunc) -> None:
    for one, other in itertools.product(["u4", "i4", "i1"], ["u4", "i4", "i1"]):
        a, b = pixels(np.dtype(one)), pixels(np.dtype(other))[::-1].copy()
        a[1], b[1] = 7, 7
        wanted, found = function(a, b), function(hi.asarray(a), hi.asarray(b))
        if wanted.dtype.kind == "b":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, function(a.astype("f8"), b.astype("f8")), rtol=1e-15)
    mask = pixels(np.dtype("?"))
    np.testing.assert_array_equal(hi.asarray(mask) >= 1, mask >= 1)


def test_the_largest_quotient_saturates() -> None:
    for dtype in ("i1", "i2", "i4"):
        least = np.iinfo(dtype).min
        image = hi.asarray(np.full((1, 2), least, dtype))
        np.testing.assert_array_equal(image // -1, np.full((1, 2), np.iinfo(dtype).max))
        np.testing.assert_array_equal(image % -1, np.zeros((1, 2)))


def test_complements_and_counts_of_bits() -> None:
    for dtype in TYPES[:7]:
        array = pixels(dtype)
        same((~hi.asarray(array),), (~array,), dtype)
        if dtype.kind != "b" and hasattr(np, "bitwise_count"):
            same((np.bitwise_count(hi.asarray(array)),), (np.bitwise_count(array),), dtype)
    with pytest.raises(TypeError, match="integers and masks"):
        ~hi.asarray([[1.0]])


def test_operators_in_place() -> None:
    array = pixels(np.dtype("i4"))
    image, wanted = hi.asarray(array), array.copy()
    image //= 3
    image %= 1000
    image <<= 2
    image >>= 1
    image &= 0xFF
    image |= 4
    image ^= 3
    wanted //= 3
    wanted %= 1000
    wanted <<= 2
    wanted >>= 1
    wanted &= 0xFF
    wanted |= 4
    wanted ^= 3
    same((image,), (wanted,), "in place")
    # An array takes the results of an image.
    wanted = array.copy()
    wanted //= hi.asarray(pixels(np.dtype("i2")))
    np.testing.assert_array_equal(wanted, array // pixels(np.dtype("i2")))


SPECIAL: Final = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -2, 0.5, -0.5, 3, 27, 1000, 709.5, 710.2, -745, np.pi, 0.125]
FAR: Final = [1e-300, -1e-300, 1e300, -1e300, 1e-17, -1e-17, 5e-324, 1.7e308, 1 - 1e-9, 1 + 1e-9]


def arguments(dtype: np.dtype[Any]) -> Array:
    rng = np.random.default_rng(1)
    most = 700 if dtype == np.float64 else 85
    parts = [SPECIAL, FAR, rng.standard_normal(2000), rng.uniform(-1, 1, 2000), rng.standard_normal(1000) * 20]
    parts += [np.exp(rng.uniform(-most, most, 2000)), np.exp2(np.arange(-40, 40.0)), 10.0 ** np.arange(-22, 23), np.arange(-50, 50.0) ** 3]
    return np.concatenate(parts).astype(dtype)[None]


CANCELS: Final = {np.logaddexp, np.logaddexp2}
"""Sums that cancel in NumPy, too."""

COMPOSED: Final = sorted(set(UFUNCS) - {np.matmul}, key=lambda ufunc: ufunc.__name__)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="the reference is a type of more digits")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ufunc", COMPOSED, ids=lambda ufunc: ufunc.__name__)
def test_functions_of_floats_are_near_those_of_more_digits(ufunc: np.ufunc, dtype: str) -> None:
    array = arguments(np.dtype(dtype))
    others = np.random.default_rng(2).permutation(array[0])[None]
    given = (array,) if ufunc.nin == 1 else (array, others)
    theirs = outcome(ufunc, *given)
    ours = outcome(ufunc, hi.asarray(array), *given[1:])
    if theirs is TypeError:
        assert ours is TypeError
        return
    exact = outcome(ufunc, *(part.astype(np.longdouble) for part in given))
    for image, wanted, wide in zip(ours, theirs, exact, strict=True):
        found = image.compute()
        assert found.dtype == wanted.dtype
        with np.errstate(over="ignore"):
            finite = np.isfinite(found) & np.isfinite(wanted) & np.isfinite(np.asarray(wide).astype(found.dtype))
        np.testing.assert_array_equal(found[~finite], wanted[~finite])
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted)
            continue
        zeros = (found == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
        step = np.spacing(np.abs(wide[finite].astype(found.dtype))).astype(np.longdouble)
        if ufunc in CANCELS:
            terms = [np.where(np.isfinite(part), abs(part), 1.0) for part in (array, others)]
            largest = np.maximum(np.maximum(*terms), 1.0).astype(found.dtype)
            step = np.spacing(largest[finite]).astype(np.longdouble)
        error = abs(found[finite].astype(np.longdouble) - wide[finite]) / step
        # Quotients and degrees are rounded as NumPy rounds them, and as far off.
        exactly = np.array_equal(found, wanted, equal_nan=True)
        assert exactly or error.max() <= ULPS[np.dtype(dtype)], (ufunc, error.max(), array[finite].flat[error.argmax()])


@pytest.mark.parametrize("dtype", TYPES[1:7], ids=str)
@pytest.mark.parametrize("ufunc", [ufunc for ufunc in COMPOSED if ufunc.nin == 1], ids=lambda ufunc: ufunc.__name__)
def test_functions_of_integers_have_the_types_of_numpy_or_wide_floats(ufunc: np.ufunc, dtype: np.dtype[Any]) -> None:
    array = np.clip(pixels(dtype), -300, 600).astype(dtype)
    wanted, ours = outcome(ufunc, array), outcome(ufunc, hi.asarray(array))
    for found, want in zip(ours, wanted, strict=True):
        if want.dtype.kind == "f":
            assert found.dtype == np.float64
            wide = ufunc(array.astype(np.float64))
            wide = (wide if isinstance(wide, tuple) else (wide,))[len(wanted) - 1 if want is wanted[-1] else 0]
            np.testing.assert_allclose(found, wide, rtol=1e-15)
        elif ufunc is np.reciprocal:
            number = array != 0  # of 0 it is undefined in C, and 0 here
            np.testing.assert_array_equal(np.asarray(found)[number], want[number])
        elif ufunc in (np.negative, np.absolute, np.square):
            # Integers saturate.
            limits = np.iinfo(dtype)
            np.testing.assert_array_equal(found, np.clip(ufunc(array.astype(object)).astype(np.int64), limits.min, limits.max))
        else:
            same((found,), (want,), ufunc)


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_function_of_numpy_is_recorded_or_says_what_to_do(name: str) -> None:
    ufunc = ALL[name]
    masks = [hi.asarray(np.eye(4, dtype=bool))] * ufunc.nin
    if ufunc in UFUNCS:
        kinds = [masks, [hi.asarray(np.eye(4))] * ufunc.nin, [hi.asarray(np.eye(4, dtype="i4"))] * ufunc.nin]
        found = [outcome(ufunc, *images) for images in kinds]
        assert any(results is not TypeError and all(isinstance(result, hi.Image) for result in results) for results in found)
    else:
        with pytest.raises(TypeError, match=rf"{ufunc.__name__} is not among .*numpy\.asarray"):
            ufunc(*masks)


def test_what_functions_of_numpy_do_beside_is_named() -> None:
    image = hi.asarray(np.eye(3))
    with pytest.raises(TypeError, match=r"add\.reduce of a lazy image.* sum.*numpy\.asarray"):
        np.add.reduce(image)
    with pytest.raises(TypeError, match=r"add\.outer.*numpy\.asarray"):
        np.add.outer(image, image)
    with pytest.raises(TypeError, match=r"numpy\.sqrt of a lazy image without where"):
        np.sqrt(image, where=np.eye(3, dtype=bool))


class Other:
    """An array of a library that knows functions of NumPy itself."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> str:
        return f"{ufunc.__name__} by the other"


def test_other_libraries_take_over_what_images_do_not_have() -> None:
    assert np.gcd(hi.asarray(np.ones((2, 2), "i4")), Other()) == "gcd by the other"


def test_results_go_into_arrays() -> None:
    image, array = hi.asarray([[7.0, -7.0]]), np.array([[2.0, 2.0]])
    quotient, rest = np.empty((1, 2)), np.empty((1, 2))
    found = np.divmod(image, array, out=(quotient, rest))
    assert found[0] is quotient and found[1] is rest
    np.testing.assert_array_equal(quotient, [[3.0, -4.0]])
    np.testing.assert_array_equal(rest, [[1.0, 1.0]])
    with pytest.raises(TypeError):
        np.sqrt(image, out=np.empty((1, 2), "i4"))


SHAPES: Final = [((5,), False), ((4, 5), False), ((3, 4, 5), False), ((3, 4, 2), True)]


@pytest.mark.parametrize(("shape", "channels"), SHAPES)
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f4", "f8"])
def test_axes_change_places(shape: tuple[int, ...], channels: bool, dtype: str) -> None:
    array = (np.arange(np.prod(shape)).reshape(shape) % 251 % (2 if dtype == "?" else 251)).astype(dtype)
    image = hi.asarray(array, channels=channels)
    assert image.T.shape == array.T.shape and image.T.dtype == array.dtype
    np.testing.assert_array_equal(image.T, array.T)
    np.testing.assert_array_equal(np.transpose(image), array.T)
    for axes in itertools.permutations(range(array.ndim)):
        for turned in (image.transpose(*axes), image.transpose(axes), np.transpose(image, axes)):
            assert isinstance(turned, hi.Image)
            np.testing.assert_array_equal(turned, array.transpose(axes))
    for one, other in itertools.product(range(-array.ndim, array.ndim), repeat=2):
        np.testing.assert_array_equal(np.swapaxes(image, one, other), array.swapaxes(one, other))
        moved = np.moveaxis(image, one, other)
        assert isinstance(moved, hi.Image)
        np.testing.assert_array_equal(moved, np.moveaxis(array, one, other))
    for wrong in ((0,) * array.ndim, tuple(range(array.ndim + 1)), (array.ndim, *range(1, array.ndim))):
        if wrong != (0,):
            with pytest.raises(ValueError):
                image.transpose(wrong)


@pytest.mark.parametrize(("shape", "channels"), SHAPES)
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f4"])
def test_reductions_along_axes_are_those_of_numpy(shape: tuple[int, ...], channels: bool, dtype: str) -> None:
    array = (np.arange(np.prod(shape)).reshape(shape) * 7 % (3 if dtype == "?" else 11)).astype(dtype)
    image = hi.asarray(array, channels=channels)
    axes = [None, *(sub for n in range(1, len(shape) + 1) for sub in itertools.combinations(range(len(shape)), n)), -1, 0]
    for axis, keepdims, name in itertools.product(axes, (False, True), ("sum", "mean", "min", "max", "var", "std", "any", "all")):
        wanted = getattr(np, name)(array, axis=axis, keepdims=keepdims)
        found = getattr(np, name)(image, axis=axis, keepdims=keepdims)
        what = f"{name} axis={axis} keepdims={keepdims}"
        if np.ndim(wanted):
            assert isinstance(found, hi.Image) and found.shape == wanted.shape, what
        np.testing.assert_allclose(np.asarray(found).reshape(np.shape(wanted)), wanted, rtol=1e-6, err_msg=what)
        if name in ("min", "max", "any", "all"):
            assert np.asarray(found).dtype == wanted.dtype, what


def test_whole_numbers_index_any_axis() -> None:
    array = np.arange(60, dtype="i4").reshape(3, 4, 5)
    image = hi.asarray(array)
    for key in itertools.product((slice(None), 1, slice(None, None, -2)), repeat=3):
        wanted = array[key]
        found = image[key]
        assert found.shape == wanted.shape, key
        np.testing.assert_array_equal(np.asarray(found), wanted, err_msg=str(key))


def test_extremes_of_two_keep_nan_under_the_names_of_numpy() -> None:
    image = hi.asarray([[np.nan, -1.0, 2.0]])
    for ours, theirs in ((hi.maximum, np.maximum), (hi.minimum, np.minimum)):
        np.testing.assert_array_equal(ours(image, 0.0), theirs(np.array([[np.nan, -1.0, 2.0]]), 0.0))
        np.testing.assert_array_equal(ours(image, np.array([[1.0, np.nan, 0.0]])), theirs(np.array([[np.nan, -1.0, 2.0]]), [[1.0, np.nan, 0.0]]))


def test_slices_take_some_channels_in_any_order() -> None:
    array = np.arange(60, dtype="u1").reshape(4, 5, 3)
    image = hi.asarray(array, channels=True).with_pixel_size(2.0)
    for part in (slice(None, 2), slice(None, None, -1), slice(1, 2), slice(None, None, 2), slice(-2, None)):
        found = image[1:, ::2, part]
        assert found.channels and found.dtype == array.dtype and found.pixel_size == (2.0, 4.0)
        np.testing.assert_array_equal(found, array[1:, ::2, part])
    np.testing.assert_array_equal(image[..., ::-1], array[..., ::-1])
    with pytest.raises(ValueError, match="leaves no channels"):
        image[..., 3:]
