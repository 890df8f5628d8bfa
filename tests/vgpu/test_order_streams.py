"""VGPU_CHECK=order assumes the order between streams that CUDA guarantees, and no more."""

import ctypes
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from virtual_device import Device, build, kernel

WORD = ctypes.c_size_t(4)
NON_BLOCKING = 1
LEGACY = ctypes.c_void_p(1)
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
ADD = kernel("ld.param.u64 %l0, [p0]; ld.global.u32 %r1, [%l0]; add.u32 %r1, %r1, 1; st.global.u32 [%l0], %r1;", ["p0"])


class Program:
    """A word of device memory, two non-blocking streams, an event, and a kernel."""

    def __init__(self):
        self.device = device = Device(build())
        self.cuda, self.word, self.other, self.keep = device.cuda, device.allocate(4), device.allocate(4), []
        self.function = device.function(device.load(ADD)[1])[1]
        self.first, self.second = self.stream(NON_BLOCKING), self.stream(NON_BLOCKING)
        self.event, pinned = ctypes.c_void_p(), ctypes.c_void_p()
        self.cuda.cuEventCreate(ctypes.byref(self.event), 0)
        self.cuda.cuMemHostAlloc(ctypes.byref(pinned), WORD, 0)
        self.pinned, self.pageable = pinned, np.zeros(1, np.uint32).ctypes.data_as(ctypes.c_void_p)
        self.fill(self.first)
        self.cuda.cuCtxSynchronize()

    def stream(self, flags=0):
        return self.device.stream(flags)

    def launch(self, stream):
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.word))
        assert self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None) == 0

    def launch_in_thread(self, stream=None):
        """Launch as a thread compiled with per-thread default streams does, and wait for the thread."""
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.word))
        launch = self.cuda.cuLaunchKernel_ptsz
        thread = threading.Thread(target=launch, args=(self.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None))
        thread.start(), thread.join()

    def fill(self, stream):
        assert self.cuda.cuMemsetD32Async(self.word, 0, ctypes.c_size_t(1), stream) == 0

    def allocate(self, stream):
        """Allocate the word anew, by the stream, and fill it."""
        self.word = ctypes.c_uint64()
        assert self.cuda.cuMemAllocAsync(ctypes.byref(self.word), WORD, stream) == 0
        self.fill(stream)

    def free(self, stream):
        assert self.cuda.cuMemFreeAsync(self.word, stream) == 0

    def record(self, stream):
        assert self.cuda.cuEventRecord(self.event, stream) == 0

    def await_event(self, stream):
        assert self.cuda.cuStreamWaitEvent(stream, self.event, 0) == 0

    def copy_in(self, host):
        assert self.cuda.cuMemcpyHtoD_v2(self.word, host, WORD) == 0

    def fork(self, source, target):
        self.record(source), self.await_event(target)

    def launch_captured(self, capture):
        """Capture the calls of capture() on the first stream, and launch the graph there."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.cuda.cuStreamBeginCapture_v2(self.first, 0) == 0
        capture()
        assert self.cuda.cuStreamEndCapture(self.first, ctypes.byref(graph)) == 0
        assert self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
        assert self.cuda.cuGraphLaunch(executable, self.first) == 0

    def launch_graph(self, *dependencies):
        """Launch a graph of fills; `dependencies` has, for each, the indices of the nodes before it."""
        graph, executable, nodes = ctypes.c_void_p(), ctypes.c_void_p(), []
        assert self.cuda.cuGraphCreate(ctypes.byref(graph), 0) == 0
        for indices in dependencies:
            predecessors = (ctypes.c_void_p * len(indices))(*[nodes[index].value for index in indices])
            # CUDA_MEMSET_NODE_PARAMS: address, pitch, value and element size, width, height.
            fill = (ctypes.c_uint64 * 5)(self.word.value, 0, len(nodes) | 4 << 32, 1, 1)
            nodes.append(ctypes.c_void_p())
            node_arguments = [ctypes.byref(nodes[-1]), graph, predecessors, ctypes.c_size_t(len(indices)), fill, None]
            assert self.cuda.cuGraphAddMemsetNode(*node_arguments) == 0
        assert self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
        assert self.cuda.cuGraphLaunch(executable, self.first) == 0

    def sleep(self, stream):
        """Add a host function that still runs when the next call returns."""
        self.keep.append(HOST_FUNCTION(lambda _: time.sleep(0.5)))
        assert self.cuda.cuLaunchHostFunc(stream, self.keep[-1], None) == 0


def one_stream(p):
    p.launch(p.first), p.launch(p.first)


def an_event(p):
    p.launch(p.first), p.record(p.first), p.await_event(p.second), p.launch(p.second)


def the_host_waits_for_a_stream(p):
    p.launch(p.first), p.cuda.cuStreamSynchronize(p.first), p.launch(p.second)


def the_host_waits_for_an_event(p):
    p.launch(p.first), p.record(p.first), p.cuda.cuEventSynchronize(p.event), p.launch(p.second)


def the_host_waits_for_all(p):
    p.launch(p.first), p.cuda.cuCtxSynchronize(), p.launch(p.second)


def a_query_that_succeeded(p):
    p.launch(p.first), p.cuda.cuStreamQuery(p.first), p.launch(p.second)


def an_event_s_query_that_succeeded(p):
    p.launch(p.first), p.record(p.first), p.cuda.cuEventQuery(p.event), p.launch(p.second)


def the_legacy_stream(p):
    blocking = p.stream()
    p.launch(blocking), p.launch(None), p.launch(blocking)


def a_copy_out(p):
    p.launch(None), p.cuda.cuMemcpyDtoH_v2(p.pageable, p.word, WORD), p.launch(p.second)


def a_copy_of_pinned_memory(p):
    p.copy_in(p.pinned), p.launch(p.second)


def what_came_before_a_copy_of_pageable_memory(p):
    p.launch(None), p.cuda.cuMemcpyHtoD_v2(p.other, p.pageable, WORD), p.launch(p.second)


def a_captured_chain(p):
    p.launch(p.first)
    p.launch_captured(lambda: (p.launch(p.first), p.launch(p.first)))
    p.launch(p.first)


def branches_that_are_joined(p):
    def capture():
        p.launch(p.first), p.fork(p.first, p.second), p.launch(p.second), p.fork(p.second, p.first), p.launch(p.first)

    p.launch_captured(capture), p.launch_captured(capture)


def what_comes_after_a_branch(p):
    p.launch(p.first)
    p.launch_captured(lambda: (p.fork(p.first, p.second), p.launch(p.second), p.fork(p.second, p.first)))
    p.launch(p.first)


def nodes_one_after_the_other(p):
    p.launch_graph([], [0], [0, 1], [2]), p.launch(p.first)


def a_copy_of_a_graph_lets_the_host_go_on(p):
    p.launch_captured(lambda: p.cuda.cuMemcpyDtoHAsync_v2(p.pageable, p.word, WORD, p.first))
    p.cuda.cuStreamSynchronize(p.first), p.launch(p.second)


def a_free_behind_an_event(p):
    p.allocate(p.first), p.launch(p.first), p.fork(p.first, p.second), p.free(p.second)


def memory_that_is_used_again(p):
    """CUDA orders the free of the first stream before what the second allocates."""
    p.allocate(p.first), p.launch(p.first), p.free(p.first)
    p.allocate(p.second), p.launch(p.second), p.free(p.second)


def the_legacy_stream_between_threads(p):
    p.launch_in_thread(), p.launch(None), p.launch_in_thread()


def a_thread_that_waits_for_its_stream(p):
    (
        p.cuda.cuMemsetD32_v2_ptds(p.word, 0, ctypes.c_size_t(1)),
        p.cuda.cuStreamSynchronize_ptsz(None),
        p.launch_in_thread(),
    )


def a_thread_with_the_legacy_stream(p):
    p.launch_in_thread(LEGACY), p.launch_in_thread(LEGACY), p.launch_in_thread()


ORDERED = [
    a_captured_chain,
    branches_that_are_joined,
    what_comes_after_a_branch,
    nodes_one_after_the_other,
    a_copy_of_a_graph_lets_the_host_go_on,
    one_stream,
    an_event,
    the_host_waits_for_a_stream,
    the_host_waits_for_an_event,
    the_host_waits_for_all,
    a_query_that_succeeded,
    an_event_s_query_that_succeeded,
    the_legacy_stream,
    a_free_behind_an_event,
    memory_that_is_used_again,
    the_legacy_stream_between_threads,
    a_thread_that_waits_for_its_stream,
    a_thread_with_the_legacy_stream,
    a_copy_out,
    a_copy_of_pinned_memory,
    what_came_before_a_copy_of_pageable_memory,
]


def a_free_on_another_stream(p):
    p.allocate(p.first), p.launch(p.first), p.free(p.second)


def a_free_after_an_access_of_part_of_a_line(p):
    p.launch(p.first), p.allocate(p.first)
    p.cuda.cuMemsetD8Async(p.word, 1, ctypes.c_size_t(3), p.first), p.free(p.second)


def two_threads(p):
    p.launch_in_thread(), p.launch_in_thread()


def a_wait_of_another_thread_for_its_own_stream(p):
    p.launch_in_thread(), p.cuda.cuStreamSynchronize_ptsz(None), p.launch_in_thread()


def a_copy_of_another_thread(p):
    p.launch_in_thread(), p.cuda.cuMemcpyHtoD_v2_ptds(p.word, p.pinned, WORD)


def two_streams(p):
    p.launch(p.first), p.launch(p.second)


def an_event_that_nobody_waits_for(p):
    p.launch(p.first), p.record(p.first), p.launch(p.second)


def an_event_recorded_too_early(p):
    p.record(p.first), p.launch(p.first), p.await_event(p.second), p.launch(p.second)


def a_fill_on_another_stream(p):
    p.launch(p.first), p.fill(p.second)


def a_launch_after_a_fill_on_another_stream(p):
    p.fill(p.first), p.launch(p.second)


def the_legacy_stream_and_one_that_does_not_wait(p):
    p.launch(None), p.launch(p.second)


def a_copy_of_pageable_memory(p):
    p.copy_in(p.pageable), p.launch(p.second)


def a_query_that_said_not_ready(p):
    p.launch(p.first), p.sleep(p.first)
    assert p.cuda.cuStreamQuery(p.first) == 600
    p.launch(p.second)


def an_event_s_query_that_said_not_ready(p):
    p.launch(p.first), p.sleep(p.first), p.record(p.first)
    assert p.cuda.cuEventQuery(p.event) == 600
    p.launch(p.second)


def branches_at_the_same_time(p):
    p.launch_captured(
        lambda: (p.fork(p.first, p.second), p.launch(p.first), p.launch(p.second), p.fork(p.second, p.first))
    )


def a_launch_beside_a_graph(p):
    p.launch_captured(lambda: p.launch(p.first)), p.launch(p.second)


def a_launch_beside_a_graph_s_copy(p):
    p.launch_captured(lambda: p.cuda.cuMemcpyDtoHAsync_v2(p.pageable, p.word, WORD, p.first))
    p.launch(p.second)


def two_roots_of_a_graph(p):
    p.launch_graph([], []), p.launch(p.first)


def two_nodes_after_one(p):
    p.launch_graph([], [0], [0]), p.launch(p.first)


UNORDERED = [
    a_free_on_another_stream,
    a_free_after_an_access_of_part_of_a_line,
    two_threads,
    a_wait_of_another_thread_for_its_own_stream,
    a_copy_of_another_thread,
    branches_at_the_same_time,
    a_launch_beside_a_graph,
    a_launch_beside_a_graph_s_copy,
    two_roots_of_a_graph,
    two_nodes_after_one,
    two_streams,
    an_event_that_nobody_waits_for,
    an_event_recorded_too_early,
    a_fill_on_another_stream,
    a_launch_after_a_fill_on_another_stream,
    the_legacy_stream_and_one_that_does_not_wait,
    a_copy_of_pageable_memory,
    a_query_that_said_not_ready,
    an_event_s_query_that_said_not_ready,
]


def races(program, tmp_path):
    """Run a program of this file in a process, and return the findings "race" of its report."""
    report = tmp_path / "report.jsonl"
    environment = {**os.environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report), "VGPU_SCHEDULE": "serial"}
    process = subprocess.run([sys.executable, __file__, program.__name__], env=environment, timeout=60)
    assert process.returncode == 0
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    assert any("kernel" in line for line in lines)
    return [reason for line in lines for reason in line["order"]["reasons"] if reason["reason"] == "race"]


@pytest.mark.parametrize("program", ORDERED)
def test_ordered_streams_do_not_race(program, tmp_path):
    assert not races(program, tmp_path)


@pytest.mark.parametrize("program", UNORDERED)
def test_unordered_streams_race(program, tmp_path):
    assert races(program, tmp_path)


if __name__ == "__main__":
    main_program = Program()
    globals()[sys.argv[1]](main_program)
    main_program.cuda.cuCtxSynchronize()  # a host function that still runs when the interpreter ends would end it
