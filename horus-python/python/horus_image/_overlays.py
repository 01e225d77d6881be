"""Labels over images, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._binary import binary_dilation
from ._conversions import _stacked
from ._floats import Given, image_of
from ._foreign import of_any_library, read, read_beside
from ._image import Image, asarray, where
from ._labels import find_boundaries
from ._public import public
from .typing import ArrayLike, Float, Pixels


@public(
    "segmentation", module="skimage.segmentation.boundaries", rust="`a.ne(a.erode(&footprint))`, `select`", differs="no mode `subpixel`; see `find_boundaries`"
)
@of_any_library
def mark_boundaries(
    image: ArrayLike,
    label_img: ArrayLike,
    color: Sequence[Float] = (1, 1, 0),
    outline_color: Sequence[Float] | None = None,
    mode: str = "outer",
    background_label: int = 0,
) -> Pixels:
    """The image with the boundaries of labels in a colour (``skimage.segmentation.mark_boundaries``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, or red, green and blue along the last axis; integers become floats from 0 to 1, or -1 to 1.
    label_img : array_like or Image
        Labels, of as many rows and columns.
    color : sequence of float, optional
        Red, green and blue.
    outline_color : sequence of float, optional
        Of the pixels that touch boundaries; by default they stay.
    mode : {'thick', 'inner', 'outer'}, optional
        See `find_boundaries`.
    background_label : int, optional

    Returns
    -------
    ndarray or Image
        Of three channels, of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.segmentation import mark_boundaries
    >>> mark_boundaries(np.zeros((1, 4)), [[1, 1, 2, 2]], mode="thick")[0, :, 0]
    array([0., 1., 1., 0.])
    """
    given = image if isinstance(image, Image) else read(image)
    colours = given.channels if isinstance(given, Image) else given.ndim == 3
    entered = Given("mark_boundaries", given, (2,), -1 if colours else None)
    pixels = entered.unit()
    channels = [pixels.channel(k) for k in range(pixels._core.shape[3])] if colours else [pixels] * 3
    if len(channels) != 3:
        raise ValueError(f"mark_boundaries: {len(channels)} channels; they are red, green and blue")
    labels = label_img if isinstance(label_img, Image) else asarray(_narrow(read_beside(label_img, pixels.session)), session=pixels.session)
    if labels.shape != channels[0].shape:
        raise ValueError(f"mark_boundaries: labels of shape {labels.shape} for an image of shape {channels[0].shape}")
    borders = image_of(find_boundaries(labels, mode=mode, background=background_label))
    for where_to, paint in ((None if outline_color is None else image_of(binary_dilation(borders, np.ones((3, 3)))), outline_color), (borders, color)):
        if where_to is not None and paint is not None:
            channels = [where(where_to, float(one), channel) for one, channel in zip(paint, channels, strict=True)]
    return entered.back(_stacked(channels), labels)


def _narrow(labels: Any) -> Any:
    """Labels in a type that images have."""
    wide = isinstance(labels, np.ndarray) and labels.dtype.kind in "iu" and labels.dtype.itemsize == 8
    return labels.astype(np.float64) if wide else labels
