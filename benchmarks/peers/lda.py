"""The time that topic models take to a held-out perplexity: `examples/lda.py` and `lda_gibbs.py` next to tomotopy.

    python -m benchmarks.peers.lda                                   # a generated corpus; from the project's folder
    python -m benchmarks.peers.lda --corpus docword.kos.txt.gz --full    # a real one; five seeds
    python -m benchmarks.peers.lda --peer ../peers/bin/python        # tomotopy is installed in another environment

tomotopy's LDAModel (collapsed Gibbs sampling) trains for some sweeps; its time is that of `train`. Then each of Orion's
samplers trains with the same seed until its held-out perplexity is as low; its time is that of all sweeps up to there.
All have the same tokens, priors and workers, and the same formula gives the perplexity, by the topics of all tokens.
Reading, setting up, compiling and evaluating count for none. Each training is a process of its own, they take turns.
The seconds of all cores together (CPU) say more than the others where the machine has other work. M/s: million tokens
a second, those of all sweeps over the seconds; a sweep of `lda.py` does less for the perplexity than one of the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
DOCUMENTS, VOCABULARY, LENGTH, DRAWN_TOPICS = 3430, 6906, 136, 50
"""Of the generated corpus: the size of the KOS entries of UCI."""

SEEDS, FULL_SEEDS = 2, 5
sys.path.insert(0, str(ROOT / "examples"))

# These need NumPy alone: Orion is imported where it runs.
from lda_data import Corpus, generated, hold_out, read_docword  # noqa: E402

from benchmarks.requirements import require  # noqa: E402


def perplexity(corpus: Corpus, held: Corpus, topics: NDArray[Any], options: argparse.Namespace) -> float:
    """exp(-mean log ∑ θ φ) of the tokens that were held out, given the topics of the others."""
    width, z = options.topics, topics.astype(np.int64)
    of_docs = np.bincount(corpus.docs * width + z, minlength=corpus.documents * width).reshape(-1, width)
    of_words = np.bincount(corpus.words * width + z, minlength=corpus.vocabulary * width).reshape(-1, width)
    theta = (of_docs + options.alpha) / (of_docs.sum(axis=1, keepdims=True) + width * options.alpha)
    phi = (of_words + options.beta) / (of_words.sum(axis=0) + corpus.vocabulary * options.beta)
    return float(np.exp(-np.log((theta[held.docs] * phi[held.words]).sum(axis=1)).mean()))


def load(path: Path) -> tuple[Corpus, Corpus]:
    data = np.load(path)
    about = int(data["documents"]), int(data["vocabulary"]), path.name
    return Corpus(data["docs"], data["words"], *about), Corpus(data["held_docs"], data["held_words"], *about)


def save(path: Path, corpus: Corpus, held: Corpus) -> None:
    shape = {"documents": corpus.documents, "vocabulary": corpus.vocabulary}
    np.savez(path, docs=corpus.docs, words=corpus.words, held_docs=held.docs, held_words=held.words, **shape)


# ------------------------------------------------------------------------------------------------ the contenders


def train_tomotopy(options: argparse.Namespace) -> dict[str, Any]:
    import tomotopy

    corpus, held = load(options.data)
    priors = {"k": options.topics, "alpha": options.alpha, "eta": options.beta}
    model = tomotopy.LDAModel(**priors, seed=options.seed + 1, min_cf=0, rm_top=0)
    for own in np.split(corpus.words, np.flatnonzero(np.diff(corpus.docs)) + 1):  # documents that have a token
        model.add_doc([str(word) for word in own])
    model.optim_interval = 0  # alpha stays as it is
    model.burn_in = 0
    scheme = getattr(tomotopy.ParallelScheme, options.scheme)
    model.train(0, workers=options.workers, parallel=scheme)  # sets everything up
    begin, cpu = perf_counter(), process_time()
    model.train(options.sweeps, workers=options.workers, parallel=scheme)
    took, cpu = perf_counter() - begin, process_time() - cpu
    names = np.array([int(name) for name in model.vocabs])
    if not np.array_equal(names[np.concatenate([doc.words for doc in model.docs])], corpus.words):
        raise SystemExit("tomotopy has the tokens in another order")
    topics = np.concatenate([doc.topics for doc in model.docs])
    found = perplexity(corpus, held, topics, options)
    return {"seconds": took, "cpu": cpu, "perplexity": found, "sweeps": options.sweeps}


def train_warp(options: argparse.Namespace) -> dict[str, Any]:
    from lda import Warp

    corpus, held = load(options.data)

    def topics_of(warp: Warp) -> tuple[Corpus, NDArray[Any]]:
        return corpus.of(warp.by_word), warp.words.topics

    def made(seed: int) -> Warp:
        return Warp(corpus, options.topics, options.alpha, options.beta, options.proposals, seed)

    return trained(made, topics_of, held, options)


def train_gibbs(options: argparse.Namespace) -> dict[str, Any]:
    from lda_gibbs import Gibbs

    corpus, held = load(options.data)

    def topics_of(model: Gibbs) -> tuple[Corpus, NDArray[Any]]:
        words, docs = (np.asarray(keys, np.int64) for keys in model.tokens.coords[:2])
        return Corpus(docs, words, corpus.documents, corpus.vocabulary, corpus.about), np.asarray(model.tokens.values)

    def made(seed: int) -> Gibbs:
        return Gibbs(corpus, options.topics, options.alpha, options.beta, options.max_delay, seed)

    return trained(made, topics_of, held, options)


def trained(made: Callable[[int], Any], topics_of: Callable[[Any], Any], held: Corpus, options: Any) -> dict[str, Any]:
    """What sweeps up to a perplexity take. `topics_of` gives the tokens in some order, and their topics."""
    import orion

    took, cpu, sweeps, found = 0.0, 0.0, 0, np.inf
    with orion.session("threads", options.workers):
        for _ in range(2):
            made(options.seed + 1000).sweep()  # plans and compiles
        model = made(options.seed)
        while found > options.until and sweeps < options.most:
            begin, busy = perf_counter(), process_time()
            model.sweep()
            took, cpu, sweeps = took + perf_counter() - begin, cpu + process_time() - busy, sweeps + 1
            corpus, topics = topics_of(model)
            found = perplexity(corpus, held, topics, options)
    if found > options.until:
        raise SystemExit(f"after {sweeps} sweeps the perplexity is {found:.1f}, not {options.until:.1f}")
    return {"seconds": took, "cpu": cpu, "perplexity": found, "sweeps": sweeps}


CONTENDERS = {"tomotopy": train_tomotopy, "lda.py": train_warp, "lda_gibbs.py": train_gibbs}


def told_by(python: str, contender: str, data: Path, options: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """What a training in a process of its own tells. SystemExit where it fails."""
    given = {name: value for name, value in vars(options).items() if name not in ("corpus", "peer", "seeds", "full")}
    given |= {"contender": contender, "data": data, **more}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    command = [python, "-m", "benchmarks.peers.lda", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit((ended.stderr.strip().splitlines() or [f"{contender}: exit code {ended.returncode}"])[-1])
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


# ------------------------------------------------------------------------------------------------ the comparison


def compare(options: argparse.Namespace) -> None:
    if options.corpus is None:
        whole = generated(DOCUMENTS, VOCABULARY, LENGTH, DRAWN_TOPICS, 0)
    else:
        whole = read_docword(options.corpus)
    corpus, held = hold_out(whole, 0)
    print(f"{corpus.about}: {len(corpus):,} tokens, {len(held):,} held out; {options.topics} topics")
    print("seed  contender            s   CPU s  sweeps  perplexity     M/s  / tomotopy's s")
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in CONTENDERS}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "tokens.npz"
        save(data, corpus, held)
        for seed in range(options.seeds):
            theirs = told_by(options.peer, "tomotopy", data, options, seed=seed)
            for name, entries in found.items():
                until = theirs["perplexity"]
                one = (
                    theirs
                    if name == "tomotopy"
                    else told_by(sys.executable, name, data, options, seed=seed, until=until)
                )
                one["rate"] = 1e-6 * len(corpus) * one["sweeps"] / one["seconds"]
                entries.append(one)
                print(
                    f"{seed:4d}  {name:12}{one['seconds']:10.2f}{one['cpu']:8.2f}{one['sweeps']:8d}"
                    f"{one['perplexity']:12.1f}{one['rate']:8.1f}{one['seconds'] / theirs['seconds']:16.2f}",
                    flush=True,
                )
    for what, unit in (("seconds", "seconds"), ("cpu", "CPU seconds"), ("rate", "million tokens a second")):
        middle = {name: median(one[what] for one in entries) for name, entries in found.items()}
        told = ", ".join(f"{name} {value:.2f} ({value / middle['tomotopy']:.2f})" for name, value in middle.items())
        print(f"medians of {unit}: {told}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Topic models next to tomotopy.")
    parser.add_argument("--corpus", type=Path, metavar="FILE", help="bags of words (default: a corpus is generated)")
    parser.add_argument("--peer", default=sys.executable, metavar="PYTHON", help="with tomotopy (default: this one)")
    parser.add_argument("--full", action="store_true", help=f"{FULL_SEEDS} seeds")
    parser.add_argument("--seeds", type=int, help=f"(default: {SEEDS}; {FULL_SEEDS} with --full)")
    parser.add_argument("--topics", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--alpha", type=float, default=0.1, help="(default: %(default)s)")
    parser.add_argument("--beta", type=float, default=0.01, help="tomotopy's eta (default: %(default)s)")
    parser.add_argument("--sweeps", type=int, default=100, help="of tomotopy (default: %(default)s)")
    parser.add_argument("--most", type=int, default=2000, help="sweeps of Orion (default: %(default)s)")
    parser.add_argument("--proposals", type=int, default=1, help="of lda.py (default: %(default)s)")
    parser.add_argument("--max-delay", type=int, default=10_000, help="of lda_gibbs.py (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument(
        "--scheme", choices=("DEFAULT", "COPY_MERGE", "PARTITION"), default="DEFAULT", help="tomotopy's"
    )
    hidden = argparse.SUPPRESS
    parser.add_argument("--contender", choices=tuple(CONTENDERS), default=hidden, help=hidden)
    parser.add_argument("--data", type=Path, default=hidden, help=hidden)
    parser.add_argument("--seed", type=int, default=hidden, help=hidden)
    parser.add_argument("--until", type=float, default=hidden, help=hidden)
    options = parser.parse_args()
    options.seeds = options.seeds or (FULL_SEEDS if options.full else SEEDS)
    return options


def missing_tomotopy(python: str) -> str:
    """Return the sentence about a Python without tomotopy; "" where it is installed."""
    if python == sys.executable and find_spec("tomotopy"):
        return ""
    found = subprocess.run([python, "-c", "import tomotopy"], capture_output=True, check=False)
    text = f"tomotopy is not installed for {python}: `pip install tomotopy`, or name another Python by --peer"
    return text if found.returncode else ""


def main() -> None:
    options = parse()
    if hasattr(options, "contender"):
        print(json.dumps(CONTENDERS[options.contender](options)))
    else:
        require("lda.py", missing_tomotopy(options.peer))
        try:
            compare(options)
        except (OSError, ValueError) as error:
            raise SystemExit(f"lda.py: {error}") from None


if __name__ == "__main__":
    main()
