"""Whatever a program hands over, a call returns or raises an ordinary exception: nothing ends the interpreter, panics or hangs.

Each example is one call with arguments that mostly fit, and some that do not. The examples are the same each time; others, and more of
them, by hand: ``python horus-python/tests/test_fuzz.py SECONDS``.
"""

from __future__ import annotations

import datetime
import faulthandler
import functools
import inspect
import os
import pickle
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import horus_image as hi
from horus_image import filters, ndimage

Strategy = st.SearchStrategy[Any]

# Values that no function expects.
WILD: Final[list[Any]] = [
    None, True, False, 0, -1, 7, 2**31 - 1, 2**31, -(2**31), 2**40, -(2**40), 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 2**70,
    -0.0, 0.5, -1.5, np.nan, np.inf, -np.inf, 5e-324, 1e-30, 1e9, 1e18, 1e19, 1e300, -1e300, 1j, complex(np.nan, 1), np.float32(np.nan),
    np.int8(-1), np.uint64(2**64 - 1), np.float16(1), np.longdouble(2), np.datetime64("2020"), np.timedelta64("NaT", "s"), np.bool_(True),
    "", "reflect", "float32", "complex64", "O", "M8[s]", "\0", "\ud800", b"", b"constant", [], (), {}, [None], [[]], ["a", 1], [1, [2]],
    [np.nan] * 2, (2**63, 1), (2**40, 2**40), [1e300, 1e300], range(3), range(2**40), slice(None), slice(2**70, -(2**70), -(2**63)), Ellipsis,
    object(), type, int, complex, np.float16, np.dtype("V3"), np.dtype([("a", int)]), len, datetime.date(2020, 1, 1), {"a": 1}, {1},
    np.zeros(0), np.zeros(()), np.ones(3), np.ones((0, 3)), np.ones((1, 2, 1, 2, 1)), np.full((3, 3), np.nan), np.array([None, 1]),
    np.array(["a"]), np.array([2**63], np.uint64), np.ones((2, 2), complex), np.ma.masked, np.ma.array([1, 2], mask=[0, 1]), memoryview(b"ab"),
]  # fmt: skip
DTYPES: Final = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8", "i8", "u8", "f2", "g", "c8", "c16", "O", "U1", "S2", "V3", "M8[s]", "m8[D]"]
FORMS: Final = ["plain", "strided", "reversed", "transposed", "swapped", "odd", "fixed", "masked", "list", "one value", "image"]
MODES: Final = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-constant", "grid-mirror"]
FILLS: Final = [0, 1, 3, -7, 200, 0.25, 1e30, np.nan, np.inf, -np.inf]


