"""CP decomposition of a sparse tensor: a sum of components, each the outer product of a column of A, of B and of C.

    python examples/tensor_cp.py                                # a generated tensor of about a million elements
    python examples/tensor_cp.py --tensor words.tns.gz --rank 32 --picture factors.png
    python examples/tensor_cp.py --how sgd --backend ray --workers 2

`als` solves for one factor matrix while the two others are held, in turn (alternating least squares). Its costly part,
the product of the tensor by rows with the two other matrices (MTTKRP), writes each row once: parallel as it is. Zeros
of the tensor count as zeros. What it ends in depends on where it begins: another `--seed` may fit better. `sgd` goes
over the stored elements alone, as if the others were unknown; two elements conflict where they agree in an index of any
mode, so that blocks of two modes go from worker to worker. The plans, printed before anything runs, say so.

Kolda, Bader: "Tensor decompositions and applications", SIAM Review 51 (2009), sections 3 and 3.4.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from live import steps
from numpy.typing import NDArray
from options import add_running_options, non_negative, parsed, picture_file, positive, whole
from pictures import save_png
from tensor_data import Floats, Tensor, generated, read_tensor

import orion

# ------------------------------------------------------------------------------------------------ the loops


@orion.parallel_for
def mttkrp(product, ptr, first, second, values, B, C):
    for i in range(product.shape[0]):
        product[i] = 0.0
        for p in range(ptr[i], ptr[i + 1]):
            product[i] += values[p] * B[first[p]] * C[second[p]]


@orion.parallel_for(ordered=False)
def sgd_epoch(X, A, B, C, step, decay):
    for (i, j, k), v in X:
        a = A[i].copy()
        b = B[j].copy()
        c = C[k].copy()
        error = v - np.sum(a * b * c)
        A[i] += step * (error * b * c - decay * a)
        B[j] += step * (error * a * c - decay * b)
        C[k] += step * (error * a * b - decay * c)


@orion.parallel_for
def squared_error(X, A, B, C):
    total = 0.0
    for (i, j, k), v in X:
        total += (v - np.sum(A[i] * B[j] * C[k])) ** 2
    return total


# ------------------------------------------------------------------------------------------------ the iterations


class AlternatingLeastSquares:
    """Factor matrices with columns of length 1, the weights of the components, and the steps that improve them."""

    heading = "fit"

    def __init__(self, tensor: Tensor, rank: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rows = [tensor.rows(mode) for mode in range(3)]
        self.factors: list[Floats] = [rng.random((size, rank)) for size in tensor.shape]
        self.products: list[Floats] = [np.zeros((size, rank)) for size in tensor.shape]
        self.weights: Floats = np.ones(rank)
        self.norm = tensor.norm

    def arguments(self, mode: int) -> tuple[Any, ...]:
        rows = self.rows[mode]
        first, second = (self.factors[other] for other in range(3) if other != mode)
        return self.products[mode], rows.ptr, rows.first, rows.second, rows.values, first, second

    def plans(self) -> str:
        """The plan of the loop for the first mode, and the strategy for the two others, which have other sizes."""
        one, *others = (mttkrp.plan(*self.arguments(mode)) for mode in range(3))
        return "\n".join([f"{one}\n", *(f"mode {at}: {plan.strategy} too" for at, plan in enumerate(others, 2))])

    def iterate(self) -> float:
        """Solve for each factor matrix once; the fit afterwards."""
        gram = np.ones((0, 0))
        for mode in range(3):
            mttkrp(*self.arguments(mode))
            one, two = (self.factors[other] for other in range(3) if other != mode)
            gram = (one.T @ one) * (two.T @ two)
            found = np.linalg.solve(gram + _next_to_nothing(gram), self.products[mode].T).T
            self.weights = np.sqrt((found**2).sum(axis=0))
            self.factors[mode] = np.ascontiguousarray(found / np.where(self.weights > 0, self.weights, 1.0))
        return self.fit(gram)

    def fit(self, gram: Floats) -> float:
        """1 - ‖X - model‖ / ‖X‖, from inner products; `gram` is that of the two first modes, entry by entry."""
        last = self.factors[2]
        both = float(self.weights @ (self.products[2] * last).sum(axis=0))
        model = float(self.weights @ (gram * (last.T @ last)) @ self.weights)
        return 1.0 - math.sqrt(max(0.0, self.norm**2 - 2.0 * both + model)) / self.norm


def _next_to_nothing(gram: Floats) -> Floats:
    """What is added to the diagonal of a matrix to solve with, which is singular where a component has become zero."""
    least: Floats = np.eye(len(gram)) * (1e-14 * np.trace(gram) / len(gram) or 1.0)
    return least


class GradientDescent:
    """Factor matrices that one stored element after the other moves towards it; values are scaled to 1 on average."""

    heading = "fit of stored elements"

    def __init__(self, tensor: Tensor, rank: int, seed: int, step: float, decay: float) -> None:
        rng = np.random.default_rng(seed)
        self.scale = tensor.norm / math.sqrt(len(tensor.values))
        self.elements = orion.sparse(tensor.indices, tensor.values / self.scale, shape=tensor.shape)
        top = 2.0 * rank ** (-1 / 3)  # elements of the first model are near 1
        A, B, C = (top * rng.random((size, rank)) for size in tensor.shape)
        self.factors: tuple[Floats, Floats, Floats] = A, B, C
        for factor, known in zip(self.factors, tensor.indices, strict=True):
            factor[np.bincount(known, minlength=len(factor)) == 0] = 0.0  # nothing is known of this index
        self.step, self.decay = step, decay

    @property
    def weights(self) -> Floats:
        return np.full(self.factors[0].shape[1], self.scale)

    def plans(self) -> str:
        epoch = sgd_epoch.plan(self.elements, *self.factors, self.step, self.decay)
        return f"{epoch}\n\n{squared_error.plan(self.elements, *self.factors)}"

    def iterate(self) -> float:
        """One epoch; the fit of the stored elements afterwards."""
        sgd_epoch(self.elements, *self.factors, self.step, self.decay)
        return 1.0 - math.sqrt(float(squared_error(self.elements, *self.factors)) / len(self.elements))


# ------------------------------------------------------------------------------------------------ the picture


def picture(factors: Sequence[Floats], height: int = 384, bar: int = 12) -> NDArray[np.float64]:
    """The columns of each factor matrix side by side, its indices from top to bottom; white is a column's greatest
    entry. Components are in the order of where that is in the first mode."""
    order = np.argsort(np.abs(factors[0]).argmax(axis=0), kind="stable")
    panels = []
    for factor in factors:
        size, part = len(factor), np.abs(factor[:, order])
        part = part / np.maximum(part.max(axis=0), np.finfo(float).tiny)
        lines = min(size, height)
        part = np.maximum.reduceat(part, np.arange(lines) * size // lines)  # the greatest of those in one line
        panel = part[np.arange(height) * lines // height].repeat(bar, axis=1)
        panels += [panel, np.full((height, bar), 0.5)]
    return np.concatenate(panels[:-1], axis=1)


def about_picture(factors: Sequence[Floats]) -> str:
    """What the picture shows, which has no text in it."""
    count = factors[0].shape[1]
    lines = [
        f"three panels from left to right, each of {count} bars, the components in one order, with grey in between"
    ]
    for name, factor, mode in zip("ABC", factors, ("first", "second", "third"), strict=True):
        lines.append(f"  {name}: the {mode} indices, 1 to {len(factor):,} from top to bottom")
    return "\n".join([*lines, "entries are shown without their signs, as shares of the greatest one of a bar"])


# ------------------------------------------------------------------------------------------------ the program


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CP decomposition of a sparse tensor of three dimensions.")
    parser.add_argument(
        "--tensor", type=Path, metavar="FILE", help="lines `i j k value`, indices from 1 (default: one is generated)"
    )
    parser.add_argument(
        "--shape",
        type=whole(1),
        nargs=3,
        default=(1000, 800, 600),
        metavar=("I", "J", "K"),
        help="of the generated tensor (default: 1000 800 600)",
    )
    parser.add_argument("--nonzeros", type=whole(1), default=1_000_000, help="about so many (default: %(default)s)")
    parser.add_argument(
        "--noise", type=non_negative, default=0.1, help="of the generated tensor (default: %(default)s)"
    )
    parser.add_argument("--rank", type=whole(1), default=16, help="the number of components (default: %(default)s)")
    parser.add_argument("--iterations", type=whole(1), default=30, help="(default: %(default)s)")
    parser.add_argument("--how", choices=("als", "sgd"), default="als", help="(default: %(default)s)")
    parser.add_argument("--step", type=positive, default=0.02, help="of --how sgd (default: %(default)s)")
    parser.add_argument(
        "--decay", type=non_negative, default=0.001, help="of factors, --how sgd (default: %(default)s)"
    )
    parser.add_argument("--picture", type=picture_file(".png"), metavar="FILE", help="draw the components, a PNG")
    add_running_options(parser)
    options = parsed(parser, arguments)
    if options.tensor is None and options.nonzeros > math.prod(options.shape):
        shape = " × ".join(map(str, options.shape))
        parser.error(f"--nonzeros {options.nonzeros} is more than the elements of --shape {shape}")
    return options


def run(options: argparse.Namespace) -> AlternatingLeastSquares | GradientDescent:
    if options.tensor is None:
        tensor = generated(tuple(options.shape), options.nonzeros, options.rank, options.noise, options.seed)
    else:
        tensor = read_tensor(options.tensor)
    sizes = " × ".join(f"{size:,}" for size in tensor.shape)
    print(f"{tensor.about}: {sizes}, {len(tensor.values):,} elements; {options.rank} components to find")
    model: AlternatingLeastSquares | GradientDescent
    if options.how == "als":
        model = AlternatingLeastSquares(tensor, options.rank, options.seed + 1)
    else:
        model = GradientDescent(tensor, options.rank, options.seed + 1, options.step, options.decay)
    with orion.session(options.backend, options.workers):
        print(f"\n{model.plans()}\n")
        print(f"iteration  {model.heading}   milliseconds")
        for iteration in steps("iterations", options.iterations):
            start = perf_counter()
            fit = model.iterate()
            spent = 1e3 * (perf_counter() - start)
            print(f"{iteration:9d}  {fit:{max(8, len(model.heading))}.6f}  {spent:13.2f}", flush=True)
            if not math.isfinite(fit):
                raise ValueError(f"iteration {iteration} has no finite fit; with --how sgd a smaller --step may help")
    if options.picture is not None:
        scale = save_png(options.picture, picture(model.factors))
        print(f"\nwritten to {options.picture}:\n{about_picture(model.factors)}; {scale}")
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"tensor_cp.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
