"""Programs that are refused, what is printed for them, and what they are when that is done.

Each is the body of a function whose parameters are the names of `VALUES` that it mentions. After `###` stands a part of
what is printed, then the program, then what it has become.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

import orion
from tests import cured_objects


@dataclass(frozen=True)
class Cured:
    """`is_other`: it gives something else then, which is meant."""

    printed: str
    program: str
    cured: str
    is_other: bool


class Settings:
    scale = 2.0


TABLE = np.array([0.0, 0.5, 0.5, 0.5, 0.5])


def plus(a, b):
    return a + b


def negated(a):
    return -a


def recursive(k):
    return 1 if k < 1 else recursive(k - 1)


def with_default(a, table=TABLE):
    return a + table[0]


def part_of(w):
    if w[0] > 4.0:
        return w[1:]
    return w[:3]


def copy_of_part(w):
    if w[0] > 4.0:
        return w[1:].copy()
    return w[:3].copy()


def at(table, k):
    return table[k]


def of_table(k):
    return TABLE[k]


def raising(a):
    if a < 0:
        raise ValueError("negative")
    return 2 * a


def or_nan(a):
    return np.nan if a < 0 else 2 * a


def or_one(w, k):
    if w is None:
        return 1.0
    return w[k]


def or_one_at_the_end(w, k):
    return 1.0 if w is None else w[k]


def listed(k):
    t = []
    t.append(k)
    t.append(k)
    return t[0] + t[1]


OUTSIDE: dict[str, Any] = {
    "np": np,
    "math": math,
    "orion": orion,
    "tqdm": tqdm,
    "Settings": Settings,
    "settings": Settings(),
    "table": {"a": 2.0},
    "plus": plus,
    "negated": negated,
    "recursive": recursive,
    "with_default": with_default,
    "at": at,
    "of_table": of_table,
    "listed": listed,
    "part_of": part_of,
    "copy_of_part": copy_of_part,
    "raising": raising,
    "or_nan": or_nan,
    "negated_partly": partial(negated),
    "or_one": or_one,
    "or_one_at_the_end": or_one_at_the_end,
    **cured_objects.OUTSIDE,
}

VALUES: dict[str, Callable[[], Any]] = {
    "x": lambda: np.arange(5.0) + 1,
    "y": lambda: np.arange(5.0)[::-1] / 2,
    "out": lambda: np.zeros(5),
    "n": lambda: 5,
    "k": lambda: 3,
    "idx": lambda: np.array([0, 2, 1, 4, 3]),
    "W": lambda: np.arange(20.0).reshape(5, 4),
    "A": lambda: np.arange(9.0).reshape(3, 3) + np.eye(3),
    "z": lambda: np.arange(5.0) + 1j,
    "flags": lambda: np.arange(5) > 2,
    "u": lambda: np.arange(5, dtype=np.uint64),
    "m": lambda: np.arange(5),
    "s": lambda: 2.5,
    "scale": lambda: 2.0,
    "small": lambda: np.arange(5, dtype=np.int8),
    "single": lambda: np.arange(5, dtype=np.float32),
    "days": lambda: np.arange(5),
    "day": lambda: int(np.timedelta64(1, "D").astype("m8[D]").astype(np.int64)),
    "starts": lambda: np.array([0, 2, 2, 3, 5, 5]),
    "noise": TABLE.copy,
    "cube": lambda: np.ones((5, 4, 3)),
    "places": lambda: np.flatnonzero(np.arange(5.0) + 1),
    "total": lambda: 15.0,
    "V": lambda: np.zeros((5, 3)),
    "Z": lambda: np.arange(4.0).reshape(2, 2) * 1j,
    "pairs": lambda: np.array([[0, 1], [2, 3]]),
    "pairs_of": lambda: {0: 1.5, 3: 2.0},
    "keys": lambda: np.array([0, 3]),
    "values": lambda: np.array([1.5, 2.0]),
    "out2": lambda: np.zeros((5, 4)),
    "zout": lambda: np.zeros(5, complex),
    "ints": lambda: np.zeros(5, int),
    "words": lambda: np.array([3, 1]),
    **cured_objects.VALUES,
}
"""What arguments are, by name."""

PROGRAMS = """\
### return a copy
for i in range(n):
    out[i] = x[i]
p = out[1:]
for t in range(2):
    p = p + x[1:]
return p
### then:
for i in range(n):
    out[i] = x[i]
p = out[1:].copy()
for t in range(2):
    p = p + x[1:]
return p

### make a copy: `acc = ….copy()`
for i in range(n):
    out[i] = x[i]
acc = x[0:2]
for t in range(3):
    acc = acc + x[2:4]
for i in range(n):
    out[i] += acc[1]
### then:
for i in range(n):
    out[i] = x[i]
acc = x[0:2].copy()
for t in range(3):
    acc = acc + x[2:4]
for i in range(n):
    out[i] += acc[1]

### pass `np.fft.rfft(x)`
big = np.fft.rfft(x)[0].real
for i in range(n):
    out[i] = x[i] * big
### then:
big = total
for i in range(n):
    out[i] = x[i] * big

### write `np.flatnonzero(x)` inside a loop, or pass that as an argument
p = np.nonzero(x)[0]
for i in range(n):
    out[i] = x[p[i]]
### then:
p = places
for i in range(n):
    out[i] = x[p[i]]

### write `np.flatnonzero(W[i])`
for i in range(n):
    out[i] = np.nonzero(W[i])[0][0]
### then:
for i in range(n):
    out[i] = np.flatnonzero(W[i])[0]

### `np.uint64(18446744073709551615)`
for i in range(n):
    u[i] = (i * 3) & 0xFFFFFFFFFFFFFFFF
