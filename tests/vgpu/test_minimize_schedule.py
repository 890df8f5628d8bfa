"""minimize_schedule reduces the difference between two schedules to two operations that must change places."""

import os
import subprocess
import sys
from pathlib import Path

import minimize_schedule
import numpy as np
import pytest
from virtual_device import build, kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

TESTS = Path(__file__).parent
SUM = kernel(
    """ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mul.wide.u32 %l2, %i, 4; add.u64 %l1, %l1, %l2;
    ld.global.f32 %r1, [%l1];
    atom.global.add.f32 %r2, [%l0], %r1;""",
    ["p0", "p1"],
)
# The line of the atomic in the PTX.
LINE = 1 + SUM[: SUM.index("atom.global")].count("\n")
COUNTER = kernel(
    """ld.param.u64 %l0, [p0]; ld.volatile.global.u32 %r1, [%l0]; add.u32 %r1, %r1, 1;
    st.volatile.global.u32 [%l0], %r1;""",
    ["p0", "p1"],
)


@pytest.mark.parametrize(
    "needed",
    [{3}, {0}, {99}, {4, 77}, {10, 11, 12}, set(range(0, 100, 10)), {0, 99}],
    ids=lambda needed: str(len(needed)),
)
def test_only_necessary_choices_remain(needed):
    calls = []

    def differs(points):
        calls.append(points)
        return needed <= set(points)

    assert set(minimize_schedule.minimal_subset(range(100), differs)) == needed
    assert len(calls) < 1000


def test_one_of_several_causes_remains():
    assert minimize_schedule.minimal_subset(range(64), lambda points: 5 in points or {20, 21} <= set(points)) in (
        [5],
        [20, 21],
    )


def test_choices_are_written_as_a_schedule():
    """A choice is (launch, number within the launch); behind the @, each range is LAUNCH:FROM-TO."""
    assert (
        minimize_schedule.restrict_schedule("random:7", [(2, 5), (0, 9), (2, 6), (2, 8)])
        == "random:7@0:9-9,2:5-6,2:8-8"
    )


def program(folder, text, values, grid, block):
    """Write a program that runs the kernel and prints the first word of its result; return its command."""
    path = folder / "program.py"
    path.write_text(
        f"""import sys
sys.path.insert(0, {str(TESTS)!r})
import numpy as np
from virtual_device import Device
code, (made, _) = Device("libcuda.so.1").run(
    {text!r}, [np.zeros(1, np.uint32), np.array({values!r}, np.float32)], grid={grid}, block={block})
print(code, made[0])
"""
    )
    return [sys.executable, str(path)]


def minimized(command, *options):
    """Run minimize_schedule on the command; return the exit code, stdout and stderr."""
    build()
    command = [sys.executable, minimize_schedule.__file__, *options, "--", *command]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return process.returncode, process.stdout, process.stderr


def result(command, schedule):
    """Run the command under the schedule; return what it prints."""
    folder = str(Path(build()).parent)
    environment = {**os.environ, "LD_LIBRARY_PATH": folder, "VGPU_SCHEDULE": schedule}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout


def big_and_small(count, **positions):
    """Return zeros, but for a large number, its negative and a one: their order decides whether the one is lost."""
    values = [0.0] * count
    for name, value in (("large", 1e8), ("less", -1e8), ("one", 1.0)):
        values[positions[name]] = value
    return values


def test_two_threads_of_a_sum_are_found(tmp_path):
    command = program(tmp_path, SUM, big_and_small(32, large=2, less=7, one=9), 1, 32)
    code, stdout, error = minimized(command)
    assert code == 0, error
    assert (
        f"k: the atomic of line {LINE} by thread 7 of block 0, the atomic of line {LINE} by thread 9 of block 0"
        in stdout
    )
    assert "changed places at byte 0 of allocation 0" in stdout
    schedule = stdout.split()[0].removeprefix("VGPU_SCHEDULE=")
    assert result(command, schedule) == result(command, schedule) != result(command, "serial")


def test_the_order_of_two_blocks_is_minimized(tmp_path):
    command = program(tmp_path, SUM, big_and_small(3, large=0, less=1, one=2), 3, 1)
    code, stdout, error = minimized(command)
    assert code == 0, error
    assert f"the atomic of line {LINE} by thread 0 of block" in stdout
    schedule = stdout.split()[0].removeprefix("VGPU_SCHEDULE=")
    assert result(command, schedule) == result(command, schedule) != result(command, "serial")


def test_a_lost_update_of_a_random_schedule_is_minimized(tmp_path):
    command = program(tmp_path, COUNTER, [0.0], 8, 1)
    code, stdout, error = minimized(command, "--schedule", "adversary:1")
    assert code == 0, error
    assert "VGPU_SCHEDULE=adversary:1@" in stdout


def test_a_result_that_no_order_changes_has_no_choices(tmp_path):
    text = SUM.replace("atom.global.add.f32", "atom.global.add.u32")
    code, stdout, _ = minimized(program(tmp_path, text, list(range(32)), 1, 32))
    assert (code, stdout) == (1, f"the same result under serial, {', '.join(minimize_schedule.DEFAULT_SCHEDULES)}\n")


def test_all_choices_are_the_whole_schedule_and_none_is_serial(device):
    values = np.random.default_rng(0).standard_normal(2048).astype(np.float32).view(np.uint32)

    def bits(schedule):
        code, (made, _), _ = device.run_in_child(SUM, [np.zeros(1, np.uint32), values], schedule, grid=16, block=128)
        assert code == 0
        return int(made[0])

    for schedule in ("random:3", "adversary:3", "exchange"):
        assert bits(schedule + "@0:0-999999") == bits(schedule) != bits("serial")
        assert bits(schedule + "@1:0-999999") == bits("serial")


@pytest.mark.parametrize(
    "words", ["serial@0:1", "random:1@", "random:1@x", "random:1@0", "random:1@0:5-2", "exchange:1", "random:1@0:1;2"]
)
def test_invalid_choices_are_refused(device, words):
    with pytest.raises(AssertionError, match=r"is no schedule|names no choices"):
        device.run_in_child(SUM, [np.zeros(1, np.uint32), np.zeros(1, np.uint32)], words, grid=1, block=1)
