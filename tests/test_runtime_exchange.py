"""What goes between nodes: every tile finds the newest contents of every block that it uses, however late messages are.

The runs here are simulated: nodes have copies of their own of each block, which hold nothing but the number of its last
change, and a random choice decides which worker goes on and which message arrives next.
"""

import random
from collections import defaultdict, deque

import numpy as np
import pytest

from orion.runtime.ray.exchange import Region, loop_exchange, merged_regions
from tests.runtime_programs import cases

NODES = {
    "one each": "abcd",
    "two and two": "aabb",
    "three and one": "aaab",
    "one and two": "abb",
    "all on one": "aa",
}


def prepared_loop(name: str, workers: int):
    function, arguments = cases()[name]
    return function._preparation.prepare(arguments, workers, True).program.loops[0]


class Simulation:
    """One loop, run for some rounds on nodes that share nothing but messages."""

    def __init__(self, loop, nodes: str, rounds: int, seed: int):
        self.schedule, self.nodes, self.rounds = loop.schedule, nodes, rounds
        self.exchange = loop_exchange(loop, nodes)
        self.random = random.Random(seed)
        self.written = [p for p in loop.plan.placements if p.is_written]
        blocks = np.indices(self.schedule.grid).reshape(len(self.schedule.grid), -1)
        self.blocks = {p.array: blocks[p.loop_dim] for p in self.written}
        self.filled = set(self.blocks_of(Region(p.array) for p in self.written))
        self.copies = defaultdict(lambda: None)  # (node, array, block) → number of changes it has seen
        self.newest = defaultdict(int)  # (array, block) → number of changes
        self.done = defaultdict(int)  # (node, tile) → rounds
        self.messages = defaultdict(deque)  # (sender, node) → messages under way
        for node, regions in self.exchange.needs.items():
            for array, block in self.blocks_of(regions):
                self.copies[node, array, block] = 0

    def blocks_of(self, regions):
        for region in regions:
            for p in self.written:
                if p.array == region.array:
                    bounds = self.schedule.bounds[p.loop_dim]
                    for block in range(len(bounds) - 1):
                        whole = region.axis is None or region.low <= bounds[block] <= bounds[block + 1] <= region.high
                        if whole and bounds[block] < bounds[block + 1]:
                            yield p.array, block

    def run(self):
        todo = [[(r, int(t)) for r in range(self.rounds) for t in order][::-1] for order in self.exchange.order]
        while any(todo):
            ready = [w for w, tiles in enumerate(todo) if tiles and self.is_ready(w, *tiles[-1])]
            routes = [route for route, under_way in self.messages.items() if under_way]
            assert ready or routes, "every worker waits, and nothing is under way"
            if routes and (not ready or self.random.random() < 0.3):
                self.arrive(self.random.choice(routes))
            else:
                worker = self.random.choice(ready)
                self.execute(worker, *todo[worker].pop())

    def is_ready(self, worker, round, tile):
        offsets = self.schedule.wait_offsets
        return all(
            self.done[self.nodes[worker], int(self.schedule.waits[k])] >= round + 1 - self.schedule.lags[k]
            for k in range(offsets[tile], offsets[tile + 1])
        )

    def execute(self, worker, round, tile):
        node = self.nodes[worker]
        for array, blocks in self.blocks.items():
            block = int(blocks[tile])
            if (array, block) in self.filled:
                found = self.copies[node, array, block]
                assert found == self.newest[array, block], f"tile {tile} has an old block {block} of {array}"
                self.newest[array, block] += 1
                self.copies[node, array, block] = self.newest[array, block]
        self.done[node, tile] = round + 1
        for send in self.exchange.sends.get(tile, ()):
            contents = {key: self.copies[(node, *key)] for key in self.blocks_of(send.regions)}
            self.messages[worker, send.node].append((tile, round, contents))

    def arrive(self, route):
        tile, round, contents = self.messages[route].popleft()
        node = route[1]
        for (array, block), version in contents.items():
            self.copies[node, array, block] = version
        self.done[node, tile] = max(self.done[node, tile], round + 1)

    def check_finals(self):
        """Who is to hand on the last contents of a block has them, and every block is handed on."""
        held = {(key, self.nodes[w]) for w, finals in enumerate(self.exchange.finals) for key in self.blocks_of(finals)}
        assert {key for key, _ in held} == self.filled
        for key, node in held:
            assert self.copies[(node, *key)] == self.newest[key]


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("name", ["rotated", "tensor"])
def test_every_tile_finds_the_newest_blocks(name, nodes):
    loop = prepared_loop(name, len(NODES[nodes]))
    for seed in range(15):
        simulation = Simulation(loop, NODES[nodes], 3, seed)
        simulation.run()
        simulation.check_finals()
        assert sum(simulation.newest.values()) > 3 * loop.schedule.tiles


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("name", ["rotated", "tensor", "wavefront", "stencil"])
def test_the_last_contents_of_every_block_have_one_holder(name, nodes):
    loop = prepared_loop(name, len(NODES[nodes]))
    exchange = loop_exchange(loop, NODES[nodes])
    for placement in (p for p in loop.plan.placements if p.is_written):
        parts = [region for finals in exchange.finals for region in finals if region.array == placement.array]
        assert parts
        for k, first in enumerate(parts):
            for second in parts[k + 1 :]:
                assert first.axis is not None
                assert first.high <= second.low or second.high <= first.low


def test_tiles_on_one_node_send_nothing():
    for name in ("rotated", "tensor", "wavefront", "stencil"):
        assert loop_exchange(prepared_loop(name, 2), "aa").sends == {}


def test_a_loop_that_writes_next_to_its_own_block_runs_on_the_home_node():
    loop = prepared_loop("wavefront", 4)
    exchange = loop_exchange(loop, "aabb")
    assert [order.size > 0 for order in exchange.order] == [True, True, False, False]
    assert np.sort(np.concatenate(exchange.order)).tolist() == list(range(loop.schedule.tiles))
    assert exchange.is_gathered
    assert exchange.finals == ((Region("A"),), (), (), ())
    rank = {int(tile): place for place, tile in enumerate(loop.schedule.serial_tiles())}
    for order in exchange.order:
        assert [rank[int(t)] for t in order] == sorted(rank[int(t)] for t in order)


def test_rounds_on_the_home_node_wait_for_one_another_where_the_plan_says_so():
    loop = prepared_loop("row by row", 4)
    assert not loop.plan.rounds_overlap
    assert loop_exchange(loop, "aabb").is_gathered
    assert not loop_exchange(loop, "aabb").rounds_overlap


@pytest.mark.parametrize(
    ("regions", "merged"),
    [
        ([], []),
        ([Region("A", 0, 0, 4), Region("A", 0, 4, 8)], [Region("A", 0, 0, 8)]),
        ([Region("A", 0, 5, 8), Region("A", 0, 0, 4)], [Region("A", 0, 0, 4), Region("A", 0, 5, 8)]),
        ([Region("A", 0, 0, 9), Region("A", 0, 2, 4)], [Region("A", 0, 0, 9)]),
        ([Region("A", 0, 3, 3)], []),
        ([Region("A", 0, 0, 4), Region("A", 1, 4, 8)], [Region("A")]),
        ([Region("A", 0, 0, 4), Region("A")], [Region("A")]),
        ([Region("B", 0, 0, 4), Region("A", 0, 0, 4)], [Region("A", 0, 0, 4), Region("B", 0, 0, 4)]),
    ],
)
def test_regions_are_merged(regions, merged):
    assert merged_regions(regions) == tuple(merged)