### then:
for i in range(n):
    u[i] = (np.uint64(i) * np.uint64(3)) & np.uint64(18446744073709551615)

### pass `Settings.scale` as an argument
for i in range(n):
    out[i] = x[i] * Settings.scale
### then:
for i in range(n):
    out[i] = x[i] * scale

### pass `settings.scale` as an argument
for i in range(n):
    out[i] = x[i] * settings.scale
### then:
for i in range(n):
    out[i] = x[i] * scale

### to see progress, go through `tqdm(range(n))`
for i in range(n):
    out[i] = x[i]
    print(f'{x[i]:.2f}')
### then:
for i in tqdm(range(n), disable=True):
    out[i] = x[i]

### return the numbers, and format them after the call
for i in range(n):
    out[i] = x[i]
return f'{x[0]:.2f}'
### then, with another result:
for i in range(n):
    out[i] = x[i]
return x[0]

### pass integers of one unit
for i in range(n):
    days[i] = days[i] + np.timedelta64(1, 'D')
### then:
for i in range(n):
    days[i] = days[i] + day

### write `float(…)` of each
kept = [0.0]
for i in range(n):
    kept.append(x[i])
return kept
### then, with another result:
kept = [0.0]
for i in range(n):
    kept.append(float(x[i]))
return kept

### with a text, such as
if n < 2:
    raise
for i in range(n):
    out[i] = x[i]
### then:
if n < 2:
    raise ValueError('too short')
for i in range(n):
    out[i] = x[i]

### an f-string of numbers
assert n > 2, n
for i in range(n):
    out[i] = x[i]
### then:
assert n > 2, f'{n} rows'
for i in range(n):
    out[i] = x[i]

### a string or an f-string
if n < 2:
    raise KeyError(n, 1)
for i in range(n):
    out[i] = x[i]
### then:
if n < 2:
    raise KeyError(f'{n} 1')
for i in range(n):
    out[i] = x[i]

### its shape: `{x.shape}`
if n < 2:
    raise ValueError(f'{x}')
for i in range(n):
    out[i] = x[i]
### then:
if n < 2:
    raise ValueError(f'{x.shape}')
for i in range(n):
    out[i] = x[i]

### return a number that tells what is wrong
for i in range(n):
    out[i] = raising(x[i])
### then:
for i in range(n):
    out[i] = or_nan(x[i])

### check the data before the call
for i in range(n):
    try:
        out[i] = x[i]
    except ValueError:
        pass
### then:
for i in range(n):
    out[i] = x[i]

### open the context around the call
with np.errstate(all='ignore'):
    for i in range(n):
        out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### import at the top of the file
import math
for i in range(n):
    out[i] = math.sqrt(x[i])
### then:
for i in range(n):
    out[i] = math.sqrt(x[i])

### return the scalar
global found
found = 0.0
for i in range(n):
    found += x[i]
    out[i] = x[i]
### then, with another result:
found = 0.0
for i in range(n):
    found += x[i]
    out[i] = x[i]
return found

### leave it out: names end with the function
for i in range(n):
    t = x[i]
    out[i] = t
    del t
### then:
for i in range(n):
    t = x[i]
    out[i] = t

### move the definition out
def double(a):
    return a + a
for i in range(n):
    out[i] = double(x[i])
### then:
for i in range(n):
    out[i] = plus(x[i], x[i])

### write `if` and `elif`
for i in range(n):
    match i:
        case 1:
            out[i] = 1
        case _:
            out[i] = 2
### then:
for i in range(n):
    if i == 1:
        out[i] = 1
    else:
        out[i] = 2

### write one assignment on each line
for i in range(n):
    (a, b), c = (x[i], y[i], i), 2
    out[i] = a
### then:
for i in range(n):
    a = x[i]
    out[i] = a

### write one on each line
for i in range(n):
    a, b = c, d = x[i], y[i]
    out[i] = a + d
### then:
for i in range(n):
    a, b = x[i], y[i]
    c, d = x[i], y[i]
    out[i] = a + d

### assign to a name or to an array element
for i in range(n):
    x.shape[0] = 1
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### write the targets one by one
for i in range(n):
    a, *b = x[i], y[i]
    out[i] = a
### then:
for i in range(n):
    a, b = x[i], y[i]
    out[i] = a

### write the elements of an array
for i in range(n):
    x.total = x[i]
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]
    out[i] = x[i]

### give each item a name of its own
for i in range(n):
    p = x[i], y[i]
    p = 3.0
    out[i] = p
### then:
for i in range(n):
    p, q = x[i], y[i]
    p = 3.0
    out[i] = p

### write a tuple of as many values
for i in range(n):
    a, b = x[i] + 1.0
    out[i] = a
### then:
for i in range(n):
    a, b = x[i], 1.0
    out[i] = a

### give it a value before
for i in range(n):
    out[i] = t
t = x[0]
### then:
t = 0.0
for i in range(n):
    out[i] = t
t = x[0]

### write the elements of an array, `a[i] = …`
y2 = []
while len(y2) < n:
    y2.append(1.0)
for i in range(n):
    out[i] = x[i] + y2[i]
### then:
for i in range(n):
    out[i] = x[i] + 1.0

### write the expression where it is used
for i in range(n):
    g = lambda a: a + 1
    out[i] = x[i] + 1
### then:
for i in range(n):
    out[i] = x[i] + 1

### give it a name first, `y = [… for v in x]`
return sum([v * 2 for v in x])
### then:
y2 = [v * 2 for v in x]
return np.sum(y2)

### write a `for` loop over a range
t = sum(v * 2 for v in x)
for i in range(n):
    out[i] = x[i] * t
### then:
t = 0.0
for j in range(n):
    t += x[j] * 2
