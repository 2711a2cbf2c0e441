# Orion: one command each. `make` lists them. Everything is installed into .venv by what this file says.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PEERS  := $(VENV)/.peers
TRANSPORTS := $(VENV)/.transports

.DEFAULT_GOAL := help
.PHONY: help run test cpus check bench fuzz everyday indirect sparse polybench wavefront estimates kinds cliffs peers topics delays larger transports hosts paced served interrupts planning exchange ahead elastic ablation bottlenecks cluster kill flat planted house docs clean setup

help:            ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12

setup: $(STAMP)  ## make the virtual environment with everything the project needs

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Orion needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: $(STAMP)    ## SGD matrix factorization on generated ratings: the plan, the training, the times
	$(BIN)/python examples/sgd_mf.py $(ARGS)

test: $(STAMP)   ## the checks, and all tests (ORION_TRIALS=3: all combinations of parameters, three times the random ones)
	$(BIN)/ruff check .
	$(BIN)/python tests/suite.py $(ARGS)

cpus: $(STAMP)   ## all tests as if on Haswell, Skylake-X, Zen 3 and Zen 4, as far as this machine can
	$(BIN)/python tests/cpus.py $(ARGS)

check: $(STAMP)  ## ruff, strict mypy, and the layers test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

bench: $(STAMP)  ## speed next to LIBMF, a Hogwild loop and a hand-written kernel (builds LIBMF; needs a C++ compiler)
	$(BIN)/python benchmarks/run.py $(ARGS)

everyday: $(STAMP) ## 234 loops as users write them: which are taken, parallel, how fast next to numba.njit
	$(BIN)/python -m benchmarks.everyday.run $(ARGS)

indirect: $(STAMP) ## 25 loops whose subscripts are read from arrays: what decides, what looking costs, how fast
	$(BIN)/python -m benchmarks.indirect.run $(ARGS)

sparse: $(STAMP) ## triangular solves, sweeps, PageRank: SciPy, serial Numba, Orion
	$(BIN)/python -m benchmarks.indirect.sparse $(ARGS)

polybench: $(STAMP) ## the 30 PolyBench kernels: serial Numba, hand-written prange, Orion
	$(BIN)/python -m benchmarks.polybench.run $(ARGS)

wavefront: $(STAMP) ## chains of dependent iterations: Gauss-Seidel, common subsequence; serial Numba and Orion
	$(BIN)/python -m benchmarks.wavefront $(ARGS)

estimates: $(STAMP) ## times that plans predict for 12 loops, next to runs; four workers by quota, up to 1,024 predicted; wants root, and a machine that does nothing else
	$(BIN)/python -m benchmarks.estimates $(ARGS)
	$(BIN)/python -m benchmarks.estimates_modelled $(ARGS)

kinds: $(STAMP)  ## times that plans predict for arrays in memory and in files behind a slow link, next to runs; wants root and FUSE
	$(BIN)/python -m benchmarks.kinds $(ARGS)

cluster: $(STAMP) ## loops of every kind on Ray clusters of one, two and three nodes: bits, nodes used, bytes predicted and sent
	$(BIN)/python tests/cluster.py $(ARGS)

bottlenecks: $(STAMP) ## bottlenecks planted on purpose, and whether a profile names them; wants a machine that does nothing else
	$(BIN)/python -m pytest -m timing tests/test_profile.py tests/test_profile_ray.py $(ARGS)

peers: $(PEERS)  ## programs next to igraph, scikit-learn, LightGBM, xgboost, tomotopy (installs them)
	$(BIN)/python -m benchmarks.peers.run $(ARGS)

topics: $(PEERS) ## topic models by two samplers next to tomotopy (installs it; ARGS='--corpus docword.kos.txt.gz')
	$(BIN)/python -m benchmarks.peers.lda $(ARGS)

delays: $(STAMP) ## AdaRevision next to AdaGrad with gradients that are late, and how late updates of buffers are at most
	$(BIN)/python -m benchmarks.delays $(ARGS)

$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[peers]'
	@touch $@

transports: $(TRANSPORTS) ## what it costs to hand bytes from process to process: Orion, the system, gRPC, Ray (installs grpcio)
	$(BIN)/python -m benchmarks.transports $(ARGS)

$(TRANSPORTS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[transports]'
	@touch $@

hosts: $(STAMP)  ## programs on hosts with links of 1 Gbit/s, 100 and 20 Mbit/s: network namespaces, wants root
	$(BIN)/python -m benchmarks.hosts $(ARGS)

paced: $(STAMP)  ## loss against time and bytes on hosts whose links are too slow, by what is sent first: wants root
	$(BIN)/python -m benchmarks.paced $(ARGS)

served: $(STAMP) ## weights that hosts fetch before tiles need them, next to sending all: wants root, and a quiet machine
	$(BIN)/python -m benchmarks.served $(ARGS)

interrupts: $(STAMP) ## seconds from Ctrl-C to KeyboardInterrupt, and what looking for it costs kernels
	$(BIN)/python -m benchmarks.interrupts $(ARGS)

larger: $(STAMP) ## data four times a process's memory: read, mapped, grouped, looped over, saved; a cgroup, wants root
	$(BIN)/python -m benchmarks.larger $(ARGS)

cliffs: $(STAMP) ## loops of the first week next to @numba.njit of the same text
	$(BIN)/python -m benchmarks.cliffs $(ARGS)

planning: $(STAMP) ## the time of the first plan of every example
	$(BIN)/python -m benchmarks.planning $(ARGS)

ahead: $(STAMP)  ## epochs after shuffles on hosts with slow links, whose rows are sent before or not: wants root
	$(BIN)/python -m benchmarks.ahead $(ARGS)

exchange: $(STAMP) ## shuffles that exchange a part: accuracy at 2 to 64 simulated ranks, bytes, time next to Ray Data
	$(BIN)/python -m benchmarks.exchange $(ARGS)

elastic: $(STAMP) ## elastic averaging: the share of time without steps, on 1 to 4 workers here and simulated up to 1,024
	$(BIN)/python -m benchmarks.elastic $(ARGS)

ablation: $(STAMP) ## what each rewrite is worth: every loop with all rewrites and without each one of them
	$(BIN)/python -m benchmarks.ablation $(ARGS)

fuzz: $(STAMP)   ## random loop nests through every oracle, for ten minutes (ARGS='--minutes 60 --jobs 2')
	$(BIN)/python tests/fuzz.py $(ARGS)

kill: $(STAMP)   ## 150 kills of workers, nodes and drivers: the same results, what each costs, nothing left (ARGS='--kills 10')
	$(BIN)/python tests/kill.py $(ARGS)

flat: $(STAMP)   ## 10,000 calls in one session, threads, Ray, two nodes: memory, descriptors, threads, cache stay as they are
	$(BIN)/python tests/flat.py $(ARGS)

planted: $(STAMP) ## faults planted in plans and in the analysis: which of them the checker finds
	$(BIN)/python tests/planted.py $(ARGS)

house: $(STAMP)  ## the structure of the compiler in numbers
	$(BIN)/python -m benchmarks.house $(ARGS)

docs: $(STAMP)   ## run the examples in the documentation and in docstrings
	$(BIN)/python -m pytest tests/test_documentation.py orion

clean:           ## remove the environment and everything generated
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .hypothesis benchmarks/build benchmarks/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
