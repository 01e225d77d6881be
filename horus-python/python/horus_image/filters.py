"""Filters, thresholds and edges of scikit-image 0.26 that Horus has, with their names and arguments, and detectors of lines.

As in `horus_image.ndimage`, a NumPy array gives a NumPy array, computed at once, and a `horus_image.Image` a lazy one: a filter is
made of operations that Horus fuses with whatever comes before and after it. Thresholds of a whole image are floats, so that the image is
computed at the call.

Types are scikit-image's: ``float32`` is computed in ``float32`` and everything else in ``float64``; where scikit-image takes
``img_as_float`` of an image, integers become floats from 0 to 1, or -1 to 1. What is not supported raises `NotImplementedError`.

>>> import horus_image as hi
>>> from horus_image import filters
>>> import numpy as np
>>> image = hi.asarray(np.array([[10, 12, 11, 200, 210, 205]], np.uint8))
>>> bright = image > filters.threshold_otsu(image)
>>> bright.compute().astype(int)
array([[0, 0, 0, 1, 1, 1]])
"""

from . import _edges, _lines, _public, _reconstruction, _ridges, _sharpen, _templates, _thresholds

__all__ = _public.export(globals())
