"""Denoises a photograph by Gauss-Seidel sweeps: every pixel takes the mean of the noisy one and of its neighbours,
those before it as they are now.

    python examples/gauss_seidel.py --picture denoised.png         # a generated picture, with noise
    python examples/gauss_seidel.py --photo camera.png --noise 0 --picture denoised.png

Each pixel needs the ones above and to the left of it: Orion runs tiles of several sweeps along diagonals, with the bits
of the loop as written. Neighbours count less where they differ much, so that edges stay (Perona, Malik: *Scale-space
and edge detection using anisotropic diffusion*, IEEE PAMI 12(7), 1990). The plan, printed before anything runs, says
so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import isfinite, log10
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from live import steps
from numpy.typing import NDArray
from options import add_running_options, non_negative, parsed, picture_file, positive, whole
from pictures import read_png, save_png

import orion

Picture = NDArray[np.float64]


@orion.parallel_for
def smooth(u, f, strength, contrast, sweeps):
    for _sweep in range(sweeps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                north = u[i - 1, j] - u[i, j]
                south = u[i + 1, j] - u[i, j]
                west = u[i, j - 1] - u[i, j]
                east = u[i, j + 1] - u[i, j]
                a = strength / (1.0 + (north / contrast) ** 2)
                b = strength / (1.0 + (south / contrast) ** 2)
                c = strength / (1.0 + (west / contrast) ** 2)
                d = strength / (1.0 + (east / contrast) ** 2)
                weights = 1.0 + a + b + c + d
                around = a * u[i - 1, j] + b * u[i + 1, j] + c * u[i, j - 1] + d * u[i, j + 1]
                u[i, j] = (f[i, j] + around) / weights


def generated(side: int) -> Picture:
    """Discs and stripes before a sky that gets lighter."""
    y, x = np.mgrid[0:side, 0:side] / side
    sky = 0.3 + 0.4 * y
    disc = ((x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.06) * 0.4
    stripes = ((x > 0.6) & (np.sin(40 * x + 15 * y) > 0)) * 0.25
    found: Picture = sky + disc - stripes
    return found


def quality(picture: Picture, clean: Picture) -> float:
    """The peak signal-to-noise ratio, in dB, 120 at most. ValueError where the picture is not finite."""
    error = float(((picture - clean) ** 2).mean())
    if not isfinite(error):
        raise ValueError("there are pixels that are no finite numbers: strength, noise or contrast are too far from 1")
    return 10.0 * log10(1.0 / max(1e-12, error))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Denoises a photograph.")
    parser.add_argument("--photo", type=Path, metavar="FILE", help="a grey PNG file (default: a picture is generated)")
    parser.add_argument("--side", type=whole(8), default=512, help="of the generated picture (default: %(default)s)")
    parser.add_argument("--noise", type=non_negative, default=0.1, help="deviation; white is 1 (default: %(default)s)")
    parser.add_argument("--strength", type=non_negative, default=4.0, help="of the smoothing (default: %(default)s)")
    parser.add_argument("--contrast", type=positive, default=0.08, help="what counts as an edge (default: %(default)s)")
    parser.add_argument("--rounds", type=whole(1), default=8, help="calls, each of some sweeps (default: %(default)s)")
    parser.add_argument("--sweeps", type=whole(1), default=5, help="in each call (default: %(default)s)")
    parser.add_argument("--picture", type=picture_file(".png"), metavar="FILE", help="write the result as a PNG file")
    add_running_options(parser)
    return parsed(parser, arguments)


def about(found: Mapping[int, float], options: argparse.Namespace) -> str:
    """What the dB by sweeps say."""
    if options.noise == 0:
        return "no noise was added: the dB say how close the result is to what was given, not how good it is"
    best, last = max(found, key=found.__getitem__), max(found)
    if best == last:
        return f"the last sweeps are the best, {found[last]:.2f} dB: more may do better"
    if best == 0:
        return "the picture was best before the first sweep: a smaller --strength, or less --contrast, may do better"
    told = f"the best are {found[best]:.2f} dB after {best} sweeps, the last {found[last]:.2f} dB after {last}:"
    rounds = best // options.sweeps
    return f"{told}\nlater sweeps smooth more of the picture than of the noise; --rounds {rounds} ends with the best"


def run(options: argparse.Namespace) -> Picture:
    clean: Any = generated(options.side) if options.photo is None else read_png(options.photo) / 255.0
    noisy = clean + options.noise * np.random.default_rng(options.seed).standard_normal(clean.shape)
    u, found = noisy.copy(), {0: quality(noisy, clean)}
    print(f"{u.shape[0]} × {u.shape[1]} pixels, {found[0]:.2f} dB with noise")
    with orion.session(options.backend, options.workers):
        arguments = (u, noisy, options.strength, options.contrast, options.sweeps)
        print(f"\n{smooth.plan(*arguments)}\n")
        print("sweeps       dB   milliseconds")
        for number in steps("rounds", options.rounds):
            start = perf_counter()
            smooth(*arguments)
            took = 1e3 * (perf_counter() - start)
            done = number * options.sweeps
            found[done] = quality(u, clean)
            print(f"{done:6d}  {found[done]:7.2f}  {took:13.2f}", flush=True)
    print(f"\n{about(found, options)}")
    if options.picture is not None:
        scale = save_png(options.picture, np.clip(u, 0.0, 1.0))
        print(f"\nwritten to {options.picture}: the result of the last sweep, {scale}")
    return u


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        run(parse(arguments))
    except (OSError, ValueError, orion.OrionError) as error:
        print(f"gauss_seidel.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
