"""The functions of ``scipy.ndimage`` that Horus has, with their names, arguments, border modes and types.

Given a NumPy array (or what becomes one) a function computes and returns a NumPy array, or fills `output`; given a `horus_image.Image` it
returns a lazy one, and nothing is computed. What Horus cannot do yet raises `NotImplementedError`; nothing is handed on to SciPy.

Results have the type of the input, or the one that `output` names. As in SciPy, integers are computed in ``float64`` and cut to their type
after each pass, and 64-bit integers must not exceed 2^53. ``float32`` images are filtered in ``float32`` where SciPy computes in ``float64``
and rounds at the end: results differ by a few units in the last place of the largest term of a sum.
"""

from ._binary import (
    binary_closing,
    binary_dilation,
    binary_erosion,
    binary_fill_holes,
    binary_hit_or_miss,
    binary_opening,
    binary_propagation,
    generate_binary_structure,
    iterate_structure,
)
from ._distances import distance_transform_cdt, distance_transform_edt
from ._gaussian import (
    gaussian_filter,
    gaussian_filter1d,
    gaussian_gradient_magnitude,
    gaussian_laplace,
    laplace,
)
from ._grey import (
    black_tophat,
    grey_closing,
    grey_dilation,
    grey_erosion,
    grey_opening,
    morphological_gradient,
    morphological_laplace,
    white_tophat,
)
from ._interpolation import (
    affine_transform,
    rotate,
    shift,
    zoom,
)
from ._linear import (
    convolve,
    convolve1d,
    correlate,
    correlate1d,
    prewitt,
    sobel,
    uniform_filter,
    uniform_filter1d,
)
from ._measurements import (
    center_of_mass,
    find_objects,
    histogram,
    label,
    maximum,
    mean,
    median,
    minimum,
    standard_deviation,
    sum,
    sum_labels,
    variance,
)
from ._order import (
    maximum_filter,
    maximum_filter1d,
    median_filter,
    minimum_filter,
    minimum_filter1d,
    percentile_filter,
    rank_filter,
)
from ._sampling import map_coordinates
from ._splines import spline_filter, spline_filter1d

__all__ = [
    "affine_transform",
    "binary_closing",
    "binary_dilation",
    "binary_erosion",
    "binary_fill_holes",
    "binary_hit_or_miss",
    "binary_opening",
    "binary_propagation",
    "black_tophat",
    "center_of_mass",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "distance_transform_cdt",
    "distance_transform_edt",
    "find_objects",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "generate_binary_structure",
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "histogram",
    "iterate_structure",
    "label",
    "laplace",
    "map_coordinates",
    "maximum",
    "maximum_filter",
    "maximum_filter1d",
    "mean",
    "median",
    "median_filter",
    "minimum",
    "minimum_filter",
    "minimum_filter1d",
    "morphological_gradient",
    "morphological_laplace",
    "percentile_filter",
    "prewitt",
    "rank_filter",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "standard_deviation",
    "sum",
    "sum_labels",
    "uniform_filter",
    "uniform_filter1d",
    "variance",
    "white_tophat",
    "zoom",
]
