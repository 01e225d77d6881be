"""What files say of pictures beside their pixels: every public function keeps it, moves it, or is listed as dropping it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import tifffile
from horus_image import filters, ndimage, segmentation
from horus_image._public import FUNCTIONS, Row
from horus_image._ufuncs import UFUNCS

import horus_image as hi

Sides = tuple[float, ...]


def image(ndim: int, sides: Sides | None = None) -> hi.Image:
    """An image of rows and columns, or a volume, of bytes; its pixels are 2 high and 1 wide, and levels 4 apart."""
    shape = (6, 9, 12)[-ndim:]
    pixels = (np.arange(np.prod(shape)) * 37 % 251).astype(np.uint8).reshape(shape)
    return hi.asarray(pixels).with_pixel_size(sides or (4.0, 2.0, 1.0)[-ndim:])


def kept(_: hi.Image, sides: Sides) -> Sides:
    return sides


def doubled(_: hi.Image, sides: Sides) -> Sides:
    return tuple(2 * side for side in sides)


def swapped(_: hi.Image, sides: Sides) -> Sides:
    return (*sides[:-2], sides[-1], sides[-2])


def zoomed(given: hi.Image, sides: Sides) -> Sides:
    """By ``(n - 1) / (m - 1)``: the first pixels and the last ones lie on each other."""
    return tuple(side * (n - 1) / (round(n / 2) - 1) for side, n in zip(sides, given.shape, strict=True))


def tiled(_: hi.Image, sides: Sides) -> Sides:
    return (*sides[:-2], 2 * sides[-2], 3 * sides[-1])


def halved(_: hi.Image, sides: Sides) -> Sides:
    return tuple(side / 2 for side in sides)


def reduced(given: hi.Image, sides: Sides) -> Sides:
    return tuple(side * n / -(-n // 2) for side, n in zip(sides, given.shape, strict=True))


def unknown(_: hi.Image, _sides: Sides) -> None:
    """Dropped."""


Call = Callable[[Any, hi.Image], Any]
PLANES, BOTH = (2,), (2, 3)


def cube(given: hi.Image) -> np.ndarray[Any, Any]:
    return np.ones((3,) * given.ndim)


def of_mask(call: Call) -> Call:
    return lambda f, i: call(f, i > 100)


def plainly(f: Any, i: hi.Image) -> Any:
    return f(i)


def sized(f: Any, i: hi.Image) -> Any:
    return f(i, size=3)


def of_colours(f: Any, i: hi.Image) -> Any:
    return f(hi.stack([i] * 3, axis=-1))


def windowed(f: Any, i: hi.Image) -> Any:
    return f(i, 3)


def lines(f: Any, i: hi.Image) -> Any:
    return f(i, 90.0, [2.0], [1.0])


def markers(given: hi.Image) -> np.ndarray[Any, Any]:
    found = np.zeros(given.shape, np.int32)
    found.flat[[0, -1]] = 1, 2
    return found


def is_of_images(row: Row) -> bool:
    return inspect.signature(row.function).return_annotation in ("Pixels", "Labelled", "Components", "Distances", "Maxima")


CASES: dict[str, tuple[Call, tuple[int, ...], Callable[[hi.Image, Sides], Sides | None]]] = {
    # Unless there is a row below, the call is that of the image alone, and its result keeps the sides.
    **{f"{row.area}.{row.name}": (plainly, BOTH, kept) for row in FUNCTIONS if is_of_images(row)},
    "ndimage.affine_transform": (lambda f, i: f(i, np.diag([2.0] * i.ndim)), BOTH, doubled),
    "ndimage.convolve": (lambda f, i: f(i, cube(i)), BOTH, kept),
    "ndimage.convolve1d": (lambda f, i: f(i, [1, 2, 1]), BOTH, kept),
    "ndimage.correlate": (lambda f, i: f(i, cube(i)), BOTH, kept),
    "ndimage.correlate1d": (lambda f, i: f(i, [1, 2, 1], axis=0), BOTH, kept),
    "ndimage.distance_transform_cdt": (of_mask(plainly), PLANES, kept),
    "ndimage.distance_transform_edt": (of_mask(plainly), PLANES, kept),
    "ndimage.gaussian_filter": (windowed, BOTH, kept),
    "ndimage.gaussian_filter1d": (windowed, BOTH, kept),
    "ndimage.gaussian_gradient_magnitude": (windowed, BOTH, kept),
    "ndimage.gaussian_laplace": (windowed, BOTH, kept),
    "ndimage.geometric_transform": (lambda f, i: f(i, lambda at: at), BOTH, unknown),
    "ndimage.label": (of_mask(lambda f, i: f(i)[0]), BOTH, kept),
    "ndimage.map_coordinates": (lambda f, i: f(i.astype("f8"), [i.astype("f8")] * i.ndim), BOTH, unknown),
    "ndimage.maximum_filter1d": (windowed, BOTH, kept),
    "ndimage.minimum_filter1d": (windowed, BOTH, kept),
    "ndimage.percentile_filter": (lambda f, i: f(i, 30, size=3), BOTH, kept),
    "ndimage.rank_filter": (lambda f, i: f(i, 2, size=3), BOTH, kept),
    "ndimage.rotate": (lambda f, i: f(i, 90, axes=(i.ndim - 1, i.ndim - 2)), BOTH, swapped),
    "ndimage.shift": (lambda f, i: f(i, 1.5), BOTH, kept),
    "ndimage.uniform_filter": (windowed, BOTH, kept),
    "ndimage.uniform_filter1d": (windowed, BOTH, kept),
    "ndimage.zoom": (lambda f, i: f(i, 0.5), BOTH, zoomed),
    **{
        f"ndimage.{name}": (sized, BOTH, kept)
        for name in ("black_tophat", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "maximum_filter", "median_filter")
        + ("minimum_filter", "morphological_gradient", "morphological_laplace", "white_tophat")
    },
    **{
        f"ndimage.binary_{name}": (of_mask(plainly), BOTH, kept)
        for name in ("closing", "dilation", "erosion", "fill_holes", "hit_or_miss", "opening", "propagation")
    },
    "filters.apply_hysteresis_threshold": (lambda f, i: f(i, 50, 150), BOTH, kept),
    "filters.canny": (plainly, PLANES, kept),
    "filters.conv2d": (lines, PLANES, kept),
    "filters.convrot": (lines, PLANES, kept),
    "filters.convuv": (lines, PLANES, kept),
    "filters.difference_of_gaussians": (lambda f, i: f(i, 1, 2), BOTH, kept),
    "filters.reconstruction": (lambda f, i: f(np.minimum(i, 50), i), BOTH, kept),
    "filters.threshold_local": (windowed, PLANES, kept),
    "filters.threshold_niblack": (windowed, PLANES, kept),
    "filters.threshold_sauvola": (windowed, PLANES, kept),
    **{f"filters.{name}_{way}": (plainly, PLANES, kept) for name in ("sobel", "scharr", "prewitt", "farid") for way in "hv"},
    **{f"filters.roberts{which}": (plainly, PLANES, kept) for which in ("", "_pos_diag", "_neg_diag")},
    **{f"color.{row.name}": (of_colours, PLANES, kept) for row in FUNCTIONS if row.area == "color" and is_of_images(row)},
    "color.convert_colorspace": (lambda f, i: f(hi.stack([i] * 3, axis=-1), "hsv", "xyz"), PLANES, kept),
    "color.gray2rgb": (plainly, BOTH, kept),
    "color.rgba2rgb": (lambda f, i: f(hi.stack([i] * 4, axis=-1)), PLANES, kept),
    **{f"color.{name}_stains": (lambda f, i: f(hi.stack([i] * 3, axis=-1), np.eye(3)), PLANES, kept) for name in ("combine", "separate")},
    "exposure.equalize_adapthist": (plainly, PLANES, kept),
    **{f"feature.corner_{name}": (plainly, PLANES, kept) for name in ("harris", "kitchen_rosenfeld", "shi_tomasi")},
    "feature.canny": (plainly, PLANES, kept),
    **{f"feature.{name}": (lambda f, i: f([i] * 3), PLANES, unknown) for name in ("hessian_matrix_eigvals", "structure_tensor_eigenvalues")},
    "feature.shape_index": (plainly, PLANES, kept),
    "exposure.match_histograms": (lambda f, i: f(i, i), BOTH, kept),
    "measure.label": (of_mask(plainly), BOTH, kept),
    "morphology.label": (of_mask(plainly), BOTH, kept),
    "morphology.reconstruction": (lambda f, i: f(np.minimum(i, 50), i), BOTH, kept),
    **{f"morphology.isotropic_{what}": (lambda f, i: f(i > 100, 2.5), BOTH, kept) for what in ("closing", "dilation", "erosion", "opening")},
    **{f"morphology.remove_small_{what}": (of_mask(plainly), BOTH, kept) for what in ("holes", "objects")},
    "morphology.flood": (lambda f, i: f(i, (1,) * i.ndim), BOTH, kept),
    "segmentation.flood": (lambda f, i: f(i, (1,) * i.ndim), BOTH, kept),
    **{f"{area}.flood_fill": (lambda f, i: f(i, (1,) * i.ndim, 3), BOTH, kept) for area in ("morphology", "segmentation")},
    **{f"morphology.h_{what}": (lambda f, i: f(i, 9), BOTH, kept) for what in ("maxima", "minima")},
    **{f"morphology.local_{what}": (plainly, BOTH, kept) for what in ("maxima", "minima")},
    "restoration.rolling_ball": (lambda f, i: f(i, radius=3), BOTH, kept),
    "segmentation.mark_boundaries": (lambda f, i: f(i, i), PLANES, kept),
    **{f"segmentation.morphological_{what}": (windowed, BOTH, kept) for what in ("chan_vese", "geodesic_active_contour")},
    "restoration.richardson_lucy": (lambda f, i: f(i, cube(i), 3), BOTH, kept),
    "segmentation.watershed": (lambda f, i: f(i, markers(i)), BOTH, kept),
    "measure.block_reduce": (lambda f, i: f(i, (1, 2, 3)[-i.ndim :]), BOTH, tiled),
    "transform.downscale_local_mean": (lambda f, i: f(i, (1, 2, 3)[-i.ndim :]), BOTH, tiled),
    "transform.pyramid_expand": (plainly, BOTH, halved),
    "transform.pyramid_reduce": (plainly, BOTH, reduced),
    "transform.rescale": (lambda f, i: f(i, 2), BOTH, halved),
    "transform.resize": (lambda f, i: f(i, (18, 6)), PLANES, lambda _, sides: (sides[0] / 2, sides[1] * 2)),
    "transform.swirl": (plainly, PLANES, unknown),
    "transform.warp_polar": (plainly, PLANES, unknown),
    "transform.rotate": (lambda f, i: f(i, 90, resize=True), PLANES, swapped),
    "transform.warp": (lambda f, i: f(i, np.diag([2.0, 2.0, 1.0])), PLANES, doubled),
    "feature.match_template": (lambda f, i: f(i, np.eye(3), pad_input=True), PLANES, kept),
    "feature.multiscale_basic_features": (lambda f, i: f(i, sigma_max=1), PLANES, kept),
    "filters.correlate_sparse": (lambda f, i: f(i, cube(i)), BOTH, kept),
    "util.compare_images": (lambda f, i: f(i, i), BOTH, kept),
    **{f"util.img_as_{name}": (plainly, BOTH, kept) for name in ("ubyte", "uint", "int")},
    **{f"raster.{name}": (plainly, PLANES, kept) for name in ("slope", "aspect", "hillshade")},
    "raster.focal_statistics": (lambda f, i: f(i, 3, "mean"), PLANES, kept),
    "hi.asarray": (plainly, BOTH, kept),
    "hi.iterate": (lambda f, i: f(lambda u: ndimage.uniform_filter(u, 3), i, 5).state, BOTH, kept),
    "hi.jit": (lambda f, i: f(lambda u: u + 1)(i), BOTH, kept),
    "hi.maximum": (windowed, BOTH, kept),
    "hi.minimum": (windowed, BOTH, kept),
    "hi.where": (lambda f, i: f(i > 5, i, 0), BOTH, kept),
    "hi.stack": (lambda f, i: f([i, i], axis=-1), PLANES, kept),
    "Image.transpose": (plainly, BOTH, lambda _, sides: sides[::-1]),
    "Image.swapaxes": (lambda f, i: f(i, 0, -1), BOTH, lambda _, sides: sides[::-1]),
    "Image.cumsum": (lambda f, i: f(i, 0), BOTH, kept),
    "Image.lookup": (lambda f, i: f(i.astype("u1"), np.arange(256.0)), BOTH, kept),
    "Image.convert_colour": (lambda f, i: f(hi.stack([i, i, i], axis=-1), "rgb", "hsv"), PLANES, kept),
    "Image.astype": (lambda f, i: f(i, "f4"), BOTH, kept),
    "Image.clip": (lambda f, i: f(i, 1, 9), BOTH, kept),
    "Image.luminance": (plainly, BOTH, kept),
    "Image.channel": (lambda f, i: f(i, 0), BOTH, kept),
    "Image.resize": (lambda f, i: f(i, (18, 6)), PLANES, lambda _, sides: (sides[0] / 2, sides[1] * 2)),
    "Image.paste": (lambda f, i: f(i, i[..., 2:4, 3:5], 2, 3), BOTH, kept),
    **{f"Tiles.{name}": (lambda f, i: f(i.tiles(2, 3)), BOTH, tiled) for name in ("max", "mean", "min", "std", "sum", "var")},
    "Image.to_device": (lambda f, i: f(i, hi.session(device="cpu")), BOTH, kept),
    "Image.with_alpha": (lambda f, i: f(hi.stack([i, i], axis=-1)), PLANES, kept),
    "Image.with_pixel_size": (lambda f, i: f(i, 3.0), BOTH, lambda i, _: (3.0,) * i.ndim),
}
"""A call of each function that returns images, and the sides of the result's pixels."""