for i in range(n):
    out[i] = x[i] * t

### make an array, `np.array([…])`
for i in range(n):
    p = [x[i], y[i]]
    out[i] = p[i % 2]
### then:
for i in range(n):
    p = np.array([x[i], y[i]])
    out[i] = p[i % 2]

### use arrays, indexed by integers
d = {}
for i in range(n):
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### use an array of flags
d = {1, 2}
for i in range(n):
    out[i] = x[i] if i in d else 0.0
### then:
for i in range(n):
    out[i] = x[i] if i == 1 or i == 2 else 0.0

### assign on a line of its own
for i in range(n):
    out[i] = (t := x[i]) + t
### then:
for i in range(n):
    t = x[i]
    out[i] = t + t

### write the items one by one
for i in range(n):
    p = (x[i], *y)
    out[i] = x[i] + y[0]
### then:
for i in range(n):
    p, q = x[i], y[0]
    out[i] = x[i] + y[0]

### read the file into arrays before the loop
g = open('f')
for i in range(n):
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### ask before the loop
t = float(input())
for i in range(n):
    out[i] = x[i] * t
### then:
t = scale
for i in range(n):
    out[i] = x[i] * t

### write `for i in range(…):`
for i in range(n):
    t = range(3)
    out[i] = 0.0
    for j in t:
        out[i] += x[j]
### then:
for i in range(n):
    out[i] = 0.0
    for j in range(3):
        out[i] += x[j]

### write `for i, x in enumerate(a):`
t = enumerate(x)
for i, v in t:
    out[i] = v
### then:
for i, v in enumerate(x):
    out[i] = v

### write `for x, y in zip(a, b):`
t = zip(m, x)
for i, v in t:
    out[i] = v
### then:
for i, v in zip(m, x):
    out[i] = v

### write `np.sort(x)`, also of a part
t = sorted(x)
for i in range(n):
    out[i] = t[i]
### then:
t = np.sort(x)
for i in range(n):
    out[i] = t[i]

### make a NumPy array before the call
t = list(x)
for i in range(n):
    out[i] = t[i]
### then:
for i in range(n):
    out[i] = x[i]

### choose before the loop which function
for i in range(n):
    out[i] = negated(x[i]) if isinstance(n, int) else x[i]
### then:
for i in range(n):
    out[i] = negated(x[i])

### write `a // b` and `a % b`
for i in range(n):
    a, b = divmod(i, 2)
    out[i] = a + b
### then:
for i in range(n):
    a, b = i // 2, i % 2
    out[i] = a + b

### use numbers, and arrays of numbers
for i in range(n):
    t = 'a'
    out[i] = x[i]
### then:
for i in range(n):
    t = 1
    out[i] = x[i]

### name the function where it is called
g = np.sqrt
for i in range(n):
    out[i] = g(x[i])
### then:
for i in range(n):
    out[i] = np.sqrt(x[i])

### pass the numbers and arrays that it holds
for i in range(n):
    out[i] = x[i] * table['a']
### then:
for i in range(n):
    out[i] = x[i] * scale

### make what it is for before the call
kind = list
for i in range(n):
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### call a function that is defined outside
g = 1.0
for i in range(n):
    out[i] = g(x[i])
### then:
for i in range(n):
    out[i] = negated(x[i])

### call a function by its name
for i in range(n):
    out[i] = (negated if n > 1 else plus)(x[i])
### then:
for i in range(n):
    out[i] = negated(x[i])

### write the arguments one by one
for i in range(n):
    out[i] = plus(**{'a': x[i], 'b': 1})
### then:
for i in range(n):
    out[i] = plus(x[i], 1)

### pass its value as an argument
for i in range(n):
    out[i] = x[i] * x.itemsize
### then:
for i in range(n):
    out[i] = x[i] * 8

### pass the number itself, or an array with one element
for i in range(n):
    x[()] = 1.0
    out[i] = 1.0
### then:
x[:] = 1.0
for i in range(n):
    out[i] = 1.0

### write one subscript, `A[i, j]`, or give the value a name first
for i in range(n):
    out[i] = (x if i > 1 else y)[i]
### then:
for i in range(n):
    out[i] = x[i] if i > 1 else y[i]

### of a dict, `x['a']`
for i in range(n):
    out[i] = x['a'][i]
### then:
for i in range(n):
    out[i] = x[i]

### give the part a name first: `row = x[i]`
for i in range(n):
    j = idx[i]
    out2[i] = (W[j, :, None] * W[j])[0]
### then:
for i in range(n):
    j = idx[i]
    row = W[j]
    out2[i] = (row[:, None] * row)[0]

### make it an array before the call
for i in range(n):
    p = (1.0, 2.0)
    out[i] = (3.0, 4.0)[i % 2]
### then:
for i in range(n):
    out[i] = np.array([3.0, 4.0])[i % 2]

### compare with `==` or `!=`
for i in range(n):
    out[i] = 1.0 if i is n else x[i]
### then:
for i in range(n):
    out[i] = 1.0 if i == n else x[i]

### compare with each value, `x in (1, 2)`
for i in range(n):
    out[i] = 1.0 if i in words else x[i]
### then:
for i in range(n):
    out[i] = 1.0 if i in (3, 1) else x[i]

### write `A[:, j]` for `A.T[j]`
for i in range(n):
    out[i] = W.T[1][i]
### then:
for i in range(n):
    out[i] = W[:, 1][i]

### write `a.shape[0]`
for i in range(n):
    out[i] = W.shape[i % 2]
### then:
for i in range(n):
    out[i] = (W.shape[0] if i % 2 == 0 else W.shape[1])

### `A[:, 0]` for `A[..., 0]`
for i in range(n):
    out[i] = W[..., 0][i]
