"""Intensities and histograms of scikit-image 0.26, with its names and arguments.

As in `horus_image.filters`, a NumPy array gives a NumPy array and a `horus_image.Image` a lazy one. Histograms are counted at the call; what
is made of them is fused with what follows.

>>> import numpy as np
>>> from horus_image import exposure
>>> exposure.equalize_hist(np.array([[10, 10, 11, 30]], np.uint8))
array([[0.5 , 0.5 , 0.75, 1.  ]])
"""

from . import _equalize, _intensity, _public

__all__ = _public.export(globals())
