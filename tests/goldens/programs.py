#!/usr/bin/env python3
"""Writes programs/*.npy: what the programs of examples/ compute, by NumPy, SciPy and scikit-image. See README.md.

Horus smooths with a radius of ceil(3 sigma) and mirrors images without repeating the edge; scikit-image mostly takes
4 sigma and repeats the edge. Where that cannot be chosen, the algorithm is written out here with both as parameters, held
against scikit-image's function with its choice, and then computed with Horus's.
"""
import math
from pathlib import Path

import cv2
import numpy as np
from scipy import fft
from scipy import ndimage as ndi
from scipy import sparse
from scipy.sparse.linalg import spsolve
from skimage import color, feature, filters, io, measure, morphology, restoration

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parent.parent / "assets"
GOLDENS = HERE / "programs"


def save(name, array, dtype=np.float32):
    np.save(GOLDENS / f"{name}.npy", np.ascontiguousarray(array, dtype=dtype))


def gauss(image, sigma, order=0):
    return ndi.gaussian_filter(image, sigma, order, mode="mirror", radius=math.ceil(3 * sigma))


def sobel(image, axis, mode="mirror"):
    return ndi.sobel(image, axis=axis, mode=mode)


def decided(image, mask_of):
    """The mask, which must not hang on roundings: images that differ by those of f32 give it too."""
    random = np.random.default_rng(5)
    mask = mask_of(image)
    for _ in range(20):
        assert np.array_equal(mask, mask_of(image * (1 + 2e-6 * random.standard_normal(image.shape)))), mask_of
    return mask


# Programs.

def unsharp_mask(image, amount, smooth):
    return np.clip(image + (image - smooth) * amount, 0, 1)


def shifted(image, dy, dx):
    """The pixel dy below and dx to the right, 0 outside."""
    padded = np.pad(image, 1)
    return padded[1 + dy:1 + dy + image.shape[0], 1 + dx:1 + dx + image.shape[1]]


def canny(smooth, low, high, mode):
    gy, gx = sobel(smooth, 0, mode), sobel(smooth, 1, mode)
    magnitude = np.hypot(gx, gy)
    ax, ay = np.abs(gx), np.abs(gy)
    weight = np.minimum(ax, ay) / np.maximum(np.maximum(ax, ay), 1e-300)
    keep = magnitude >= low
    for s in (1, -1):
        straight = np.where(ay > ax, shifted(magnitude, s, 0), shifted(magnitude, 0, s))
        other = np.where(ay > ax, shifted(magnitude, s, -s), shifted(magnitude, -s, s))
        diagonal = np.where(gx * gy >= 0, shifted(magnitude, s, s), other)
        keep &= magnitude >= weight * diagonal + (1 - weight) * straight
    keep[[0, -1], :] = keep[:, [0, -1]] = False
    labels, count = ndi.label(keep, np.ones((3, 3)))
    strong = np.zeros(count + 1, bool)
    strong[labels[keep & (magnitude >= high)]] = True
    return strong[labels] & keep


def harris(image, k, smooth, mode):
    gy, gx = sobel(image, 0, mode), sobel(image, 1, mode)
    xx, xy, yy = smooth(gx * gx), smooth(gx * gy), smooth(gy * gy)
    return xx * yy - xy**2 - k * (xx + yy)**2


def corners(response, size):
    highest = ndi.maximum_filter(response, size, mode="mirror")
    return (response == highest) & (response > 0.01 * response.max())


def black_hat(image, footprint):
    closed = ndi.grey_erosion(ndi.grey_dilation(image, footprint=footprint, mode="mirror"), footprint=footprint, mode="mirror")
    return closed - image


def opening(mask, footprint):
    eroded = ndi.grey_erosion(mask.astype(np.uint8), footprint=footprint, mode="mirror")
    return ndi.grey_dilation(eroded, footprint=footprint, mode="mirror") > 0


def dark_lines(hessian, beta):
    """Equation 15 of Frangi et al. for dark lines, c half the largest norm of a Hessian."""
    yy, xy, xx = hessian
    values = np.linalg.eigvalsh(np.stack([np.stack([yy, xy], -1), np.stack([xy, xx], -1)], -2))
    order = np.argsort(np.abs(values), axis=-1)
    small, large = np.moveaxis(np.take_along_axis(values, order, -1), -1, 0)
    norm = np.hypot(small, large)
    with np.errstate(divide="ignore", invalid="ignore"):
        line = np.exp(-(small / large)**2 / (2 * beta**2)) * (1 - np.exp(-norm**2 / (2 * (norm.max() / 2)**2)))
    return np.where(large > 0, line, 0)


def hessian(image, sigma):
    return [sigma**2 * gauss(image, sigma, order) for order in ((2, 0), (1, 1), (0, 2))]


