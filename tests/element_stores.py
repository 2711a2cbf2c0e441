"""Loops that store the values of the elements that they go through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orion


@orion.parallel_for
def scale(tokens, rate):
    for (d, w), z in tokens:
        tokens[d, w] = z * rate


@orion.parallel_for
def count_up(tokens, D):
    for (d, w), _ in tokens:
        tokens[d, w] += D[d]
        tokens[d, w] += 1


@orion.parallel_for
def halve(tokens):
    for (d, w), z in tokens:
        tokens[d, w] = z / 2


@orion.parallel_for
def shift(tokens, D):
    for (d, w), z in tokens:
        tokens[d, w] = z + D[d]


@orion.parallel_for
def clip(tokens, D):
    for (d, w), z in tokens:
        if z == w:
            continue
        if z > D[d]:
            tokens[d, w] = D[d]
        elif tokens[d, w] < 5:
            tokens[d, w] = 5
            if w % 2 == 0:
                tokens[d, w] += w


@orion.parallel_for
def running(tokens, W):
    for (d, w), _ in tokens:
        for k in range(W.shape[1]):
            tokens[d, w] += W[w, k]
            if tokens[d, w] > 60.0:
                tokens[d, w] -= 50.0
                break


def sample_tokens(tokens, D, W, seed):
    for (d, w), z in tokens:
        new = (z + D[d, 0] + W[w, 1] + orion.random.integers(0, 3, seed, d, w)) % 4
        D[d, z % 4] -= 1
        W[w, z % 4] -= 1
        tokens[d, w] = new
        D[d, new] += 1
        W[w, tokens[d, w]] += 1


sample = orion.parallel_for(sample_tokens)
sample_ordered = orion.parallel_for(ordered=True)(sample_tokens)


def store_then_sum(tokens, step):
    for (d, w), z in tokens:
        tokens[d, w] = z + step
    total = 0.0
    for (_, _), z in tokens:
        total += z
    return total


store_and_sum = orion.parallel_for(store_then_sum)
store_and_sum_ordered = orion.parallel_for(ordered=True)(store_then_sum)


@orion.parallel_for
def in_rounds(tokens, D, W, rounds):
    for t in range(rounds):
        for (d, w), z in tokens:
            tokens[d, w] = 0.5 * z + D[d]
        for (_, w), z in tokens:
            W[w] = max(W[w], z + t)
        for (d, w), z in tokens:
            tokens[d, w] = z - 0.25 * W[w]


@orion.parallel_for
def store_two(tokens, D):
    for (d, w), (z, x) in tokens:
        if z % 3 == 0:
            tokens[d, w] = z + D[d], x * 2
        elif z % 3 == 1:
            n, y = tokens[d, w]
            tokens[d, w] = y * 10, n


@orion.parallel_for
def vector(v, a):
    for i, x in v:
        v[i] = x + a[i]


@orion.parallel_for
def add_by_rows(out, tokens):
    for i in range(tokens.shape[0]):
        for _, v in tokens[i]:
            out[i] += v


@orion.parallel_for
def both(one, other):
    for (d, w), z in one:
        one[d, w] = z + 1
    total = 0
    for (_, _), z in other:
        total += z
    return total


# ---------------------------------------------------------------- for arrays made at random


@dataclass(frozen=True)
class Body:
    function: Any
    is_unordered: bool = False


def _store_last(tokens, a, b):
    for (d, w), _ in tokens:
        tokens[d, w] = a[d] + b[w]


def _branches(tokens, a, b):
    for (d, w), z in tokens:
        if z > a[d]:
            tokens[d, w] -= a[d]
        elif w > 3:
            continue
        tokens[d, w] += b[w]


def _through_rows(tokens, a, b):
    for (d, w), z in tokens:
        a[d] = max(a[d], z)
        tokens[d, w] = a[d]


def _through_both(tokens, a, b):
    for (d, w), z in tokens:
        a[d] = min(a[d], z)
        b[w] = max(b[w], z)
        tokens[d, w] = a[d] // 2 + b[w] // 2


def _twice(tokens, a, b):
    for (d, w), z in tokens:
        tokens[d, w] = z // 2 + a[d]
    for (_, w), z in tokens:
        b[w] = max(b[w], z)
    for (d, w), z in tokens:
        tokens[d, w] = min(z, b[w])


def _rounds(tokens, a, b):
    for _ in range(3):
        for (d, w), z in tokens:
            tokens[d, w] = z // 2 + 1
            a[d] = max(a[d], z)


Bodies = [
    *(Body(orion.parallel_for(one)) for one in (_store_last, _branches, _twice, _rounds)),
    *(Body(orion.parallel_for(one), is_unordered=True) for one in (_through_rows, _through_both)),
    *(
        Body(orion.parallel_for(ordered=True)(one))
        for one in (_store_last, _branches, _through_rows, _through_both, _twice, _rounds)
    ),
]
