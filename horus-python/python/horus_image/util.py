"""Images in other types, inverted, and beside others, of scikit-image 0.26, with its names and arguments.

As in `horus_image.filters`, a NumPy array gives a NumPy array, computed at once, and a `horus_image.Image` a lazy one.

>>> import numpy as np
>>> from horus_image import util
>>> util.img_as_ubyte(util.invert(np.array([0.0, 0.2, 1.0])))
array([255, 204,   0], dtype=uint8)
"""

from . import _public, _ranges

__all__ = _public.export(globals())
