"""Image processing as written by hand before reaching for a library: filters, transforms, labels and paths in loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.everyday.case import Case, Nature


def convolve(img, kernel):
    """Image filtered by a small kernel, its border left as it is."""
    h, w = img.shape
    kh, kw = kernel.shape
    out = img.copy()
    for y in range(kh // 2, h - kh // 2):
        for x in range(kw // 2, w - kw // 2):
            s = 0.0
            for i in range(kh):
                for j in range(kw):
                    s += kernel[i, j] * img[y + i - kh // 2, x + j - kw // 2]
            out[y, x] = s
    return out


def gaussian_vertical(img, sigma=1.5, radius=4):
    """Gaussian blur along columns, rows beyond the border repeated."""
    h = img.shape[0]
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    weights /= weights.sum()
    out = np.zeros_like(img)
    for y in range(h):
        for k, weight in enumerate(weights):
            out[y] += weight * img[min(max(y + k - radius, 0), h - 1)]
    return out


def blur_line(line, out, radius):
    """Moving average over one line, its window cut off at the ends."""
    n = len(line)
    s = line[:radius].sum()
    for x in range(n):
        if x + radius < n:
            s += line[x + radius]
        if x - radius - 1 >= 0:
            s -= line[x - radius - 1]
        out[x] = s / (min(x + radius, n - 1) - max(x - radius, 0) + 1)


def box_blur(img, radius=3):
    """Box blur by running sums, first along rows, then along columns."""
    h, w = img.shape
    tmp = np.empty_like(img)
    out = np.empty_like(img)
    for y in range(h):
        blur_line(img[y], tmp[y], radius)
    for x in range(w):
        blur_line(tmp[:, x], out[:, x], radius)
    return out


def sobel(img):
    """Strength of edges, and the strongest."""
    h, w = img.shape
    edges = np.zeros((h, w))
    strongest = 0.0
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            gx = img[y - 1, x + 1] + 2 * img[y, x + 1] + img[y + 1, x + 1]
            gx -= img[y - 1, x - 1] + 2 * img[y, x - 1] + img[y + 1, x - 1]
            gy = img[y + 1, x - 1] + 2 * img[y + 1, x] + img[y + 1, x + 1]
            gy -= img[y - 1, x - 1] + 2 * img[y - 1, x] + img[y - 1, x + 1]
            edges[y, x] = math.sqrt(gx * gx + gy * gy)
            strongest = max(strongest, edges[y, x])
    return edges, strongest


def median3(img):
    """Median of each pixel and its eight neighbours, by insertion into a sorted buffer."""
    h, w = img.shape
    out = img.copy()
    window = np.zeros(9)
    for y in range(1, h - 1):
        for x in range(1, w - 1):
            n = 0
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    v = img[y + dy, x + dx]
                    k = n
                    while k > 0 and window[k - 1] > v:
                        window[k] = window[k - 1]
                        k -= 1
                    window[k] = v
                    n += 1
            out[y, x] = window[4]
    return out


def erode(img, radius=1):
    """Darkest value of the square around each pixel, cut off at the border."""
    out = np.empty_like(img)
    for y in range(img.shape[0]):
        top = max(y - radius, 0)
        for x in range(img.shape[1]):
            left = max(x - radius, 0)
            out[y, x] = img[top : y + radius + 1, left : x + radius + 1].min()
    return out


def dilate(mask, radius=2):
    """Mask with each of its pixels grown to a square."""
    h, w = mask.shape
    out = np.zeros_like(mask)
    for y in range(h):
        for x in range(w):
            if mask[y, x]:
                out[max(y - radius, 0) : y + radius + 1, max(x - radius, 0) : x + radius + 1] = 1
    return out


def bilateral(img, radius=2, spread=2.0, contrast=30.0):
    """Image smoothed except across edges."""
    h, w = img.shape
    out = np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            total = norm = 0.0
            for v in range(max(0, y - radius), min(h, y + radius + 1)):
                for u in range(max(0, x - radius), min(w, x + radius + 1)):
                    near = ((v - y) ** 2 + (u - x) ** 2) / (2 * spread**2)
                    alike = (img[v, u] - img[y, x]) ** 2 / (2 * contrast**2)
                    weight = math.exp(-near - alike)
                    total += weight * img[v, u]
                    norm += weight
            out[y, x] = total / norm
    return out


def equalize(img):
    """Spreads the grey levels of an image evenly, in place."""
    h, w = img.shape
    hist = np.zeros(256, dtype=np.int64)
    for y in range(h):
        for x in range(w):
            hist[img[y, x]] += 1
    levels = 255 * np.cumsum(hist) // (h * w)
    for y in range(h):
        for x in range(w):
            img[y, x] = levels[img[y, x]]


def otsu(img):
    """Threshold that splits the grey levels best, and the mask above it."""
    hist = np.zeros(256)
    for v in img.ravel():
        hist[v] += 1
    n = img.size
    mean_all = np.dot(np.arange(256.0), hist) / n
    best, threshold = -1.0, 0
    below = part = 0.0
    for level in range(256):
        below += hist[level] / n
        part += level * hist[level] / n
        if below <= 0.0 or below >= 1.0:
            continue
        between = (mean_all * below - part) ** 2 / (below * (1.0 - below))
        if between > best:
            best, threshold = between, level
    mask = np.zeros(img.shape, dtype=np.bool_)
    for i, row in enumerate(img):
        mask[i] = row > threshold
    return threshold, mask


def integral_image(img):
    """Sums over all rectangles that begin at the top left, with a zero row and column."""
    h, w = img.shape
    table = np.zeros((h + 1, w + 1))
    for y in range(h):
        s = 0.0
        for x in range(w):
            s += img[y, x]
            table[y + 1, x + 1] = table[y, x + 1] + s
    return table


def label_blobs(mask):
    """Labels of the connected parts of a mask with an empty border, their number, and the sweeps it took."""
    h, w = mask.shape
    labels = np.where(mask > 0, np.arange(1, h * w + 1).reshape(h, w), 0)
    sweeps = 0
    changed = True
    while changed:
        changed = False
        sweeps += 1
        for y in range(1, h - 1):
            for x in range(1, w - 1):
                if labels[y, x] == 0:
                    continue
                lowest = labels[y, x]
                for dy, dx in ((-1, 0), (0, -1), (0, 1), (1, 0)):
                    other = labels[y + dy, x + dx]
                    if 0 < other < lowest:
                        lowest = other
                if lowest < labels[y, x]:
                    labels[y, x] = lowest
                    changed = True
    return labels, len(np.unique(labels)) - 1, sweeps


def resize_bilinear(img, height, width):
    """Image at another size, linear between pixels."""
    h, w = img.shape
    out = np.empty((height, width))
    for i in range(height):
        y = i * (h - 1) / (height - 1)
        y0 = min(int(y), h - 2)
        fy = y - y0
        for j in range(width):
            x = j * (w - 1) / (width - 1)
            x0 = min(int(x), w - 2)
            fx = x - x0
            upper = (1 - fx) * img[y0, x0] + fx * img[y0, x0 + 1]
            lower = (1 - fx) * img[y0 + 1, x0] + fx * img[y0 + 1, x0 + 1]
            out[i, j] = (1 - fy) * upper + fy * lower
    return out


def rotate(img, degrees=30.0, fill=0.0):
    """Image turned about its middle, nearest pixels."""
    h, w = img.shape
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    cy, cx = (h - 1) / 2, (w - 1) / 2
    out = np.full((h, w), fill)
    for y in range(h):
        for x in range(w):
            sx = math.floor(cos * (x - cx) + sin * (y - cy) + cx + 0.5)
            sy = math.floor(-sin * (x - cx) + cos * (y - cy) + cy + 0.5)
            if sx < 0 or sx >= w or sy < 0 or sy >= h:
                continue
            out[y, x] = img[sy, sx]
    return out


def mandelbrot(size, most=50):
    """Iterations before each point of the complex plane escapes."""
    counts = np.zeros((size, size), dtype=np.int64)
    for row, im in enumerate(np.linspace(-1.2, 1.2, size)):
        for column, re in enumerate(np.linspace(-2.0, 0.6, size)):
            c = complex(re, im)
            z = 0j
            k = 0
            while k < most and abs(z) <= 2.0:
                z = z * z + c
                k += 1
            counts[row, column] = k
    return counts


def hough_lines(edges, angles=90):
    """Votes for lines by distance and angle, and the line with most votes."""
    h, w = edges.shape
    far = int(math.hypot(h, w)) + 1
    votes = np.zeros((2 * far + 1, angles), dtype=np.int64)
    cosines = np.cos(np.arange(angles) * np.pi / angles)
    sines = np.sin(np.arange(angles) * np.pi / angles)
    for y in range(h):
        for x in range(w):
            if edges[y, x] == 0:
                continue
            for a in range(angles):
                rho = int(x * cosines[a] + y * sines[a] + far + 0.5)
                votes[rho, a] += 1
    best = np.argmax(votes)
    return votes, best // angles - far, best % angles


def grayscale(rgb):
    """Brightness of the pixels of a colour image, rounded."""
    out = np.empty(rgb.shape[:2], dtype=np.uint8)
    for i, line in enumerate(rgb):
        for j, pixel in enumerate(line):
            out[i, j] = int(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2] + 0.5)
    return out


def carve_seam(img):
    """Image without the vertical seam of least contrast, and the seam."""
    h, w = img.shape
    cost = np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            cost[y, x] = abs(img[y, min(x + 1, w - 1)] - img[y, max(x - 1, 0)])
            if y > 0:
                cost[y, x] += cost[y - 1, max(x - 1, 0) : x + 2].min()
    seam = np.zeros(h, dtype=np.int64)
    seam[h - 1] = np.argmin(cost[h - 1])
    for y in range(h - 2, -1, -1):
        left = max(seam[y + 1] - 1, 0)
        seam[y] = left + np.argmin(cost[y, left : seam[y + 1] + 2])
    out = np.empty((h, w - 1))
    for y in range(h):
        out[y, : seam[y]] = img[y, : seam[y]]
        out[y, seam[y] :] = img[y, seam[y] + 1 :]
    return out, seam


def match_template(img, patch):
    """Where a patch fits best, and its sum of squared differences there."""
    h, w = img.shape
    ph, pw = patch.shape
    best, at = np.inf, (-1, -1)
    for y in range(h - ph + 1):
        for x in range(w - pw + 1):
            ssd = 0.0
            for i in range(ph):
                for j in range(pw):
                    ssd += (img[y + i, x + j] - patch[i, j]) ** 2
                if ssd >= best:
                    break
            if ssd < best:
                best, at = ssd, (y, x)
    return at, best


def chamfer_distance(mask):
    """Distance of each pixel from the mask in thirds of a pixel, by a sweep down and a sweep up."""
    h, w = mask.shape
    dist = np.where(mask > 0, 0, 3 * (h + w))
    for y in range(1, h):
        for x in range(1, w - 1):
            d = min(dist[y - 1, x - 1] + 4, dist[y - 1, x] + 3, dist[y - 1, x + 1] + 4)
            dist[y, x] = min(dist[y, x], d, dist[y, x - 1] + 3)
    for y in range(h - 2, -1, -1):
        for x in range(w - 2, 0, -1):
            d = min(dist[y + 1, x + 1] + 4, dist[y + 1, x] + 3, dist[y + 1, x - 1] + 4)
            dist[y, x] = min(dist[y, x], d, dist[y, x + 1] + 3)
    return dist


def floyd_steinberg(img):
    """Black and white image with the error of each pixel handed to its neighbours."""
    h, w = img.shape
    work = img.copy()
    out = np.zeros((h, w), dtype=np.uint8)
    for y in range(h):
        for x in range(w):
            new = 255 if work[y, x] >= 128 else 0
            err = work[y, x] - new
            out[y, x] = new
            if x + 1 < w:
                work[y, x + 1] += err * 7 / 16
            if y + 1 < h:
                if x > 0:
                    work[y + 1, x - 1] += err * 3 / 16
                work[y + 1, x] += err * 5 / 16
                if x + 1 < w:
                    work[y + 1, x + 1] += err * 1 / 16
    return out


def first_bright(img, level=250):
    """Row and column of the first bright pixel in reading order, or (-1, -1)."""
    for y in range(img.shape[0]):
        for x in range(img.shape[1]):
            if img[y, x] > level:
                return y, x
    return -1, -1


def _grey_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    waves = np.sin(np.arange(n) * 0.13)[:, None] * np.cos(np.arange(n) * 0.09)
    return (np.clip(128.0 + 80.0 * waves + 20.0 * rng.standard_normal((n, n)), 0.0, 255.0),)


def _kernel_arguments(n: int) -> tuple[Any, ...]:
    return *_grey_arguments(n), np.outer([1.0, 4.0, 6.0, 4.0, 1.0], [1.0, 4.0, 6.0, 4.0, 1.0]) / 256.0


def _bytes_arguments(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return (rng.integers(0, 90, (n, n), dtype=np.uint8) + rng.integers(20, 150, (n, 1), dtype=np.uint8),)


def _mask_arguments(n: int) -> tuple[Any, ...]:
    mask = (_grey_arguments(n)[0] > 180.0).astype(np.uint8)
    mask[0] = mask[-1] = mask[:, 0] = mask[:, -1] = 0
    return (mask,)


def _resize_arguments(n: int) -> tuple[Any, ...]:
    return *_grey_arguments(n), n + n // 3, n + n // 2


def _size_arguments(n: int) -> tuple[Any, ...]:
    return (n,)


def _rgb_arguments(n: int) -> tuple[Any, ...]:
    return (np.random.default_rng(n).integers(0, 256, (n, n, 3), dtype=np.uint8),)


def _patch_arguments(n: int) -> tuple[Any, ...]:
    (img,) = _grey_arguments(n)
    return img, img[n // 3 : n // 3 + 8, n // 2 : n // 2 + 8] + 1.0


def _marked_arguments(n: int) -> tuple[Any, ...]:
    (img,) = _bytes_arguments(n)
    img[n - n // 10, n // 2] = 255
    return (img,)


_PIXEL = "Each pixel of the result is computed on its own from an image that is only read."
_ROW_SUMS = "Each row of the result is a weighted sum of its own."
_LINES = "The running sums start anew in each row and in each column."
_EDGES = "Each pixel is computed on its own, and the strongest is a maximum."
_SORTED = "Each pixel is computed on its own once each worker has a buffer of its own."
_SQUARES = "Squares overlap, but every write stores the same value, so that their order does not matter."
_COUNTS = "Counting only adds to 256 counters, and then each pixel is treated on its own."
_TABLE = "Every entry is a running sum along its row, added to the entry above it."
_LABELS = "Within a sweep a pixel takes labels that the same sweep has just lowered above and to the left of it."
_VOTES = "Edge pixels only add to the votes."
_SEAM = "Rows of the costs come one after the other, but all costs of a row are computed from the row above alone."
_OFFSETS = (
    "Each offset is compared on its own, the first of the best is wanted, and the break skips only ones that lose."
)
_SWEEP = "A distance needs those of its neighbours in the row before and of the pixel before in the same sweep."
_ERRORS = "A pixel needs the errors of the pixel to its left and of three pixels in the row above."
_FIRST = "The loops only read, and end at the first bright pixel."

CASES: tuple[Case, ...] = (
    Case("convolution", convolve, _kernel_arguments, 40, 600, Nature.PARALLEL, _PIXEL),
    Case("Gaussian blur", gaussian_vertical, _grey_arguments, 400, 1300, Nature.PARALLEL, _ROW_SUMS),
    Case("box blur", box_blur, _grey_arguments, 80, 1300, Nature.PARALLEL, _LINES),
    Case("Sobel", sobel, _grey_arguments, 80, 2000, Nature.PARALLEL, _EDGES),
    Case("median filter", median3, _grey_arguments, 45, 500, Nature.PARALLEL, _SORTED),
    Case("erosion", erode, _grey_arguments, 75, 900, Nature.PARALLEL, _PIXEL),
    Case("dilation", dilate, _mask_arguments, 250, 1500, Nature.PARALLEL, _SQUARES),
    Case("bilateral filter", bilateral, _grey_arguments, 20, 300, Nature.PARALLEL, _PIXEL),
    Case("histogram equalization", equalize, _bytes_arguments, 120, 4000, Nature.PARALLEL, _COUNTS),
    Case("threshold", otsu, _bytes_arguments, 200, 4000, Nature.PARALLEL, _COUNTS),
    Case("integral image", integral_image, _grey_arguments, 150, 1600, Nature.SCAN, _TABLE),
    Case("connected labels", label_blobs, _mask_arguments, 60, 500, Nature.WAVEFRONT, _LABELS),
    Case("resize", resize_bilinear, _resize_arguments, 55, 1800, Nature.PARALLEL, _PIXEL),
    Case("rotation", rotate, _grey_arguments, 100, 2000, Nature.PARALLEL, _PIXEL),
    Case("Mandelbrot", mandelbrot, _size_arguments, 65, 350, Nature.PARALLEL, _PIXEL),
    Case("Hough transform", hough_lines, _mask_arguments, 40, 800, Nature.PARALLEL, _VOTES),
    Case("grayscale", grayscale, _rgb_arguments, 50, 3000, Nature.PARALLEL, _PIXEL),
    Case("seam carving", carve_seam, _grey_arguments, 75, 1000, Nature.PARALLEL, _SEAM),
    Case("template matching", match_template, _patch_arguments, 45, 1000, Nature.PARALLEL, _OFFSETS),
    Case("distance transform", chamfer_distance, _mask_arguments, 65, 2000, Nature.WAVEFRONT, _SWEEP),
    Case("dithering", floyd_steinberg, _grey_arguments, 75, 1500, Nature.WAVEFRONT, _ERRORS),
    Case("search for a mark", first_bright, _marked_arguments, 300, 5000, Nature.SEARCH, _FIRST),
)
