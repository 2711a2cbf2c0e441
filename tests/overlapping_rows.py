"""Loops that assign parts of arrays from parts of the same arrays: `s` and `t` are two slices, as their bounds."""

import numpy as np


def row(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] = a[i, t0:t1:t2]


def column(a, s0, s1, s2, t0, t1, t2):
    for j in range(a.shape[1]):
        a[s0:s1:s2, j] = a[t0:t1:t2, j]


def outside_of_loops(a, s0, s1, s2, t0, t1, t2):
    a[s0:s1:s2] = a[t0:t1:t2]
    for i in range(a.shape[0]):
        a[i, 0] += 1


def in_place(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] += a[i, t0:t1:t2]


def by_another_name(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        r = a[i]
        r[s0:s1:s2] = r[t0:t1:t2]


def by_one_of_two_names(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0] // 2):
        r = a[2 * i]
        if a[i, 0] > 3:
            r = a[2 * i + 1]
        r[s0:s1:s2] = r[t0:t1:t2]
        r[t0:t1:t2] -= r[s0:s1:s2]


def several_reads(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] = a[i, t0:t1:t2] + 2 * a[i, s0:s1:s2] - a[0, t0:t1:t2]


def chosen(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] = np.where(a[i, t0:t1:t2] > 3, a[i, t0:t1:t2], a[i, s0:s1:s2])


def flipped(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] = np.flip(a[i, t0:t1:t2])


def own_row(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        w = a[i].copy()
        w[s0:s1:s2] = w[t0:t1:t2]
        a[i] = w


def two_in_one(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2] = a[i, t0:t1:t2]
        a[i, t0:t1:t2] = a[i, s0:s1:s2]
        a[i, :3] = a[i, 2:5]


def rounds(a, s0, s1, s2, t0, t1, t2):
    for _ in range(3):
        for i in range(a.shape[0]):
            a[i, s0:s1:s2] = a[i, t0:t1:t2]


def box(a, s0, s1, s2, t0, t1, t2):
    for _ in range(2):
        a[s0:s1:s2, 1:] = a[t0:t1:t2, :-1]


def boxes_of_three(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        a[i, s0:s1:s2, 1:] = a[i, t0:t1:t2, :-1]


def turned(a, s0, s1, s2, t0, t1, t2):
    for _ in range(2):
        a[s0:s1:s2, t0:t1:t2] = a[t0:t1:t2, s0:s1:s2].T


def parts(r, s0, s1, s2, t0, t1, t2):
    if s2 == 0:
        return 0
    r[s0:s1:s2] = r[t0:t1:t2]
    r[t0:t1:t2] += r[s0:s1:s2]
    r += r[::-1]
    r -= 1
    first = r[s0:s1:s2]
    r[t0:t1:t2] = first
    r[:2], last = r[1:3], r[-1]
    return last


def in_a_helper(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        last = parts(a[i], s0, s1, s2, t0, t1, t2)
        a[i, 0] += last


def rows_of_a_matrix(m, i, s0, s1, s2, t0, t1, t2):
    if i < 0:
        return 0
    m[i, s0:s1:s2] = m[i, t0:t1:t2]
    m[i, s0:s1:s2] *= m[i, t0:t1:t2]
    back = m[:, ::-1]
    m[i] = back[i]
    m[i, 0] = m[i, 1]
    return m[i, 2]


def in_a_helper_of_a_matrix(a, s0, s1, s2, t0, t1, t2):
    for i in range(a.shape[0]):
        found = rows_of_a_matrix(a, i, s0, s1, s2, t0, t1, t2)
        a[i, 0] += found


LOOPS = [
    row, column, outside_of_loops, in_place, by_another_name, by_one_of_two_names, several_reads, chosen, flipped,
    own_row, two_in_one, rounds, box, turned, in_a_helper, in_a_helper_of_a_matrix,
]  # fmt: skip
