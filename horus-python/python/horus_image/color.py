"""Colour spaces of scikit-image 0.26, with its names and arguments.

As in `horus_image.filters`, a NumPy array gives a NumPy array, computed at once, and a `horus_image.Image` a lazy one. Integers become floats
from 0 to 1, or -1 to 1; results are of ``float32`` of that, else of ``float64``. Arrays have channels along `channel_axis`, by default their
last axis, and any number of other axes; images have them last.

>>> from horus_image import color
>>> color.rgb2hsv([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.5]]])
array([[[0.        , 1.        , 1.        ],
        [0.66666667, 1.        , 0.5       ]]])
"""

from . import _conversions, _public

__all__ = _public.export(globals())
