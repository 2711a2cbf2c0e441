"""Further programs as in `tests.cured_programs`: of sparse arrays, buffers and what else is no plain array, and those
that types refuse. One that defines `f` is the whole function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import scipy.sparse

import orion


def two_of(a):
    return a, a + 1.0


def nothing_of(a):
    a + 1.0


def lesser(a, b):
    return a if a <= b else b


def lesser_of_all(a, b):
    return min(pair[:2] for pair in (a, b))


def added(a, b):
    return a + b


def sometimes_two(value, update):
    if update > 1.0:
        return value + update, 0.0
    return value + update


def always_one(value, update):
    if update > 1.0:
        return value + update
    return value + 2.0 * update


OUTSIDE: dict[str, Any] = {"two_of": two_of, "nothing_of": nothing_of}

ROWS, COLUMNS = np.array([0, 1, 1, 4]), np.array([1, 0, 2, 3])
WEIGHTS = np.array([1.5, 2.0, 3.0, 4.0])


def frame() -> pandas.DataFrame:
    return pandas.DataFrame({"x": np.arange(5.0), "y": np.arange(5)})


def column() -> Any:
    return frame()["x"].to_numpy()


VALUES: dict[str, Callable[[], Any]] = {
    "ratings": lambda: orion.sparse((ROWS, COLUMNS), WEIGHTS, shape=(5, 4)),
    "others": lambda: orion.sparse((COLUMNS, ROWS), WEIGHTS, shape=(4, 5)),
    "tensor": lambda: orion.sparse((ROWS, COLUMNS, COLUMNS), WEIGHTS, shape=(5, 4, 4)),
    "twofold": lambda: orion.sparse((ROWS, COLUMNS), (WEIGHTS, 2 * WEIGHTS), shape=(5, 4)),
    "matrix": lambda: scipy.sparse.csr_matrix((WEIGHTS, (ROWS, COLUMNS)), shape=(5, 4)),
    "frame": frame,
    "column": column,
    "nearest": lambda: orion.accumulator((np.inf, -1), combine=lesser_of_all),
    "nearest_pair": lambda: orion.accumulator((np.inf, -1), combine=lesser),
    "int_sum": lambda: orion.accumulator(0, combine=added),
    "float_sum": lambda: orion.accumulator(0.0, combine=added),
    "late": lambda: orion.buffer(np.zeros(5), apply=sometimes_two),
    "late_one": lambda: orion.buffer(np.zeros(5), apply=always_one),
    "copy_of_x": lambda: orion.replicate(np.zeros(5), policy=orion.elastic(mode="sync", sync_every=2)),
    "three": lambda: np.arange(3.0),
}
"""What arguments are, by name."""

PROGRAMS = """\
### write it out
for i in range(n):
    nearest.add((x[i], i))
### then:
for i in range(n):
    nearest_pair.add((x[i], i))

### write a number, a string, True or False
for i in tqdm(range(n), disable=k > 2):
    out[i] = x[i]
### then:
for i in tqdm(range(n), disable=True):
    out[i] = x[i]

### options by name: `tqdm(range(n), desc="…")`
for i in tqdm(range(n), 'rows', disable=True):
    out[i] = x[i]
### then:
for i in tqdm(range(n), desc='rows', disable=True):
    out[i] = x[i]

### write what it goes through first
for i in tqdm(iterable=range(n), disable=True):
    out[i] = x[i]
### then:
for i in tqdm(range(n), disable=True):
    out[i] = x[i]

### return the new value of the element
for i in range(n):
    late[idx[i]] += x[i]
### then, with another result:
for i in range(n):
    late_one[idx[i]] += x[i]

### write the loop in a plain function
for i in range(n):
    yield 2 * x[i]
### then, with another result:
for i in range(n):
    out[i] = 2 * x[i]

### write the loop in a plain function
async def f(x, out, n):
    for i in range(n):
        out[i] = 2 * x[i]
### then, with another result:
def f(x, out, n):
    for i in range(n):
        out[i] = 2 * x[i]

### name every parameter
def f(x, out, n, **options):
    for i in range(n):
        out[i] = x[i]
