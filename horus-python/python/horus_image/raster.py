"""Slope, aspect, shaded relief and statistics of rasters, as in GDAL's ``gdaldem`` and xarray-spatial.

Rows go south and columns east. As in `horus_image.ndimage`, a NumPy array gives a NumPy array, computed at once, and a
`horus_image.Image` a lazy one; arrays on a GPU stay there. `horus_image.dask.map_overlap` applies these functions to
arrays of Dask, and `horus_image.xarray` to those of xarray, with the sides of cells of their coordinates.

>>> import numpy as np
>>> from horus_image import raster
>>> hill = 10.0 - np.hypot(*np.mgrid[-2:3, -2:3])
>>> raster.aspect(hill)[1:4, 1:4].round()
array([[315.,   0.,  45.],
       [270.,  -1.,  90.],
       [225., 180., 135.]])
"""

from . import _focal, _public, _terrain, _zonal

__all__ = _public.export(globals())
