"""Morphology of scikit-image 0.26 that Horus has, with its names and arguments; `filters` has `reconstruction`.

>>> import numpy as np
>>> from horus_image import morphology
>>> morphology.remove_small_objects(np.array([1, 0, 1, 1], bool), max_size=1)
array([False, False,  True,  True])
"""

from . import _components, _elements, _extrema, _flat, _public, _reconstruction

__all__ = _public.export(globals())