### then:
def f(x, out, n, k):
    for i in range(n):
        out[i] = x[i]

### write `def name(arguments): …`
f = lambda x: x.sum()
### then:
def f(x):
    return x.sum()

### such as `frame['x'].to_numpy()`, and go through their subscripts
for i, row in frame.iterrows():
    out[i] = 2 * row['x']
### then:
for i in range(len(column)):
    out[i] = 2 * column[i]

### such as `frame['x'].to_numpy()`, and go through their subscripts
for row in frame.itertuples():
    out[row.y] = 2 * row.x
### then:
for i in range(len(column)):
    out[i] = 2 * column[i]

### pass one; an array of `orion.sparse` is gone through by rows, `for j, v in A[i]:`
for i in range(n):
    for p in range(ratings.indptr[i], ratings.indptr[i + 1]):
        out[i] += ratings.data[p]
### then:
for i in range(n):
    for p in range(matrix.indptr[i], matrix.indptr[i + 1]):
        out[i] += matrix.data[p]

### pass one; an array of `orion.sparse` is gone through by rows, `for j, v in A[i]:`
for i in range(n):
    for p in range(ratings.indptr[i], ratings.indptr[i + 1]):
        out[i] += ratings.data[p]
### then:
for i in range(n):
    for j, v in ratings[i]:
        out[i] += v

### of a data frame, `frame['x'].to_numpy()`
for i in range(n):
    out[i] = frame['x'][i]
### then:
for i in range(n):
    out[i] = column[i]

### write `for (i, j), value in ratings:`, with as many keys as the array has
for (i, j), out[i] in ratings:
    V[i, 0] = 1.0
### then:
for (i, j), value in ratings:
    out[i] = value
    V[i, 0] = 1.0

### write `copy_of_x[…] = …`, or use another name
for i in range(n):
    copy_of_x = x[i]
    out[i] = copy_of_x
### then:
for i in range(n):
    other = x[i]
    out[i] = other

### write `np.sum(W, axis=0)`
for i in range(n):
    out[i] = np.add.reduce(W)[1]
### then:
for i in range(n):
    out[i] = np.sum(W, axis=0)[1]

### write `np.max(W, 1)`
for i in range(n):
    out[i] = np.maximum.reduce(W, 1)[i]
### then:
for i in range(n):
    out[i] = np.max(W, 1)[i]

### write `np.prod(x, axis=0)`
for i in range(n):
    out[i] = np.multiply.reduce(x)
### then:
for i in range(n):
    out[i] = np.prod(x, axis=0)

### write it as a loop
for i in range(n):
    out[i] = np.subtract.reduce(x)
### then:
for i in range(n):
    t = x[0]
    for j in range(1, n):
        t -= x[j]
    out[i] = t

### pass `np.subtract.reduce(x)`, computed before the call, as an argument
for i in range(n):
    out[i] = np.subtract.reduce(x)
### then, with another result:
for i in range(n):
    out[i] = total

### give an `init` of the kind of what is added: 0.0, not 0, for floats
for i in range(n):
    int_sum.add(x[i])
### then:
for i in range(n):
    float_sum.add(x[i])

### keep it under another name: `last = i` in the loop
for (i, j), value in ratings:
    out[i] += value
return i
### then:
for (i, j), value in ratings:
    out[i] += value
    last = i
return last

### copy elements instead, `u[:] = new`
for t in range(n):
    if flags[t]:
        x, y = y, x
    else:
        y, noise, column = noise, column, y
    for i in range(n):
        out[i] += x[i] - y[i]
### then:
a, b = x.copy(), y.copy()
c, d = noise.copy(), column.copy()
h = np.empty(n)
for t in range(n):
    if flags[t]:
        h[:] = a
        a[:] = b
        b[:] = h
    else:
        h[:] = b
        b[:] = c
        c[:] = d
        d[:] = h
    for i in range(n):
        out[i] += a[i] - b[i]

### keep its elements in an array made before the loop, and how many they are in a scalar
c = 0
while x[0] > 0.1:
    x = x[1:] * 0.2
    c += 1
