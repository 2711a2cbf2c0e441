# Orion: one command each. `make` lists them, with how long each takes on two free cores once the environment is there.
# Everything is installed into .venv by what this file says; data is generated, or named by ARGS.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PEERS  := $(VENV)/.peers
TRANSPORTS := $(VENV)/.transports
TOOLS  := $(VENV)/.tools

.DEFAULT_GOAL := help
.PHONY: help run examples test test-all test-sample cpus check bench fuzz first-calls everyday indirect sparse polybench wavefront estimates kinds small cliffs peers topics delays larger transports hosts paced served interrupts planning exchange ahead elastic ablation bottlenecks cluster kill flat planted house docs docs-serve docs-examples packages types hooks clean setup

help:            ## this list; 1 s
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

setup: $(STAMP)  ## make the virtual environment with everything the project needs; about 2 min

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Orion needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: $(STAMP)    ## SGD matrix factorization on generated ratings: the plan, the training, the times; about 1 min
	$(BIN)/python examples/sgd_mf.py $(ARGS)

examples: $(STAMP) ## each example at its defaults, on threads and on Ray: seconds, and how long it is silent; about 10 min
	$(BIN)/python -m benchmarks.examples $(ARGS)

test: $(STAMP)   ## before a change: the checks, and every test once (twice as long without kernels on disk from a run before); about 10 min
	$(BIN)/ruff check .
	$(BIN)/python tests/suite.py $(ARGS)

test-all: $(STAMP) ## all combinations, three times the random tests, kills, clusters of several nodes; about 50 min
	$(BIN)/ruff check .
	$(BIN)/python tests/suite.py --all $(ARGS)

test-sample: $(STAMP) ## what only test-all runs, in an order that the tree decides, as far as there is time; 20 min
	$(BIN)/python tests/suite.py --sample 20 $(ARGS)

cpus: $(STAMP)   ## all tests as if on Haswell, Skylake-X, Zen 3 and Zen 4, as far as this machine can; about 3 h
	$(BIN)/python tests/cpus.py $(ARGS)

check: $(STAMP)  ## ruff, strict mypy over the package and the uses of its interface, and the layers test; about 2 min
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

bench: $(STAMP)  ## speed next to LIBMF, a Hogwild loop and a hand-written kernel (downloads and builds LIBMF; wants g++); about 5 min
	$(BIN)/python benchmarks/run.py $(ARGS)

first-calls: $(STAMP) ## 284 first calls, cold, warm and on a machine that never saw Orion, next to numba.njit; about 50 min
	$(BIN)/python -m benchmarks.first_calls.run $(ARGS)

everyday: $(STAMP) ## 234 loops as users write them: which are taken, parallel, how fast next to numba.njit; about 25 min
	$(BIN)/python -m benchmarks.everyday.run $(ARGS)

indirect: $(STAMP) ## 25 loops whose subscripts are read from arrays: what decides, what looking costs, how fast; about 4 min
	$(BIN)/python -m benchmarks.indirect.run $(ARGS)

sparse: $(STAMP) ## triangular solves, sweeps, PageRank: SciPy, serial Numba, Orion; about 1 min
	$(BIN)/python -m benchmarks.indirect.sparse $(ARGS)

polybench: $(STAMP) ## the 30 PolyBench kernels: serial Numba, hand-written prange, Orion; about 5 min
	$(BIN)/python -m benchmarks.polybench.run $(ARGS)

wavefront: $(STAMP) ## chains of dependent iterations: Gauss-Seidel, common subsequence; serial Numba and Orion; about 2 min
	$(BIN)/python -m benchmarks.wavefront $(ARGS)

estimates: $(STAMP) ## times that plans predict for 12 loops, next to runs; four workers by quota, up to 1,024 predicted; wants root, and a machine that does nothing else; about 5 min
	$(BIN)/python -m benchmarks.estimates_modelled $(ARGS)
	$(BIN)/python -m benchmarks.estimates $(ARGS)

kinds: $(STAMP)  ## times that plans predict for arrays in memory and in files behind a slow link, next to runs; wants root and FUSE, or ARGS='--folder PATH'; 10 min
	$(BIN)/python -m benchmarks.kinds $(ARGS)

cluster: $(STAMP) ## loops of every kind on Ray clusters of one, two and three nodes: bits, nodes used, bytes predicted and sent; about 5 min
	$(BIN)/python tests/cluster.py $(ARGS)

bottlenecks: $(STAMP) ## bottlenecks planted on purpose, and whether a profile names them; wants a machine that does nothing else; about 2 min
	$(BIN)/python -m pytest -m timing tests/test_profile.py tests/test_profile_ray.py $(ARGS)

peers: $(PEERS)  ## programs next to igraph, scikit-learn, LightGBM, xgboost, tomotopy (installs them; ARGS=--full: longer); about 6 min
	$(BIN)/python -m benchmarks.peers.run $(ARGS)

topics: $(PEERS) ## topic models by two samplers next to tomotopy (installs it; ARGS='--corpus docword.kos.txt.gz', --full: five seeds); about 2 min
	$(BIN)/python -m benchmarks.peers.lda $(ARGS)