### then:
for i in range(n):
    out[i] = W[:, 0][i]

### give the value a name before, and look for that
for i in range(n):
    out[i] = 1.0 if negated(i) in (1, 2) else 0.0
### then:
for i in range(n):
    t = negated(i)
    out[i] = 1.0 if t in (1, 2) else 0.0

### give the value a name first
for i in range(n):
    out[i] = x[i] if i < 2 or (x + y)[i] > 3.0 else 0.0
### then:
for i in range(n):
    t = x + y
    out[i] = x[i] if i < 2 or t[i] > 3.0 else 0.0

### pass it as an argument
for i in range(n):
    out[i] = of_table(i)
### then:
for i in range(n):
    out[i] = at(noise, i)

### `orion.random(seed, i)`
for i in range(n):
    out[i] = np.random.rand() * 0.0
### then:
for i in range(n):
    out[i] = orion.random(7, i) * 0.0

### draw before the call, into an array
for i in range(n):
    out[i] = np.random.gamma(2.0) * 0.0
### then:
for i in range(n):
    out[i] = noise[i] * 0.0

### leave it out: `orion.random(seed, i)`
np.random.seed(3)
for i in range(n):
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### call a function written in Python
for i in range(n):
    out[i] = negated_partly(x[i])
### then:
for i in range(n):
    out[i] = negated(x[i])

### write it with a loop
for i in range(n):
    out[i] = recursive(i)
### then:
for i in range(n):
    out[i] = 1

### give every parameter that is no scalar at the call
for i in range(n):
    out[i] = with_default(x[i])
### then:
for i in range(n):
    out[i] = with_default(x[i], m)

### assign the result instead, `a[:] = …`
for i in range(n):
    np.add(W[i], 1.0, out=W[i])
### then:
for i in range(n):
    W[i] = np.add(W[i], 1.0)

### write an `if`, or np.where
for i in range(n):
    out[i] = np.sum(W[i], where=W[i] > 2.0)
### then:
for i in range(n):
    out[i] = np.sum(np.where(W[i] > 2.0, W[i], 0.0))

### keeps the best value so far
for i in range(n):
    out[i] = max(i, 2, key=abs)
### then:
for i in range(n):
    out[i] = max(i, 2)

### write it with operators, NumPy functions or a loop
for i in range(n):
    t = x.tolist()
    out[i] = x[i]
### then:
for i in range(n):
    out[i] = x[i]

### write `np.iinfo(x.dtype).max`
for i in range(n):
    out[i] = min(m[i], np.iinfo(n).max)
### then:
for i in range(n):
    out[i] = min(m[i], np.iinfo(m.dtype).max)

### write `np.finfo`
for i in range(n):
    out[i] = np.iinfo(x.dtype).max * 0.0
### then:
for i in range(n):
    out[i] = np.finfo(x.dtype).max * 0.0

### write `np.iinfo`
for i in range(n):
    out[i] = np.finfo(m.dtype).max * 0
### then:
for i in range(n):
    out[i] = np.iinfo(m.dtype).max * 0

### add up its elements in a loop
t = np.trace(cube)
for i in range(n):
    out[i] = x[i]
### then:
t = 0.0
for j in range(3):
    t += cube[j, j, 0]
for i in range(n):
    out[i] = x[i]

### write a constant, `x[:, None]`
for i in range(n):
    out2[i] = np.expand_dims(W[i], k - 3)[0]
### then:
for i in range(n):
    out2[i] = W[i][None, :][0]

### write as many names as there are items
for v in zip(m, x):
    out[0] += 1.0
### then:
for a, b in zip(m, x):
    out[0] += 1.0

### write `for i in range(…):` and use subscripts
for v in x > 2:
    out[0] += 1.0
### then:
for i in range(n):
    out[0] += 1.0

### write a name for each dimension
for at in np.ndindex(W.shape):
    W[at] += 1.0
### then:
for a, b in np.ndindex(W.shape):
    W[a, b] += 1.0

### write one `for … in range(…)` inside another
for a, b in np.ndindex(W.shape):
    if W[a, b] > 3.0:
        break
    out[0] += 1.0
### then:
stop = False
for a in range(5):
    for b in range(4):
        if not stop and W[a, b] > 3.0:
            stop = True
        if not stop:
            out[0] += 1.0

### write `int(…)`
for j, v in enumerate(x, 2.5):
    out[0] += v
### then:
for j, v in enumerate(x, int(2.5)):
    out[0] += v

### leave the loop out
for v in ():
    out[0] += 1.0
for i in range(n):
    out[i] += x[i]
### then:
for i in range(n):
    out[i] += x[i]

### leave `strict` out
for i, v in zip(m, x, strict=True):
    out[i] = v
### then:
for i, v in zip(m, x):
    out[i] = v

### write the step as a number
for i in reversed(range(0, n, k)):
    out[i] = x[i]
### then:
for i in reversed(range(0, n, 3)):
    out[i] = x[i]

### write `range(start, stop, step)`
for i in range(0, n, 1, 1):
    out[i] = x[i]
### then:
for i in range(0, n, 1):
    out[i] = x[i]

### write subscripts of the array itself
for i in range(n):
    V = W.T
    V[0, i] += 1.0
### then:
for i in range(n):
    W[i, 0] += 1.0

### write the part of each element
for i in range(n):
    r = z.real
    r[i] = 0.0
    out[i] = x[i]
### then:
for i in range(n):
    z[i] = 1j * z[i].imag
    out[i] = x[i]

### write its elements, `A[i, i]`
for i in range(n):
    d = np.diag(A)
    out[i] = d[i % 3]
### then:
for i in range(n):
    out[i] = A[i % 3, i % 3]

