"""Programs with a name `V`, of arrays `a` and `b` (or a matrix `A`), an integer and a float."""

TEXT = """
# array
def f(V, b, n, s):
    for i in range(n):
        V[i] += s * b[i]
    return V[0], V.shape[0]

# scalar in bounds
def f(a, b, n, V):
    for i in range(1, a.shape[0] - int(V)):
        a[i] = b[i - 1] + b[i + int(V)]
    return V

# integer in subscripts
def f(a, b, V, s):
    for i in range(V - 2):
        a[i] = b[V - 1 - i]
    return V

# local before a loop
def f(a, b, n, s):
    V = a[0] * 2
    for i in range(n):
        b[i] = a[i] + V
    return V + s

# extent before a loop
def f(a, b, n, s):
    V = a.shape[0] // 2
    for i in range(V):
        b[i] = a[V + i]
    return V

# sum
def f(a, b, n, s):
    V = 0.0
    for i in range(n):
        V += a[i]
    return V / n

# extreme
def f(a, b, n, s):
    V = a[0]
    for i in range(n):
        if a[i] > V:
            V = a[i]
    return V

# extreme by a call
def f(a, b, n, s):
    V = a[0]
    for i in range(n):
        V = np.maximum(V, a[i])
    return V

# last value
def f(a, b, n, s):
    for i in range(n):
        V = a[i] + s
        b[i] = V
    return V

# loop variable
def f(a, b, n, s):
    for V in range(n):
        b[V] = a[V] * s
    return V

# inner loop variable
def f(a, b, n, s):
    for i in range(n):
        for V in range(i):
            b[i] += a[V]
    return b[n - 1]

# rounds
def f(a, b, n, s):
    for V in range(3):
        for i in range(1, n - 1):
            b[i] = a[i - 1] + a[i + 1] + V
        for i in range(n - V):
            a[i] = b[i]
    return a[1]

# while
def f(a, b, n, s):
    V = 0
    while V < 3:
        for i in range(n):
            b[i] += a[i] * V
        V += 1
    return V

# branch
def f(a, b, n, s):
    V = n > 3 and s > 0
    if V:
        for i in range(n):
            b[i] = a[i]
    else:
        for i in range(n):
            b[i] = 2 * a[i]
    return V

# helper
def V(x, y):
    return x * y + max(x, y)
def f(a, b, n, s):
    t = V(s, 2.0)
    for i in range(n):
        b[i] = V(a[i], t)
    return V(t, s)

# helper's parameter
def g(V, y):
    return V * y + np.sqrt(abs(V))
def f(a, b, n, s):
    t = g(s, 2.0)
    for i in range(n):
        b[i] = g(a[i], t)
    return g(t, s)

# helper's local
def g(x, y):
    V = x * y
    return V + min(V, y)
def f(a, b, n, s):
    t = g(s, 2.0)
    for i in range(n):
        b[i] = g(a[i], t)
    return g(t, s)

# helper with a loop
def g(x, V):
    t = 0.0
    for k in range(V):
        if t > 5.0:
            return t
        t += x[k]
    return t
def f(a, b, n, s):
    for i in range(n):
        b[i] = g(a, i)
    return b[1]

# global
V = 2.5
def f(a, b, n, s):
    t = V * s
    for i in range(n):
        b[i] = a[i] * V + t
    return t

# function
def V(a, b, n, s):
    for i in range(n):
        b[i] = a[i] + len(b)
    return max(n, s), np.sqrt(s)
f = V

# local array
def f(a, b, n, s):
    V = np.zeros(n)
    for i in range(n):
        V[i] = a[i] * s
    return V

# row
def f(A, b, n, s):
    for i in range(n):
        V = A[i]
        V[0] = V @ V + s
    return A[0, 0]

# slices
def f(V, b, n, s):
    V[1:-1] = 0.5 * (b[:-2] + b[2:]) + s
    return V[1]

# stencil in time
def f(a, V, n, s):
    for t in range(n):
        for i in range(1, len(V) - 1):
            V[i] = 0.25 * (V[i - 1] + V[i] + V[i + 1])
    return V[1]

# scan
def f(a, b, n, s):
    V = s
    for i in range(n):
        V = 0.5 * V + a[i]
        b[i] = V
    return V

# found place
def f(a, b, n, s):
    V = -1
    for i in range(n):
        if a[i] > 0.9:
            V = i
            break
    return V

# list
def f(a, b, n, s):
    V = []
    for i in range(n):
        if a[i] > 0.5:
            V.append(a[i])
    return np.array(V)

# steps
def f(a, b, V, s):
    for i in range(0, len(a), V // 3):
        b[i] = a[i] + len(a) // V
    return V

# random
def f(a, b, n, V):
    s = orion.random(int(V), 3)
    for i in range(n):
        a[i] = s + orion.random.normal(int(V), i)
    return orion.random.integers(2, 9, int(V))

# functions between
def f(a, b, n, s):
    V = math.sqrt(s) + max(n, 2) + min(len(a), 4) + abs(s) + float(n)
    for i in range(n):
        b[i] = a[i] * V
    return round(V), np.exp(V), bool(V)

# random numbers: between
def f(a, b, n, V):
    t = orion.random(int(V), 1)
    for i in range(n):
        a[i] += t
    return t

# random numbers: returned
def f(a, b, n, V):
    for i in range(n):
        a[i] += 1
    return orion.random.normal(int(V), 2), orion.random.integers(0, 9, int(V))

# random numbers: a bound
def f(a, b, n, V):
    for i in range(orion.random.integers(3, 9, int(V), 1)):
        a[i] += 1

# random numbers: a test
def f(a, b, n, V):
    if orion.random(int(V)) < 0.5:
        for i in range(n):
            a[i] += 1
    else:
        for i in range(n):
            a[i] += 2

# random numbers: a while
def f(a, b, n, V):
    k = 0
    while orion.random(int(V), k) < 0.8:
        for i in range(n):
            a[i] += 1
        k += 1
    return k

# random numbers: a helper
def noise(seed, key):
    return orion.random.normal(seed, key)
def f(a, b, n, V):
    t = noise(int(V), 3)
    for i in range(n):
        a[i] += noise(n, i) + t
    return noise(int(V), 4)

"""

PROGRAMS = {name: program.strip() for name, _, program in (part.partition("\n") for part in TEXT.split("# ")[1:])}
