"""Makes the stores that tests/stores/goldens.rs reads, by Python's own zarr: `pip install zarr==3.1.* numpy`, then
`python3 make.py`. Every sample is that of `sample`, which the test has, too."""

import shutil
from pathlib import Path

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

HERE = Path(__file__).parent
AXES = "tczyx"
STEPS = dict(t=101, c=53, z=29, y=7, x=3)


def sample(axes, shape, dtype):
    """The sum over all axes of the index times the axis's step, modulo 251."""
    total = np.zeros(shape, dtype=np.int64)
    for axis, index in zip(axes, np.indices(shape)):
        total += STEPS[axis] * index
    total %= 251
    return (total % 2 == 0) if dtype == "bool" else total.astype(dtype)


def array(name, axes, shape, dtype, version=3, data=True, **how):
    made = zarr.create_array(HERE / name, shape=shape, dtype=dtype, zarr_format=version, overwrite=True, **how)
    if data:
        made[...] = sample(axes, shape, dtype)
    return made


def group(name, version, attributes):
    shutil.rmtree(HERE / name, ignore_errors=True)
    zarr.create_group(HERE / name, zarr_format=version, attributes=attributes)


def axes_of(axes):
    kinds = dict(t="time", c="channel")
    return [dict(name=a, type=kinds.get(a, "space")) for a in axes]


# Arrays of version 3.
array("zstd.zarr", "yx", (13, 17), "uint16", chunks=(7, 10), compressors=ZstdCodec(level=5, checksum=True))
array("gzip.zarr", "zyx", (3, 11, 6), "uint8", chunks=(2, 6, 6), compressors=GzipCodec(level=5), dimension_names="zyx")
array(
    "shards.zarr", "yx", (14, 21), "float32", chunks=(3, 4), shards=(6, 8),
    compressors=[ZstdCodec(level=1), Crc32cCodec()],
)
array(
    "big.zarr", "yxc", (9, 10, 3), "int32", chunks=(5, 10, 2), serializer=BytesCodec(endian="big"),
    filters=TransposeCodec(order=(2, 0, 1)), compressors=None,
)
array("mask.zarr", "yx", (7, 9), "bool", chunks=(4, 9), compressors=None)
absent = array("absent.zarr", "yx", (8, 8), "float64", data=False, chunks=(4, 4), fill_value=0.5)
absent[4:, 4:] = sample("yx", (8, 8), "float64")[4:, 4:]

# Arrays of version 2.
array("v2-zstd.zarr", "yx", (10, 12), "uint16", 2, chunks=(6, 8), compressors=numcodecs.Zstd(level=3))
array("v2-zlib.zarr", "yxc", (10, 7, 3), "uint8", 2, chunks=(6, 4, 3), compressors=numcodecs.Zlib(level=3))
array("v2-gzip.zarr", "yx", (10, 12), ">i4", 2, chunks=(6, 8), compressors=numcodecs.GZip(level=3), order="F")
array("v2-blosc.zarr", "yx", (10, 12), "uint16", 2, chunks=(6, 8), compressors=numcodecs.Blosc("lz4", 5, 1))
array("v3-blosc.zarr", "yx", (10, 12), "uint16", chunks=(6, 8), compressors=BloscCodec(cname="zstd", clevel=3))
array("int64.zarr", "yx", (10, 12), "int64", chunks=(6, 8), compressors=ZstdCodec(level=3), fill_value=-1)
array("v2-uint64.zarr", "yx", (10, 12), ">u8", 2, chunks=(6, 8), compressors=None)
array("float16.zarr", "yx", (10, 12), "float16", chunks=(3, 4), shards=(6, 8), compressors=None)
array("v2-float16.zarr", "yx", (10, 12), "<f2", 2, chunks=(6, 8), compressors=numcodecs.Zstd(level=3))
array("complex.zarr", "yx", (2, 2), "complex64", compressors=None)

# OME-Zarr images.
for name, version, ome in [("ome-0.4.zarr", 2, "0.4"), ("ome-0.5.zarr", 3, "0.5")]:
    datasets = [
        dict(path=str(level), coordinateTransformations=[dict(type="scale", scale=[1, 1, 1, 2.0**level, 2.0**level])])
        for level in range(2)
    ]
    image = dict(name="test", axes=axes_of(AXES), datasets=datasets)
    multiscales = [image | (dict(version=ome) if version == 2 else {})]
    attributes = dict(multiscales=multiscales)
    group(name, version, attributes if version == 2 else dict(ome=dict(version=ome) | attributes))
    for level, (height, width) in enumerate([(12, 9), (6, 5)]):
        how = dict(chunks=(1, 2, 2, 8, 9))
        if version == 2:
            how |= dict(compressors=numcodecs.Zlib(level=3), chunk_key_encoding=dict(name="v2", separator="/"))
        else:
            how |= dict(compressors=ZstdCodec(level=3), shards=(1, 2, 4, 16, 9), dimension_names=list(AXES))
        array(f"{name}/{level}", AXES, (2, 2, 3, height, width), "uint8", version, **how)
