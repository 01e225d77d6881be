"""Functions of NumPy whose arguments are images: recorded where Horus has them, else NumPy's on the computed pixels.

This is the one place that hands images to NumPy: `computed` for functions of `horus_image.array_api`, whose results are images,
and `applied` for functions of NumPy, whose results then are arrays. ``docs/python.md`` has the rule for users.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from . import _axes, _creation, _statistics
from ._dtype import truth
from ._image import Image, get_all
from ._moves import several

Function = Callable[..., Any]


def applied(function: Function, types: Sequence[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of NumPy of which an argument is an image.

    A call whose arguments Horus cannot record, because of a parameter, a type or a shape that images do not have, is NumPy's.
    """
    # Other libraries whose arrays are among the arguments take arrays instead of images.
    ours = all(issubclass(kind, (Image, np.ndarray)) for kind in types)
    record = RECORDED.get(function) if ours else None
    if record is not None and _fits(record, args, kwargs):
        try:
            return record(*args, **kwargs)
        except (NotImplementedError, TypeError, ValueError):
            # NumPy's own error if the call is wrong.
            pass
    arrays = _pixels([args, kwargs])
    return function(*_replaced(args, arrays), **_replaced(kwargs, arrays))


def computed(name: str, function: Function, *args: Any, **kwargs: Any) -> Any:
    """The result of a function of NumPy on the computed pixels, as images of their session, with integers of up to 32 bits."""
    images = _images([args, kwargs])
    session = images[0]._session
    arrays = _pixels([args, kwargs])
    found = function(*_replaced(args, arrays), **_replaced(kwargs, arrays))
    if isinstance(found, tuple):
        return tuple(_creation.held(name, array, session) for array in found)
    return _creation.held(name, found, session)


def _images(value: Any) -> list[Image]:
    """The images among arguments, and in sequences and tables of these."""
    if isinstance(value, Image):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [image for part in value for image in _images(part)] if isinstance(value, (list, tuple)) else []


def _pixels(value: Any) -> dict[int, np.ndarray[Any, Any]]:
    """The pixels of the images among arguments, of each session evaluated together. They are read-only: what a function writes to them
    does not reach the images."""
    images = {id(image): image for image in _images(value)}
    found: dict[int, np.ndarray[Any, Any]] = {}
    for session in {id(image._session): image._session for image in images.values()}.values():
        own = {key: image for key, image in images.items() if image._session is session}
        arrays = get_all(*own.values()) if len(own) > 1 else [image.compute() for image in own.values()]
        found.update(zip(own, arrays, strict=True))
    for array in found.values():
        array.flags.writeable = False
    return found


