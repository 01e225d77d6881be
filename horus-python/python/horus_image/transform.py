"""Transforms of scikit-image 0.26 that Horus has, with their names and arguments. `hough_line` and `integrate` are evaluated at the call.

>>> import numpy as np
>>> from horus_image import transform
>>> transform.hough_line(np.ones((3, 4)), [0.0])[0].ravel()
array([0, 0, 0, 0, 0, 3, 3, 3, 3, 0, 0], dtype=uint64)
"""

from . import _hough, _polar, _public, _pyramids, _resizing, _warping

__all__ = _public.export(globals())
