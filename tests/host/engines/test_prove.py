"""`tfdet prove`: what it prints of each kernel, its exit codes, and cases that are not a proof.

A launch is proved if no order of execution gives other bytes.  The virtual GPU writes a report with a line for each
launch, and for each copy, fill or call of the host that ends the proof.  A rule accepts accesses to memory whose order
does not matter, such as `commuting` atomics.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import guides
import pytest
import weekly
from records import make_record

from tfdet.base.errors import ExitCode, RunFailedError
from tfdet.base.paths import find_project
from tfdet.engines import proof, vgpu
from tfdet.publish import proof_views
from tfdet.store.fast_records import read_line, to_summary
from tfdet.store.records import parse
from tfdet_common import journal, order_report
from tfdet_common.order_report import OrderReport
from tfdet_probe.core.proof import MAX_KERNELS, describe

DOCS = Path(__file__).parents[3] / "docs"
EXPLANATION = DOCS / "explanation" / "what-a-proof-proves.md"
HOW_TO = DOCS / "how-to" / "prove-your-kernel.md"

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
# `made` is a word that kernels write, as they have one parameter.  `run` launches one of them on a stream.
STREAMS = """
first, second, event = (ctypes.c_void_p() for _ in range(3))
cuda.cuStreamCreate(ctypes.byref(first), 1), cuda.cuStreamCreate(ctypes.byref(second), 1)
cuda.cuEventCreate(ctypes.byref(event), 0), cuda.cuCtxSynchronize()
def run(stream, threads=64, function=None):
    given = (ctypes.c_void_p * 1)(ctypes.addressof(made))
    return cuda.cuLaunchKernel(function or kernel, 4, 1, 1, threads, 1, 1, 0, stream, given, None)
"""
BODIES = {
    "histogram": "red.global.add.u32 [%l0], 1;",
    "scatter_add": "cvt.rn.f32.u32 %r1, %r0; mul.rn.f32 %r1, %r1, 0f3DCCCCCD; red.global.add.f32 [%l0+64], %r1;",
}

# `ptxas` accepts it for sm_75, and the virtual GPU does not support it: C and D have different types.
UNSUPPORTED = (
    "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32 {%r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3}, "
    "{%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3}, {%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3};"
)


def run_prove(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `tfdet prove`."""
    command = [sys.executable, "-m", "tfdet", "prove", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def launch_command(*kernels: str) -> list[str]:
    """Return the command of a program that launches these kernels of BODIES on the virtual GPU."""
    return ["--", sys.executable, "-c", f"TEXT, BODIES = {TEXT!r}, {BODIES!r}\n{PROGRAM}", *kernels]


def prove_json(steps: str) -> Any:
    """Return the JSON of `tfdet prove` for a program that launches `histogram`, and then takes these steps."""
    program = f"TEXT, BODIES, UNSUPPORTED = {TEXT!r}, {BODIES!r}, {UNSUPPORTED!r}\n{PROGRAM}\n{STREAMS}\n{steps}"
    done = run_prove("--json", "--", sys.executable, "-c", program, "histogram")
    report = json.loads(done.stdout)
    assert done.returncode == (ExitCode.OK if report["proved"] else ExitCode.CONTRADICTED), done.stderr
    return report


def test_proved_kernels_exit_0() -> None:
    done = run_prove(*launch_command("histogram", "histogram"))
    assert done.returncode == ExitCode.OK, done.stderr
    assert "proved      histogram (2 launches)" in done.stdout


def test_an_unproved_kernel_is_named_with_its_line() -> None:
    done = run_prove("--json", *launch_command("histogram", "scatter_add"))
    assert done.returncode == ExitCode.CONTRADICTED, done.stderr
    output = json.loads(done.stdout)
    proved, open_ = output["kernels"]
    assert (output["proved"], proved["kernel"], proved["rules"]) == (False, "histogram", ["commuting"])
    assert (open_["kernel"], open_["proved"]) == ("scatter_add", 0)
    assert [(reason["reason"], reason["lines"]) for reason in open_["reasons"]] == [("rounding", [5])]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--", sys.executable, "-c", "print(1)"], ExitCode.NO_DEVICE),
        (["--", sys.executable, "-c", "raise SystemExit(7)"], 7),
        (["--schedule", "backwards", "--", "true"], ExitCode.USAGE),
        (launch_command(), ExitCode.CONTRADICTED),  # it launched nothing
    ],
)
def test_output_without_a_proof_does_not_claim_one(words: list[str], code: int) -> None:
    done = run_prove(*words)
    assert done.returncode == code, done.stderr
    assert "proved   " not in done.stdout


