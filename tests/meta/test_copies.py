"""The probe copies each output to the host once per repeat, and compares and hashes that copy."""

import json
import subprocess

import pytest

from tfdet_probe.base.snapshot import Snapshot

SCRIPT = """
import json, sys
import numpy as np
import tensorflow as tf
from tfdet_probe import frameworks
from tfdet_probe.base.case_builder import CaseBuilder
from tfdet_probe.base.settings import SolutionSettings
from tfdet_probe.base.snapshot import Snapshot

copies = []

class Counted(object):
    def __init__(self, tensor):
        self.tensor = tensor
    def numpy(self):
        copies.append(1)
        return self.tensor.numpy()
    def __array__(self, *_, **__):
        copies.append(1)
        return self.tensor.numpy()

make = CaseBuilder()
framework = frameworks.load_adapter("tensorflow")
found = {}
for mode in ("eager", "function"):
    values = make.uniform((1000,))
    runner = framework.prepare(make.forward(lambda x: [x + x, x * x], [values]), mode, "CPU:0",
                               SolutionSettings({"key": "none"}, framework))
    plain = runner._call
    runner._call = lambda inputs, upstream: [Counted(tensor) for tensor in plain(inputs, upstream)]
    reference = Snapshot.from_arrays(runner.run())
    del copies[:]
    assert Snapshot.from_arrays(runner.run()).digest == reference.digest
    found[mode] = len(copies)
print(json.dumps(found))
"""


@pytest.mark.tensorflow
def test_one_copy_of_each_output(checkout, tf_python, tmp_path):
    path = tmp_path / "count.py"
    path.write_text(SCRIPT)
    process = subprocess.run(
        [str(tf_python("tf2.21")), str(path)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout.runtime), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == {"eager": 2, "function": 2}


def test_a_snapshot_asks_an_array_once():
    class Array:
        asked = 0

        def __array__(self, *_, **__):
            import numpy as np

            self.asked += 1
            return np.ones(3)

    array = Array()
    Snapshot.from_arrays([array])
    assert array.asked == 1
