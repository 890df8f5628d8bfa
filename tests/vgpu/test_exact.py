"""The reference of the floating-point tests, against the processor's own arithmetic."""

import numpy as np
import pytest
from exact import result
from operands import assert_same, operand_tuples

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
HOST = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}


@pytest.mark.parametrize("type", FLOATS)
@pytest.mark.parametrize("op", HOST)
def test_agrees_with_numpy(op, type):
    columns = operand_tuples(type, 1 if op == "sqrt" else 2, 2000, seed=9)
    with np.errstate(all="ignore"):
        host = HOST[op](*(one.view(FLOATS[type]) for one in columns))
    wanted = [result(type, op, "rn", one) for one in zip(*(one.tolist() for one in columns), strict=True)]
    number = ~np.isnan(host)
    assert_same(
        host.view(columns[0].dtype)[number],
        np.array(wanted, columns[0].dtype)[number],
        *(one[number] for one in columns),
    )
    assert np.isnan(np.array(wanted, columns[0].dtype).view(FLOATS[type])[~number]).all()
