"""exact.py, the reference of the floating-point tests, gives the results of the processor's own arithmetic."""

import numpy as np
import pytest
from exact import result
from operands import assert_same, operand_tuples

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
HOST = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("op", HOST)
def test_the_exact_reference_agrees_with_numpy(op, type):
    columns = operand_tuples(type, 1 if op == "sqrt" else 2, 2000, seed=9)
    with np.errstate(all="ignore"):
        host = HOST[op](*(column.view(FLOATS[type]) for column in columns))
    expected = [result(type, op, "rn", row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    is_number = ~np.isnan(host)
    assert_same(
        host.view(columns[0].dtype)[is_number],
        np.array(expected, columns[0].dtype)[is_number],
        *(column[is_number] for column in columns),
    )
    assert np.isnan(np.array(expected, columns[0].dtype).view(FLOATS[type])[~is_number]).all()
