"""A widget of napari: filters of the shown layer, computed where napari shows them."""

# No `from __future__ import annotations`: the widget is made of the annotations, and finds no names of this file in strings.
from typing import TYPE_CHECKING, Any, Literal

from . import ndimage
from ._image import Image, asarray

if TYPE_CHECKING:
    import napari.layers
    import napari.types

Filter = Literal[
    "gaussian_filter", "gaussian_gradient_magnitude", "median_filter", "minimum_filter", "maximum_filter", "grey_opening", "grey_closing", "white_tophat"
]

# What places and colours a layer. The range that is shown is that of the result.
_KEPT = ("scale", "translate", "rotate", "shear", "affine", "units", "axis_labels", "rgb", "multiscale", "colormap")


def filtered(
    layer: "napari.layers.Image", filter: Filter = "gaussian_filter", size: float = 2.0, volume: bool = False
) -> "napari.types.LayerDataTuple":
    """A layer of a filter of `horus_image.ndimage`, in which napari computes the planes and the sizes that it shows.

    Parameters
    ----------
    layer : napari.layers.Image
        A layer of up to three axes, besides colours.
    filter : str, optional
        The name of the filter. Gradients are ``float32``, others have the type of the layer.
    size : float, optional
        The standard deviation of a Gaussian, or the radius of a square (rounded), in pixels of the largest size of the layer.
    volume : bool, optional
        Filter across planes, too, else each plane by itself.

    Returns
    -------
    tuple
        The images, one for each size of the layer, the properties of the new layer, and its kind.

    Raises
    ------
    ValueError
        If the layer has more than three axes, or `size` is negative.
    """
    data, properties, _ = layer.as_layer_data_tuple()
    if size < 0.0:
        raise ValueError(f"filter: size is {size}; it must not be negative")
    images = [_image(each, properties["rgb"]) for each in (data if properties["multiscale"] else [data])]
    results = [_filtered(image, filter, _sizes(image, images[0], size, volume)) for image in images]
    about = {key: properties[key] for key in _KEPT if key in properties}
    about["name"] = f"{properties['name']} {filter} {size:g}"
    return results if properties["multiscale"] else results[0], about, "image"


def _image(data: Any, colours: bool) -> Image:
    if data.ndim - colours > 3:
        raise ValueError(f"filter: the layer has {data.ndim - colours} axes; at most 3 can be filtered")
    return data if isinstance(data, Image) else asarray(data, channels=colours)


def _sizes(image: Image, largest: Image, size: float, volume: bool) -> list[float]:
    """The size in pixels of an image along each of its axes; 0 along axes that are not filtered."""
    sizes = [size * image.shape[axis] / largest.shape[axis] for axis in range(image._ndim)]
    return sizes if volume else [0.0] * (len(sizes) - 2) + sizes[-2:]


def _filtered(image: Image, filter: Filter, sizes: list[float]) -> Image:
    if filter == "gaussian_filter":
        result = ndimage.gaussian_filter(image, sizes)
    elif filter == "gaussian_gradient_magnitude":
        axes = [axis for axis, size in enumerate(sizes) if size]
        # Derivatives of integers would have no sign.
        result = ndimage.gaussian_gradient_magnitude(image.astype("float32"), sizes, axes=axes)
    else:
        result = getattr(ndimage, filter)(image, size=[2 * round(size) + 1 for size in sizes])
    assert isinstance(result, Image)
    return result
