"""Measurements of scikit-image 0.26 that Horus has, with their names and arguments. They are evaluated at the call, except `block_reduce`, and `label` of masks.

>>> from horus_image import measure
>>> measure.regionprops_table([[1, 1, 0], [0, 0, 2]], properties=("label", "centroid"))["centroid-1"]
array([0.5, 2. ])
"""

from . import _colocalization, _components, _moments, _peaks, _perimeters, _public, _regions, _resizing, _summaries

__all__ = _public.export(globals())
