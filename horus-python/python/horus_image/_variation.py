"""Denoising by total variation, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ._conversions import _stacked
from ._floats import Given, applied, image_of
from ._foreign import of_any_library
from ._image import Image
from ._linear import correlate1d
from ._moves import filled
from ._programs import iterate
from ._public import Terms, public
from .typing import ArrayLike, Float, Pixels


@public(
    "restoration", module="skimage.restoration._denoise", rust="examples/chambolle.rs",
    differs="sums of `float32` are of `float64`, which may end a step earlier or later", accel=Terms("double finite", (0.0, 1e-10))
)
@of_any_library
def denoise_tv_chambolle(
    image: ArrayLike, weight: Float = 0.1, eps: Float = 2.0e-4, max_num_iter: int = 200, *, channel_axis: int | None = None
) -> Pixels:
    """The image of least total variation, weighed against its distance from the given one (``skimage.restoration.denoise_tv_chambolle``).

    Steps are made at the call, on the GPU or the ranks that the session has.

    Parameters
    ----------
    image : array_like or Image
        Of one to three axes, without that of channels; integers become floats from 0 to 1, or -1 to 1.
    weight : float, optional
        How much the variation counts: more is smoother.
    eps : float, optional
        End when a step changes the energy by less than this share of the first one.
    max_num_iter : int, optional
        At most so many steps.
    channel_axis : int, optional
        The axis of an array that is that of channels, which are denoised one after the other. A lazy image knows its own.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.restoration import denoise_tv_chambolle
    >>> noisy = np.where(np.arange(20) < 10, 0.0, 1.0) + np.random.default_rng(1).normal(0, 0.05, (20, 20))
    >>> smooth = denoise_tv_chambolle(noisy, 0.2)
    >>> bool(smooth[:, :8].std() < noisy[:, :8].std() / 3), bool(smooth[:, 15].mean() > 0.9)
    (True, True)
    """
    given = Given("denoise_tv_chambolle", image, (1, 2, 3), channel_axis)
    if not weight > 0:
        raise ValueError(f"denoise_tv_chambolle: weight is {weight}; it is above 0")
    steps = operator.index(max_num_iter)
    if steps < 1:
        raise ValueError(f"denoise_tv_chambolle: {steps} steps; there is at least one")
    pixels = given.unit()
    if not given.value.channels:
        return given.back(_denoised(pixels, float(weight), float(eps), steps))
    count = pixels._core.shape[3]
    return given.back(_stacked([_denoised(pixels.channel(k), float(weight), float(eps), steps) for k in range(count)]))


def _denoised(pixels: Image, weight: float, eps: float, steps: int) -> Image:
    axes = range(pixels.ndim)
    tau = 1.0 / (2.0 * len(axes))
    add = functools.partial(functools.reduce, Image.__add__)

    def step(*state: Image) -> list[Image]:
        slopes = state[: len(axes)]
        change = add([image_of(correlate1d(one, (1.0, -1.0), axis, mode="constant")) for axis, one in enumerate(slopes)])
        found = pixels + change
        rises = [image_of(correlate1d(found, (-1.0, 1.0), axis, mode="nearest", origin=-1)) for axis in axes]
        length = applied("sqrt", add([rise * rise for rise in rises]))
        energy = (change * change + length * weight).astype(np.float64).mean(keepdims=True)
        scale = length * (tau / weight) + 1.0
        return [*((slope - rise * tau) / scale for slope, rise in zip(slopes, rises, strict=True)), found, energy]

    energies: list[float] = []

    def ends(_number: int, *state: Image) -> bool:
        energies.append(float(state[-1].compute().ravel()[0]))
        return len(energies) > 1 and abs(energies[-2] - energies[-1]) < eps * energies[0]

    still: Any = functools.partial(filled, pixels.session, "denoise_tv_chambolle")
    start = [still(pixels.shape, pixels.dtype, 0.0) for _ in axes]
    return iterate(step, [*start, pixels, still((1,) * pixels.ndim, np.dtype(np.float64), 0.0)], steps, watch=ends).state[-2]
