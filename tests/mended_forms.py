"""Programs with refused code in other forms than those of `tests.cured_programs`: other names and places, tabs."""

# ruff: noqa: E101, E501 (as it is written)

MENDED = r"""
for i in range(n):
	total = x[i]
	out[i] = sum(x[j] * y[j] for j in range(n) if x[j] > 1.0) + total
->
@orion.parallel_for
def f(x, y, out, n, total):
    for i in range(n):
    	total = x[i]
    	total_2 = 0
    	for j in range(n):
    		if x[j] > 1.0:
    			total_2 += x[j] * y[j]
    	out[i] = total_2 + total
===
for i in range(n):
    if all(v > 3.0 for v in W[i]):  # rows
        out[i] = 1.0
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
        holds = True
        for v in W[i]:
            if not (v > 3.0):
                holds = False
                break
        if holds:  # rows
            out[i] = 1.0
===
for i in range(n):
    for i2, p in enumerate(zip(m, x)):
        out[i] += p[1] * p[0] + i2
->
@orion.parallel_for
def f(x, out, n, m):
    for i in range(n):
        for i2, (p_0, p_1) in enumerate(zip(m, x)):
            out[i] += p_1 * p_0 + i2
===
for i in range(n):
    s2 = x[0]
    out[i] = s2
    s2 = W[i] + s2
    out[i] += s2[1]
->
@orion.parallel_for
def f(x, out, n, W):
    for i in range(n):
        s2 = x[0]
        out[i] = s2
        s2_2 = W[i] + s2
        out[i] += s2_2[1]
===
scale2 = lambda a, b=2.0: a * b
for i in range(n):
    out[i] = scale2(x[i])
->
def scale2(a, b=2.0):
    return a * b


@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        out[i] = scale2(x[i])
===
for i in range(n):
    W[i, x[:4] > 2.0] += 1.0
->
@orion.parallel_for
def f(x, n, W):
    for i in range(n):
        mask = x[:4] > 2.0
        for j in range(len(mask)):
            if mask[j]:
                W[i, j] += 1.0
===
for i in range(n):
    out[i] = (x if i > 1 else y)[i] * 2 if (u3 := x[i]) > 2.0 else u3
->
@orion.parallel_for
def f(x, y, out, n):
    for i in range(n):
        u3 = x[i]
        out[i] = (x[i] if i > 1 else y[i]) * 2 if (u3) > 2.0 else u3
===
for i in range(n):
    out[i] += 2.0 * (x[x > 2.0].sum() if i > 1 else 1.0)
->
@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        if i > 1:
            out[i] += 2.0 * x[x > 2.0].sum()
        else:
            out[i] += 2.0 * 1.0
===
for i in range(n):
    out[i] = np.percentile(W, 25.0, axis=0)[i % 4] + np.median(W, axis=-1)[i]
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
        results = np.array([np.percentile(W[:, column], 25.0) for column in range(W.shape[1])])
        results_2 = np.array([np.median(row) for row in W])
        out[i] = results[i % 4] + results_2[i]
===
for row in range(n):
    out[row] = np.any(W[:2] > 2.0, axis=0)[row % 4] + A.all(0)[row % 3]
->
@orion.parallel_for
def f(out, n, W, A):
    for row in range(n):
        out[row] = (np.sum(W[:2] > 2.0, axis=0) > 0)[row % 4] + (np.sum(A == 0, axis=0) == 0)[row % 3]
===
for i in range(n):
    out[i] = 2.0 / (1.0 + np.linalg.norm(W, axis=-1)[i])
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
        out[i] = 2.0 / (1.0 + np.sqrt(np.sum(W * W, axis=-1))[i])
===
for i in range(n):
    out[i] = np.linalg.norm(single, axis=0)
->
@orion.parallel_for
def f(out, n, single):
    for i in range(n):
        out[i] = np.linalg.norm(single)
===
for i in range(n):
    out[i] = -np.diff(cube)[0, 0, i % 2]
->
@orion.parallel_for
def f(out, n, cube):
    for i in range(n):
        out[i] = -(cube[:, :, 1:] - cube[:, :, :-1])[0, 0, i % 2]
===
for i in range(n):
    out[i] = np.trace(W, -2) * np.trace(A, 0)
->
@orion.parallel_for
def f(out, n, W, A):
    for i in range(n):
        out[i] = np.trace(W[2:]) * np.trace(A)
===
for i in range(n):
    out[i] = np.std(W[i], ddof=2) + W.var(ddof=1)
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
        out[i] = np.sqrt(np.sum((W[i] - np.mean(W[i])) ** 2) / max(W[i].size - 2, 0)) + np.sum((W - np.mean(W)) ** 2) / max(W.size - 1, 0)
===
for i in range(n):
    out[i] = m.item(i % 2) / 2 + flags.item(0)
->
@orion.parallel_for
def f(out, n, flags, m):
    for i in range(n):
        out[i] = int(m[i % 2]) / 2 + bool(flags[0])
===
for i in range(n):
    np.multiply(x, 2.0, x)  # twice
    out[i] = x[i]
->
@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        x[:] = np.multiply(x, 2.0)  # twice
        out[i] = x[i]
===
for i in range(n):
    out[i] = W.shape[(i + 1) % 2] ** 2
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
        out[i] = (W.shape[0] if (i + 1) % 2 == 0 else W.shape[1]) ** 2
===
for i in range(n):
    out[i] = min(x[i], y[i], key=negated)
->
@orion.parallel_for
def f(x, y, out, n):
    for i in range(n):
        out[i] = y[i] if negated(y[i]) < negated(x[i]) else x[i]
===
assert n > 2, x.shape[0]  # rows
for i in range(n):
    out[i] = x[i]
->
@orion.parallel_for
def f(x, out, n):
    assert n > 2, f"{x.shape[0]}"  # rows
    for i in range(n):
        out[i] = x[i]
===
if n > 20:
	raise ValueError(n)
for i in range(n):
	out[i] = x[i]
->
@orion.parallel_for
def f(x, out, n):
    if n > 20:
    	raise ValueError(f"{n}")
    for i in range(n):
    	out[i] = x[i]
===
total = 2.0
for i in range(n):
    out[i] = sum(W[i, j] * total for j in range(4) if j != i) / 2  # mean
->
@orion.parallel_for
def f(out, n, W, total):
    total = 2.0
    for i in range(n):
        total_2 = 0
        for j in range(4):
            if j != i:
                total_2 += W[i, j] * total
        out[i] = total_2 / 2  # mean
===
for i in range(n):
	if (first := W[i, 0]) > 1.0:  # large
		out[i] = first
->
@orion.parallel_for
def f(out, n, W):
    for i in range(n):
    	first = W[i, 0]
    	if (first) > 1.0:  # large
    		out[i] = first
===
for i in range(n):
    out[i] = 3.0 - (W[i][W[i] > 3.0].sum() if i % 2 else x[i])
->
@orion.parallel_for
def f(x, out, n, W):
    for i in range(n):
        if i % 2:
            out[i] = 3.0 - W[i][W[i] > 3.0].sum()
        else:
            out[i] = 3.0 - x[i]
===
for i, (a, pair) in enumerate(zip(x, zip(m, y))):
    out[i % 3] += a * pair[-1] - pair[0]
->
@orion.parallel_for
def f(x, y, out, m):
    for i, (a, (pair_0, pair_1)) in enumerate(zip(x, zip(m, y))):
        out[i % 3] += a * pair_1 - pair_0
===
s = x[0]
for i in range(n):
    out[i] = s
s = s * y
out[0] = s[1]
->
@orion.parallel_for
def f(x, y, out, n, s):
    s_2 = x[0]
    for i in range(n):
        out[i] = s_2
    s_2_2 = s_2 * y
    out[0] = s_2_2[1]
===
last = None
for i in range(n):
    if x[i] > 2.0:
        last = x[i]
        out[i] = last
->
@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        if x[i] > 2.0:
            last = x[i]
            out[i] = last
===
def twice(a):

    # by itself
    return a * 2
for i in range(n):
    out[i] = twice(x[i])
->
def twice(a):

    # by itself
    return a * 2


@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        out[i] = twice(x[i])
===
for i in range(n):
    x[idx[:2]] = k
    out[i] = x[i]
->
@orion.parallel_for
def f(x, out, n, k, idx):
    for i in range(n):
        for j in idx[:2]:
            x[j] = k
        out[i] = x[i]
===
for v in -x[1:]:
    out[0] += v
->
@orion.parallel_for
def f(x, out):
    values = -x[1:]
    for v in values:
        out[0] += v
===
def twice(a):

    # by itself
    return a * 2  # all
for i in range(n):
    out[i] = twice(x[i])
->
def twice(a):

    # by itself
    return a * 2  # all


@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        out[i] = twice(x[i])
===
for i in range(n):
    match i:
        case 1:
            out[i] = 1
        case 2 | 3 if k > 1:
            out[i] = 3  # both
            # more
            out[i] += x[i]
        case _:
            out[i] = 2
->
@orion.parallel_for
def f(x, out, n, k):
    for i in range(n):
        if i == 1:
            out[i] = 1
        elif i in (2, 3) and (k > 1):
            out[i] = 3  # both
            # more
            out[i] += x[i]
        else:
            out[i] = 2
===
for i in range(n):
    zout[i] = complex(x[i], z[i]) + complex(z[0], y[i])
->
@orion.parallel_for
def f(x, y, n, z, zout):
    for i in range(n):
        zout[i] = complex(x[i] - z[i].imag, z[i].real) + complex(z[0].real, z[0].imag + y[i])
===
for i in range(n):
    out[i] = (A @ A)[0, 0] * np.inner(A, A[:2])[i % 3, 1]
->
@orion.parallel_for
def f(out, n, A):
    for i in range(n):
        out[i] = (A @ A)[0, 0] * (A @ A[:2].T)[i % 3, 1]
===
for i in range(n):
    out[i] = np.quantile(x, (0.25, 0.5))[i % 2] - 1.0
->
@orion.parallel_for
def f(x, out, n):
    for i in range(n):
        out[i] = np.array([np.quantile(x, 0.25), np.quantile(x, 0.5)])[i % 2] - 1.0
===
t = x[0]
k += 1
t = 'b'  # unread
for i in range(n):
    out[i] = x[i]
->
@orion.parallel_for
def f(x, out, n, k):
    t = x[0]
    k += 1
    for i in range(n):
        out[i] = x[i]
"""
"""Programs, each with its function after `orion explain --fix`."""
