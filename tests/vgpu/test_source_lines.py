"""Reports name the source lines of instructions if the code has them: `.loc` in PTX, line tables of machine code."""

import json

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image

THREADS = 64
SOURCE = (KERNELS / "lines.cu").read_text().splitlines()


def line_of(text):
    """Return the position in lines.cu of the only line that contains a text."""
    (number,) = [number for number, line in enumerate(SOURCE, 1) if text in line]
    return f"/src/lines.cu:{number}"


def run_lines(image, code, path):
    """Run the kernel of lines.cu under VGPU_CHECK=order, and return its line of the report."""
    launch = Launch("lines", 1, THREADS, [np.zeros(512, np.float32)])
    ((result, _),), stderr = run_image(image, [launch], code, VGPU_CHECK="order", VGPU_REPORT=str(path))
    assert result == 0, stderr
    (found,) = [line for line in map(json.loads, path.read_text().splitlines()) if line.get("kernel") == "lines"]
    return found


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_a_reason_names_the_lines_of_the_source(code, tmp_path):
    launch = run_lines((KERNELS / "lines.fatbin").read_bytes(), code, tmp_path / "report")
    assert launch["code"] == {"ptx": "ptx", "sass": "sm_80"}[code]
    sources = {
        reason["reason"]: {tuple(position["source"]) for position in reason["positions"]}
        for reason in launch["order"]["reasons"]
    }
    inlined = (line_of("asm volatile"), line_of("add(words"))  # the instruction, and the call that was inlined
    assert sources == {"rounding": {inlined}, "race": {(line_of("words[i / 2] ="),)}}
    (atomic,) = launch["order_dependent"]
    assert tuple(atomic["position"]["source"]) == inlined


def test_a_reason_names_another_function(tmp_path):
    launch = run_lines((KERNELS / "lines.fatbin").read_bytes(), "ptx", tmp_path / "report")
    functions = {
        reason["reason"]: {position["function"] for position in reason["positions"]}
        for reason in launch["order"]["reasons"]
    }
    assert functions == {"rounding": {"lines"}, "race": {"_Z5storePfi"}}


@pytest.mark.parametrize(
    "files",
    [
        b'.file\t2 "/src/lines.cu"',  # the number that .loc names is not declared
        b'.file 1 "a"\n.file 1 "b"',  # texts that were linked disagree
    ],
)
def test_a_file_that_is_not_known_is_not_named(files, tmp_path):
    image, declared = (KERNELS / "lines.fatbin").read_bytes(), b'.file\t1 "/src/lines.cu"'
    assert image.count(declared) == 1 and len(files) == len(declared)
    launch = run_lines(image.replace(declared, files), "ptx", tmp_path / "report")
    assert all(place["source"] == [] for reason in launch["order"]["reasons"] for place in reason["positions"])


def test_a_damaged_line_table_names_no_lines(tmp_path):
    image = (KERNELS / "lines.fatbin").read_bytes()
    table = image.index(b"/src\0\0") - 24  # the header is in front of its folders
    assert image[table + 4 : table + 6] == b"\2\0"  # the version of the format
    for position, value in ((4, 9), (0, 0xFF), (6, 0xFF), (14, 0)):
        damaged = bytearray(image)
        damaged[table + position] = value
        launch = run_lines(bytes(damaged), "sass", tmp_path / f"report{position}")
        assert all(place["source"] == [] for reason in launch["order"]["reasons"] for place in reason["positions"])