@pytest.mark.parametrize(
    "steps",
    [
        "assert run(first, threads=2048)",  # more than the device has
        "assert run(first, function=ctypes.byref(made))",  # no kernel
        "assert cuda.cuLaunchKernelEx(None, ctypes.byref(made), None, None) == 400",
        "text = TEXT.replace('NAME', 'refused').replace('BODY', UNSUPPORTED)\n"
        "cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b'\\0')\n"
        "cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b'refused')\n"
        "assert run(first)",
    ],
)
def test_a_launch_that_is_refused_ends_the_proof(steps: str) -> None:
    kernels = prove_json(steps)["kernels"]
    assert (sum(kernel["launches"] for kernel in kernels), sum(kernel["proved"] for kernel in kernels)) == (2, 1)
    assert [reason["reason"] for kernel in kernels for reason in kernel["reasons"]] == ["refused"]


@pytest.mark.parametrize(
    ("attribute", "result", "name"),
    [
        (6, 0, "programmatic dependent launches"),  # the launch may begin before the previous one ends
        (7, 801, "events of launches"),
    ],
)
def test_a_launch_whose_order_is_not_modelled_ends_the_proof(attribute: int, result: int, name: str) -> None:
    report = prove_json(
        f"attribute = (ctypes.c_uint * 18)({attribute}, 0, 1)\n"
        "sizes = (ctypes.c_uint * 8)(1, 1, 1, 32, 1, 1, 0)\n"
        "config = (ctypes.c_uint64 * 7)(0, 0, 0, 0, first.value, ctypes.addressof(attribute), 1)\n"
        "ctypes.memmove(config, sizes, 28)\n"
        f"assert cuda.cuLaunchKernelEx(config, kernel, given, None) == {result}"
    )
    assert report["host"] == {f"{name}: unsupported": 1}


def test_an_unsupported_call_ends_the_proof() -> None:
    report = prove_json("assert cuda.cuArrayGetPlane(None, None, 0) == 801")
    assert report["host"] == {"cuArrayGetPlane: unsupported": 1}


@pytest.mark.parametrize(
    ("steps", "host"),
    [
        ("run(first), cuda.cuStreamQuery(first)", {"host: query": 1}),
        ("run(first), cuda.cuEventRecord(event, first), cuda.cuEventQuery(event)", {"host: query": 1}),
        # Every schedule gives the same answer:
        ("run(first), cuda.cuStreamSynchronize(first), cuda.cuStreamQuery(first)", {}),
        ("run(first), cuda.cuCtxSynchronize(), cuda.cuEventRecord(event, first), cuda.cuEventQuery(event)", {}),
        ("cuda.cuEventQuery(event)", {}),  # never recorded
        # The first answer is what the host knows from then on.
        ("run(first), cuda.cuStreamQuery(first), cuda.cuStreamQuery(first)", {"host: query": 1}),
    ],
)
def test_a_query_whose_answer_the_schedule_chooses_ends_the_proof(steps: str, host: dict[str, int]) -> None:
    assert prove_json(steps)["host"] == host


@pytest.mark.parametrize(
    ("order", "reasons"),
    [
        ("", ["allocation_order"]),
        ("cuda.cuEventRecord(event, first), cuda.cuStreamWaitEvent(second, event, 0)", []),
        ("cuda.cuStreamSynchronize(first)", []),
    ],
)
def test_memory_of_a_stream_is_used_after_its_allocation(order: str, reasons: list[str]) -> None:
    report = prove_json(f"""
assert cuda.cuMemAllocAsync(ctypes.byref(made), ctypes.c_size_t(4096), first) == 0
{order}
cuda.cuMemsetD32Async(made, 0, ctypes.c_size_t(1024), second), run(second)
""")
    assert [reason["reason"] for kernel in report["kernels"] for reason in kernel["reasons"]] == reasons
    assert report["proved"] is not bool(reasons)


@pytest.mark.parametrize(("code", "place"), [("ptx", "line 144"), ("sm_80", "offset 0x90")])
def test_a_reason_names_a_line_of_ptx_or_an_offset_in_machine_code(code: str, place: str, tmp_path: Path) -> None:
    order = {
        "proved": False,
        "reasons": [{"reason": "clock", "lines": [144], "positions": [], "times": 1}],
        "rules": [],
    }
    report = tmp_path / "report.jsonl"
    report.write_text(json.dumps({"kernel": "k", "code": code, "order": order}) + "\n")
    assert f"({place})" in "\n".join(proof_views.lines(proof.read_report(report)))


