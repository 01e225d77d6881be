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
from skimage import color, feature, filters, io, measure, morphology, registration, restoration

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


def flat_field(raw, darks, flats):
    dark = np.median(darks, 0)
    flat = np.median(flats, 0) - dark
    even = (raw - dark) * flat.mean() / np.maximum(flat, 1)
    return np.where(flat < 0.1 * flat.mean(), ndi.median_filter(even, 3, mode="mirror"), even)


def cells(image):
    smooth = gauss(image, 1)
    bright = smooth - morphology.opening(smooth, morphology.disk(12), mode="mirror")
    return opening(bright > filters.threshold_otsu(bright, 256), morphology.disk(2))


def seeds(image, sigma, contrast):
    smooth = gauss(image, sigma)
    rise = smooth - morphology.reconstruction(smooth - contrast, smooth, footprint=np.ones((3, 3)))
    return ndi.label(rise > 0.9 * contrast, np.ones((3, 3)))[0]


def focus_stack(frames, sigma):
    """The number of the sharpest frame."""
    return np.argmax([gauss(ndi.laplace(frame, mode="mirror")**2, sigma) for frame in frames], axis=0)


def moved(image, motion):
    turn, down, right = motion
    matrix = [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
    return ndi.affine_transform(image, matrix, (down, right), order=1, mode="grid-constant", cval=-1)


def register(fixed, moving, sigmas):
    """Gauss and Newton's steps for turn, rows and columns, each solved as a least-squares problem of all pixels."""
    motion = np.zeros(3)
    y, x = np.indices(fixed.shape)
    for sigma in sigmas:
        for _ in range(10):
            there = moved(gauss(moving, sigma), motion)
            seen = ndi.grey_erosion((there >= 0).astype(np.uint8), footprint=morphology.disk(1), mode="mirror") > 0
            gy, gx = sobel(there, 0) / 8, sobel(there, 1) / 8
            slopes = np.stack([gy * x - gx * y, gy, gx], -1)[seen]
            turn, down, right = np.linalg.lstsq(slopes, (gauss(fixed, sigma) - there)[seen], rcond=None)[0]
            cos, sin = math.cos(motion[0]), math.sin(motion[0])
            motion += (turn, down * cos + right * sin, right * cos - down * sin)
    return motion


def quality(image):
    grey = image.mean(-1, keepdims=True)
    contrast = np.abs(ndi.laplace(image @ [0.299, 0.587, 0.114], mode="mirror"))
    return contrast * np.sqrt(((image - grey)**2).sum(-1)) * np.exp(-((image - 0.5)**2).sum(-1) / 0.08) + 1e-12


def fuse(exposures, levels, up):
    """Mertens et al., level by level: the pyramids of all exposures, weighted, summed from the coarsest."""
    weights = np.array([quality(image) for image in exposures])
    weights /= weights.sum(0)
    exposures = [image.transpose(2, 0, 1) for image in exposures]
    pyramids = [(exposures, weights)]
    for _ in range(levels):
        exposures, weights = pyramids[-1]
        pyramids.append(([[down(c) for c in image] for image in exposures], [down(w) for w in weights]))
    fused = [0, 0, 0]
    for level, (exposures, weights) in reversed(list(enumerate(pyramids))):
        fused = [f if level == levels else up(f, weights[0].shape) for f in fused]
        for i, (image, weight) in enumerate(zip(exposures, weights)):
            for c, plane in enumerate(image):
                detail = plane if level == levels else plane - up(pyramids[level + 1][0][i][c], plane.shape)
                fused[c] = fused[c] + weight * detail
    return np.stack(fused, -1)


def stars(light, sigmas):
    smooth = gauss(light, 1.5)
    noise = np.median(np.abs(smooth - np.median(smooth))) * 1.4826
    return ndi.label(smooth > sigmas * noise, np.ones((3, 3)))[0]


def lucas_kanade(first, second, motion, size, slopes_of):
    """Rows and columns by which each pixel moves, from what was found before."""
    there = ndi.map_coordinates(second, np.indices(first.shape) + motion, order=1, mode="nearest")
    slopes = np.array(slopes_of(there))
    change = first - there + (slopes * motion).sum(0)
    mean = lambda image: ndi.uniform_filter(image, size, mode="mirror")
    moments = np.stack([np.stack([mean(a * b) for b in slopes], -1) for a in slopes], -1)
    return np.moveaxis(np.linalg.solve(moments, np.stack([mean(a * change) for a in slopes], -1)[..., None])[..., 0], -1, 0)


def flow(first, second, size, levels):
    motion = np.zeros((2, *first.shape))
    if levels > 1:
        motion = np.array([2 * up(c, first.shape) for c in flow(down(first), down(second), size, levels - 1)])
    for _ in range(3):
        motion = lucas_kanade(first, second, motion, size, lambda image: [sobel(image, axis) / 8 for axis in (0, 1)])
    return motion


def granulometry(image, largest):
    openings = [morphology.opening(image, morphology.disk(r), mode="mirror") for r in range(1, largest + 1)]
    lost = -np.diff([image, *openings], axis=0)
    return lost.sum((1, 2), np.float64) / image.sum(dtype=np.float64), np.where(lost.max(0) > 0, np.argmax(lost, 0) + 1, 0)


def orientation(yy, yx, xx):
    """From the eigenvectors and eigenvalues of the second moments."""
    values, vectors = np.linalg.eigh(np.stack([np.stack([yy, yx], -1), np.stack([yx, xx], -1)], -2))
    y, x = vectors[..., 0, 0], vectors[..., 1, 0]
    return np.arctan2(-y, x) % np.pi, (values[..., 1] - values[..., 0]) / values.sum(-1)


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

edges = decided(grey, lambda image: feature.canny(image, 1, 0.06, 0.2))
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


def darker(image):
    clean = ndi.median_filter(image, 5, mode="mirror")
    return gauss(clean, 8) - clean > 0.03


save("tutorial", decided(grey, darker), np.uint8)


random = np.random.default_rng(11)
y, x = np.mgrid[:32, :40]
falloff = 1 - ((y - 16)**2 + (x - 20)**2) / 1000
falloff[:, 9] = 0
current = 400 + 40 * ((3 * y + x) % 5)
light = [np.zeros_like(falloff)] * 3 + [falloff] * 3 + [falloff * grey[30:62, 40:80]]
camera = np.array([np.rint(20000 * part + current + random.integers(0, 300, part.shape)) for part in light])
save("camera", camera, np.uint16)
flat = np.median(camera[3:6], 0) - np.median(camera[:3], 0)
assert not ((0.05 < flat / flat.mean()) & (flat / flat.mean() < 0.2)).any(), "a pixel is dead or not"
save("flat_field", flat_field(camera[6], camera[:3], camera[3:6]))

y, x = np.mgrid[:72, :96]
centres = [(10, 12, 7), (14, 24, 7), (40, 15, 8), (60, 30, 6), (33, 48, 8), (42, 58, 7), (12, 60, 7), (58, 62, 8), (20, 84, 7), (50, 84, 8), (61, 76, 7)]
bright = np.max([np.maximum(1 - np.hypot(y - cy, x - cx) / r, 0)**0.5 for cy, cx, r in centres], axis=0)
picture = np.rint(255 * np.clip(0.6 * bright + 0.002 * x + 0.02 * random.standard_normal(bright.shape) + 0.05, 0, 1))
save("cells", picture, np.uint8)
picture = (picture.astype(np.float32) / np.float32(255)).astype(np.float64)
mask, labels = decided(picture, cells), decided(picture, lambda image: seeds(image, 2, 0.05))
assert labels.max() == len(centres) > ndi.label(mask)[1], "some touch"
assert ndi.label(morphology.h_maxima(gauss(picture, 2), 0.05))[1] == len(centres)
save("cells_mask", mask, np.uint8)
save("cells_seeds", labels, np.uint8)

y, x = np.mgrid[:72, :96]
ink = (y % 9 < 5) & ((x // 5 + 3 * (y // 9)) % 6 > 0) & ((3 * x + y // 9 + y % 2) % 4 > 1) & (y > 8) & (y < 62) & (x > 8) & (x < 88)
page = np.rint(255 * (0.9 - 0.8 * ndi.rotate(ink.astype(float), -3.5, reshape=False, order=1)))
save("page", page, np.uint8)
page = (page.astype(np.float32) / np.float32(255)).astype(np.float64)
angles = np.arange(-20, 21) * 0.5
turned = [ndi.rotate(1 - page, a, reshape=False, order=1, mode="grid-constant") for a in angles]
profiles = [t.sum(1).var() for t in turned]
assert angles[np.argmax(profiles)] == 3.5
save("deskew", profiles)

cover = 1 - grey[20:68, 30:94]
red, near = (np.rint(b + 30 * random.standard_normal(cover.shape)) for b in (2600 - 2400 * cover, 1000 + 4000 * cover))
red[:6] = near[:6] = 0
save("bands", [red, near], np.uint16)
index = np.where(red + near > 0, (near - red) / np.maximum(near + red, 1), 0)
save("ndvi", index)
y, x = np.indices(cover.shape)
parcels = y // 16 * 4 + x // 16
save("ndvi_fields", ndi.mean(index, np.where((red > 0) & (near > 0), parcels, 255), np.arange(12)))

scene = grey[20:68, 30:94]
depth = x / 24
near = [np.abs(depth - focus) for focus in (0.3, 1.3, 2.3)]
frames = np.rint(255 * np.array([np.where(n < 0.5, scene, gauss(scene, 1.5)) for n in near]))
save("focus", frames, np.uint8)
frames = (frames.astype(np.float32) / np.float32(255)).astype(np.float64)
sharpest = decided(frames, lambda frames: focus_stack(frames, 2))
save("focus_depth", sharpest, np.uint8)
save("focus_stack", np.take_along_axis(frames, sharpest[None], 0)[0])

half = pixels[..., 1].reshape(192, 2, 256, 2).mean((1, 3)) / 255
turn, shift = math.radians(2.5), np.array([1.6, -2.3])
inverse = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
origin = np.array([70, 110])
turned = ndi.affine_transform(half, inverse, origin - inverse @ shift, (48, 64), order=3, mode="mirror")
pair = np.rint(255 * np.array([half[70:118, 110:174], turned]))
save("pair", pair, np.uint8)
fixed, moving = (pair.astype(np.float32) / np.float32(255)).astype(np.float64)
motion = register(fixed, moving, (4, 2, 1))
save("registration", motion)


def positions(motion):
    """Where each pixel of the first picture lies in the second."""
    turn, rows, columns = motion
    y, x = np.indices(fixed.shape)
    return np.array([y * math.cos(turn) + x * math.sin(turn) + rows, x * math.cos(turn) - y * math.sin(turn) + columns])


true = positions((turn, *shift))
assert np.abs(positions(motion) - true).max() < 0.05
ecc = cv2.findTransformECC(fixed.astype(np.float32), moving.astype(np.float32), np.eye(2, 3, dtype=np.float32),
                           cv2.MOTION_EUCLIDEAN, (cv2.TERM_CRITERIA_COUNT, 200, 0), None, 1)[1]
theirs = (math.atan2(ecc[1, 0], ecc[0, 0]), ecc[1, 2], ecc[0, 2])
assert np.abs(positions(motion) - positions(theirs)).max() < 0.1, (motion, theirs)

found = flow(fixed, moving, 11, 3)
save("optical_flow", found)
distance = np.hypot(*(found - (true - np.indices(fixed.shape)))[:, 8:-8, 8:-8])
assert distance.mean() < 0.15, distance.mean()
corner, motion = (fixed[:30, :30], moving[:30, :30]), np.zeros((2, 30, 30))
for _ in range(3):
    motion = lucas_kanade(*corner, motion, 11, np.gradient)
# One level, as the picture is small.
assert np.allclose(motion, registration.optical_flow_ilk(*corner, radius=5, num_warp=3, dtype=np.float64), atol=1e-9)

light = np.exp(np.linspace(-1.5, 1.5, 64))[:, None]
exposures = np.rint(255 * np.clip(unit[20:68, 30:94] * light * np.array([0.3, 1, 3])[:, None, None, None], 0, 1))
save("exposures", exposures, np.uint8)
theirs = cv2.createMergeMertens(1, 1, 1).process([e.astype(np.uint8) for e in exposures])
exposures = (exposures.astype(np.float32) / np.float32(255)).astype(np.float64)
ours = fuse(exposures, int(math.log2(48)), lambda image, shape: cv2.pyrUp(image, dstsize=shape[::-1]))
assert np.allclose(ours, theirs, atol=1e-4), np.abs(ours - theirs).max()
save("exposure_fusion", fuse(exposures, 4, up))

y, x = np.mgrid[:64, :80]
grid = np.array([(15 * i + 10, 15 * j + 10) for i in range(4) for j in range(5)]) + random.uniform(-2, 2, (20, 2))
places = np.column_stack([grid, 1000 / np.arange(1, 21)**0.5])
sky = sum(p * np.exp(-((y - cy)**2 + (x - cx)**2) / 4.5) for cy, cx, p in places)
sky = np.rint(sky + 500 + 2 * y + 10 * random.standard_normal(y.shape))
save("sky", sky, np.uint16)
light = sky - ndi.median_filter(sky, footprint=morphology.disk(8), mode="mirror")
save("stars_light", light)
labels = decided(light, lambda light: stars(light, 5))
save("stars", labels, np.uint8)
numbers = np.arange(1, labels.max() + 1)
assert len(numbers) == len(places)
centres = np.array(ndi.center_of_mass(light, labels, numbers))
assert all(np.hypot(*(centres - p[:2]).T).min() < 0.25 for p in places), "a quarter of a pixel"
save("stars_measured", np.column_stack([ndi.sum(light, labels, numbers), centres]))

# Pixels lose the same at several radii: what each loses is one difference of f32, the same everywhere.
shares, sizes = granulometry(grey.astype(np.float32), 6)
save("granulometry", shares)
save("granulometry_sizes", sizes, np.uint8)


def moments(image, smooth, mode):
    gy, gx = sobel(image, 0, mode), sobel(image, 1, mode)
    return smooth(gy * gy), smooth(gy * gx), smooth(gx * gx)


theirs = feature.structure_tensor(grey, 1.5, mode="nearest", order="rc")
assert np.allclose(theirs, moments(grey, lambda i: ndi.gaussian_filter(i, 1.5, mode="nearest"), "nearest"), atol=1e-12)
angle, coherence = orientation(*moments(grey, lambda i: gauss(i, 1.5), "mirror"))
# As a vector of twice the angle, which does not jump from pi to 0.
save("orientation", coherence * np.array([np.cos(2 * angle), np.sin(2 * angle)]))