NO_IMAGES = {
    *(f"{row.area}.{row.name}" for row in FUNCTIONS if not is_of_images(row)),
    # Files are read and written, and classes.
    *(f"hi.{name}" for name in ("HorusError", "Image", "Iterated", "MemoryInUse", "MemoryUse", "Session", "Tiles", "get_all", "map", "open", "save")),
    *(f"hi.{name}" for name in ("series", "session", "show", "within")),
    *(f"Image.{name}" for name in ("compute", "start", "tiles", "save", "min", "max", "sum", "mean", "var", "std", "any", "all")),
}


def public() -> dict[str, Any]:
    """All public functions, and methods of images."""
    found = {f"{row.area}.{row.name}": row.function for row in FUNCTIONS} | {f"hi.{name}": getattr(hi, name) for name in hi.__all__}
    for kind in (hi.Image, hi.Tiles):
        found |= {f"{kind.__name__}.{name}": method for name, method in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
    return {name: each for name, each in found.items() if callable(each)}


@pytest.mark.parametrize("name", sorted(public()))
def test_every_function_keeps_the_size_of_pixels_or_is_listed(name: str) -> None:
    assert (name in CASES) != (name in NO_IMAGES), f"a row for {name}: what becomes of the size of pixels"
    if name in NO_IMAGES:
        return
    call, dimensions, expected = CASES[name]
    for ndim in dimensions:
        given = image(ndim)
        assert given.pixel_size is not None
        result = call(public()[name], given)
        assert isinstance(result, hi.Image)
        want = expected(given, given.pixel_size)
        assert result.pixel_size == (None if want is None else pytest.approx(want, rel=1e-12)), f"{ndim} axes"


def test_rows_are_of_functions_that_there_are() -> None:
    assert {*CASES, *NO_IMAGES} == public().keys()


@pytest.mark.parametrize("ufunc", sorted(UFUNCS, key=lambda ufunc: ufunc.__name__), ids=lambda ufunc: ufunc.__name__)
def test_functions_of_numpy_keep_the_size_of_pixels(ufunc: np.ufunc) -> None:
    given = image(2)
    whole = ufunc.__name__.startswith("bitwise") or ufunc in (np.invert, np.left_shift, np.right_shift)
    operand = given if whole else given.astype("f4")
    if ufunc is np.matmul:
        assert ufunc(operand, operand.compute().T.copy()).pixel_size is None
        return
    array = operand.compute()
    # An array says nothing, and contradicts nothing.
    for given in ([operand] * ufunc.nin, (operand, array)[: ufunc.nin], (array, operand)[-ufunc.nin :]):
        found = ufunc(*given)
        for result in found if isinstance(found, tuple) else (found,):
            assert result.pixel_size == (2.0, 1.0)


def test_images_of_pixels_of_different_sizes_have_none_together() -> None:
    one, other = image(2), image(2, (2.0, 3.0))
    rounded = image(2, (2.0, 1.0000001))
    for combine in (lambda a, b: a + b, hi.maximum, lambda a, b: hi.where(a > 5, a, b), lambda a, b: (a > 5) & (b > 5)):
        assert combine(one, other).pixel_size is None
        assert combine(one, rounded).pixel_size == (2.0, 1.0)
        assert combine(one, image(2)[::-1, ::-1]).pixel_size == (2.0, 1.0)
    assert segmentation.watershed(one, hi.asarray(markers(one)).with_pixel_size(7.0)).pixel_size is None
    assert ndimage.binary_dilation(one > 5, mask=other > 5).pixel_size is None
    assert filters.canny(one, mask=other > 5).pixel_size is None


def test_turned_pixels_keep_their_size_if_they_have_one() -> None:
    square = image(2, (0.5, 0.5))
    assert ndimage.rotate(square, 30.0).pixel_size == pytest.approx((0.5, 0.5))
    assert ndimage.rotate(square, 30.0, order=1, reshape=False).pixel_size == pytest.approx((0.5, 0.5))
    assert ndimage.rotate(image(2), 30.0).pixel_size is None, "pixels with oblique sides"
    for order in (0, 1, 3):
        assert ndimage.rotate(image(2), 270, order=order).pixel_size == (1.0, 2.0)
        assert ndimage.zoom(image(2), (2, 1), order=order, grid_mode=True, mode="nearest").pixel_size == (1.0, 1.0)
        shear = ndimage.affine_transform(image(2), [[1, 0.5], [0, 1]], order=order)
        assert shear.pixel_size is None
    # Levels become rows.
    assert ndimage.rotate(image(3), 90, axes=(0, 1), order=1).pixel_size == (2.0, 4.0, 1.0)
    assert ndimage.zoom(image(3), (0.5, 1, 1)).pixel_size == pytest.approx((10.0, 2.0, 1.0))
    assert image(3)[::2, ::3].pixel_size == (8.0, 6.0, 1.0)


KEYS = (1, 1, 0, 1, 1025, 0, 1, 1)


def geotiff(path: Path, array: np.ndarray[Any, Any], nodata: str = "255", east: float = 500.0) -> None:
    """Pixels of 10 by 20 metres."""
    tags = [
        (33550, "d", 3, (10.0, 20.0, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, east, 4000.0, 0.0), True),
        (34735, "H", 8, KEYS, True),
        (42113, "s", 0, nodata, True),
    ]
    tifffile.imwrite(path, array, photometric="minisblack", extratags=tags)


def told(path: Path) -> tuple[np.ndarray[Any, Any] | None, str | None]:
    """The map from columns and rows, counted from the corner of the first pixel, to places; and the value of missing pixels."""
    with tifffile.TiffFile(path) as file:
        tags = file.pages[0].tags
        value = {code: tags[code].value for code in (33550, 33922, 34264, 42113) if code in tags}
    if 34264 in value:
        found = np.reshape(value[34264], (4, 4))[:2, [0, 1, 3]]
    elif 33550 in value:
        (sx, sy, _), (i, j, _, x, y, _) = value[33550], value[33922]
        found = np.array([[sx, 0, x - i * sx], [0, -sy, y + j * sy]])
    else:
        return None, value.get(42113)
    return found, value.get(42113)


WHOLE = np.array([[10.0, 0.0, 500.0], [0.0, -20.0, 4000.0]])
MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "affine": lambda n, a: n.affine_transform(a, [[0.5, 0.25], [-0.25, 0.75]], (3.0, 1.0), order=1),
    "diagonal": lambda n, a: n.affine_transform(a, [0.5, 0.75], (3.0, 1.0), order=1),
    "rotate": lambda n, a: n.rotate(a, 30.0, order=1),
    "quarter": lambda n, a: n.rotate(a, 90.0, order=1),
    "shift": lambda n, a: n.shift(a, (1.5, -2.25), order=1),
    "zoom": lambda n, a: n.zoom(a, (2.0, 0.5), order=1),
    "grid": lambda n, a: n.zoom(a, (2.0, 0.5), order=1, grid_mode=True, mode="nearest"),
}


