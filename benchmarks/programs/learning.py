"""Programs of machine learning and statistics: layers of networks, covariances, orthogonal columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import orion

from .program import Program


def convolved(x, weights):
    k = weights.shape[0]
    n, h, w = x.shape[0], x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.empty((n, h, w, weights.shape[3]), np.float32)
    for i in range(h):
        for j in range(w):
            for image in range(n):
                for c in range(weights.shape[3]):
                    out[image, i, j, c] = np.sum(x[image, i : i + k, j : j + k, :] * weights[:, :, :, c])
    return out


def normalized(x):
    out = np.empty_like(x)
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            for c in range(x.shape[3]):
                some = x[:, i, j, c]
                out[:, i, j, c] = (some - np.mean(some)) / np.sqrt(np.std(some) + 1e-5)
    return out


@orion.parallel_for
def resnet_block(x, narrow, middle, wide):
    n, h, w, _ = x.shape
    padded = np.zeros((n, h + 2, w + 2, narrow.shape[3]), np.float32)
    padded[:, 1:-1, 1:-1, :] = convolved(x, narrow)
    a = np.maximum(normalized(padded), 0.0)
    b = np.maximum(normalized(convolved(a, middle)), 0.0)
    c = normalized(convolved(b, wide))
    return np.maximum(c + x, 0.0)


def _resnet_arguments(size: str) -> tuple[Any, ...]:
    n, h, c, few = {"tiny": (2, 6, 8, 4), "large": (3, 12, 16, 8)}[size]
    made = np.random.default_rng(n)
    shapes = (n, h, h, c), (1, 1, c, few), (3, 3, few, few), (1, 1, few, c)
    return tuple(made.random(shape, dtype=np.float32) for shape in shapes)


@orion.parallel_for
def conv2d_bias(x, weights, bias):
    return convolved(x, weights) + bias


def _conv_arguments(size: str) -> tuple[Any, ...]:
    n, h, c, k = {"tiny": (2, 8, 3, 3), "large": (4, 16, 4, 5)}[size]
    made = np.random.default_rng(n)
    images, weights = made.random((n, h, h, c), dtype=np.float32), made.random((k, k, c, 2 * c), dtype=np.float32)
    return images, weights, made.random(2 * c, dtype=np.float32)


def softmax_rows(x):
    largest = np.max(x, axis=-1)
    powers = np.exp(x - largest[:, np.newaxis])
    return powers / np.sum(powers, axis=-1)[:, np.newaxis]


@orion.parallel_for
def mlp(x, w1, b1, w2, b2, w3, b3):
    a = np.maximum(x @ w1 + b1, 0.0)
    b = np.maximum(a @ w2 + b2, 0.0)
    return softmax_rows(b @ w3 + b3)


def _mlp_arguments(size: str) -> tuple[Any, ...]:
    n, widths = {"tiny": (4, (3, 12, 8, 5)), "large": (16, (6, 60, 50, 10))}[size]
    made = np.random.default_rng(n)
    layers = pairwise(widths)
    return made.random((n, widths[0])), *(made.random(shape) for k, m in layers for shape in ((k, m), (m,)))


@orion.parallel_for
def softmax(x):
    n, heads, rows, _ = x.shape
    out = np.empty_like(x)
    for i in range(n):
        for head in range(heads):
            for row in range(rows):
                powers = np.exp(x[i, head, row] - np.max(x[i, head, row]))
                out[i, head, row] = powers / np.sum(powers)
    return out


def _softmax_arguments(size: str) -> tuple[Any, ...]:
    shape = {"tiny": (2, 3, 8, 9), "large": (4, 4, 30, 32)}[size]
    return (np.random.default_rng(1).random(shape, dtype=np.float32),)


def pooled(x):
    n, h, w, c = x.shape
    out = np.empty((n, h // 2, w // 2, c), x.dtype)
    for i in range(h // 2):
        for j in range(w // 2):
            for image in range(n):
                for k in range(c):
                    out[image, i, j, k] = np.max(x[image, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, k])
    return out


@orion.parallel_for
def lenet(images, c1, bias1, c2, bias2, w1, b1, w2, b2, w3, b3):
    first = pooled(np.maximum(convolved(images, c1) + bias1, 0.0))
    second = pooled(np.maximum(convolved(first, c2) + bias2, 0.0))
    n, h, w, c = second.shape
    flat = np.reshape(second, (n, h * w * c)).copy()
    a = np.maximum(flat @ w1 + b1, 0.0)
    b = np.maximum(a @ w2 + b2, 0.0)
    return b @ w3 + b3


def _lenet_arguments(size: str) -> tuple[Any, ...]:
    n, h, widths = {"tiny": (2, 16, (4, 10, 8, 5)), "large": (4, 28, (16, 60, 42, 10))}[size]
    made = np.random.default_rng(n)
    side = ((h - 4) // 2 - 4) // 2
    shapes = [(n, h, h, 1), (5, 5, 1, 3), (3,), (5, 5, 3, widths[0]), (widths[0],)]
    inner = (side * side * widths[0], *widths[1:])
    shapes += [shape for k, m in pairwise(inner) for shape in ((k, m), (m,))]
    return tuple(made.random(shape, dtype=np.float32) for shape in shapes)


@orion.parallel_for
def correlation(data):
    n, m = data.shape
    mean = np.mean(data, axis=0)
    deviation = np.std(data, axis=0)
    deviation = np.where(deviation <= 0.1, 1.0, deviation)
    data -= mean
    data /= np.sqrt(n) * deviation
    found = np.eye(m)
    for i in range(m - 1):
        found[i + 1 : m, i] = found[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return found


def _correlation_arguments(size: str) -> tuple[Any, ...]:
    shape = {"tiny": (14, 11), "large": (80, 70)}[size]
    return (np.random.default_rng(2).random(shape),)


@orion.parallel_for
def gram_schmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for k in range(n):
        R[k, k] = np.sqrt(np.dot(A[:, k], A[:, k]))
        Q[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = np.dot(Q[:, k], A[:, j])
            A[:, j] -= Q[:, k] * R[k, j]
    return Q, R


def _gram_arguments(size: str) -> tuple[Any, ...]:
    shape = {"tiny": (14, 11), "large": (80, 70)}[size]
    return (np.random.default_rng(3).random(shape),)


LEARNING = (
    Program("resnet_block", resnet_block, _resnet_arguments),
    Program("conv2d_bias", conv2d_bias, _conv_arguments),
    Program("mlp", mlp, _mlp_arguments),
    Program("softmax", softmax, _softmax_arguments),
    Program("lenet", lenet, _lenet_arguments),
    Program("correlation", correlation, _correlation_arguments),
    Program("gram_schmidt", gram_schmidt, _gram_arguments),
)