delays: $(STAMP) ## AdaRevision next to AdaGrad with gradients that are late, and how late updates of buffers are at most; about 3 min
	$(BIN)/python -m benchmarks.delays $(ARGS)

$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[peers]'
	@touch $@

transports: $(TRANSPORTS) ## what it costs to hand bytes from process to process: Orion, the system, gRPC, Ray (installs grpcio); 12 min
	$(BIN)/python -m benchmarks.transports $(ARGS)

$(TRANSPORTS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[transports]'
	@touch $@

hosts: $(STAMP)  ## programs on hosts with links of 1 Gbit/s, 100 and 20 Mbit/s: network namespaces, wants root; 15 min
	$(BIN)/python -m benchmarks.hosts $(ARGS)

paced: $(STAMP)  ## loss against time and bytes on hosts whose links are too slow, by what is sent first: wants root; about 15 min
	$(BIN)/python -m benchmarks.paced $(ARGS)

served: $(STAMP) ## weights that hosts fetch before tiles need them, next to sending all: wants root, and a quiet machine; about 4 min
	$(BIN)/python -m benchmarks.served $(ARGS)

interrupts: $(STAMP) ## seconds from Ctrl-C to KeyboardInterrupt, and what looking for it costs kernels; about 10 min
	$(BIN)/python -m benchmarks.interrupts $(ARGS)

larger: $(STAMP) ## data four times a process's memory: read, mapped, grouped, looped over, saved; as root by a cgroup, else by RLIMIT_DATA; 10 min
	$(BIN)/python -m benchmarks.larger $(ARGS)

small: $(STAMP)  ## 32 programs whose loops are small and many, next to numba.njit of the same text; about 4 min
	$(BIN)/python -m benchmarks.small.run $(ARGS)

cliffs: $(STAMP) ## loops of the first week next to @numba.njit of the same text; about 2 min
	$(BIN)/python -m benchmarks.cliffs $(ARGS)

planning: $(STAMP) ## the time of the first plan of every example; about 1 min
	$(BIN)/python -m benchmarks.planning $(ARGS)

ahead: $(STAMP)  ## epochs after shuffles on hosts with slow links, whose rows are sent before or not: wants root; about 3 min
	$(BIN)/python -m benchmarks.ahead $(ARGS)

exchange: $(STAMP) ## shuffles that exchange a part: accuracy at 2 to 64 simulated ranks, bytes, time next to Ray Data; 4 min
	$(BIN)/python -m benchmarks.exchange $(ARGS)

elastic: $(STAMP) ## elastic averaging: the share of time without steps, on 1 to 4 workers here and simulated up to 1,024; 2 min
	$(BIN)/python -m benchmarks.elastic $(ARGS)

ablation: $(STAMP) ## what each rewrite is worth: every loop with all rewrites and without each one of them; about 2 h
	$(BIN)/python -m benchmarks.ablation $(ARGS)

fuzz: $(STAMP)   ## random loop nests through every oracle (ARGS='--minutes 60 --jobs 2'); 10 min
	$(BIN)/python tests/fuzz.py $(ARGS)

kill: $(STAMP)   ## 150 kills of workers, nodes and drivers: the same results, what each costs, nothing left (ARGS='--kills 10'); about 25 min
	$(BIN)/python tests/kill.py $(ARGS)

flat: $(STAMP)   ## 10,000 calls in one session, threads, Ray, two nodes: memory, descriptors, threads, cache stay as they are; about 10 min
	$(BIN)/python tests/flat.py $(ARGS)

planted: $(STAMP) ## faults planted in plans and in the analysis: which of them the checker finds; about 10 min
	$(BIN)/python tests/planted.py $(ARGS)

packages: $(TOOLS) ## wheel and sdist: built, checked, run in fresh environments (installs build, twine; ARGS='--python python3.13'); about 4 min
	$(BIN)/python tests/packages.py $(ARGS)

types: $(TOOLS)  ## the types of the public interface by mypy and pyright (installs pyright); about 2 min
	$(BIN)/mypy
	$(BIN)/pyright --project tests/pyrightconfig.json --pythonpath $(BIN)/python

hooks: $(TOOLS)  ## what pre-commit runs, over all files (installs pre-commit); about 1 min
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pre-commit run --all-files

$(TOOLS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[tools]'
	@touch $@

house: $(STAMP)  ## the structure of the compiler in numbers; about 1 min
	$(BIN)/python -m benchmarks.house $(ARGS)

docs: $(STAMP)   ## build the site into docs/_build/html and execute its notebooks, any warning an error; 25 s
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html

docs-serve: docs ## build the site, and show it at http://localhost:8000 until Ctrl-C; 25 s
	$(BIN)/python -m http.server --bind localhost --directory docs/_build/html 8000

docs-examples: $(STAMP) ## run the examples in the documentation and in docstrings; about 5 min
	$(BIN)/python -m pytest tests/test_documentation.py orion

clean:           ## remove the environment and everything generated; 1 s
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis benchmarks/build benchmarks/results docs/_build docs/reference/interface docs/reference/reasons docs/reference/command-line.markdown
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