### make a copy, `x[:, None].copy()`
for i in range(n):
    c = W[i][:, None]
    W[i, 0] = 1.0
    out[i] = c[1, 0]
### then:
for i in range(n):
    c = W[i][:, None].copy()
    W[i, 0] = 1.0
    out[i] = c[1, 0]

### or make a copy, `A.reshape(A.size).copy()`
v = W.ravel()
for i in range(n):
    W[i, 0] = 1.0
    out[i] = v[4 * i + 1]
### then:
v = W.reshape(W.size).copy()
for i in range(n):
    W[i, 0] = 1.0
    out[i] = v[4 * i + 1]

### make a copy, `A.reshape(n, m).copy()`
v = W.reshape(4, 5)
for i in range(n):
    out[i] = v[1, i]
### then:
v = W.reshape(4, 5).copy()
for i in range(n):
    out[i] = v[1, i]

### return a copy of it
for i in range(n):
    v = part_of(W[i])
    out[i] = v[0]
### then:
for i in range(n):
    v = copy_of_part(W[i])
    out[i] = v[0]

### computed before the call, as an argument
p = x[x > 2.0][:k].copy()
q = np.unique(x)
for i in range(n):
    out[i] = q[i]
### then:
for i in range(n):
    out[i] = x[i]

### as large as it may get
p = 2.0 * x
q = np.unique(p)
for i in range(n):
    out[i] = q[i]
### then:
for i in range(n):
    out[i] = 2.0 * x[i]

### pass `np.argwhere(x)`, computed before the call
p = np.argwhere(x)
for i in range(n):
    out[i] = x[p[i, 0]]
### then:
p = places
for i in range(n):
    out[i] = x[p[i]]

### write `orion.random(seed, i)`
for i in range(n):
    out[i] = orion.random()
### then, with another result:
for i in range(n):
    out[i] = orion.random(k, i)

### write one of its items
for i in range(n):
    out[i] = int((x[i], y[i]))
### then, with another result:
for i in range(n):
    out[i] = int(x[i])

### `np.sum(np.array((x[i], y[i])))`
for i in range(n):
    out[i] = np.sum((x[i], y[i]))
### then:
for i in range(n):
    out[i] = np.sum(np.array((x[i], y[i])))

### write its items, `np.zeros((n, m))`
for i in range(n):
    out[i] = len(np.zeros(idx))
### then:
for i in range(n):
    out[i] = len(np.zeros((idx[0], idx[1])))

### write its items, `max(x[i], y[i])`
for i in range(n):
    out[i] = max((x[i], y[i]))
### then:
for i in range(n):
    out[i] = max(x[i], y[i])

### make `t` before, with np.zeros or so
if n > 3:
    t = np.zeros(n)
for i in range(n):
    out[i] = x[i]
t[0] = 1.0
return t
### then:
t = np.zeros(n)
for i in range(n):
    out[i] = x[i]
t[0] = 1.0
return t

### use two names, or make it before the call
t = np.zeros(n)
for i in range(n):
    t[i] = x[i]
t = np.zeros(n, np.int64)
for i in range(n):
    t[i] = i
    out[i] = t[i]
### then:
t = np.zeros(n)
for i in range(n):
    t[i] = x[i]
v = np.zeros(n, np.int64)
for i in range(n):
    v[i] = i
    out[i] = v[i]

### write `np.sum(a != 0)`
for i in range(n):
    out[i] = x.nnz
### then:
for i in range(n):
    out[i] = np.sum(x != 0)

### use np.all or np.any
for i in range(n):
    out[i] = 1.0 if W[i] > 2.0 else 0.0
### then:
for i in range(n):
    out[i] = 1.0 if np.all(W[i] > 2.0) else 0.0

### write `~` or `not`
for i in range(n):
    out[i] = 1.0 if -flags[i] else 0.0
### then:
for i in range(n):
    out[i] = 1.0 if not flags[i] else 0.0

### joined by `&`
for i in range(n):
    out[i] = np.sum(1.0 < W[i] < 9.0)
### then:
for i in range(n):
    out[i] = np.sum((1.0 < W[i]) & (W[i] < 9.0))

### choose with an `if` statement
for i in range(n):
    out[i] = np.sum(x if i > 2 else 1.0)
### then:
for i in range(n):
    if i > 2:
        out[i] = np.sum(x)
    else:
        out[i] = 1.0

### use it as an argument
for i in range(n):
    d = x.dtype
    t = np.zeros(2, x.dtype)
    out[i] = x[i] + t[0]
### then:
for i in range(n):
    t = np.zeros(2, x.dtype)
    out[i] = x[i] + t[0]

### or leave subscripts out
for i in range(n):
    out[i] = x[i, 0]
### then:
for i in range(n):
    out[i] = x[i]

### convert it with `int(…)`
for i in range(n):
    out[i] = x[s * 1.0]
### then:
for i in range(n):
    out[i] = x[int(s * 1.0)]

### write `int(s)`
for i in range(n):
    out[i] = np.sum(x[:s])
### then:
for i in range(n):
    out[i] = np.sum(x[:int(s)])

### for the number `int(flags[i])`
for i in range(n):
    out[i] = x[flags[i]]
### then:
for i in range(n):
    out[i] = x[int(flags[i])]

### use two names
t = x[0]
for i in range(n):
    out[i] = x[i]
t = x + 1.0
out[0] = t[0]
### then:
t = x[0]
for i in range(n):
    out[i] = x[i]
v = x + 1.0
out[0] = v[0]

### use a number, such as -1 or np.nan
t = None
for i in range(n):
    t = x[i]
    out[i] = t
### then:
t = np.nan
for i in range(n):
    t = x[i]
    out[i] = t

