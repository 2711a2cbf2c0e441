"""Part of `make cluster` (`tests.cluster`): loops on a cluster of three nodes, on four workers."""

import pytest

import orion
from tests.cluster import cluster, lists_of_iterations, loop_cases, row
from tests.runtime_programs import NAMES

pytestmark = [
    pytest.mark.all("test_runtime_ray_nodes.py::test_nodes_give_the_serial_result"),
    pytest.mark.ray,
    pytest.mark.timeout(300),
]

CASES = [case for case in loop_cases() if case.name not in NAMES]  # those: `test_runtime_ray_nodes.py`


@pytest.fixture(scope="module")
def expected():
    with orion.session("threads", 4, force_parallel=True):
        return {case.name: case.run() for case in CASES}


@pytest.fixture(scope="module")
def three():
    with cluster(3) as address, orion.session("ray", 4, address=address, force_parallel=True) as session:
        yield session


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_three_nodes_give_the_bits_of_threads_and_send_what_is_predicted(case, expected, three):
    found = row(case, 4, expected[case.name], three)
    assert not found.wrong, str(found)
    assert found.nodes > 1
    assert found.used > 1 or found.why


@pytest.mark.parametrize("case", [*lists_of_iterations()], ids=lambda case: case.name)
def test_a_profile_changes_no_results_where_tiles_are_taken_on_one_node(case, expected, three):
    with orion.profile() as profile:
        assert case.run() == expected[case.name]
    assert profile.numbers.calls == 1
    assert sum(loop.runs for loop in profile.numbers.loops) > 0
