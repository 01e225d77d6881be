"""Corners, edges, peaks and tensors of scikit-image 0.26, with its names and arguments.

As in `horus_image.filters`, a NumPy array gives a NumPy array, computed at once, and a `horus_image.Image` a lazy one; positions are found at
the call.

>>> import numpy as np
>>> from horus_image import feature
>>> square = np.zeros((10, 10))
>>> square[2:8, 2:8] = 1
>>> sorted(feature.peak_local_max(feature.corner_shi_tomasi(square)).tolist())
[[2, 2], [2, 7], [7, 2], [7, 7]]
"""

from . import _basic_features, _edges, _peaks, _public, _templates, _tensors

__all__ = _public.export(globals())
