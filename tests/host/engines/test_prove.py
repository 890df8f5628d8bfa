"""`tfdet prove`: what is printed of each kernel, the exit codes, and no proof where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.errors import ExitCode, RunFailedError
from tfdet.engines import proof
from tfdet.publish import proof_views

PROGRAM = """
import ctypes, sys
cuda, module, kernel, made = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0) == 0
cuda.cuMemAlloc_v2(ctypes.byref(made), ctypes.c_size_t(4096)), cuda.cuMemsetD32_v2(made, 0, ctypes.c_size_t(1024))
for name in sys.argv[1:]:
    text = TEXT.replace("NAME", name).replace("BODY", BODIES[name])
    assert cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\\0") == 0, name
    assert cuda.cuModuleGetFunction(ctypes.byref(kernel), module, name.encode()) == 0
    given = (ctypes.c_void_p * 1)(ctypes.addressof(made))
    assert cuda.cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, None, given, None) == 0
"""
TEXT = """.version 7.0
.target sm_70
.address_size 64
.visible .entry NAME(.param .u64 p0) {
.reg .b32 %r<4>; .reg .b64 %l<4>; ld.param.u64 %l0, [p0]; mov.u32 %r0, %tid.x; BODY }
"""
BODIES = {
    "histogram": "red.global.add.u32 [%l0], 1;",
    "scatter_add": "cvt.rn.f32.u32 %r1, %r0; mul.rn.f32 %r1, %r1, 0f3DCCCCCD; red.global.add.f32 [%l0+64], %r1;",
}


def prove(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tfdet", "prove", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def program(*kernels: str) -> list[str]:
    return ["--", sys.executable, "-c", f"TEXT, BODIES = {TEXT!r}, {BODIES!r}\n{PROGRAM}", *kernels]


def test_kernels_that_are_proved_end_with_0() -> None:
    done = prove(*program("histogram", "histogram"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert "proved      histogram (2 launches)" in done.stdout


def test_one_that_is_not_is_named_with_its_line() -> None:
    done = prove("--json", *program("histogram", "scatter_add"))
    assert done.returncode == ExitCode.CONTRADICTED, done.stderr
    found = json.loads(done.stdout)
    proved, open_ = found["kernels"]
    assert (found["proved"], proved["kernel"], proved["rules"]) == (False, "histogram", ["commuting"])
    assert (open_["kernel"], open_["proved"]) == ("scatter_add", 0)
    assert [(one["reason"], one["lines"]) for one in open_["reasons"]] == [("rounding", [5])]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--", sys.executable, "-c", "print(1)"], ExitCode.NO_DEVICE),
        (["--", sys.executable, "-c", "raise SystemExit(7)"], 7),
        (["--schedule", "backwards", "--", "true"], ExitCode.USAGE),
        (program(), ExitCode.CONTRADICTED),  # it launched nothing
    ],
)
def test_nothing_looks_like_a_proof_where_there_is_none(words: list[str], code: int) -> None:
    done = prove(*words)
    assert done.returncode == code, done.stderr
    assert "proved   " not in done.stdout


def test_a_report_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text('{"kernel": "k", "order": {"proved": true, "reasons": [], "rules": []}}\n{"kernel": "k", "or')
    with pytest.raises(RunFailedError, match="line 2"):
        proof.read_report(report)


def test_a_copy_that_nothing_orders_ends_the_proof(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    race = {"proved": False, "reasons": [{"reason": "race", "lines": [], "times": 3}], "rules": []}
    lines = [
        {"kernel": "k", "order": {"proved": True, "reasons": [], "rules": []}},
        {"before_launch": 1, "operation": "copy", "order": race},
    ]
    report.write_text("".join(json.dumps(line) + os.linesep for line in lines))
    found = proof.read_report(report)
    assert not found.is_proved
    assert proof_views.as_json(found)["host"] == {"copy: race": 1}
