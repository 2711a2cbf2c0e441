"""Values that a tile computes twice in a block are computed once, and mean what they meant."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit, uint64
from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder, run_frontend
from numba.core.untyped_passes import TranslateByteCode

from orion.kernel.build.shared_values import SharedValues


class Sharing(CompilerBase):
    """Numba's compiler with the pass."""

    def define_pipelines(self):
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(SharedValues, TranslateByteCode)
        passes.finalize()
        return [passes]


def product(C, A, B):
    for x in range(C.shape[0] - 1):
        i = x
        C[uint64(i), uint64(i)] += A[uint64(i), uint64(i)] * B[uint64(i), uint64(i)]
        k = x + 1
        i = x + 1
        C[uint64(i), uint64(k)] += A[uint64(k), uint64(x + 1)] * B[uint64(i), uint64(i)]


def test_conversions_and_tuples_are_shared():
    found = run_frontend(product)

    def conversions():
        body = [one for block in found.blocks.values() for one in block.find_insts(ir.Assign)]
        names = {one.target.name for one in body if isinstance(one.value, ir.Global) and one.value.value is uint64}
        made = [one.value for one in body if isinstance(one.value, ir.Expr)]
        calls = sum(one.op == "call" and one.func.name in names for one in made)
        return calls, sum(one.op == "build_tuple" for one in made)

    assert conversions() == (12, 6)
    SharedValues().run_pass(SimpleNamespace(func_ir=found))
    assert conversions() == (2, 2)


def changed_between(x, y):
    i = 0
    x[uint64(i)] = 1.0
    i = i + 1
    x[uint64(i)] = 2.0
    j = i
    i = 3
    x[uint64(j)] += 10.0
    x[uint64(i)] = 4.0
    first = (x + y, i)
    x[2] = 7.0
    second = (x + y, i)
    return first[0][2] * 100 + second[0][2]


def bounds(x, y):
    found = 0.0
    for i in range(x.size):
        found += min(x[i], y[i]) * 2 + max(y[i], x[i]) + min(i, 3) * max(2, i) + max(x[i], i)
    return found + max(min(1, 2, 3), 2)


@pytest.mark.parametrize("function", [changed_between, bounds])
def test_results_are_those_without(function):
    x, y = np.array([0.0, -0.0, np.nan, 5.0, 2.0]), np.array([-0.0, 0.0, 1.0, np.nan, 3.0])
    found, wanted = (x.copy(), y.copy()), (x.copy(), y.copy())
    result = njit(pipeline_class=Sharing)(function)(*found)
    np.testing.assert_array_equal([result], [function(*wanted)])
    assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]