def test_a_reason_names_source_lines_and_another_function(tmp_path: Path) -> None:
    positions = [
        {"function": "_Z1kPf", "line": 30, "source": ["/src/sum.h:9", "/src/a.cu:3"]},
        {"function": "_Z5otherPf", "line": 52, "source": []},
    ]
    race = {"reason": "race", "lines": [30, 52], "positions": positions, "times": 1}
    order = {"proved": False, "reasons": [race], "rules": []}
    report = tmp_path / "report.jsonl"
    report.write_text(json.dumps({"kernel": "_Z1kPf", "code": "ptx", "order": order}) + "\n")
    parsed = proof.read_report(report)
    text = [line.strip() for line in proof_views.lines(parsed)]
    assert "line 30: a.cu:3 > sum.h:9" in text and "line 52: in other(float*)" in text
    (kernel,) = proof_views.as_json(parsed)["kernels"]
    assert kernel["reasons"] == [{"reason": "race", "lines": [30, 52], "positions": positions, "launches": 1}]


def test_a_truncated_report_is_an_error(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    report.write_text('{"kernel": "k", "order": {"proved": true, "reasons": [], "rules": []}}\n{"kernel": "k", "or')
    with pytest.raises(RunFailedError, match="line 2"):
        proof.read_report(report)


def test_a_copy_that_nothing_orders_ends_the_proof(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    race = {"proved": False, "reasons": [{"reason": "race", "lines": [], "positions": [], "times": 3}], "rules": []}
    lines = [
        {"kernel": "k", "order": {"proved": True, "reasons": [], "rules": []}},
        {"before_launch": 1, "operation": "copy", "order": race},
    ]
    report.write_text("".join(json.dumps(line) + os.linesep for line in lines))
    parsed = proof.read_report(report)
    assert not parsed.is_proved
    assert proof_views.as_json(parsed)["host"] == {"copy: race": 1}


def test_a_report_that_is_full_proves_nothing(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    launch = {"kernel": "k", "order": {"proved": True, "reasons": [], "rules": []}}
    report.write_text(f'{json.dumps(launch)}\n{{"left_out": "all launches from here on"}}\n')
    parsed = proof.read_report(report)
    assert (parsed.is_proved, dict(parsed.host)) == (False, {("report", "left_out"): 1})


def test_a_cpu_fallback_ends_the_proof_by_its_name(tmp_path: Path) -> None:
    report = tmp_path / "report.jsonl"
    expected = {
        "proved": False,
        "reasons": [{"reason": "cpu_fallback", "lines": [], "positions": [], "times": 1}],
        "rules": [],
    }
    lines: list[object] = [
        {"kernel": "k", "order": {"proved": True, "reasons": [], "rules": []}},
        {"before_launch": 1, "operation": "host", "order": expected},
        {"before_launch": 1, "cpu_fallback": "cublasSgemm_v2"},
    ]
    report.write_text("".join(json.dumps(line) + os.linesep for line in lines))
    parsed = proof.read_report(report)
    assert (parsed.is_proved, dict(parsed.host)) == (False, {("cublasSgemm_v2", "cpu_fallback"): 1})


def test_the_example_of_the_explanation_prints_what_it_shows(tmp_path: Path) -> None:
    text = EXPLANATION.read_text("utf-8")
    guides.write_files(text, tmp_path)
    ((command, printed),) = guides.commands(text)
    words = [sys.executable, "-m", *(sys.executable if word == "python" else word for word in command)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == ExitCode.CONTRADICTED, done.stderr
    assert guides.missing_lines(printed, done.stdout) == []


@weekly.ONLY  # it downloads 0.1 GB
def test_the_five_kernels_of_the_how_to_have_the_results_that_it_shows(tmp_path: Path) -> None:
    text = HOW_TO.read_text("utf-8")
    guides.write_files(text, tmp_path)
    for command, printed in guides.commands(text):
        start = {"python3": [sys.executable], "tfdet": [sys.executable, "-m", "tfdet"]}.get(command[0], command[:1])
        done = subprocess.run([*start, *command[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == (ExitCode.CONTRADICTED if command[0] == "tfdet" else 0), done.stderr
        assert guides.missing_lines(printed, done.stdout) == []


def test_the_output_does_not_depend_on_hashes(tmp_path: Path) -> None:
    """Reasons that occur equally often are in one order, in every process."""
    lines = [
        {"reason": "race", "lines": [first, second], "positions": []} for first in (9, 1, 8, 2) for second in (3, 12)
    ]
    launch = {"kernel": "k", "order": {"proved": False, "reasons": lines, "rules": []}}
    names = ("race", "uninitialized", "rounding")
    copy = {"operation": "copy", "order": {"proved": False, "reasons": [{"reason": name} for name in names]}}
    report = tmp_path / "report.jsonl"
    report.write_text("".join(json.dumps(line) + "\n" for line in (launch, copy)))
    program = f"""
import json
from tfdet.publish import proof_views
from tfdet_common import order_report
report = order_report.read({str(report)!r})
print(*proof_views.lines(report), json.dumps(proof_views.as_json(report)))
"""
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout
        for seed in "01234"
    }  # fmt: skip
    assert len(printed) == 1


@pytest.fixture(scope="module")
def real_report(tmp_path_factory: pytest.TempPathFactory) -> OrderReport:
    """An order report of three launches, one of which is not proved."""
    report = tmp_path_factory.mktemp("report") / "report.jsonl"
    environ = vgpu.environ(vgpu.library_folder(find_project()), "serial")
    words = launch_command("histogram", "histogram", "scatter_add")[1:]
    subprocess.run(words, env={**environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report)}, check=True, timeout=600)
    return order_report.read(str(report))


def test_a_record_keeps_the_rules_and_the_reasons(real_report: OrderReport) -> None:
    written = make_record(device="vgpu-sm70", ran_on=["GPU:0"], proof=describe(real_report, ["serial", "reverse"]))
    record = parse((journal.dump(written) + "\n").encode())
    fast = read_line(record.line().encode())
    assert record.proof and fast.proof
    open_, proved = record.proof.kernels  # what is not proved comes first
    assert (proved.name, proved.launches, proved.proved, proved.rules) == ("histogram", 2, 2, ["commuting"])
    assert [(why.reason, why.lines) for why in open_.reasons] == [("rounding", [5])]
    assert (fast.proof.is_proved, fast.proof.reasons) == (False, {"rounding"})
    assert fast.proof == to_summary(record.proof)
    _, first, second = proof_views.explain([record])
    assert "not proved" in first and "scatter_add" in second and "line 5" in second


@pytest.mark.parametrize(
    "change",
    [
        {"kernels": []},
        {"kernels": [{"name": "k", "launches": 1, "proved": 2, "rules": [], "reasons": []}]},
        {"kernels": [{"name": "k", "launches": 2, "proved": 1, "rules": [], "reasons": []}]},
        {"axes": []},
        {"axes": ["time"]},
        {"proved": True},
    ],
)
def test_a_proof_that_no_run_can_have_given_is_refused(real_report: OrderReport, change: dict[str, Any]) -> None:
    changed = {**describe(real_report, ["serial"]), "host": [], **change}
    line = (journal.dump(make_record(device="vgpu-sm70", ran_on=["GPU:0"], proof=changed)) + "\n").encode()
    for read in (parse, read_line):
        with pytest.raises(ValueError, match=r"proof|launch"):
            read(line)


def test_differing_runs_of_proved_kernels_had_other_host_values() -> None:
    report = OrderReport()
    report.add({"kernel": "k", "order": {"proved": True, "reasons": [], "rules": []}})
    described = describe(report, ["serial"], differed=True)
    assert described["host"] == [{"operation": "runs", "reason": "runs_differ", "times": 1}]
    for content, is_accepted in ((described, True), (describe(report, ["serial"]), False)):
        line = (journal.dump(make_record("differs", device="vgpu-sm70", proof=content)) + "\n").encode()
        for read in (parse, read_line):
            with nullcontext() if is_accepted else pytest.raises(ValueError, match="all kernels are proved"):
                read(line)


def test_more_kernels_than_a_record_holds_end_the_proof() -> None:
    report = OrderReport()
    for number in range(MAX_KERNELS + 1):
        report.add({"kernel": f"k{number}", "order": {"proved": True, "reasons": [], "rules": []}})
    described = parse((journal.dump(make_record(proof=describe(report, ["serial"]))) + "\n").encode()).proof
    assert described
    assert (to_summary(described).is_proved, to_summary(described).reasons) == (False, {"left_out"})


@pytest.mark.parametrize(
    "words", [["--prove"], ["--code", "sass"], ["--multiprocessors", "108"], ["--placement", "0"]], ids=" ".join
)
def test_only_the_virtual_gpu_proves_and_has_choices(words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "tfdet", "run", "tf2.0", "--device", "cpu", *words])
    assert done.returncode == ExitCode.USAGE
