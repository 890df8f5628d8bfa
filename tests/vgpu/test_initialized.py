"""VGPU_CHECK=initcheck reports reads of uninitialized memory, and no reads of memory that anything wrote."""

import ctypes
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from vendor_library import Library
from virtual_device import Device, build, kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

# The thread's word of p0 is copied to p1.
COPY = """ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; mul.wide.u32 %l2, %i, 4;
add.u64 %l0, %l0, %l2; add.u64 %l1, %l1, %l2;
READ
st.global.u32 [%l1], %r1;"""
SHARED = ".shared .align 16 .b8 word[256];"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return a copy of the library for this module alone, as a library reads VGPU_CHECK once."""
    path = tmp_path_factory.mktemp("library") / "libvgpu-initialized.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VGPU_CHECK", "initcheck")
        yield Device(shutil.copy(build(), path))


@pytest.fixture
def reports_of(checked, capfd):
    """Return a function that launches `body` and returns the lines of its reports."""

    def run(body, *arguments, head="", grid=1, block=32):
        result, module = checked.load(kernel(body, [f"p{k}" for k in range(len(arguments))], head=head))
        result, function = checked.function(module)
        assert result == 0
        capfd.readouterr()
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(argument) for argument in arguments])
        assert checked.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, pointers, None) == 0
        return [line for line in capfd.readouterr().err.splitlines() if "never written in k" in line]

    return run


def put(checked, address, values):
    """Copy the values to the device."""
    data = np.ascontiguousarray(values)
    assert (
        checked.cuda.cuMemcpyHtoD_v2(address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes)) == 0
    )


@pytest.mark.parametrize(
    "read",
    [
        "ld.global.u32 %r1, [%l0];",
        "ld.u32 %r1, [%l0];",
        "ld.volatile.global.u32 %r1, [%l0];",
        "ld.global.nc.u32 %r1, [%l0];",
        "atom.global.add.u32 %r1, [%l0], 1;",
        "red.global.add.u32 [%l0], 1;",
    ],
)
def test_a_read_of_uninitialized_memory_is_reported(checked, reports_of, read):
    fresh, out = checked.allocate(128), checked.allocate(128)
    line, *other_lines = reports_of(COPY.replace("READ", read), fresh, out)
    assert not other_lines
    assert re.fullmatch(
        r"vgpu: never written in k: the read of line 14 by thread 0 of block 0, "
        r"at byte 0 of allocation \d+ \(32 times\)",
        line,
    )


def test_one_uninitialized_byte_is_reported(checked, reports_of):
    """One of 32 words lacks its third byte."""
    fresh, out = checked.allocate(128), checked.allocate(128)
    put(checked, fresh, np.zeros(78, np.uint8))
    put(checked, ctypes.c_uint64(fresh.value + 79), np.zeros(49, np.uint8))
    (line,) = reports_of(COPY.replace("READ", "ld.global.u32 %r1, [%l0];"), fresh, out)
    assert "by thread 19 of block 0, at byte 78 of allocation" in line
    assert line.endswith("(1 times)")


def fill(checked, fresh):
    assert checked.cuda.cuMemsetD32_v2(fresh, 7, ctypes.c_size_t(32)) == 0


def copy_from_host(checked, fresh):
    put(checked, fresh, np.zeros(32, np.uint32))


def copy_from_device(checked, fresh):
    source = checked.allocate(128)
    fill(checked, source)
    assert checked.cuda.cuMemcpyDtoD_v2(fresh, source, ctypes.c_size_t(128)) == 0


@pytest.mark.parametrize("write", [fill, copy_from_host, copy_from_device])
def test_memory_written_by_a_call_is_initialized(checked, reports_of, write):
    fresh, out = checked.allocate(128), checked.allocate(128)
    write(checked, fresh)
    assert reports_of(COPY.replace("READ", "ld.global.u32 %r1, [%l0];"), fresh, out) == []


def test_memory_written_by_a_kernel_is_initialized(checked, reports_of):
    fresh, out, last = checked.allocate(128), checked.allocate(128), checked.allocate(128)
    fill(checked, fresh)
    read = COPY.replace("READ", "ld.global.u32 %r1, [%l0];")
    assert reports_of(read, fresh, out) == []
    assert reports_of(read, out, last) == []
    assert len(reports_of(read, checked.allocate(128), last)) == 1
    assert reports_of(read, last, out) == [], "what was read without a value is a value from there on"


def test_a_copy_of_uninitialized_memory_is_not_reported(checked, reports_of, capfd):
    fresh, source, out = checked.allocate(128), checked.allocate(128), checked.allocate(128)
    fill(checked, source)
    put(checked, fresh, np.zeros(16, np.uint32))
    assert checked.cuda.cuMemcpyDtoD_v2(source, fresh, ctypes.c_size_t(128)) == 0
    assert "never written" not in capfd.readouterr().err
    (line,) = reports_of(COPY.replace("READ", "ld.global.u32 %r1, [%l0];"), source, out)
    assert "by thread 16 of block 0, at byte 64" in line


def test_reused_memory_is_uninitialized(checked, reports_of):
    out = checked.allocate(128)
    for _ in range(3):
        fresh = checked.allocate(128)
        assert len(reports_of(COPY.replace("READ", "ld.global.u32 %r1, [%l0];"), fresh, out)) == 1
        fill(checked, fresh)
        checked.cuda.cuMemFree_v2(fresh)


def test_memory_written_by_the_host_is_initialized(checked, reports_of):
    managed, pinned, out = ctypes.c_uint64(), ctypes.c_uint64(), checked.allocate(128)
    assert checked.cuda.cuMemAllocManaged(ctypes.byref(managed), ctypes.c_size_t(128), 1) == 0
    assert checked.cuda.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(128), 0) == 0
    for address in (managed, pinned):
        assert reports_of(COPY.replace("READ", "ld.global.u32 %r1, [%l0];"), address, out) == []


def test_variables_of_a_module_are_initialized(checked, reports_of):
    head = ".global .align 4 .u32 given = 7;\n.global .align 4 .u32 none;\n.const .align 4 .u32 constant = 1;"
    read = "ld.global.u32 %r1, [given]; ld.global.u32 %r2, [none]; ld.const.u32 %r3, [constant];"
    assert reports_of(COPY.replace("READ", read), checked.allocate(128), checked.allocate(128), head=head) == []


NEIGHBOUR = """mov.u64 %l3, word; mul.wide.u32 %l4, %t, 4; add.u64 %l4, %l3, %l4; st.shared.u32 [%l4], %t;
bar.sync 0; ld.shared.u32 %r1, [%l3+OFFSET];"""


@pytest.mark.parametrize(("offset", "lines"), [(0, 0), (126, 0), (128, 1)])
def test_shared_memory_is_uninitialized_in_each_block(checked, reports_of, offset, lines):
    """Each block's shared memory is uninitialized, though an earlier block used the same bytes."""
    read = NEIGHBOUR.replace("OFFSET", str(offset)).replace("u32 %r1", "u16 %h1")
    arguments = checked.allocate(128), checked.allocate(512)
    stderr = reports_of(COPY.replace("READ", read + "mov.u32 %r1, 0;"), *arguments, head=SHARED, grid=3)
    assert len(stderr) == lines
    block_alone = """mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [word+192], 1;
    ld.shared.u32 %r1, [word+192];"""
    (line,) = reports_of(COPY.replace("READ", block_alone), *arguments, head=SHARED, grid=3)
    assert "of block 1, at byte 192 of shared memory (64 times)" in line