def perona_malik(image, kappa, rate, steps):
    for _ in range(steps):
        around = np.pad(image, 1, mode="edge")
        slopes = [around[:-2, 1:-1] - image, around[2:, 1:-1] - image, around[1:-1, :-2] - image, around[1:-1, 2:] - image]
        image = image + rate * sum(np.exp(-(s / kappa)**2) * s for s in slopes)
    return image


def laplace(image, holes):
    """The pixels of the holes from the equations that each is the mean of its mirrored neighbours, solved directly."""
    height, width = image.shape
    number = np.full(image.shape, -1)
    number[holes] = np.arange(holes.sum())
    matrix = sparse.lil_matrix((holes.sum(), holes.sum()))
    right = np.zeros(holes.sum())
    for y, x in np.argwhere(holes):
        i = number[y, x]
        matrix[i, i] += 1
        for ny, nx in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            ny, nx = (min(abs(v), 2 * n - 2 - abs(v)) for v, n in ((ny, height), (nx, width)))
            if holes[ny, nx]:
                matrix[i, number[ny, nx]] -= 0.25
            else:
                right[i] += 0.25 * image[ny, nx]
    filled = image.copy()
    filled[holes] = spsolve(matrix.tocsr(), right)
    return filled


def heat(image, rate, steps):
    """All steps at once: cosines are the eigenvectors of the Laplacian whose edge pixels are repeated."""
    y, x = (2 * np.cos(np.pi * np.arange(n) / n) - 2 for n in image.shape)
    return fft.idctn(fft.dctn(image) * (1 + rate * np.add.outer(y, x))**steps)


BINOMIAL = np.array([1, 4, 6, 4, 1]) / 16


def smooth_binomial(image, scale=1):
    for axis in (0, 1):
        image = ndi.correlate1d(image, scale * BINOMIAL, axis=axis, mode="mirror")
    return image


def down(image):
    return smooth_binomial(image)[::2, ::2]


def up(image, shape):
    spread = np.zeros(shape)
    spread[::2, ::2] = image
    return smooth_binomial(spread, 2)


def blend(a, b, mask, levels):
    """Burt and Adelson, level by level: both pyramids, mixed, summed from the coarsest."""
    gaussians = [(a, b, mask)]
    for _ in range(levels):
        gaussians.append(tuple(down(i) for i in gaussians[-1]))
    mixed = None
    for level, (a, b, mask) in reversed(list(enumerate(gaussians))):
        if level < levels:
            a, b = (i - up(j, i.shape) for i, j in zip((a, b), gaussians[level + 1]))
        here = mask * a + (1 - mask) * b
        mixed = here if mixed is None else here + up(mixed, here.shape)
    return mixed


# Inputs: the vessels at a quarter of their size, in colour and grey, and a square that crosses them.

pixels = io.imread(ASSETS / "vessels.png").astype(np.float64)
colour = np.rint(pixels.reshape(96, 4, 128, 4, 3).mean((1, 3))).astype(np.uint8)
save("colour", colour, np.uint8)
unit = (colour / np.float32(255)).astype(np.float32).astype(np.float64)
grey = (unit @ [0.299, 0.587, 0.114]).astype(np.float32).astype(np.float64)
save("grey", grey)

save("unsharp_mask", unsharp_mask(grey, 1.5, gauss(grey, 2)))
theirs = filters.gaussian(grey, 2, mode="reflect")
assert np.allclose(unsharp_mask(grey, 1.5, theirs), filters.unsharp_mask(grey, 2, 1.5), atol=1e-12)

theirs = filters.gaussian(grey, 1, mode="mirror")
assert np.array_equal(canny(theirs, 0.06, 0.2, "reflect"), feature.canny(grey, 1, 0.06, 0.2, mode="mirror"))
edges = decided(grey, lambda image: canny(gauss(image, 1), 0.06, 0.2, "mirror"))
assert 200 < edges.sum() < 2000
save("canny", edges, np.uint8)

theirs = harris(grey, 0.05, lambda i: filters.gaussian(i, 1.5, mode="constant"), "constant")
assert np.allclose(theirs, feature.corner_harris(grey, k=0.05, sigma=1.5), atol=1e-12)
response = harris(grey, 0.05, lambda i: gauss(i, 1.5), "mirror")
save("harris", response)
found = decided(grey, lambda image: corners(harris(image, 0.05, lambda i: gauss(i, 1.5), "mirror"), 7))
peaks = feature.peak_local_max(response, min_distance=3, threshold_rel=0.01, exclude_border=False)
assert {tuple(p) for p in peaks} == {tuple(p) for p in np.argwhere(found)} and len(peaks) > 5
save("harris_corners", found, np.uint8)

disc, cross = morphology.disk(6), morphology.disk(1)
dark = black_hat(grey.astype(np.float32), disc)
assert np.array_equal(dark, morphology.black_tophat(grey.astype(np.float32), disc, mode="mirror"))
save("otsu", [filters.threshold_otsu(dark.astype(np.float64), 256)])


def vessels(image):
    dark = black_hat(image, disc)
    return opening(dark > filters.threshold_otsu(dark, 256), cross)


