"""`tfdet locate --device vgpu` on a PyTorch program names op, line and kernel without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import weekly

PROGRAM = """import torch

torch.manual_seed(0)
edges = torch.randn(20000, 16, device="cuda")
owners = torch.randint(0, 7, (20000,), device="cuda")
weight = torch.ones(16, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.01)
nodes = torch.zeros(7, 16, device="cuda").index_add(0, owners, edges)  # <- culprit
loss = (nodes * weight).pow(2).mean()
loss.backward()
optimizer.step()
print(loss.item())
"""


@weekly.on_day(1)
def test_the_op_of_a_pytorch_program_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM, "utf-8")
    options = ["--device", "vgpu", "--json", "--max-runs", "2"]
    options += [] if weekly.ALL else ["--trace-only"]  # the proof takes three minutes more
    command = ["locate", "torch2.14", *options, "--", str(program)]
    done = subprocess.run([sys.executable, "-m", "tfdet", *command], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 1, done.stderr
    output = json.loads(done.stdout)
    line = next(n for n, text in enumerate(PROGRAM.splitlines(), 1) if text.endswith("# <- culprit"))
    culprits = [
        (culprit["op_type"], culprit["line"], culprit["class"], culprit["device"]) for culprit in output["culprits"]
    ]
    assert culprits == [("aten.index_add.default", line, "kernel race", "cuda:0")]
    assert output["replay"] == {"times": 5, "distinct": 5}
    assert any("scatter_add_kernel" in finding and "machine code (sm_80)" in finding for finding in output["findings"])