def test_local_memory_is_not_checked(checked, reports_of):
    body = ".local .align 4 .b8 mine[8];\nld.local.u32 %r1, [mine];"
    body += "mov.u64 %l5, mine; cvta.local.u64 %l5, %l5; ld.u32 %r2, [%l5];"
    assert reports_of(COPY.replace("READ", body), checked.allocate(128), checked.allocate(128)) == []


def test_reads_and_writes_of_cpu_fallbacks_are_checked(checked, tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("VGPU_CHECK", "initcheck")
    library = Library(tmp_path)
    fresh, result, one = library.allocate(16), library.allocate(16), library.scalar(1, "float32")
    x, zero = library.put(np.ones(2, np.float32)), library.scalar(0, "float32")
    library.call("cublasSgemv_v2", None, 0, 2, 2, one, fresh, 2, x, 1, zero, result, 1)
    stderr = capfd.readouterr().err
    assert re.search(r"vgpu: never written in cublasSgemv_v2: a read at byte 0 of allocation \d+\n", stderr)
    library.call("cublasSscal_v2", None, 2, one, result, 1)
    assert "never written" not in capfd.readouterr().err
    library.call("cublasSscal_v2", None, 3, one, result, 1)
    assert "never written in cublasSscal_v2: a read at byte 8" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("checks", "code"), [("racecheck,initcheck", 0), ("initcheck", 0), ("initialized", 2), ("race", 2)]
)
def test_checks_can_be_combined_and_unknown_ones_are_refused(checks, code):
    program = f"import ctypes; ctypes.CDLL({build()!r}).vgpu_launches()"
    environment = {**os.environ, "VGPU_CHECK": checks}
    process = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert process.returncode == code
    assert ("VGPU_CHECK: unknown check" in process.stderr) == bool(code)


def test_racecheck_and_initcheck_at_once(device, monkeypatch):
    monkeypatch.setenv("VGPU_CHECK", "racecheck,initcheck")
    body = "ld.param.u64 %l0, [p0]; ld.shared.u32 %r1, [word]; st.global.u32 [%l0], %r1;"
    _, _, stderr = device.run_in_child(kernel(body, ["p0"], head=SHARED), [np.zeros(1, np.uint32)], grid=2, block=2)
    assert "race in k" in stderr
    assert "never written in k" in stderr
