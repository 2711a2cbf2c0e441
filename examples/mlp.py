"""A small network learns to tell generated images apart, by workers who each train a copy of it.

    python examples/mlp.py                                   # 20,000 images, elastic averaging, all workers at once
    python examples/mlp.py --mode async --every 20           # each worker pulls when it is there
    python examples/mlp.py --mode local_sgd --backend ray --workers 2

An image has 8 × 8 pixels with noise, and a bar in it: across, upright, or along one of the two diagonals. The network
has one hidden layer of rectified units, and the softmax of four sums. What is tested is the network that the copies are
pulled towards (Zhang, Choromanska, LeCun: *Deep learning with Elastic Averaging SGD*, NIPS 2015)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

import numpy as np
from live import steps
from numpy.typing import NDArray
from options import add_running_options, parsed, positive, whole

import orion
from orion.arrays.policies import Policy

SIDE, CLASSES = 8, 4
MODES = ("sync", "async", "hogwild", "round_robin", "local_sgd", "diloco")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@orion.parallel_for
def train(images, labels, first, second, step):
    for s in range(images.shape[0]):
        hidden = np.zeros(first.shape[0])
        for h in range(first.shape[0]):
            z = 0.0
            for k in range(images.shape[1]):
                z += first[h, k] * images[s, k]
            hidden[h] = max(z, 0.0)
        scores = np.zeros(second.shape[0])
        most = -np.inf
        for c in range(second.shape[0]):
            for h in range(first.shape[0]):
                scores[c] += second[c, h] * hidden[h]
            most = max(most, scores[c])
        total = 0.0
        for c in range(second.shape[0]):
            scores[c] = np.exp(scores[c] - most)
            total += scores[c]
        for h in range(first.shape[0]):
            back = 0.0
            for c in range(second.shape[0]):
                g = scores[c] / total - (1.0 if labels[s] == c else 0.0)
                back += g * second[c, h]
                second[c, h] -= step * g * hidden[h]
            if hidden[h] > 0.0:
                for k in range(images.shape[1]):
                    first[h, k] -= step * back * images[s, k]


def generated(count: int, seed: int) -> tuple[Floats, Ints]:
    """Images, row by row, and which kind of bar each has."""
    rng = np.random.default_rng(seed)
    labels, places = rng.integers(0, CLASSES, count), rng.integers(0, SIDE, count)
    rows, columns = np.indices((SIDE, SIDE))
    along = np.array([rows, columns, (rows + columns) % SIDE, (rows - columns) % SIDE])
    images = (along[labels] == places[:, None, None]) + 0.3 * rng.standard_normal((count, SIDE, SIDE))
    return images.reshape(count, -1), labels


def first_weights(units: int, seed: int) -> tuple[Floats, Floats]:
    """The weights of both layers: normal ones, by how many numbers each unit adds up (He et al., ICCV 2015)."""
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((units, SIDE * SIDE)) * np.sqrt(2 / SIDE**2)
    return first, rng.standard_normal((CLASSES, units)) * np.sqrt(2 / units)


def right(images: Floats, labels: Ints, first: Floats, second: Floats) -> float:
    """The share of images that the network is right about."""
    scores = np.maximum(images @ first.T, 0.0) @ second.T
    return float(np.mean(scores.argmax(axis=1) == labels))


def policy_of(options: argparse.Namespace) -> Policy:
    """How the copies are pulled together."""
    if options.mode == "local_sgd":
        return orion.local_sgd(sync_every=options.every)
    if options.mode == "diloco":
        return orion.local_sgd(sync_every=options.every, outer=(0.7, 0.9))
    return orion.elastic(mode=options.mode, alpha=options.alpha, sync_every=options.every)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small network, trained by workers who each have a copy of it.")
    parser.add_argument("--images", type=whole(1), default=20_000, help="to learn from (default: %(default)s)")
    parser.add_argument("--units", type=whole(1), default=32, help="hidden ones (default: %(default)s)")
    parser.add_argument("--epochs", type=whole(1), default=10, help="(default: %(default)s)")
    parser.add_argument("--step", type=positive, default=0.02, help="of a worker (default: %(default)s)")
    parser.add_argument("--mode", choices=MODES, default="sync", help="(default: %(default)s)")
    parser.add_argument("--alpha", type=positive, help="of elastic averaging (default: 0.9 / workers)")
    parser.add_argument("--every", type=whole(1), default=10, help="images between pulls (default: %(default)s)")
    add_running_options(parser)
    return parsed(parser, arguments)


def run(options: argparse.Namespace) -> float:
    images, labels = generated(options.images, options.seed)
    others, answers = generated(2000, options.seed + 1)
    first, second = first_weights(options.units, options.seed + 2)
    policy = policy_of(options)
    copies = [orion.replicate(layer, policy=policy) for layer in (first, second)]
    print(f"{len(images):,} images, {first.size + second.size:,} weights, {policy!r}")
    with orion.session(options.backend, options.workers):
        print(f"\n{train.plan(images, labels, *copies, options.step)}\n")
        print("epoch   right of others   milliseconds")
        for epoch in steps("epochs", options.epochs):
            begin = perf_counter()
            train(images, labels, *copies, options.step)
            spent = 1e3 * (perf_counter() - begin)
            share = right(others, answers, first, second)
            print(f"{epoch:5d}  {100 * share:15.2f} %  {spent:13.2f}", flush=True)
    return share


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (ValueError, orion.OrionError) as error:
        print(f"mlp.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