return c
### then:
c, count = 0, n
v = x.copy()
while v[0] > 0.1:
    count -= 1
    for i in range(count):
        v[i] = v[i + 1] * 0.2
    c += 1
return c

### put it at the top level of the function
for (i, j), value in ratings:
    for (a, b), other in others:
        out[i] += value * other
### then:
t = 0.0
for (a, b), other in others:
    t += other
for (i, j), value in ratings:
    out[i] += value * t

### use another name for the other value
for (i, j), value in ratings:
    j = 2 * j
    ratings[i, j] = value + 1.0
### then, with another result:
for (i, j), value in ratings:
    a = 2 * j
    ratings[i, j] = value + 1.0

### write `ratings[i, j]`
for (i, j), value in ratings:
    out[i] += ratings[i][j]
    ratings[i, j] = value + 1.0
### then, with another result:
for (i, j), value in ratings:
    out[i] += ratings[i, j]
    ratings[i, j] = value + 1.0

### store one number
for (i, j), value in ratings:
    ratings[i, j] = value, 1.0
### then:
for (i, j), value in ratings:
    ratings[i, j] = value

### write `ratings[i, j]` in a loop `for (i, j), value in ratings:`
for i in range(n):
    out[i] = ratings[1, 0]
### then, with another result:
for (i, j), value in ratings:
    if i == 1 and j == 0:
        out[i] = ratings[i, j]

### or go through a row by `for j, value in ratings[i]:`
for i in range(n):
    for pair in ratings[i]:
        out[i] += pair[1]
### then:
for i in range(n):
    for j, value in ratings[i]:
        out[i] += value

### write a loop over its elements here
for (i, j), value in ratings:
    ratings[i, j] = 2 * value
return np.sum(ratings)
### then, with another result:
for (i, j), value in ratings:
    ratings[i, j] = 2 * value
t = 0.0
for (i, j), value in ratings:
    t += value
return t

### give it a name first
for i in range(n):
    out[i] = np.sum(np.array([x[i], y[i]])) if i > 1 else 0.0
### then:
for i in range(n):
    p = np.array([x[i], y[i]])
    out[i] = np.sum(p) if i > 1 else 0.0

### make `v` before the loop, by np.zeros or as a copy, and write its elements, `v[:] = …`
c = 0
v = x
while v[0] > 1e-3 and c < k:
    v = v * 0.5
    c += 1
return c
### then:
c = 0
v = x.copy()
while v[0] > 1e-3 and c < k:
    v[:] = v * 0.5
    c += 1
return c

### make `v` before the loop, by np.zeros or as a copy, and write its elements, `v[:] = …`
c = 0.0
for t in range(k):
    for i in range(n):
        if t > 0:
            c += v[i]
    v = x * t
return c
### then:
c = 0.0
v = np.zeros(n)
for t in range(k):
    for i in range(n):
        if t > 0:
            c += v[i]
    v[:] = x * t
return c

### keep its elements in an array made before the loop, and how many they are in a scalar
c = 0
while len(x) > 0:
    x = x[x > x[0]]
    c += 1
return c
### then:
c, count = 0, n
v = x.copy()
while count > 0:
    first, kept = v[0], 0
    for i in range(count):
        if v[i] > first:
            v[kept] = v[i]
            kept += 1
    count = kept
    c += 1
return c

### use subscripts
for i in range(n):
    p = x[x > 3.5]
    a, b = p
    out[i] = a * b
### then:
for i in range(n):
    p = x[x > 3.5]
    out[i] = p[0] * p[1]

### write them one by one
for i in range(n):
    W[i, k - 1:] = x[i], y[i]
### then:
for i in range(n):
    W[i, k - 1] = x[i]
    W[i, k] = y[i]

### assign the result, `a[:] = …`
for i in range(n):
    np.dot(A, three, V[i])
### then:
for i in range(n):
    V[i][:] = np.dot(A, three)

### write a loop over the other axes
for i in range(n):
    out[i] = np.median(W, 1)[i]
### then:
for i in range(n):
    out[i] = np.median(W[i])