### assign element by element
for i in range(n):
    out[i] = W[i]
### then:
for i in range(n):
    out[i] = W[i, 0]

### make the array complex
for i in range(n):
    out[i] = z[i]
### then:
for i in range(n):
    zout[i] = z[i]

### use a number that fits
for i in range(n):
    small[i] = 300
### then:
for i in range(n):
    small[i] = 100

### assign element by element
for i in range(n):
    out[i] += W[i]
### then:
for i in range(n):
    out[i] += W[i, 0]

### write a loop with an `if`
for i in range(n):
    W[i][x[:4] > 2.0] = 0.0
### then:
for i in range(n):
    for j in range(4):
        if x[j] > 2.0:
            W[i, j] = 0.0

### write a loop over the subscripts
for i in range(n):
    W[i, idx[:2]] = 0.0
### then:
for i in range(n):
    for j in range(2):
        W[i, idx[j]] = 0.0

### an assignment converts
for i in range(n):
    ints[:] = i
    small[:] = 0
    small += x
### then:
small[:] = 0
small[:] = small + x

### write `int(s)`
for i in range(s):
    out[i] = x[i]
### then:
for i in range(int(s)):
    out[i] = x[i]

### write `int((z[0].real * z[1]).real)`, say
for i in range(z[0].real * z[1]):
    out[0] += 1
### then:
for i in range(int((z[0].real * z[1]).real)):
    out[0] += 1

### write `*`
for i in range(n):
    out[i] = x[i] @ 2.0
### then:
for i in range(n):
    out[i] = x[i] * 2.0

### write it as loops
A[:] = A @ A
for i in range(n):
    ints[i] = (m[:4] @ idx[:4])
    small[i] = 1
B = np.arange(9).reshape(3, 3) @ np.arange(9).reshape(3, 3)
### then:
A[:] = A @ A
for i in range(n):
    ints[i] = (m[:4] @ idx[:4])
    small[i] = 1

### write np.minimum or np.maximum
for i in range(n):
    out[i] = np.sum(min(W[i], W[0]))
### then:
for i in range(n):
    out[i] = np.sum(np.minimum(W[i], W[0]))

### leave it out, or write `a.astype(np.float64)`
for i in range(n):
    out[i] = np.sum(np.round(flags))
### then:
for i in range(n):
    out[i] = np.sum(np.round(flags.astype(np.float64)))

### leave it out
for i in range(n):
    out[i] = round(flags[i])
### then:
for i in range(n):
    out[i] = flags[i]

### write `np.flatnonzero(x > 2.0)`
for i in range(n):
    out[i] = len(np.where(x > 2.0)[0])
### then:
for i in range(n):
    out[i] = len(np.flatnonzero(x > 2.0))

### convert them, `int(n)`
for i in range(n):
    out[i] = np.sum(np.arange(u[i]))
### then:
for i in range(n):
    out[i] = np.sum(np.arange(int(u[i])))

### convert them, `float(x)`
for i in range(n):
    out[i] = np.sum(np.linspace(single[0], single[1], 3))
### then:
for i in range(n):
    out[i] = np.sum(np.linspace(float(single[0]), float(single[1]), 3))

### convert one, `a.astype(np.float64)`
for i in range(n):
    out[i] = np.sum(np.concatenate((x, m)))
### then:
for i in range(n):
    out[i] = np.sum(np.concatenate((x, m.astype(np.float64))))

### of rows, or loops that fill a new array
for i in range(n):
    out[i] = np.sum(np.concatenate((W, W)))
### then:
for i in range(n):
    out[i] = np.sum(np.concatenate((W.flatten(), W.flatten())))

### write `a[1:] != a[:-1]`
for i in range(n):
    out[i] = np.sum(np.diff(flags))
### then:
for i in range(n):
    out[i] = np.sum((flags[1:] != flags[:-1]))

### loop over its rows
for i in range(n):
    out[i] = np.sum(np.diff(W)) * 0.0
### then:
for i in range(n):
    out[i] = np.sum(np.diff(W[i])) * 0.0

### write all lengths as integers
for i in range(n):
    out[i] = np.sum(W.reshape(-1))
### then:
for i in range(n):
    out[i] = np.sum(W.reshape(20))

### write `A.copy()` for a copy
for i in range(n):
    t = np.array(x)
    out[i] = t[i]
### then:
for i in range(n):
    t = x.copy()
    out[i] = t[i]

### and write its rows: `A[0] = x`
for i in range(n):
    t = np.array([W[i], W[0]])
    out[i] = t[1, 1]
### then:
for i in range(n):
    t = np.zeros((2, 4))
    t[0] = W[i]
    t[1] = W[0]
    out[i] = t[1, 1]

### write one call for each
for i in range(n):
    out[i] = np.percentile(W[i], (10.0, 20.0))[0]
### then:
for i in range(n):
    out[i] = np.percentile(W[i], 10.0)

### write `a.astype(np.float64)`
for i in range(n):
    out[i] = np.percentile(small, 10.0)
### then:
for i in range(n):
    out[i] = np.percentile(small.astype(np.float64), 10.0)

### convert it, `a.astype(np.float64)`
for i in range(n):
    out[i] = np.linalg.det(np.eye(2, dtype=np.int64))
### then:
for i in range(n):
    out[i] = np.linalg.det(np.eye(2, dtype=np.int64).astype(np.float64))

### write `a.astype(np.float32)`
for i in range(n):
    out[i] = np.sum(x.astype(np.float32, copy=False))
### then:
for i in range(n):
    out[i] = np.sum(x.astype(np.float32))

### write `**`
for i in range(n):
    out[i] = np.sum(pow(W[i], 2))
### then:
for i in range(n):
    out[i] = np.sum(W[i] ** 2)

