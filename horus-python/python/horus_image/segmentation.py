"""Segmentations of scikit-image 0.26 that Horus has, with their names and arguments. Watersheds, and what counts labels, are evaluated at the call.

>>> from horus_image import segmentation
>>> segmentation.watershed([[1, 0, 2, 7, 3, 1, 4]], [[0, 5, 0, 0, 0, 9, 0]])
array([[5, 5, 5, 5, 9, 9, 9]])
"""

from . import _components, _extrema, _labels, _level_sets, _overlays, _public, _watershed

__all__ = _public.export(globals())
