"""Pictures of files and stores."""

from __future__ import annotations

import os
from typing import Any

from ._image import Image, asarray, made
from ._session import Session, current
from .typing import ArrayLike


def open(
    path: str | os.PathLike[str],
    *,
    page: int | None = None,
    volume: bool = False,
    size: int = 0,
    max_pixels: int | None = None,
    session: Session | None = None,
) -> Image:
    """Read a picture: PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy, recognised by content, or a folder that is a Zarr store;
    or any of them on a server.

    Pixels of TIFF files, npy files and stores are read on demand, and only in the needed regions.

    Parameters
    ----------
    path : path_like
        The file or folder; or, as a string, a URL: ``https://``, ``http://`` or ``s3://``. A URL is one of a store unless it ends like the name of
        a picture file. The credentials for S3 are those of the environment (``AWS_ACCESS_KEY_ID`` and so on).
    page : int, optional
        The page of a TIFF file, or the time of a store or of the volume of a TIFF file that describes its pages (OME, ImageJ), from 0 on.
    volume : bool, optional
        All pages of a TIFF file as levels, or, where it describes them (OME, ImageJ, tifffile), as levels and channels; an array of three axes, of an npy file or of a store that does not name them, as levels,
        rows and columns.
    size : int, optional
        The size of an OME-Zarr image or of a page of a TIFF file, from 0 on, the largest.
    max_pixels : int, optional
        The most pixels that a picture may have; 2^32 by default. More is an error before memory is allocated.
    session : Session, optional
        As in `asarray`.

    Returns
    -------
    Image
        Of the file's type; of two axes, or three with channels.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If the file cannot be read or decoded, or a server cannot be reached or sends an error.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import horus_image as hi
    >>> path = os.path.join(tempfile.mkdtemp(), "slope.zarr")
    >>> hi.save(path, np.arange(1_000_000).reshape(1000, 1000).astype(np.uint32))
    >>> hi.open(path)[10:12, -2:].compute()
    array([[10998, 10999],
           [11998, 11999]], dtype=uint32)
    """
    for name, number in (("page", page), ("size", size)):
        if number is not None and number < 0:
            raise ValueError(f"{name} is {number}; it is counted from 0")
    session = session or current()
    core = session._core.read(os.fspath(path), page, volume, size, max_pixels)
    levels, channels = core.shape[0], core.shape[3]
    return made(core, session, 3 if volume or levels > 1 else 2, channels > 1)


def save(
    path: str | os.PathLike[str],
    image: ArrayLike,
    *,
    compression: str | None = None,
    tile: int | tuple[int, int] | None = None,
    sizes: int | None = None,
    resampling: str | None = None,
    pixel_size: float | tuple[float, ...] | None = None,
    depth: int | str = "auto",
    scaling: str = "auto",
    clipping: str = "warn",
    quality: int | None = None,
    nodata: float | None = None,
    channels: bool = False,
) -> None:
    """Write an image, or an array, to a file in the format of its extension, or to a Zarr store (``.zarr``).

    Integers are written unchanged, floats from 0 to 1 to the full range of the file, masks as 0 and its largest number; ``.npy``,
    float TIFF and stores keep values. The file gets its name when it is complete. An image computed from a file that needs more memory than
    there is, is written region by region.

    Parameters
    ----------
    path : path_like
        The file, or the folder of the store: OME-Zarr 0.5.
    image : Image or array_like
        The image to write.
    compression : {"none", "deflate", "lzw", "zstd"}, optional
        Compression of a TIFF file (default ``"none"``) or a store (default ``"zstd"``; without LZW).
    tile : int or (int, int), optional
        Rows and columns of the tiles of a TIFF file (multiples of 16; by default those of the tiled file that it
        is from, if it is larger than one of these, else strips), or of the chunks of a store (by
        default 512 each).
    sizes : int, optional
        Sizes of a store or of a TIFF file, 1 by default: each half as high and wide as the one before, rounded up, with a pixel for each block
        of two rows and two columns, counted from the first. A TIFF file is a cloud optimized GeoTIFF.
    resampling : {"average", "mode", "nearest"}, optional
        The pixels of smaller sizes: the mean of a block, of pixels that are not missing; its most frequent value; or its first pixel. By
        default the mode of masks, of ``int32`` and ``uint32``, as labels are, and of indices of a colour table, and the average of others.
    pixel_size : float or tuple of float, optional
        The side of a pixel in micrometres, or one for each axis of the image but channels; by default that of the image. Stores, OME-TIFF
        files (``.ome.tif``, with OME-XML) and, of rows and columns, TIFF and PNG files have it.
    depth : {"auto", 8, 16, "float"}, optional
        Bits of the samples of a file: integers of 8 or 16, floats of 32, or by default what holds the type of the image.
    scaling : {"auto", "none", "unit", "range"}, optional
        What becomes the full range of integers: 0 to 1, or 0 to the largest integer of the type (``"unit"``, the default of floats), the
        smallest to the largest pixel (``"range"``), or nothing (``"none"``, the default of integers).
    clipping : {"warn", "refuse", "allow"}, optional
        What happens where values lie outside that range.
    quality : int, optional
        Quality of a JPEG file, 1 to 100; 95 by default.
    nodata : float, optional
        The sample of a TIFF file that stands for missing pixels, in GDAL's tag; by default that of the file that the image was computed
        from. Of values that are scaled, it is a scaled one. Smaller sizes leave such pixels out.
    channels : bool, optional
        The last of three axes of an array is that of channels, as of `asarray`; by default an array of three axes is a volume.

    Raises
    ------
    OSError
        If the file cannot be written, or its format cannot hold the image, or has no value of missing pixels, or its samples cannot hold that.
    ValueError
        If no compression or resampling has that name, or there is not a `pixel_size` for each axis.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import numpy as np
    >>> import horus_image as hi
    >>> path = pathlib.Path(tempfile.mkdtemp(), "cells.zarr")
    >>> hi.save(path, np.zeros((256, 512), np.uint8), sizes=3, pixel_size=0.25)
    >>> hi.open(path, size=2).shape
    (64, 128)
    >>> metadata = json.loads((path / "zarr.json").read_text())
    >>> metadata["attributes"]["ome"]["multiscales"][0]["datasets"][2]["coordinateTransformations"]
    [{'type': 'scale', 'scale': [1.0, 1.0]}, {'type': 'translation', 'translation': [0.375, 0.375]}]
    """
    asarray(image, channels=channels).save(
        path,
        compression=compression,
        tile=tile,
        sizes=sizes,
        resampling=resampling,
        pixel_size=pixel_size,
        depth=depth,
        scaling=scaling,
        clipping=clipping,
        quality=quality,
        nodata=nodata,
    )