### write `np.sum(a, axis=0)`
for i in range(n):
    out[i] = sum(W)[0]
### then:
for i in range(n):
    out[i] = np.sum(W, axis=0)[0]

### write a constant, `axis=0`
for i in range(n):
    out[i] = np.sum(W, axis=k - 3)[0]
### then:
for i in range(n):
    out[i] = np.sum(W, axis=0)[0]

### convert a number first: `int(x)`
for i in range(n):
    out[i] = 0.0 * orion.random(s, i)
### then:
for i in range(n):
    out[i] = 0.0 * orion.random(int(s), i)

### write a loop over the other axes
for i in range(n):
    out[i] = np.all(W > 2.0, axis=1)[i]
### then:
for i in range(n):
    out[i] = np.all(W[i] > 2.0)

### n / (n - ddof)
for i in range(n):
    out[i] = np.var(W[i], ddof=1)
### then:
for i in range(n):
    out[i] = np.var(W[i]) * 4 / (4 - 1)

### leave it out: the result without that axis
for i in range(n):
    out[i] = np.sum(W[i], keepdims=True)[0]
### then:
for i in range(n):
    out[i] = np.sum(W[i])

### combine the result with that value
for i in range(n):
    out[i] = np.max(W[i], initial=9.5)
### then:
for i in range(n):
    out[i] = max(np.max(W[i]), 9.5)

### start + np.arange(n) * step
for i in range(n):
    out[i] = np.linspace(0.0, 1.0, 4, endpoint=False)[1]
### then:
for i in range(n):
    out[i] = (0.0 + np.arange(4) * 0.25)[1]

### `math.log(x) / math.log(base)`
for i in range(n):
    out[i] = math.log(x[i], 3.0)
### then:
for i in range(n):
    out[i] = math.log(x[i]) / math.log(3.0)

### a loop of products
for i in range(n):
    out[i] = pow(i, 2, 5)
### then:
for i in range(n):
    out[i] = i * i % 5

### write `s = start`
for i in range(n):
    out[i] = sum(W[i], 2.0)
### then:
for i in range(n):
    out[i] = 2.0
    for j in range(4):
        out[i] += W[i, j]

### give what it picks a name first: `rows
for i in range(n):
    out[i] = W[m[m > 2], i % 4][0]
### then:
for i in range(n):
    column = W[:, i % 4]
    out[i] = column[m[m > 2]][0]

### `row = A[i]`, then `row[picks]`
for i in range(n):
    out[i] = cube[i, idx[:2], 1:].sum()
### then:
for i in range(n):
    row = cube[i]
    two = row[idx[:2]]
    out[i] = two[:, 1:].sum()

### give what it picks a name first
for i in range(n):
    out[i] = x[x > 2.0].sum() if i > 1 else 0.0
### then:
for i in range(n):
    t = x[x > 2.0]
    out[i] = t.sum() if i > 1 else 0.0

### write a loop
for i in range(n):
    out[i] = np.inner(A, A)[0, i % 3]
### then:
for i in range(n):
    out[i] = 0.0
    for j in range(3):
        out[i] += A[0, j] * A[i % 3, j]

### convert what it is given
for i in range(n):
    out[i] = np.sum(np.sqrt(small))
### then, with another result:
for i in range(n):
    out[i] = np.sum(np.sqrt(small.astype(np.float64)))

### it takes a row or an array
for i in range(n):
    out[i] = np.std(x[i])
### then, with another result:
for i in range(n):
    out[i] = np.std(W[i])

### write its arguments by position
for i in range(n):
    out[i] = np.outer(a=x, b=y)[i, 0]
### then:
for i in range(n):
    out[i] = np.outer(x, y)[i, 0]

### or use a number, such as -1
for i in range(n):
    out[i] = np.clip(W[i], None, 5.0)[0]
### then:
for i in range(n):
    out[i] = np.clip(W[i], -np.inf, 5.0)[0]

### convert before or after
for i in range(n):
    out[i] = np.mean(W[i], dtype=np.float64)
### then:
for i in range(n):
    out[i] = np.mean(W[i].astype(np.float64))

### leave it out
for i in range(n):
    out[i] = np.zeros(4, order='C')[0]
### then:
for i in range(n):
    out[i] = np.zeros(4)[0]

### write products, `z * z`
for i in range(n):
    zout[i] = (z[i] + 1.0) ** s
### then:
for i in range(n):
    zout[i] = np.exp(s * np.log(z[i] + 1.0))

### or `abs(z)`
for i in range(n):
    out[i] = 1.0 if z[i] > z[0] else 2.0
### then:
for i in range(n):
    out[i] = 1.0 if abs(z[i]) > abs(z[0]) else 2.0

### `A[i, i + k]`
for i in range(n):
    out[i] = np.trace(A, 1)
### then:
for i in range(n):
    out[i] = 0.0
    for j in range(2):
        out[i] += A[j, j + 1]

### write `np.arange(n) * step + start`
for i in range(n):
    out[i] = np.linspace(0.0, 1.0, 4, False)[1]
### then:
for i in range(n):
    out[i] = (np.arange(4) * 0.25 + 0.0)[1]

### join rows of one dimension
for i in range(n):
    out[i] = np.concatenate((x, y), 0)[i]
### then:
for i in range(n):
    out[i] = np.concatenate((x, y))[i]

### write loops over the subscripts
for i in range(n):
    out[i] = x[pairs].sum()
### then:
for i in range(n):
    out[i] = 0.0
    for a in range(2):
        for b in range(2):
            out[i] += x[pairs[a, b]]

### write a loop
for i in range(n):
    out[i] = W[idx[:2], m[:2]].sum()
