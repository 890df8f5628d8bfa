"""Small random kernels and programs: VGPU_CHECK=order proves only independent ones, and most of them.

Before a release, the commands `python tests/vgpu/order_kernels.py 20000` and `order_programs.py 20000` check more.
"""

import datetime
import json
import os
import subprocess
import sys

import order_kernels
import order_lines
import order_programs
import pytest
from interleavings import Access, Barrier, Kernel, Operand, Undefined, final_states
from virtual_device import build


def this_week():
    """Return a seed that changes every week."""
    year, week, _ = datetime.date.today().isocalendar()
    return 100 * year + week


def tally_of(module, *arguments):
    """Run the command of a module; return what it counted."""
    command = [sys.executable, module.__file__, *map(str, arguments)]
    environment = {**os.environ, "VGPU_LIBRARY": build()}
    process = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(process.stdout.splitlines()[-1])


# 76 % of many independent kernels are proved, and of many programs 77 %; few may have less by chance.
@pytest.mark.every_day  # each week with a new seed
@pytest.mark.parametrize(
    ("module", "seed", "count", "min_proved"),
    [
        (order_kernels, 7, 300, 0.65),
        (order_kernels, this_week(), 5000, 0.72),
        (order_programs, 7, 300, 0.65),
        (order_programs, this_week(), 1500, 0.7),
    ],
)
def test_only_independent_kernels_are_proved(module, seed, count, min_proved):
    tally = tally_of(module, count, seed)
    proved, missed = tally["proved, independent"], tally["not proved, independent"]
    assert tally["kernels"] == count
    assert proved >= min_proved * (proved + missed), tally
    assert tally["not proved, differs"] > count // 4, tally


@pytest.mark.parametrize(("seed", "count"), [(7, 1000), (this_week(), 5000)])
def test_lines_have_the_verdicts_of_their_words(seed, count):
    """A warp's access to 32 consecutive words, a line, is checked as a whole; order_lines.py compares both ways."""
    tally = tally_of(order_lines, count, seed)
    assert tally["kernels"] == count
    assert count // 4 < tally["proved"] < 3 * count // 4


def test_results_are_those_of_some_interleaving():
    """The virtual GPU stands in for the GPU, with one schedule for each kernel."""
    tally = tally_of(order_kernels, 60, 7, "gpu")
    assert tally["kernels"] == 60
    assert "proved, independent" not in tally


# Accesses to the first word of global memory: ADD adds 1, LOAD reads it to register 0, STORE writes that register.
ADD = Access("add", "u32", "global", 0, False, Operand("constant", 1), 0, "", None, None)
LOAD = ADD._replace(what="ld", target=0)
STORE = ADD._replace(what="st", operand=Operand("register", 0))


def results(*code, initial=bytes(16)):
    """Return the first byte of global memory after every interleaving of threads of one block."""
    kernel = Kernel(list(code), list(range(len(code))), [0] * len(code), 1, [], initial)
    return {memory[0] for memory, _ in final_states(kernel, 1000)}


def test_all_interleavings_are_visited():
    meet = Barrier(0, (0, 1), True)  # of threads 0 and 1; without `waits`, a thread only arrives
    assert results([ADD], [ADD]) == {2}
    assert results([ADD], [LOAD, STORE]) == {0, 1}
    assert results([ADD, meet], [meet, LOAD, STORE]) == {1}
    assert results([ADD, meet._replace(waits=False)], [meet, LOAD, STORE]) == {1}
    assert results([meet, ADD], [meet._replace(waits=False), LOAD, STORE]) == {0, 1}


def test_a_loop_of_compare_and_swap_is_an_update():
    cas_load = ADD._replace(what="cas_load", target=0)
    loop = [cas_load, ADD._replace(what="cas_loop", update="add", target=0)]
    assert results(loop, loop, [ADD]) == {3}
    twice_loop = [cas_load, ADD._replace(what="cas_loop", update="twice", target=0)]
    assert results(loop, twice_loop) == {2, 3}


def test_reading_unwritten_memory_is_undefined():
    with pytest.raises(Undefined):
        results([ADD._replace(offset=8)], [], initial=bytes(8))
    with pytest.raises(Undefined):
        results([ADD._replace(space="shared")], [])


def test_an_undefined_value_in_shared_memory_is_undefined_where_it_is_read():
    load = ADD._replace(what="ld", space="shared", target=0)
    store = ADD._replace(what="st", space="shared", offset=4, operand=Operand("register", 0))
    read = load._replace(offset=4)
    assert results([load, store, ADD], []) == {1}
    assert results([load, store, store._replace(operand=Operand("constant", 3)), read, ADD], []) == {1}
    for use in (store._replace(space="global"), store._replace(what="add")):
        with pytest.raises(Undefined):
            results([load, store, read, use], [])
