"""Resizing beside Pillow, exact areas and scikit-image."""

import horus_image as hi
import numpy as np
import pytest
from PIL import Image
from skimage import transform

KERNELS = {"box": "BOX", "triangle": "BILINEAR", "hamming": "HAMMING", "cubic": "BICUBIC", "lanczos": "LANCZOS"}
SIZES = [(13, 20), (95, 77), (17, 80), (1, 1), (40, 7), (1, 200)]


def picture(dtype, shape=(40, 53)):
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("how", KERNELS)
@pytest.mark.parametrize("size", SIZES)
def test_kernels_are_those_of_pillow(how, size):
    image = picture(np.float32)
    theirs = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling[KERNELS[how]]))
    # Pillow sums in float64 and rounds between the passes; here up to 240 x 318 numbers are summed in float32.
    np.testing.assert_allclose(hi.asarray(image).resize(size, how).compute(), theirs, atol=2e-6)
    # Without black and white: Pillow saturates between the passes, too.
    image = picture(np.uint8) // 3 + 80
    theirs = np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling[KERNELS[how]])).astype(int)
    ours = hi.asarray(image).resize(size, how)
    assert ours.dtype == np.uint8
    assert np.abs(ours.compute() - theirs).max() <= 1


def shares(lines, to):
    """The share of each line in each line of the result."""
    first, line = np.arange(to)[:, None] * lines / to, np.arange(lines)[None, :]
    return (np.minimum(first + lines / to, line + 1) - np.maximum(first, line)).clip(0) * to / lines


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("size", [(13, 20), (20, 53), (95, 77), (1, 1), (41, 54)])
def test_areas_are_exact(dtype, size):
    image = picture(dtype)
    exact = shares(image.shape[0], size[0]) @ image.astype(float) @ shares(image.shape[1], size[1]).T
    ours = hi.asarray(image).resize(size, "area").compute()
    assert ours.dtype == dtype
    atol = 0.501 if np.dtype(dtype).kind == "u" else 2e-6
    np.testing.assert_allclose(ours.astype(float), exact, atol=atol)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint32])
def test_other_integers_are_rounded_sums(dtype):
    image = picture(dtype)
    for how in [*KERNELS, "area", "gaussian"]:
        exact = hi.asarray(image.astype(np.float64)).resize((29, 60), how).compute()
        limits = np.iinfo(dtype)
        want = np.clip(np.round(exact), limits.min, limits.max)
        got = hi.asarray(image).resize((29, 60), how).compute().astype(float)
        # Sums of narrow integers are of float32, which may round a half to the other side.
        assert np.abs(got - want).max() <= (1 if image.itemsize < 4 else 0), how


def test_the_gaussian_is_that_of_scikit_image_inside():
    image = picture(np.float64)
    theirs = transform.resize(image, (13, 20), order=1, mode="reflect", anti_aliasing=True)
    ours = hi.asarray(image).resize((13, 20), "gaussian").compute()
    np.testing.assert_allclose(ours[1:-1, 1:-1], theirs[1:-1, 1:-1], atol=1e-12)


def test_channels_and_levels_are_resized_alike():
    image = picture(np.uint8, (40, 53, 3))
    found = hi.asarray(image, channels=True).resize((17, 80), "lanczos").compute()
    assert found.shape == (17, 80, 3)
    for k in range(3):
        alone = hi.asarray(np.ascontiguousarray(image[..., k])).resize((17, 80), "lanczos").compute()
        np.testing.assert_array_equal(found[..., k], alone)
    volume = np.ascontiguousarray(np.moveaxis(image, 2, 0))
    np.testing.assert_array_equal(hi.asarray(volume).resize((17, 80), "lanczos").compute(), np.moveaxis(found, 2, 0))


def test_what_cannot_be_is_told():
    image = hi.asarray(picture(np.float32))
    with pytest.raises(ValueError, match="no interpolation and no average is called sinc"):
        image.resize((3, 4), "sinc")
    with pytest.raises(ValueError):
        image.resize((0, 4)).compute()
    with pytest.raises(TypeError):
        (image > 0.5).resize((3, 4))
    np.testing.assert_array_equal(image.resize((40, 53), "lanczos").compute(), image.compute())
