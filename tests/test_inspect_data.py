"""Plans as plain data."""

import json
import re

import pytest

from orion.inspect.data import plan_to_dict
from tests.inspect_loops import CASES, factorize, plan_of, rmse, running_sum, sgd_epoch, shift


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_it_is_plain_json(function, symbolic):
    data = plan_to_dict(plan_of(function, symbolic=symbolic))
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_every_key_is_documented():
    keys = set()

    def collect(value):
        if isinstance(value, dict):
            keys.update(value)
            for name, inner in value.items():
                if name != "arguments":
                    collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    for function in CASES:
        collect(plan_to_dict(plan_of(function)))
    assert keys <= set(re.findall(r"`(\w+)`", plan_to_dict.__doc__))


def test_what_it_says_of_sgd():
    data = plan_to_dict(plan_of(sgd_epoch))
    assert data["arguments"]["ratings"] == {"kind": "sparse", "dtypes": ["float32"], "dimensions": 2}
    assert data["arguments"]["step"] == {"kind": "scalar", "dtypes": ["float64"], "dimensions": 0}
    (loop,) = data["loops"]
    assert (loop["strategy"], loop["space"], loop["time"], loop["blocks"]) == ("2d", "i", ["j"], [8, 8])
    assert (loop["dimensions"], loop["sparse_array"]) == (["i", "j"], "ratings")
    assert loop["iterations"] == 1_000_209
    moved = {p["array"]: (p["kind"], p["bytes_moved"]) for p in loop["placements"]}
    assert moved == {"ratings": ("partitioned", 0), "W": ("partitioned", 0), "H": ("rotated", 3706 * 32 * 4 * 4)}
    assert {r["code"] for r in loop["reasons"]} == {"ORN101"}


def test_dependences_are_all_there():
    plan = plan_of(shift)
    (dependence,) = plan_to_dict(plan)["loops"][0]["dependences"]
    assert (dependence["kind"], dependence["distance"], dependence["direction"]) == ("flow", [1], ["<"])
    assert dependence["source"]["text"] == "W[i + 1]"
    assert (
        dependence["sink"]["span"]["line"] == dependence["source"]["span"]["line"] == plan.loops[0].nest.span.line + 1
    )


def test_scalars():
    assert plan_to_dict(plan_of(rmse))["loops"][0]["reductions"][0]["operator"] == "+"
    assert plan_to_dict(plan_of(running_sum))["loops"][0]["carried"] == ["t"]
    assert plan_to_dict(plan_of(factorize))["loops"][0]["time"] == ["j", "k"]