save("otsu_vessels", decided(grey, vessels), np.uint8)


def segment(image):
    dark = black_hat(gauss(image, 1), disc)
    opened = opening(dark > filters.threshold_otsu(dark, 256), cross)
    grown = ndi.grey_dilation(opened.astype(np.uint8), footprint=cross, mode="mirror")
    return ndi.grey_erosion(grown, footprint=cross, mode="mirror") > 0


found = decided(grey, segment).astype(np.uint8)
save("segment", found, np.uint8)
measured = []
for region in measure.regionprops(found + 1, intensity_image=grey):
    values = region.image_intensity[region.image]
    y, x = region.coords.T
    covariance = np.cov(y, x, bias=True)
    measured.append([region.area, *region.centroid, covariance[0, 0], covariance[0, 1], covariance[1, 1],
                     values.mean(), values.var()])
save("segment_measured", measured)
tiles = [[found[y:y + 16, x:x + 16].mean() for x in range(0, found.shape[1], 16)] for y in range(0, found.shape[0], 16)]
save("segment_density", tiles)

theirs = feature.hessian_matrix(grey, 2, mode="reflect", use_gaussian_derivatives=True)
assert np.allclose(dark_lines(theirs, 0.5), filters.frangi(grey, [2], beta=0.5), atol=1e-9)
save("frangi", np.max([dark_lines(hessian(grey, s), 0.5) for s in (1, 1.5, 2.5)], axis=0))

save("sauvola", filters.threshold_sauvola(grey, 15, k=0.05, r=0.05))

scene = grey[20:68, 30:94]
frames = []
for time in range(6):
    frame = scene.copy()
    frame[8 + 4 * time:20 + 4 * time, 9 * time:9 * time + 14] += 0.3 + 0.02 * np.arange(14)[:np.clip(64 - 9 * time, 0, 14)]
    frames.append(frame.astype(np.float32).astype(np.float64))
save("frames", frames)


def foreground(frames):
    background, masks = frames[0] * 0.5 + 0.2, []
    for frame in frames:
        masks.append(opening(np.abs(frame - background) > 0.1, cross))
        background = cv2.accumulateWeighted(frame, background.copy(), 0.25)
    return np.array(masks), background


save("background_subtraction", decided(np.array(frames), lambda f: foreground(f)[0]), np.uint8)
save("background", foreground(frames)[1])

y, x = np.mgrid[-4:5, -4:5]
psf = np.exp(-(x - 0.7 * y)**2 / 2 - (y + 0.3 * x)**2 / 8)
psf = (psf / psf.sum()).astype(np.float32).astype(np.float64)
save("psf", psf)
blurred = ndi.convolve(grey, psf, mode="mirror").astype(np.float32).astype(np.float64)
save("blurred", blurred)
save("richardson_lucy", restoration.richardson_lucy(blurred, psf, 12))

save("perona_malik", perona_malik(grey, 0.05, 0.2, 15))

holes = np.zeros(grey.shape, bool)
holes[[y for y in range(10, 90)], [x for x in range(20, 100)]] = True
holes = ndi.binary_dilation(holes, iterations=2)
holes[40:46, :] = holes[:9, 60:66] = True
save("holes", holes, np.uint8)
save("jacobi", laplace(grey, holes))

# scikit-image returns the image of the dual variable before its last step.
save("chambolle", restoration.denoise_tv_chambolle(grey, 0.1, eps=0, max_num_iter=41))


def hysteresis(image):
    return filters.apply_hysteresis_threshold(black_hat(image, disc), 0.03, 0.13)


kept = decided(grey, hysteresis)
weak = black_hat(grey, disc) > 0.03
assert 100 < kept.sum() < weak.sum() - 100
save("hysteresis", kept, np.uint8)

save("heat", heat(grey, 0.2, 50))

means = unit.mean((0, 1))
balanced = np.clip(unit * (unit.mean() / means), 0, 1)
save("colour_grey_world", balanced)
hsv = color.rgb2hsv(unit)
hsv[..., 1] = np.minimum(hsv[..., 1] * 1.3, 1)
save("colour_saturate", color.hsv2rgb(hsv))

template = grey[30:49, 70:94]
save("template_matching", feature.match_template(grey * 0.5, template))

a, b = grey[:93, :117], grey[:93, 11:128][:, ::-1]
mask = (np.add.outer(np.arange(93), np.arange(117)) < 100).astype(np.float64)
assert np.allclose(down(a), cv2.pyrDown(a), atol=1e-12)
# OpenCV continues differently at the lower and the right edge.
assert np.allclose(up(down(a[:92, :116]), (92, 116))[:-2, :-2], cv2.pyrUp(cv2.pyrDown(a[:92, :116]))[:-2, :-2], atol=1e-12)
save("pyramids", blend(a, b, mask, 4))

save("tiling", np.maximum(gauss(grey, 2, (0, 2)), gauss(grey, 2, (2, 0))))
