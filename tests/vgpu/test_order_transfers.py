"""VGPU_CHECK=order: a copy to the host ends the proof if nothing has written some of what it copies."""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from virtual_device import Device, build

BYTES = 256


class Program:
    """Two device allocations that nothing has written."""

    def __init__(self):
        self.cuda = (device := Device(build())).cuda
        self.first, self.second = device.allocate(BYTES), device.allocate(BYTES)
        self.host = np.zeros(BYTES, np.uint8).ctypes.data_as(ctypes.c_void_p)

    def write(self, to, count):
        assert self.cuda.cuMemcpyHtoD_v2(to, self.host, ctypes.c_size_t(count)) == 0

    def copy(self, to, source, count=BYTES):
        assert self.cuda.cuMemcpyDtoD_v2(to, source, ctypes.c_size_t(count)) == 0

    def read(self, source, count=BYTES):
        assert self.cuda.cuMemcpyDtoH_v2(self.host, source, ctypes.c_size_t(count)) == 0


def written_bytes(p):
    p.write(p.first, BYTES), p.read(p.first)


def filled_bytes(p):
    assert p.cuda.cuMemsetD8_v2(p.first, 7, ctypes.c_size_t(BYTES)) == 0
    p.read(p.first)


def the_written_part(p):
    p.write(p.first, 100), p.read(p.first, 100)


def a_copy_of_unwritten_bytes_that_the_host_does_not_read(p):
    p.copy(p.second, p.first)


def bytes_that_are_written_after_a_copy(p):
    p.copy(p.second, p.first), p.write(p.second, BYTES), p.read(p.second)


def at(address, offset):
    return ctypes.c_uint64(address.value + offset)


def a_copy_to_another_offset(p):
    p.write(p.first, 100), p.copy(at(p.second, 3), at(p.first, 5), 95), p.read(at(p.second, 3), 95)


def a_copy_to_a_later_overlapping_range(p):
    p.write(p.first, 100), p.copy(at(p.first, 7), p.first, 100), p.read(p.first, 107)


def a_copy_to_an_earlier_overlapping_range(p):
    p.write(at(p.first, 7), 100), p.copy(p.first, at(p.first, 7), 100), p.read(p.first, 107)


def the_byte_before_a_copy(p):
    p.write(p.first, 100), p.copy(at(p.second, 3), at(p.first, 5), 95), p.read(at(p.second, 2), 96)


def the_byte_after_a_copy(p):
    p.write(p.first, 100), p.copy(at(p.second, 3), at(p.first, 5), 95), p.read(at(p.second, 3), 96)


def an_unwritten_byte_within_a_copy(p):
    (
        p.write(p.first, 50),
        p.write(at(p.first, 51), 49),
        p.copy(at(p.second, 3), p.first, 100),
        p.read(at(p.second, 3), 100),
    )


def unwritten_bytes(p):
    p.read(p.first)


def one_unwritten_byte(p):
    p.write(p.first, BYTES - 1), p.read(p.first)


def a_copy_of_unwritten_bytes(p):
    p.write(p.second, BYTES), p.copy(p.second, p.first), p.read(p.second)


ACCEPTED = [written_bytes, filled_bytes, the_written_part, a_copy_of_unwritten_bytes_that_the_host_does_not_read,
            bytes_that_are_written_after_a_copy, a_copy_to_another_offset,
            a_copy_to_a_later_overlapping_range, a_copy_to_an_earlier_overlapping_range]  # fmt: skip
REPORTED = [unwritten_bytes, one_unwritten_byte, a_copy_of_unwritten_bytes, the_byte_before_a_copy,
            the_byte_after_a_copy, an_unwritten_byte_within_a_copy]  # fmt: skip


def findings(program, tmp_path):
    """Run a program of this file in a process, and return the operations and reasons of its report."""
    report = tmp_path / "report.jsonl"
    environment = {**os.environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report)}
    process = subprocess.run([sys.executable, __file__, program.__name__], env=environment, timeout=60)
    assert process.returncode == 0
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    return {(line["operation"], reason["reason"]) for line in lines for reason in line["order"]["reasons"]}


@pytest.mark.parametrize("program", ACCEPTED)
def test_the_host_reads_written_bytes(program, tmp_path):
    assert findings(program, tmp_path) == set()


@pytest.mark.parametrize("program", REPORTED)
def test_the_host_reads_unwritten_bytes(program, tmp_path):
    assert findings(program, tmp_path) == {("copy", "uninitialized_copy")}


if __name__ == "__main__":
    globals()[sys.argv[1]](Program())
