"""The loops of the gallery: 25 of `benchmarks/everyday`, five of each field, and what to see in their plans."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.everyday.case import Case
from benchmarks.everyday.cases import CASES

CASE_OF = {case.name: case for case in CASES}


@dataclass(frozen=True)
class Entry:
    """A loop of the gallery: its name among the everyday loops, a title, and what to see in its plan."""

    name: str
    title: str
    see: str

    @property
    def case(self) -> Case:
        return CASE_OF[self.name]


@dataclass(frozen=True)
class Field:
    """A page of the gallery: its file, title and first sentence, and its loops."""

    file: str
    title: str
    about: str
    entries: tuple[Entry, ...]


FIELDS = (
    Field(
        "physics.md",
        "Physics",
        "Grids over which time passes, particles that act on each other, and walks.",
        (
            Entry(
                "heat_rod",
                "Heat equation on a rod",
                "The loop over time stays serial. In each step, Orion shares out the copy of the array and the loop "
                "over it. The plan has four loops, because two arrays take turns: each of the two lines stands for two "
                "of them.",
            ),
            Entry(
                "gauss_seidel",
                "Poisson equation by Gauss-Seidel",
                "Both loops over the grid carry dependences, and none goes backwards. Tiles wait for those above and "
                "to the left. The test after each sweep keeps the sweeps apart, so the strategy is 2d and not "
                "wavefront.",
            ),
            Entry(
                "nbody_leapfrog",
                "Gravity of many bodies",
                "The loop over bodies has all of the work. Each body adds up its own pulls, and writes its own row.",
            ),
            Entry(
                "coulomb_pairs",
                "Forces of pairs of charges",
                "Each pair adds to the forces on both charges. Tiles of pairs that share a charge wait for each other.",
            ),
            Entry(
                "random_walks",
                "Random walks",
                "Walkers add to a common histogram and to mean distances: each block of walkers adds to copies.",
            ),
        ),
    ),
    Field(
        "images.md",
        "Images",
        "Filters, transforms, and loops in which one pixel needs another.",
        (
            Entry(
                "convolve",
                "Convolution",
                "No pixel needs another. Orion shares out rows (`1d`), as it cannot exclude that two pixels of a row "
                "are the same element of `out`.",
            ),
            Entry("sobel", "Edges by Sobel's filter", "Pixels are independent, and a maximum goes over all of them."),
            Entry(
                "floyd_steinberg",
                "Dithering",
                "Each pixel hands its error on to the right and to the row below: a wavefront of tiles.",
            ),
            Entry(
                "integral_image",
                "Integral image",
                "Each sum needs the row above, and the row so far. That is a running sum in two dimensions.",
            ),
            Entry(
                "mandelbrot",
                "Mandelbrot set",
                "How long a pixel takes is known only when it is done: a `while` inside of two parallel loops.",
            ),
        ),
    ),
    Field(
        "learning.md",
        "Learning and statistics",
        "Passes over samples, which mostly add to sums, and one that does not.",
        (
            Entry("knn_classify", "Nearest neighbours", "Each point keeps a short list of its own, and nobody else's."),
            Entry(
                "mlp_gradient",
                "Gradient of a small network",
                "Samples add to the gradients of all weights: each block adds to copies.",
            ),
            Entry(
                "gaussian_bayes_fit",
                "Naive Bayes",
                "Samples add to the row of their class, which is read from an array. Copies of the few rows are cheap.",
            ),
            Entry("bootstrap_means", "Bootstrap", "Rounds are independent, as the draws are given in an array."),
            Entry(
                "factorize_sgd",
                "Matrix factorization from arrays",
                "Serial as it stands. Over a sparse array with users and items as keys it is parallel: see "
                "[the tutorial](../tutorials/matrix-factorization.md).",
            ),
        ),
    ),
    Field(
        "finance.md",
        "Finance",
        "Prices of options, indicators, and simulated paths.",
        (
            Entry(
                "black_scholes",
                "Black-Scholes prices",
                "Each option is priced by itself. The helper function becomes part of the loop.",
            ),
            Entry(
                "implied_volatility",
                "Implied volatility",
                "Each option has its own search, of unknown length, and adds to one count.",
            ),
            Entry(
                "ewma_volatility",
                "Volatility of many assets",
                "Days follow one another. The loop over assets is around them, and is shared out.",
            ),
            Entry(
                "barrier_call",
                "Monte Carlo price of a barrier option",
                "Each path has its own payoff. One that ends early does not concern the others.",
            ),
            Entry(
                "log_return_summary",
                "Summary of returns",
                "Each return is its own. The sums and the place of the maximum are combined from blocks.",
            ),
        ),
    ),
    Field(
        "sequences.md",
        "Sequences, graphs and tables",
        "Tables of dynamic programming, edges in compressed rows, and groups.",
        (
            Entry(
                "edit_distance",
                "Edit distance",
                "Each cell needs its upper, left and upper left neighbours: a wavefront of tiles.",
            ),
            Entry(
                "nussinov",
                "Folding of RNA",
                "Each interval needs all shorter ones inside of it, and tiles still run side by side.",
            ),
            Entry(
                "pagerank_pull",
                "PageRank",
                "Pages read old ranks through an array of links, and write new ones. The sum of all changes ends the "
                "rounds.",
            ),
            Entry("count_triangles", "Triangles of a graph", "Two sorted lists are walked for each edge, and counted."),
            Entry(
                "group_means",
                "Means of groups",
                "Rows add to their group, read from an array. Each block of rows has copies of the sums.",
            ),
        ),
    ),
)

ENTRIES = tuple(entry for field in FIELDS for entry in field.entries)
