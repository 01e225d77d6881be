"""Image programs written sequentially, run in parallel on the CPU and on GPUs with the same bits.

`asarray` makes a lazy `Image` of an array, `open` of a file; operators and `horus_image.ndimage`, which has the names and rules of
``scipy.ndimage``, record operations on it, and reading it computes them at once. Given NumPy arrays, the functions of
`horus_image.ndimage` compute and return NumPy arrays. `horus_image.filters` has filters and thresholds under scikit-image's names,
`horus_image.color` colour spaces, `horus_image.exposure` histograms, `horus_image.feature` corners, edges and peaks, `horus_image.measure`
tables of regions, `horus_image.metrics` differences of images, `horus_image.morphology` openings, maxima and what removes small objects,
`horus_image.segmentation` watersheds and operations on labels, `horus_image.transform` resizing and warps, `horus_image.util` types and
ranges, `horus_image.restoration` deconvolution, `horus_image.raster` slopes and statistics of rasters. `horus_image.accel` puts functions in the place of SciPy's and
scikit-image's, `horus_image.dask` applies programs to Dask's arrays, `horus_image.xarray` functions to xarray's,
`horus_image.array_api` has the functions of the Python array API standard.

>>> import numpy as np
>>> import horus_image as hi
>>> from horus_image import ndimage
>>> image = hi.asarray(np.eye(5, dtype=np.float32))
>>> smooth = ndimage.gaussian_filter(image, 1.0)
>>> round(float((smooth - image).max()), 3)
0.323
"""

from typing import TYPE_CHECKING, Any

from . import (
    array_api,
    color,
    exposure,
    feature,
    filters,
    measure,
    metrics,
    morphology,
    ndimage,
    raster,
    restoration,
    segmentation,
    transform,
    typing,
    util,
)
from ._files import open, save
from ._horus import HorusError, __version__
from ._image import Image, asarray, get_all, maximum, minimum, stack, where
from ._jit import jit
from ._map import map
from ._programs import Iterated, iterate, series
from ._session import MemoryInUse, MemoryUse, Session, session
from ._show import show
from ._tiles import Tiles
from ._tolerance import within

if TYPE_CHECKING:
    from . import dask as dask
    from . import xarray as xarray

__all__ = [
    "HorusError",
    "Image",
    "Iterated",
    "MemoryInUse",
    "MemoryUse",
    "Session",
    "Tiles",
    "__version__",
    "array_api",
    "asarray",
    "color",
    "exposure",
    "feature",
    "filters",
    "get_all",
    "iterate",
    "jit",
    "map",
    "maximum",
    "measure",
    "metrics",
    "minimum",
    "morphology",
    "ndimage",
    "open",
    "raster",
    "save",
    "restoration",
    "segmentation",
    "series",
    "session",
    "show",
    "stack",
    "transform",
    "typing",
    "util",
    "where",
    "within",
]

if not TYPE_CHECKING:  # which would take any name for one of this module

    def __getattr__(name: str) -> Any:
        """Modules that need other packages are loaded when they are asked for."""
        if name in ("dask", "xarray"):
            from importlib import import_module

            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