def _replaced(value: Any, arrays: dict[int, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, Image):
        return arrays[id(value)]
    if isinstance(value, dict):
        return {key: _replaced(part, arrays) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(part, arrays) for part in value)
    return value


def _fits(record: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns true if a function has parameters for the arguments."""
    try:
        _signature(record).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@functools.cache
def _signature(function: Function) -> inspect.Signature:
    return inspect.signature(function)


def _image(x: Any) -> Image:
    """An argument that must be an image for a call to be recorded."""
    if not isinstance(x, Image):
        raise TypeError("no image")
    return x


def _beside(arrays: Sequence[Any]) -> list[Image]:
    """Images and arrays, of which one is an image, as images of its session."""
    session = next(x for x in arrays if isinstance(x, Image))._session
    return [x if isinstance(x, Image) else _creation.asarray(x, device=session) for x in arrays]


def _method(name: str) -> Function:
    """The method of images that has the parameters of the function of NumPy."""
    parameters = list(inspect.signature(getattr(Image, name)).parameters.values())
    first = inspect.Parameter("a", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def record(*args: Any, **kwargs: Any) -> Any:
        a, *rest = args or (kwargs.pop("a"),)
        return getattr(_image(a), name)(*rest, **kwargs)

    record.__signature__ = inspect.Signature([first, *parameters[1:]])  # type: ignore[attr-defined]
    return record


def _where(condition: Any, x: Any, y: Any) -> Any:
    mask = condition._with(truth(condition._core)) if isinstance(condition, Image) else np.asarray(condition, np.bool_)
    from ._image import where

    return where(mask, x, y)


def _extreme(function: Function) -> Function:
    """An extreme that keeps NaN, which the methods of images ignore; a number unless axes are named or kept."""

    def record(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
        if out is not None:
            raise TypeError("the result is an image or a number")
        found = function(_image(a), axis=axis, keepdims=keepdims)
        return found if keepdims or axis is not None else found.compute()[()]

    return record


def _one_axis(function: Function) -> Function:
    """A search along an axis; the position among all pixels is a number, which NumPy finds."""

    def record(a: Any, axis: int, *, keepdims: bool = False) -> Any:
        return function(_image(a), axis=operator.index(axis), keepdims=keepdims)

    return record


def _like(function: Function) -> Function:
    """A new array of an image's shape and type: it is there to be written to."""

    def record(a: Any, *args: Any, dtype: Any = None) -> Any:
        return function(_image(a).shape, *args, dtype=a.dtype if dtype is None else dtype)

    return record


def _rounded(a: Any, decimals: int = 0) -> Any:
    if decimals:
        raise NotImplementedError("round: images are rounded to whole numbers")
    return +_image(a) if a.dtype.kind != "f" else np.rint(a)


def _clipped(a: Any, a_min: Any = None, a_max: Any = None, out: None = None, *, min: Any = None, max: Any = None) -> Any:
    if out is not None:
        raise TypeError("clip: the result is an image")
    low, high = (new if old is None else old for old, new in ((a_min, min), (a_max, max)))
    return _statistics.clip(_image(a), low, high)


def _squeezed(a: Any, axis: Any = None) -> Any:
    return _axes.squeeze(_image(a), tuple(k for k, extent in enumerate(a.shape) if extent == 1) if axis is None else axis)


def _size(a: Any, axis: int | None = None) -> int:
    return int(_image(a).size if axis is None else a.shape[axis])


RECORDED: Final[dict[Function, Function]] = {
    **{getattr(np, name): _method(name) for name in ("sum", "mean", "var", "std", "any", "all", "cumsum")},
    **{function: _extreme(_statistics.min) for function in (np.min, np.amin)},
    **{function: _extreme(_statistics.max) for function in (np.max, np.amax)},
    np.clip: _clipped,
    np.shape: lambda a: _image(a).shape,
    np.ndim: lambda a: _image(a).ndim,
    np.size: _size,
    np.iscomplexobj: lambda x: False,
    np.isrealobj: lambda x: True,
    np.can_cast: lambda from_, to: _creation.can_cast(from_, to),
    np.result_type: lambda *arrays_and_dtypes: np.result_type(*(x.dtype if isinstance(x, Image) else x for x in arrays_and_dtypes)),
    np.where: _where,
    np.count_nonzero: _one_axis(_statistics.count_nonzero),
    np.argmax: _one_axis(_statistics.argmax),
    np.argmin: _one_axis(_statistics.argmin),
    np.diff: lambda a, n=1, axis=-1: _statistics.diff(_image(a), n=n, axis=axis),
    np.round: _rounded,
    np.around: _rounded,
    np.concatenate: lambda arrays, /, axis=0: _axes.concat(_beside(arrays), axis=axis),
    np.stack: lambda arrays, axis=0: _axes.stack(_beside(arrays), axis=axis),
    np.transpose: lambda a, axes=None: _image(a).transpose(*(() if axes is None else (axes,))),
    np.swapaxes: lambda a, axis1, axis2: _image(a).swapaxes(axis1, axis2),
    np.moveaxis: lambda a, source, destination: _axes.moveaxis(_image(a), source, destination),
    np.expand_dims: lambda a, axis: _axes.expand_dims(_image(a), axis=axis),
    np.squeeze: _squeezed,
    np.reshape: lambda a, shape: _axes.reshape(_image(a), shape),
    np.ravel: lambda a: _axes.reshape(_image(a), (-1,)),
    np.flip: lambda m, axis=None: _axes.flip(_image(m), axis=axis),
    np.flipud: lambda m: _axes.flip(_image(m), axis=0),
    np.fliplr: lambda m: _axes.flip(_image(m), axis=1),
    np.roll: lambda a, shift, axis=None: _axes.roll(_image(a), shift, axis=axis),
    np.repeat: lambda a, repeats, axis=None: _axes.repeat(_image(a), repeats, axis=axis),
    np.tile: lambda A, reps: _axes.tile(_image(A), several(reps)),
    np.broadcast_to: lambda array, shape: _axes.broadcast_to(_image(array), shape),
    np.broadcast_arrays: lambda *args: tuple(_axes.broadcast_arrays(*_beside(args))),
    np.take_along_axis: lambda arr, indices, axis=-1: _axes.take_along_axis(*_beside((_image(arr), indices)), axis=axis),
    np.tril: lambda m, k=0: _creation.tril(_image(m), k=k),
    np.triu: lambda m, k=0: _creation.triu(_image(m), k=k),
    np.zeros_like: _like(np.zeros),
    np.ones_like: _like(np.ones),
    np.empty_like: _like(np.empty),
    np.full_like: lambda a, fill_value, dtype=None: _like(np.full)(a, fill_value, dtype=dtype),
}
"""What records each function of NumPy: a function with those of its parameters that can be recorded."""

if hasattr(np, "unstack"):  # from NumPy 2.1 on
    RECORDED[np.unstack] = lambda x, *, axis=0: _axes.unstack(_image(x), axis=axis)
    RECORDED[np.matrix_transpose] = lambda x: _axes.matrix_transpose(_image(x))