### then:
for i in range(n):
    out[i] = 0.0
    for a in range(2):
        out[i] += W[idx[a], m[a]]

### or name all of them
for i in range(n):
    a, b = W[i]
    out[i] = a
### then:
for i in range(n):
    a, b, c, d = W[i]
    out[i] = a

### rows have the same length
for i in range(n):
    out2[i] = W[i] + x
### then:
for i in range(n):
    out2[i] = W[i] + x[:4]

### write `for i in range(…):`
for a, b in range(3):
    out[a] = 1.0
### then:
for a in range(3):
    out[a] = 1.0

### `return 1.0 if w is None else w[i]`
w = 0
for i in range(n):
    out[i] = or_one(None, i)
### then:
w = 0
for i in range(n):
    out[i] = or_one_at_the_end(None, i)

### or leave `ravel` out
for i in range(n):
    v = W[:, 0].ravel()
    v[i] = 2.0
    out[i] = v[i]
### then:
for i in range(n):
    v = W[:, 0].copy()
    v[i] = 2.0
    out[i] = v[i]

### append in the decorated function
for i in range(n):
    out[i] = listed(i)
### then:
for i in range(n):
    out[i] = negated(i) * -2

### pass its keys and its values
for a, b in pairs_of.items():
    out[a] = b
### then:
for a, b in zip(keys, values):
    out[a] = b

### write a loop over the other axes
for i in range(n):
    out[i] = np.linalg.norm(W, axis=1)[i]
### then:
for i in range(n):
    out[i] = np.linalg.norm(W[i])

### write a loop over the other axes
for i in range(n):
    out[i] = W.any(1)[i]
### then:
for i in range(n):
    out[i] = W[i].any()

### or write it as a loop
for i in range(n):
    out[i] = np.bitwise_count(i)
### then:
for i in range(n):
    out[i] = 0
    for b in range(3):
        out[i] += i >> b & 1

### write `np.sum(W[i] != 0)`
for i in range(n):
    out[i] = np.count_nonzero(W[i])
### then:
for i in range(n):
    out[i] = np.sum(W[i] != 0)

### write the values one by one
for i in range(n):
    a, b = x[i]
    out[i] = a
### then:
for i in range(n):
    a, b = x[i], y[i]
    out[i] = a

### write it as loops
for i in range(n):
    zout[i] = (Z @ Z)[0, 0]
### then:
for i in range(n):
    zout[i] = 0.0
    for j in range(2):
        zout[i] += Z[0, j] * Z[j, 0]

### write `int(…)`
for i in range(n):
    out[i] = np.sum(np.hanning(u[i]))
### then:
for i in range(n):
    out[i] = np.sum(np.hanning(int(u[i])))

### an array whose rows have 3 elements
for i in range(n):
    W[i] = x[i], y[i], 1.0
### then:
for i in range(n):
    V[i] = x[i], y[i], 1.0

### write `complex(x, y)`
for i in range(n):
    zout[i] = np.complex128(x[i], y[i])
### then:
for i in range(n):
    zout[i] = complex(x[i], y[i])
"""


def cured_programs() -> Iterator[Cured]:
    """All of them."""
    for text in (PROGRAMS + cured_objects.PROGRAMS).split("### ")[1:]:
        first, _, rest = text.partition("\n")
        if not first.startswith("then"):
            printed, program = first, rest.strip("\n")
        else:
            yield Cured(printed, program, rest.strip("\n"), "another" in first)


CURED = tuple(cured_programs())

NO_LONGER_REFUSED = """\
###
k = 0
at = 3
while at >= 0:
    ints[k] = at
    at = m[at] - 1
    k += 1
return ints[:k][::-1]

###
for i in range(n):
    ints[i] = m[i]
c = 0
for i in range(n):
    c += m[i] // 3
return ints[:c][::-1].copy(), c

###
for i in range(n):
    out[i] = x[i]
return out[:k][::-1].copy(), out[1:].copy(), np.copy(out[:-k]), out[::2].copy()

###
for i in range(n):
    out[i] = x[i]
acc = x[0:2]
acc[0] = 3.0
for i in range(n):
    out[i] += acc[1] + acc[0]

###
acc = x[0:2].copy()
for t in range(3):
    acc = acc + x[2:4]
for i in range(n):
    out[i] += acc[1]
return acc

###
big = np.iinfo(np.int64).max
for i in range(n):
    out[i] = min(m[i], big)
return big

###
for i in range(n):
    out[i] = x[i] + np.finfo(x.dtype).eps + np.finfo(np.float32).tiny + np.iinfo(m.dtype).bits

###
t = np.trace(A)
for i in range(n):
    out[i] = x[i] * t + np.trace(A[:2, :2])
return t

###
d = np.std(W, axis=0)
v = W.var(1)
for i in range(n):
    out[i] = d[1] + v[i]
return d

###
c = x[:, np.newaxis]
for i in range(n):
    out2[i] = c[i, 0] * W[i]
return c * y[None, :]

###
for i in range(n):
    out2[i] = (W[i, :, None] * W[i])[1]

###
for i in range(n):
    h = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    u[i] = (h ^ (h >> np.uint64(31))) & 0xFFFFFFFFFFFFFFFF

###
for i in range(n):
    if u[i] < 2**63 + 3:
        u[i] = 2**64 - 1
    u[i] -= 0x8000000000000000

###
kept = [x[0]]
for i in range(1, n):
    if x[i] > 2.0:
        kept.append(x[i])
return kept

###
if n < 2:
    raise ValueError('too short')
assert n < 100, f'{n} rows'
for i in range(n):
    out[i] = x[i]
"""
ACCEPTED = [text.strip("\n") for text in NO_LONGER_REFUSED.split("###\n")[1:]]
"""Programs that were refused once."""