### write a loop over the other axes
for i in range(n):
    out[i] = np.sort(W, 0)[i, 0]
### then:
for i in range(n):
    out[i] = np.sort(W[:, 0])[i]

### write a loop over the other axes
for i in range(n):
    out[i] = np.percentile(W, 50.0, 1)[i]
### then:
for i in range(n):
    out[i] = np.percentile(W[i], 50.0)

### write a loop over the other axes; for a row leave the axis out
for i in range(n):
    out[i] = np.cumsum(x, 0)[i]
### then:
for i in range(n):
    out[i] = np.cumsum(x)[i]

### name the dtype, `dtype=np.float64`
for i in range(n):
    out[i] = np.sum(W, 0, np.float64)[1]
### then:
for i in range(n):
    out[i] = np.sum(W, 0, dtype=np.float64)[1]

### convert before or after, with `.astype(np.float64)`
for i in range(n):
    out[i] = np.mean(single, 0, np.float64)
### then:
for i in range(n):
    out[i] = np.mean(single.astype(np.float64), 0)

### write its subscripts the other way round, `A[j, i]`
for i in range(n):
    out[i] = np.transpose(W, (1, 0))[1, i]
### then:
for i in range(n):
    out[i] = W[i, 1]

### for a row leave the axis out, `np.std(x)`
for i in range(n):
    out[i] = np.std(x, axis=0)
### then:
for i in range(n):
    out[i] = np.std(x)

### write its subscript, `x[2]` for `x.item(2)`
for i in range(n):
    out[i] = W[i].item(2)
### then:
for i in range(n):
    out[i] = W[i][2]

### write `complex(x, y)`
for i in range(n):
    zout[i] = complex(x[i], y[i], 1.0)
### then:
for i in range(n):
    zout[i] = complex(x[i], y[i])

### write it as often as is wanted, `np.diff(np.diff(x))`
for i in range(n):
    out[i] = np.diff(x, 2)[0]
### then:
for i in range(n):
    out[i] = np.diff(np.diff(x))[0]

### leave it out
for i in range(n):
    out[i] = flags[i].real
### then:
for i in range(n):
    out[i] = flags[i]

### write `0`
for i in range(n):
    out[i] = flags[i].imag
### then:
for i in range(n):
    out[i] = 0

### write `np.sum(x, axis=0)`
for i in range(n):
    out[i] = np.add.reduce(x)
### then:
for i in range(n):
    out[i] = np.sum(x, axis=0)

### write `np.prod(W, axis=0)`
p = np.multiply.reduce(W)
for i in range(n):
    out[i] = p[i % 4]
### then:
p = np.prod(W, axis=0)
for i in range(n):
    out[i] = p[i % 4]

### write `np.min(x, axis=0)`
for i in range(n):
    out[i] = np.minimum.reduce(x)
### then:
for i in range(n):
    out[i] = np.min(x, axis=0)

### use their parts, `z.real` and `z.imag`
for i in range(n):
    zout[i] = np.cumsum(z)[i]
### then:
for i in range(n):
    zout[i] = np.cumsum(z.real)[i] + 1j * np.cumsum(z.imag)[i]

### write `x + 1j * y`
for i in range(n):
    zout[i] = complex(z[i], z[0])
### then:
for i in range(n):
    zout[i] = z[i] + 1j * z[0]

### write `x + 1j * y`
for i in range(n):
    zout[i] = complex(x, y)[i]
### then:
for i in range(n):
    zout[i] = (x + 1j * y)[i]

### write `z.real`, or `abs(z)`
for i in range(n):
    out[i] = np.float64(z[i])
### then:
for i in range(n):
    out[i] = z[i].real

### write `z.real`, or `abs(z)`
for i in range(n):
    out[i] = z.astype(np.float64)[i]
### then, with another result:
for i in range(n):
    out[i] = abs(z[i])

### leave subscripts out
for i in range(n):
    out[i] = x[i]
return out[1:][1:, 1:]
### then:
for i in range(n):
    out[i] = x[i]
return out[1:][1:]

