"""Loops whose workers write what others read, and write it anew as soon as they may, round after round: a reader that
saw a mixture of two rounds would leave other numbers behind."""

import numpy as np

import orion


@orion.parallel_for
def written_and_read(source, torn, rounds):
    """Each round all of `source` has the number of the round, and all of it is read by other workers than wrote it,
    beginning with what was written last."""
    rows, width = source.shape
    for t in range(rounds):
        for i in range(rows):
            for k in range(width):
                source[i, k] = t
        for i in range(rows):
            for k in range(width):
                if source[rows - 1 - i, width - 1 - k] != t:
                    torn[i] += 1


@orion.parallel_for
def handed_on(A, rounds):
    """Each round every tile hands what it has written to the next ones, and they hand on what they make of it."""
    for _t in range(rounds):
        for i in range(1, A.shape[0]):
            for j in range(1, A.shape[1]):
                A[i, j] += A[i - 1, j] + A[i, j - 1]


def call(function, arguments):
    """Call a function in the present session."""
    function(**arguments)


def torn_elements(width, rounds, run=call):
    """How often a worker has read an element that was not of its round, in four rows of that width."""
    torn = np.zeros(4, np.int64)
    run(written_and_read, {"source": np.full((4, width), -1), "torn": torn, "rounds": rounds})
    return int(torn.sum())


def differing_elements(size, rounds, run=call):
    """How many elements of a square array are not what they are if every tile reads what the ones before it have
    written in its round. The numbers wrap around, which forgets nothing of what was wrong."""
    start = np.random.default_rng(5).integers(-(2**62), 2**62, (size, size))
    found, expected = start.copy(), start.copy()
    run(handed_on, {"A": found, "rounds": rounds})
    with orion.session("serial"):
        handed_on(expected, rounds)
    return int((found != expected).sum())
