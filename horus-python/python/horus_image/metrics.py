"""Measures of how two images differ, of scikit-image 0.26, with its names and arguments. Numbers are computed at the call; images that come with them are lazy for lazy images.

>>> import numpy as np
>>> from horus_image import metrics
>>> float(metrics.peak_signal_noise_ratio(np.array([[0.0, 0.5]]), np.array([[0.0, 0.4]])).round(1))
23.0
"""

from . import _comparison, _public

__all__ = _public.export(globals())