### use numbers, and arrays of numbers
for i in range(n):
    out[i] = nothing_of(x[i]) * 2.0
### then:
for i in range(n):
    out[i] = negated(x[i]) * 2.0

### write a loop in the decorated function, `for (i, j), value in ratings:`
t = ratings * 2.0
for i in range(n):
    out[i] = x[i]
### then:
for (i, j), value in ratings:
    t = value * 2.0
for i in range(n):
    out[i] = x[i]

### `for (i, j, k), value in tensor:`
t = tensor * 2.0
for i in range(n):
    out[i] = x[i]
### then:
for (i, j, k), value in tensor:
    t = value * 2.0
for i in range(n):
    out[i] = x[i]

### give it a value before the loop, or before its first use
for i in range(n):
    if i > 5:
        a = b + 1.0
    if i > 6:
        b = a
    out[i] = x[i]
### then:
b = 0.0
for i in range(n):
    if i > 5:
        a = b + 1.0
    if i > 6:
        b = a
    out[i] = x[i]

### to swap two sparse arrays, write the loops once for each
for t in range(2):
    for (i, j), value in ratings:
        out[i] += value
    ratings, others = others, ratings
### then:
for (i, j), value in ratings:
    out[i] += value
for (i, j), value in others:
    out[i] += value

### update it element by element
x += W[:, 0:1]
for i in range(n):
    out[i] = x[i]
### then, with another result:
for i in range(n):
    x[i] += W[i, 0]
for i in range(n):
    out[i] = x[i]

### write `a[:] = a @ …` for `a @= …`
A @= A
for i in range(n):
    out[i] = A[i % 3, 0]
### then:
A[:] = A @ A
for i in range(n):
    out[i] = A[i % 3, 0]

### write `for (i, j), value in ratings:`
for i, value in ratings:
    out[i] += value
### then, with another result:
for (i, j), value in ratings:
    out[i] += value

### write `for (i, j), (v0, v1) in twofold:`
for (i, j), value in twofold:
    out[i] += value[0]
### then:
for (i, j), (v0, v1) in twofold:
    out[i] += v0

### write `for i in range(len(W)):`
for (i, j), value in W:
    out[i] += value
### then, with another result:
for i in range(len(W)):
    for j in range(W.shape[1]):
        out[i] += W[i, j]

### or make it with orion.sparse
for (i, j), value in W:
    out[i] += value
### then, with another result:
for (i, j), value in ratings:
    out[i] += value

### make it with orion.sparse
for (i, j), value in s:
    out[i] += value
### then, with another result:
for (i, j), value in ratings:
    out[i] += value

### write `ratings[i, j] = …` in a loop `for (i, j), value in ratings:`
ratings += 1.0
for i in range(n):
    out[i] = x[i]
### then:
for (i, j), value in ratings:
    ratings[i, j] = value + 1.0
for i in range(n):
    out[i] = x[i]

### write `tensor[i, j, k] = …` in a loop `for (i, j, k), value in tensor:`
tensor += 1.0
for i in range(n):
    out[i] = x[i]
### then:
for (i, j, k), value in tensor:
    tensor[i, j, k] = value + 1.0
for i in range(n):
    out[i] = x[i]

### use another name
for x in range(n):
    out[x] = y[x]
### then, with another result:
for i in range(n):
    out[i] = y[i]

### write its items one by one
for i in range(n):
    p = two_of(x[i])
    out[i] = p[0] * p[1]
### then:
for i in range(n):
    a, b = two_of(x[i])
    out[i] = a * b

### write rows of an array, `a[i] = …`
kept = []
for i in range(n):
    kept.append((x[i], (y[i], 1.0)))
return kept
### then, with another result:
for i in range(n):
    V[i] = x[i], y[i], 1.0
return V

### give it one
for i in range(n):
    out[i] = np.float64(x[i], y[i])
### then:
for i in range(n):
    out[i] = np.float64(x[i])

### write its arguments by position
for i in range(n):
    out[i] = np.zeros(shape=4)[0]
### then:
for i in range(n):
    out[i] = np.zeros(4)[0]
"""