@pytest.mark.filterwarnings("ignore:The behavior of affine_transform")
@pytest.mark.parametrize("name", MOVES)
def test_grids_move_with_pixels(tmp_path: Path, name: str) -> None:
    move, (height, width) = MOVES[name], (20, 30)
    geotiff(tmp_path / "in.tif", np.zeros((height, width), np.float32))
    move(ndimage, hi.open(tmp_path / "in.tif")).save(tmp_path / "out.tif")
    found, _ = told(tmp_path / "out.tif")
    assert found is not None
    # SciPy moves an image of rows, and one of columns, as it moves others.
    rows, columns = (move(scipy.ndimage, axis.astype(np.float64)) for axis in np.mgrid[:height, :width])
    middle = [n // 2 for n in rows.shape]
    for y, x in (middle, [middle[0] + 1, middle[1]], [middle[0], middle[1] + 2]):
        place = found @ [x + 0.5, y + 0.5, 1.0]
        np.testing.assert_allclose(place, WHOLE @ [columns[y, x] + 0.5, rows[y, x] + 0.5, 1.0], rtol=0, atol=1e-6)


def test_functions_of_a_geotiff_lie_where_it_lies(tmp_path: Path) -> None:
    array = (np.arange(600) * 37 % 251).astype(np.uint8).reshape(20, 30)
    geotiff(tmp_path / "in.tif", array)
    given = hi.open(tmp_path / "in.tif")
    for name, (call, dimensions, expected) in CASES.items():
        if 2 not in dimensions or expected is not kept:
            continue
        if name != "ndimage.shift":
            call(public()[name], given).astype("f4").save(tmp_path / "out.tif")
            found, _ = told(tmp_path / "out.tif")
            assert found is not None and np.array_equal(found, WHOLE), name


def test_images_of_one_grid_keep_it_together(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    array = (np.arange(600) * 37 % 251).astype(np.uint8).reshape(20, 30)
    geotiff(tmp_path / "a.tif", array)
    geotiff(tmp_path / "b.tif", array[::-1], nodata="0")
    geotiff(tmp_path / "c.tif", array, east=510.0)
    a, b, c = (hi.open(tmp_path / f"{name}.tif") for name in "abc")
    for result, nodata in ((a + b, "255"), (b + a, "0"), (hi.where(b > 5, a, 0), "255"), (a + array, "255"), ((a > 5) & (b > 5), None)):
        result.save(tmp_path / "out.tif")
        found, missing = told(tmp_path / "out.tif")
        assert found is not None and np.array_equal(found, WHOLE) and missing == nodata
    for name in ("one.tif", "two.tif"):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            (a + c).save(tmp_path / name)
        assert told(tmp_path / name) == (None, "255")
        why = f"{tmp_path / name}: its georeference is not stored: images on different grids were combined (add)"
        assert [record.getMessage() for record in caplog.records] == [why]


def sizes_of(path: Path) -> list[np.ndarray[Any, Any]]:
    with tifffile.TiffFile(path) as file:
        return [page.asarray() for page in file.pages]


@pytest.mark.parametrize(
    ("dtype", "nodata", "words"),
    [
        ("u1", 255, "255"),
        ("u1", 0, "0"),
        ("i2", -9999, "-9999"),
        ("u4", 2**32 - 1, "4294967295"),
        ("f4", -9999.0, "-9999"),
        ("f4", np.nan, "nan"),
        ("f8", 1e30, "1e30"),
        ("f4", 0.1, "0.10000000149011612"),
        ("f4", -1e38, "-9.999999680285692e37"),
        ("f8", -np.inf, "-inf"),
    ],
)
def test_the_value_of_missing_pixels_is_written(tmp_path: Path, dtype: str, nodata: float, words: str) -> None:
    array = np.arange(64).reshape(8, 8).astype(dtype)
    array[:3, :3] = nodata
    # As of tiles that are compressed, and of a cloud optimized GeoTIFF.
    for k, more in enumerate(({}, {"tile": 16, "compression": "deflate"}, {"sizes": 2})):
        path = tmp_path / f"{k}.tif"
        hi.save(path, array, nodata=nodata, **more)
        assert told(path)[1] == words
        pages = sizes_of(path)
        np.testing.assert_array_equal(pages[0], array)
        with tifffile.TiffFile(path) as file:
            assert file.pages[0].nodata == pytest.approx(nodata, nan_ok=True)
        # It is read again, and belongs to what is computed without a change of type.
        hi.open(path)[1:].save(tmp_path / "again.tif")
        assert told(tmp_path / "again.tif")[1] == words
    if dtype == "u4":
        return  # labels have modes
    known = np.ma.masked_array(array, np.isnan(array) if np.isnan(nodata) else array == array.dtype.type(nodata))
    blocks = known.astype("f8").reshape(4, 2, 4, 2)
    want = blocks.mean((1, 3))
    # A value stays where more than half of a block is missing.
    want[np.ma.getmaskarray(blocks).sum((1, 3)) > 2] = np.ma.masked
    want = (want if dtype[0] == "f" else np.ma.round(want)).filled(nodata).astype(dtype)
    np.testing.assert_allclose(pages[1], want, rtol=1e-6)


def test_the_value_of_missing_pixels_comes_before_that_of_the_picture(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    array = (np.arange(600) * 37 % 251).astype(np.uint8).reshape(20, 30)
    geotiff(tmp_path / "in.tif", array)
    given = hi.open(tmp_path / "in.tif")
    with caplog.at_level(logging.WARNING):
        given.save(tmp_path / "out.tif", nodata=7)
        found, missing = told(tmp_path / "out.tif")
        assert found is not None and np.array_equal(found, WHOLE) and missing == "7"
        # The other type would lose 255, and nobody asks for it; a scaled sample is one of the file.
        given.astype("f4").save(tmp_path / "floats.tif", nodata=-1)
        assert told(tmp_path / "floats.tif")[1] == "-1"
        hi.save(tmp_path / "scaled.tif", np.array([[0.0, 1.0]]), depth=8, nodata=255)
        assert told(tmp_path / "scaled.tif")[1] == "255"
    assert not caplog.records


def test_what_cannot_hold_a_value_of_missing_pixels_says_so(tmp_path: Path) -> None:
    array = np.zeros((4, 4), np.uint8)
    for name in ("a.png", "a.jpg", "a.npy", "a.pgm", "a.bmp"):
        with pytest.raises(OSError, match="no value of missing pixels .*save as tif"):
            hi.save(tmp_path / name, array, nodata=0)
        assert not (tmp_path / name).exists()
    with pytest.raises(OSError, match="nodata"):
        hi.save(tmp_path / "a.zarr", array, nodata=0)
    for dtype, nodata in (("u1", -1), ("u1", 256), ("i2", 0.5), ("u2", np.nan), ("i4", np.inf), ("f4", 1e300)):
        with pytest.raises(OSError, match=f"nodata.* samples of .* do not hold it"):
            hi.save(tmp_path / "a.tif", array.astype(dtype), nodata=nodata)
        assert not (tmp_path / "a.tif").exists()
