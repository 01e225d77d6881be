"""Complex arrays: linear functions of them are those of their parts. Images have no complex pixels, so arrays come back evaluated."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ._foreign import DeviceArray, read
from ._image import Array, Image

_Function = TypeVar("_Function", bound=Callable[..., Any])


def by_parts(function: _Function) -> _Function:
    """The function, of complex arrays (and complex weights) too."""
    signature = inspect.signature(function)
    weighted = "weights" in signature.parameters

    @functools.wraps(function)
    def called(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Image):
            input = read(input)
        weights: Any = (args[0] if args else kwargs.get("weights")) if weighted else None
        if isinstance(input, (Image, DeviceArray)) or not (input.dtype.kind == "c" or (weighted and np.iscomplexobj(weights))):
            return function(input, *args, **kwargs)
        given = signature.bind(input, *args, **kwargs).arguments
        # Keywords that a function hands on are not arguments of its own.
        more = given.pop("kwargs", {})
        given.pop("input")
        taps = np.asarray(weights) if weighted else None
        return _parts(function, np.asarray(input), taps, {**given, **more})

    return called  # type: ignore[return-value]


def _parts(function: Callable[..., Any], array: Array, weights: Array | None, given: dict[str, Any]) -> Array:
    parameters = inspect.signature(function).parameters
    output, dtype = given.pop("output", parameters["output"].default), np.promote_types(array.dtype, np.complex64)
    if isinstance(output, np.ndarray):
        dtype = output.dtype
    elif isinstance(output, str):
        dtype = np.dtype(output)
    elif output is not None:
        dtype = np.dtype(output)
        if dtype.kind != "c":
            warnings.warn("promoting specified output dtype to complex", stacklevel=4)
            dtype = np.promote_types(dtype, np.complex64)
    if dtype.kind != "c":
        raise RuntimeError("output must have complex dtype")
    single = np.empty(0, dtype).real.dtype
    cval = given.pop("cval", 0.0)
    if array.dtype.kind != "c" and np.iscomplexobj(cval):
        raise ValueError("Cannot provide a complex-valued cval when the input is real.")
    if weights is not None and weights.dtype.kind == "c" and function.__name__.startswith("correlate"):
        weights = weights.conj()

    def part(of: Array, taps: Array | None, constant: Any) -> Array:
        more: dict[str, Any] = {} if taps is None else {"weights": taps}
        more = {**given, **more, **({"cval": constant} if "cval" in parameters else {})}
        found: Array = function(of, **more, output=single)
        return found

    if weights is None or weights.dtype.kind != "c":
        real, imaginary = (part(of, weights, at) for of, at in ((array.real, np.real(cval)), (array.imag, np.imag(cval))))
    elif array.dtype.kind != "c":
        real, imaginary = part(array, weights.real, cval), part(array, weights.imag, cval)
    else:
        here, there = np.real(cval), np.imag(cval)
        real = part(array.real, weights.real, here) - part(array.imag, weights.imag, there)
        imaginary = part(array.real, weights.imag, here) + part(array.imag, weights.real, there)
    result = np.empty(real.shape, dtype) if not isinstance(output, np.ndarray) else output
    if result.shape != real.shape:
        raise RuntimeError("output shape not correct")
    result.real, result.imag = real, imaginary
    return result
