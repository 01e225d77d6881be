"""The functions of ``scipy.ndimage`` that Horus has, with their names, arguments, border modes and types.

Given a NumPy array (or what becomes one) a function computes and returns a NumPy array, or fills `output`; given a `horus_image.Image` it
returns a lazy one, and nothing is computed. What Horus cannot do yet raises `NotImplementedError`; nothing is handed on to SciPy.

Results have the type of the input, or the one that `output` names. As in SciPy, integers are computed in ``float64`` and cut to their type
after each pass, and 64-bit integers must not exceed 2^53. ``float32`` images are filtered in ``float32`` where SciPy computes in ``float64``
and rounds at the end: results differ by a few units in the last place of the largest term of a sum.
"""

from . import _binary, _distances, _fourier, _gaussian, _grey, _interpolation, _linear, _measurements, _order, _public, _sampling, _splines

__all__ = _public.export(globals())