def formed(array: Any, form: str) -> Any:
    """The array, as it may come: strided, reversed, transposed, of the other byte order, at an odd address, not to be written."""
    if form == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if form == "reversed" and array.ndim:
        return array[..., ::-1]
    if form == "transposed":
        return array.T
    if form == "swapped" and array.dtype.kind not in "OV":
        return array.astype(array.dtype.newbyteorder("S"))
    if form == "odd" and array.size and array.dtype.kind != "O":
        pixels = np.zeros(array.nbytes + 1, np.uint8)[1:]
        pixels[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return pixels.view(array.dtype).reshape(array.shape)
    if form == "fixed":
        array.flags.writeable = False
    if form == "masked":
        return np.ma.array(array, mask=np.resize([False, True], array.shape))
    if form == "list":
        return array.tolist()
    if form == "one value" and array.size:
        return np.broadcast_to(array.ravel()[0], array.shape)
    if form == "image":
        return hi.asarray(array)
    return array


@st.composite
def arrays(draw: Any, dtypes: list[str] = DTYPES, axes: tuple[int, int] = (0, 4), extents: tuple[int, ...] = (1, 2, 3, 4, 6, 9, 0)) -> Any:
    """An array of small extents, some 0, or what becomes one."""
    shape = draw(st.lists(st.sampled_from(extents), min_size=axes[0], max_size=axes[1]))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    fill = draw(st.sampled_from(FILLS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = np.full(shape, fill) if fill in (0, 1) or fill != fill else np.resize([fill, 0.0, 1.0, 2.0], shape)
        array = np.zeros(shape, dtype) if dtype.kind in "VMm" else numbers.astype(dtype)
        try:
            return formed(array, draw(st.sampled_from(FORMS)))
        except (TypeError, ValueError):
            return array


def mostly(good: Strategy, *others: Strategy) -> Strategy:
    """Of eight values six good ones."""
    return st.integers(0, 7).flatmap(lambda at: good if at < 6 else others[at % len(others)])


PICTURES: Final = arrays(["u1", "i2", "f4", "f8", "?"], (2, 3), (3, 5, 8, 1))
SMALL: Final = st.integers(-2, 5)
FLOATS: Final = mostly(st.sampled_from([0.5, 1.0, 2.5, 0.0, -1.0, 30.0]), st.floats())
ONE_OR_MORE: Final = mostly(SMALL, st.lists(SMALL, max_size=3), st.tuples(SMALL, SMALL))
SCALES: Final = mostly(FLOATS, st.lists(FLOATS, max_size=3))
KERNELS: Final = mostly(st.sampled_from([np.ones((3, 3)), [1, 2, 1], np.eye(2), np.ones((2, 3, 3))]), arrays(["?", "f8", "i4"], (1, 3)))
OUTPUTS: Final = st.one_of(
    st.none(), st.sampled_from([np.float32, "f8", np.uint8, bool, complex, "O", int]), arrays(axes=(1, 3)), st.just("same")
)
PARTS: Final = st.one_of(SMALL, st.builds(slice, *[st.one_of(st.none(), SMALL)] * 3), st.sampled_from([None, Ellipsis, slice(2**70)]))
NPY: Final = b"\x93NUMPY\x01\x00v\x00"
CONTENTS: Final = st.one_of(
    st.binary(max_size=60),
    st.binary(max_size=60).map(lambda rest: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + rest),
    st.binary(max_size=60).map(lambda rest: b"II*\0\x08\0\0\0\x05\0\0\x01\x03\0\x01\0\0\0" + rest),
    st.sampled_from(["(9, 9)", "(99999999999, 99999999999)", "(-1, 2)", "()", "(0,)"]).map(
        lambda shape: NPY + f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n" + bytes(40)
    ),
    st.sampled_from([b"P5 2 2 255 abcd", b"P5 99999999 99999999 255 a", b"P2 -1 2 3", b"BM" + bytes(60), b"\xff\xd8\xff\xe0" + bytes(30)]),
)


def capsule(used: bool) -> Any:
    """A tensor of DLPack, which somebody may have taken over."""
    made = np.ones((2, 3), np.float32).__dlpack__()
    if used:
        hi._horus.Tensor(made)
    return made


def strange(methods: dict[str, Any], interface: Any) -> Any:
    """An object that says that it is an array, or a number."""
    members: dict[str, Any] = {name: lambda self, *args, _found=found, **more: _found for name, found in methods.items()}
    if interface is not None:
        members["__cuda_array_interface__"] = interface
    return type("Strange", (), members)()


ODD: Final = st.sampled_from(WILD)
CAPSULES: Final = st.one_of(st.booleans().map(capsule), ODD)
INTERFACES: Final = st.fixed_dictionaries(
    {"typestr": st.one_of(st.sampled_from(["<f4", "|u1", ">i2"]), ODD), "shape": st.one_of(st.just((2, 3)), ODD)},
    optional={"data": st.one_of(st.just((4096, False)), ODD), "strides": ODD, "stream": ODD, "mask": ODD, "version": st.just(3)},
)
STRANGE: Final = st.builds(
    strange,
    st.fixed_dictionaries(
        {},
        optional={
            "__dlpack_device__": st.one_of(st.sampled_from([(1, 0), (2, 0), (3, 0), (2, 2**40), (10, -1), (-1, 0)]), ODD),
            "__dlpack__": CAPSULES,
            **dict.fromkeys(("__array__", "__index__", "__float__", "__len__", "shape"), ODD),
        },
    ),
    st.one_of(st.none(), INTERFACES, ODD),
)
WILDS: Final = st.one_of(ODD, ODD, STRANGE)

# Typical values of parameters, by name.
FITTING: Final[dict[str, Strategy]] = {
    **dict.fromkeys(("input", "image", "array"), mostly(PICTURES, arrays(), STRANGE)),
    **dict.fromkeys(("size", "origin", "origin1", "origin2", "block_size", "window_size", "shift_by", "output_shape"), ONE_OR_MORE),
    **dict.fromkeys(("sigma", "shift", "zoom", "offset", "radius", "low_sigma", "high_sigma"), SCALES),
    **dict.fromkeys(("footprint", "structure", "structure1", "structure2", "weights", "matrix"), mostly(KERNELS, st.none())),
    "sigmas": mostly(st.lists(FLOATS, max_size=3), FLOATS),
    **dict.fromkeys(("sigma_u", "sigma_v"), mostly(st.lists(st.sampled_from([1.0, 2.5, 0.3]), max_size=2), SCALES)),
    **dict.fromkeys(("mode",), mostly(st.sampled_from(MODES), st.lists(st.sampled_from(MODES), max_size=3))),
    **dict.fromkeys(("axis", "axes", "rank", "channel_axis", "order", "iterations", "connectivity"), mostly(st.sampled_from([1, 0, -1, 2, 3]), ONE_OR_MORE)),
    **dict.fromkeys(("mask", "labels", "low", "high"), st.one_of(st.none(), FLOATS, arrays(["?", "u1", "i4"], (2, 3)))),
    "output": OUTPUTS,
    **dict.fromkeys(("a", "b", "other"), mostly(st.one_of(FLOATS, SMALL, PICTURES), arrays(), STRANGE)),
    "dtype": st.sampled_from([np.uint8, "f4", "f8", bool, "i8", "c8", "u2", None, "O"]),
    "key": st.one_of(PARTS, st.lists(PARTS, max_size=4).map(tuple), arrays(["?", "i4"], (1, 2))),
    "ufunc": st.sampled_from([np.add, np.power, np.arctan2, np.sqrt, np.isnan, np.logical_and, np.fmod, np.divmod, np.modf, np.invert, np.matmul]),
    "name": st.sampled_from(["a.png", "a.tif", "a.npy", "a.jpg", "a.zarr", "a.pgm", "a.bmp", "a.xyz", "", "b/a.png", "\0.png"]),
    "content": CONTENTS,
    "compression": st.sampled_from([None, "none", "deflate", "zstd", "lzw", ""]),
    "tile": st.one_of(st.none(), st.tuples(st.sampled_from([16, 32, 0, -16, 7, 2**40]), st.sampled_from([16, 1, 2**62]))),
    "max_version": st.one_of(st.none(), st.tuples(SMALL, SMALL)),
    "dl_device": st.one_of(st.none(), st.tuples(SMALL, SMALL)),
    "device": st.sampled_from(["cpu", "auto", "cpu:3", "cuda:", "cuda:-1", "cuda:99999999999999999999", "cpu+cpu", "", "é"]),
    "memory": st.sampled_from([None, "1M", "12k", "G", "-1", "", 2**70, "9" * 30 + "G", 1, 0, "1e3", "１M"]),
    "norm": st.sampled_from(["max", "rms", "l2", ""]),
    "steps": st.integers(-1, 5),
    "factor": FLOATS,
    "coordinates": arrays(["f8", "f4", "i4"], (2, 4)),
    "index": st.one_of(st.none(), st.integers(-1, 4), st.lists(st.integers(-1, 4), max_size=4)),
    "bins": st.integers(0, 6),
    "nbins": st.integers(0, 6),
    "max_label": st.integers(-1, 9),
    "method": st.sampled_from(["gaussian", "mean", "median", "generic"]),
    "theta_step": st.sampled_from([15.0, 60.0, 90.0, 400.0]),
    "hist": st.one_of(st.none(), arrays(["i4", "f8"], (1, 2))),
    **dict.fromkeys(("reshape", "prefilter", "grid_mode", "use_quantiles", "black_ridges", "preserve_range", "brute_force"), st.booleans()),
}


def argument(name: str) -> Strategy:
    """Of twelve arguments, about one that does not fit."""
    fitting = FITTING.get(name, FLOATS)
    return st.integers(0, 11).flatmap(lambda at: WILDS if at == 11 else fitting)


@st.composite
def calls(draw: Any, functions: list[Callable[..., Any]]) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A function and arguments: all that it needs, and some that it does not."""
    function = draw(st.sampled_from(functions))
    args: list[Any] = []
    more: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty:
            args.append(draw(argument(name)))
        elif draw(st.integers(0, 2)) == 0:
            more[name] = draw(argument(name))
    if isinstance(more.get("output"), str) and more["output"] == "same":
        more["output"] = np.zeros(np.shape(args[0]) if isinstance(args[0], np.ndarray) else (3, 3))
    return function, args, more


def looked_at(found: Any) -> None:
    """Evaluates what is lazy."""
    for one in found if isinstance(found, tuple) else [found]:
        if isinstance(one, hi.Image):
            one.compute()


@functools.cache
def session() -> hi.Session:
    """Oversized requests are refused, not allocated."""
    return hi.session(device="cpu", threads=1, memory=64 << 20)


def checked(call: tuple[Callable[..., Any], list[Any], dict[str, Any]]) -> None:
    """Calls; what is raised must be an exception for whoever called, and no sign of a defect of the package."""
    function, args, more = call
    with session(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            looked_at(function(*args, **more))
        except (hi.HorusError, SystemError, AssertionError, NameError, RecursionError):
            raise
        except Exception as error:
            assert "panic" not in str(error) and "internal error" not in str(error), error


def image_of(image: Any) -> hi.Image:
    channels = np.ndim(image) == 3 and np.shape(image)[2] < 4
    return hi.asarray(image, channels=channels)


def of_image(name: str, *parameters: str) -> Callable[..., Any]:
    """A method of images as a function."""

    def call(image: Any, *args: Any, **more: Any) -> Any:
        return getattr(image_of(image), name)(*args, **more)

    call.__name__ = name
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    told = [inspect.Parameter(one.rstrip("?"), kinds["?" in one], default=None if "?" in one else inspect.Parameter.empty) for one in parameters]
    call.__signature__ = inspect.Signature([inspect.Parameter("image", kinds[0]), *told])  # type: ignore[attr-defined]
    return call


def at_index(image: Any, key: Any) -> Any:
    return image_of(image)[key]


def by_ufunc(ufunc: Any, image: Any, other: Any) -> Any:
    return ufunc(image_of(image), *[other] * (getattr(ufunc, "nin", 1) - 1))


def into(ufunc: Any, image: Any, output: Any) -> Any:
    return ufunc(*[image_of(image)] * getattr(ufunc, "nin", 1), out=output)


def pickled(image: Any) -> Any:
    return pickle.loads(pickle.dumps(image_of(image)))


def from_dlpack(image: Any) -> Any:
    return np.from_dlpack(image_of(image))


def written(image: Any, name: Any, compression: Any = None, tile: Any = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name) if isinstance(name, str) else name
        hi.save(path if isinstance(path, str) else None, image, compression=compression, tile=tile)  # type: ignore[arg-type]
        hi.open(path).compute()


def read_bytes(content: Any, name: Any, page: Any = None, volume: Any = False, size: Any = 0) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, str(name).replace("/", "").replace("\0", "") or "x")
        with open(path, "wb") as file:
            file.write(content)
        return hi.open(path, page=page, volume=volume, size=size).compute()


def jitted(image: Any, other: Any) -> Any:
    program = hi.jit(lambda a: a + other)
    return program(image), program(image)


def repeated(image: Any, steps: Any, factor: Any, below: Any = None, every: Any = 1, norm: Any = "max") -> Any:
    if isinstance(steps, int) and steps > 100 or steps in (np.inf, 1e300):
        return None  # so many are made
    return hi.iterate(lambda a: a * factor, image_of(image), steps, below=below, every=every, norm=norm).state


def opened(device: Any, memory: Any = None, explain: Any = False) -> Any:
    return hi.session(device=device, memory=memory, explain=explain).asarray([1.0]).compute()


METHODS: Final[list[Callable[..., Any]]] = [
    of_image("astype", "dtype"), of_image("clip", "low_value", "high_value"), of_image("luminance"), of_image("channel", "axis"),
    *(of_image(name) for name in ("min", "max", "sum", "mean", "var", "std", "compute", "start", "__len__", "__bool__", "__float__", "__int__", "__repr__")),
    *(of_image(name) for name in ("__neg__", "__pos__", "__abs__", "__invert__", "__hash__", "_repr_html_", "__dlpack_device__")),
    *(of_image(f"__{name}__", "other") for name in ("add", "rsub", "mul", "truediv", "rtruediv", "pow", "rpow", "lt", "eq", "and", "ror", "xor")),
    of_image("__array__", "dtype", "copy?"), of_image("__dlpack__", "stream?", "max_version?", "dl_device?", "copy?"),
    hi.asarray, hi.asarray, hi.minimum, hi.maximum, hi.where, at_index, by_ufunc, into, pickled, from_dlpack, written, read_bytes, jitted, repeated, opened,
]  # fmt: skip


FUNCTIONS: Final = [getattr(module, name) for module in (ndimage, filters) for name in module.__all__]


CASES: Final = int(os.environ.get("HORUS_CASES", "100"))
settings.register_profile("same", deadline=None, derandomize=True, database=None)
settings.load_profile("same")


@settings(max_examples=2 * CASES)
@given(call=calls(FUNCTIONS))
def test_functions(call: Any) -> None:
    checked(call)


@settings(max_examples=CASES)
@given(call=calls(METHODS))
def test_images(call: Any) -> None:
    checked(call)


@settings(max_examples=100)
@given(
    form=st.sampled_from(FORMS[:7]),
    shape=st.lists(st.integers(0, 4), min_size=0, max_size=4),
    dtype=st.sampled_from(["u1", "u2", "i4", "f4", "f8", "?", "i8", "c8", "O", "U1"]),
    channels=st.booleans(),
    copy=st.booleans(),
)
def test_an_array_becomes_the_image_of_its_pixels_or_an_exception(
    form: str, shape: list[int], dtype: str, channels: bool, copy: bool
) -> None:
    array = formed((np.arange(np.prod(shape)) % 7).reshape(shape).astype(dtype), form)
    try:
        image = hi.asarray(array, channels=channels, copy=copy)
    except (ValueError, TypeError):
        return
    np.testing.assert_array_equal(image, array)
    np.testing.assert_array_equal(np.from_dlpack(image), array)
    if array.ndim:
        np.testing.assert_array_equal(hi.jit(lambda a: a)(array), array)


def search(seconds: float) -> None:
    """Tries calls for so long, each as long as 20 seconds, and shows the last if the interpreter ends."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    ends, last = time.monotonic() + seconds, tempfile.TemporaryFile("w+")
    print("the last call is in", f"/proc/{os.getpid()}/fd/{last.fileno()}")

    def tried(call: Any) -> None:
        last.seek(0)
        print(call, file=last, flush=True)
        faulthandler.dump_traceback_later(20, exit=True)
        checked(call)

    while time.monotonic() < ends:
        more = settings(max_examples=2000, derandomize=False, suppress_health_check=list(HealthCheck))
        for functions in (FUNCTIONS, METHODS):
            more(given(call=calls(functions))(tried))()


if __name__ == "__main__":
    search(float(sys.argv[1]))
