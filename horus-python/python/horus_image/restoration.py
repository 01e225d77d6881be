"""Restorations of scikit-image 0.26 that Horus has, with their names and arguments. They are evaluated at the call.

>>> import numpy as np
>>> from horus_image import restoration
>>> restoration.richardson_lucy(np.array([[0.0, 0.25, 0.5, 0.25, 0.0]]), np.array([[0.25, 0.5, 0.25]]), 200).round(1)
array([[0., 0., 1., 0., 0.]])
"""

from . import _deconvolution, _public, _rolling, _variation

__all__ = _public.export(globals())
