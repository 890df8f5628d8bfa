"""Stream capture: captured calls become nodes of a graph, and calls that a capture forbids return CUDA's error."""

import ctypes
import threading

import numpy as np
import pytest
from virtual_device import kernel

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2  # CUstreamCaptureMode
NONE, ACTIVE, INVALIDATED = 0, 1, 2  # CUstreamCaptureStatus
NON_BLOCKING, EXTERNAL = 1, 1  # flags of a stream, and of a record of or wait for an event
INVALID_VALUE, ILLEGAL_STATE = 1, 401
# CUDA_ERROR_STREAM_CAPTURE_*, CUDA_ERROR_CAPTURED_EVENT (EVENT)
UNSUPPORTED, INVALID, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, EVENT, WRONG_THREAD = range(900, 909)
FOUR = ctypes.c_size_t(4)
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# word = 10 * word + digit, so the digits of the word show the order of the kernels.
APPEND = kernel(
    """ld.param.u64 %l0, [p0]; ld.param.u64 %l2, [p1]; cvt.u32.u64 %r1, %l2; ld.global.u32 %r2, [%l0];
    mad.lo.u32 %r2, %r2, 10, %r1; st.global.u32 [%l0], %r2;""",
    ["p0", "p1"],
)


class Program:
    """A word of device memory, a word of pinned memory, two streams and an event."""

    def __init__(self, device):
        self.device, self.event = device, device.event
        self.cuda, self.word, self.keep, host_address = device.cuda, device.allocate(4), [], ctypes.c_void_p()
        assert self.cuda.cuMemHostAlloc(ctypes.byref(host_address), FOUR, 0) == 0
        self.pinned = (ctypes.c_uint32 * 1).from_address(host_address.value)
        _, self.function = device.function(device.load(APPEND)[1])
        self.first, self.second = self.stream(), self.stream()
        self.set(0)

    def stream(self, flags=NON_BLOCKING):
        return self.device.stream(flags)

    def begin(self, stream, mode=GLOBAL):
        """Begin a capture; return the status."""
        return self.cuda.cuStreamBeginCapture_v2(stream, mode)

    def end(self, stream):
        """End the capture; return the status and the graph."""
        graph = ctypes.c_void_p(7)
        return self.cuda.cuStreamEndCapture(stream, ctypes.byref(graph)), graph

    def state(self, stream):
        """Return the capture status of the stream."""
        state = ctypes.c_int(9)
        assert self.cuda.cuStreamIsCapturing(stream, ctypes.byref(state)) == 0
        return state.value

    def append(self, stream, digit):
        """Launch a kernel that appends a decimal digit to the word: the final word tells the order of launches."""
        values = (ctypes.c_uint64 * 2)(self.word.value, digit)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 8)
        return self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None)

    def fork(self, source, target):
        """Let the target stream wait for an event of the source stream."""
        event = self.event()
        return self.cuda.cuEventRecord(event, source) or self.cuda.cuStreamWaitEvent(target, event, 0)

    def set(self, value):
        """Set the word, at once."""
        assert self.cuda.cuMemsetD32_v2(self.word, value, ctypes.c_size_t(1)) == 0

    def fill(self, stream, value):
        """Set the word by an asynchronous fill."""
        return self.cuda.cuMemsetD32Async(self.word, value, ctypes.c_size_t(1), stream)

    def read(self):
        """Return the word."""
        values = np.zeros(1, np.uint32)
        assert self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.word, FOUR) == 0
        return int(values[0])

    def instantiate(self, graph):
        executable = ctypes.c_void_p()
        assert self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
        return executable

    def capture(self, stream, *calls):
        """Capture the calls on the stream, and return the instantiated graph."""
        assert self.begin(stream) == 0
        assert [call() for call in calls] == [0] * len(calls)
        result, graph = self.end(stream)
        assert result == 0
        return self.instantiate(graph)

    def run(self, graph, stream=None):
        """Launch the graph, wait, and return the word."""
        assert self.cuda.cuGraphLaunch(graph, stream or self.first) == 0
        assert self.cuda.cuCtxSynchronize() == 0
        return self.read()


@pytest.fixture
def program(device):
    """Return a fresh Program."""
    return Program(device)


def node_count(program, graph):
    number = ctypes.c_size_t()
    assert program.cuda.cuGraphGetNodes(graph, None, ctypes.byref(number)) == 0
    return number.value


def test_captured_calls_run_only_when_the_graph_is_launched(program):
    p = program
    assert p.state(p.first) == NONE
    assert p.begin(p.first) == 0 and p.state(p.first) == ACTIVE
    assert (p.fill(p.first, 4), p.append(p.first, 1), p.append(p.first, 2)) == (0, 0, 0)
    result, graph = p.end(p.first)
    assert (result, p.state(p.first), node_count(p, graph), p.read()) == (0, NONE, 3, 0)
    run = p.instantiate(graph)
    assert p.cuda.cuGraphDestroy(graph) == 0
    assert [p.run(run), p.run(run, p.second)] == [412, 412]
    assert p.append(p.first, 3) == 0 and p.read() == 4123, "the stream is as before"


def test_copies_and_host_functions_of_a_capture(program):
    """A copy reads host memory at each launch, whether it is pinned or not."""
    p, values, pageable = program, [], np.full(1, 5, np.uint32)
    function = HOST_FUNCTION(lambda _: values.append(p.pinned[0]))
    host_address = ctypes.c_void_p(pageable.ctypes.data)
    run = p.capture(
        p.first,
        lambda: p.cuda.cuMemcpyHtoDAsync_v2(p.word, host_address, FOUR, p.first),
        lambda: p.append(p.first, 1),
        lambda: p.cuda.cuMemcpyDtoHAsync_v2(p.pinned, p.word, FOUR, p.first),
        lambda: p.cuda.cuLaunchHostFunc(p.first, function, None),
    )
    assert values == []
    assert p.run(run) == 51
    pageable[0] = 8
    assert p.run(run) == 81
    assert values == [51, 81]


def test_an_empty_capture_gives_an_empty_graph(program):
    result, graph = program.begin(program.first) or program.end(program.first)
    assert (result, node_count(program, graph)) == (0, 0)
    assert program.run(program.instantiate(graph)) == 0


def test_a_fork_is_captured_and_joined(program):
    p = program
    run = p.capture(
        p.first,
        lambda: p.append(p.first, 1),
        lambda: p.fork(p.first, p.second),
        lambda: p.append(p.second, 2),
        lambda: p.state(p.second) != ACTIVE,
        lambda: p.fork(p.second, p.first),
        lambda: p.append(p.first, 3),
    )
    assert p.state(p.second) == NONE
    assert p.run(run) == 123


def test_a_graph_launched_in_a_capture_is_a_node_of_it(program):
    p = program
    inner = p.capture(p.second, lambda: p.append(p.second, 2))
    outer = p.capture(
        p.first,
        lambda: p.append(p.first, 1),
        lambda: p.cuda.cuGraphLaunch(inner, p.first),
        lambda: p.append(p.first, 3),
    )
    assert p.cuda.cuGraphExecDestroy(inner) == 0
    assert p.run(outer) == 123


def test_a_capture_into_an_existing_graph(program):
    p, graph, wrong = program, ctypes.c_void_p(), (ctypes.c_void_p * 1)(12345)
    assert p.cuda.cuGraphCreate(ctypes.byref(graph), 0) == 0
    assert p.cuda.cuStreamBeginCaptureToGraph(p.first, graph, wrong, None, ctypes.c_size_t(1), GLOBAL) == INVALID_VALUE
    for digit in (1, 2):
        nodes = (ctypes.c_void_p * 1)()
        number = ctypes.c_size_t(digit - 1)
        assert p.cuda.cuGraphGetNodes(graph, nodes, ctypes.byref(number)) == 0
        assert p.cuda.cuStreamBeginCaptureToGraph(p.first, graph, nodes, None, number, GLOBAL) == 0
        assert p.append(p.first, digit) == 0
        result, capture = p.end(p.first)
        assert (result, capture.value, node_count(p, graph)) == (0, graph.value, digit)
    assert p.run(p.instantiate(graph)) == 12


def test_cuStreamGetCaptureInfo(program):
    p, state, identity, number = program, ctypes.c_int(), ctypes.c_uint64(), ctypes.c_size_t(9)
    graph, dependencies = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)()
    outputs = [ctypes.byref(output) for output in (state, identity, graph, dependencies, number)]
    identities = set()
    for _ in range(2):
        assert p.begin(p.first) == 0
        assert p.cuda.cuStreamGetCaptureInfo_v2(p.first, *outputs) == 0
        assert (state.value, number.value) == (ACTIVE, 0)
        identities.add(identity.value)
        assert p.append(p.first, 1) == 0
        assert p.cuda.cuStreamGetCaptureInfo_v3(p.first, *outputs[:4], None, outputs[4]) == 0
        assert number.value == 1 and dependencies[0]
        graph_handle = graph.value
        assert p.end(p.first)[1].value == graph_handle
    assert len(identities) == 2


def test_updating_the_dependencies_of_a_capture(program):
    """The second node depends on nothing, so the branch of the first is not joined."""
    p = program
    assert (p.begin(p.first), p.append(p.first, 1)) == (0, 0)
    assert p.cuda.cuStreamUpdateCaptureDependencies(p.first, None, ctypes.c_size_t(0), 1) == 0
    assert p.append(p.first, 2) == 0
    result, graph = p.end(p.first)
    assert (result, node_count(p, graph)) == (0, 2)
    wrong = (ctypes.c_void_p * 1)(12345)
    assert p.begin(p.first) == 0
    assert p.cuda.cuStreamUpdateCaptureDependencies(p.first, wrong, ctypes.c_size_t(1), 0) == INVALID_VALUE
    assert p.end(p.first)[0] == 0
    assert p.cuda.cuStreamUpdateCaptureDependencies(p.first, None, ctypes.c_size_t(0), 1) == ILLEGAL_STATE


def test_invalid_begins_and_ends_of_captures(program):
    p = program
    assert p.begin(None) == UNSUPPORTED
    assert p.begin(p.first, 3) == INVALID_VALUE
    assert p.end(p.first)[0] == ILLEGAL_STATE
    assert p.begin(p.first) == 0
    assert p.begin(p.first) == ILLEGAL_STATE
    assert p.fork(p.first, p.second) == 0
    assert p.end(p.second)[0] == UNMATCHED
    assert p.cuda.cuStreamEndCapture(p.first, None) == INVALID_VALUE
    assert p.end(p.first)[0] == 0


def test_a_launch_without_its_arguments_is_refused_when_captured(program):
    p = program
    assert p.begin(p.first) == 0
    assert p.cuda.cuLaunchKernel(p.function, 1, 1, 1, 1, 1, 1, 0, p.first, None, None) == INVALID_VALUE
    assert p.cuda.cuLaunchKernel(p.function, 1, 1, 1, 5000, 1, 1, 0, p.first, None, None) == INVALID_VALUE
    assert p.end(p.first)[0] == 0


def synchronize(p):
    return p.cuda.cuStreamSynchronize(p.first)


def query(p):
    return p.cuda.cuStreamQuery(p.first)


def synchronize_all(p):
    return p.cuda.cuCtxSynchronize()


def allocate(p):
    return p.cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), FOUR)


def allocate_pinned(p):
    return p.cuda.cuMemHostAlloc(ctypes.byref(ctypes.c_void_p()), FOUR, 0)


def copy(p):
    return p.cuda.cuMemcpyHtoD_v2(p.word, p.pinned, FOUR)


def add_callback(p):
    p.keep.append(ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(lambda *_: None))
    return p.cuda.cuStreamAddCallback(p.first, p.keep[-1], None, 0)


def query_another_event(p):
    return p.cuda.cuEventQuery(p.event())


@pytest.mark.parametrize(
    "forbidden",
    [synchronize, query, synchronize_all, allocate, allocate_pinned, copy, add_callback, query_another_event],
)
def test_a_forbidden_call_invalidates_the_capture(program, forbidden):
    p = program
    assert (p.begin(p.first), p.append(p.first, 1)) == (0, 0)
    assert forbidden(p) == UNSUPPORTED
    assert p.state(p.first) == INVALIDATED
    assert p.append(p.first, 2) == INVALID
    result, graph = p.end(p.first)
    assert (result, graph.value, p.state(p.first)) == (INVALID, None, NONE)
    assert p.append(p.first, 3) == 0 and p.read() == 3


@pytest.mark.parametrize("call", ["cuEventQuery", "cuEventSynchronize"])
def test_a_captured_event_has_no_time(program, call):
    p, event = program, program.event()
    assert (p.begin(p.first, RELAXED), p.cuda.cuEventRecord(event, p.first)) == (0, 0)
    assert getattr(p.cuda, call)(event) == EVENT
    assert p.end(p.first)[0] == INVALID
    assert (p.cuda.cuEventRecord(event, p.first), getattr(p.cuda, call)(event)) == (0, 0)


@pytest.mark.parametrize(
    ("mode", "thread", "result"),
    [
        (GLOBAL, GLOBAL, UNSUPPORTED),
        (GLOBAL, RELAXED, 0),
        (THREAD_LOCAL, GLOBAL, UNSUPPORTED),
        (THREAD_LOCAL, THREAD_LOCAL, UNSUPPORTED),
        (RELAXED, GLOBAL, 0),
    ],
)
def test_the_capture_mode_decides_which_calls_are_forbidden(program, mode, thread, result):
    p, exchanged = program, ctypes.c_int(thread)
    assert p.begin(p.first, mode) == 0
    assert p.cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(exchanged)) == 0
    assert exchanged.value == GLOBAL
    assert allocate(p) == result
    assert p.cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(exchanged)) == 0
    assert exchanged.value == thread
    assert p.end(p.first)[0] == (INVALID if result else 0)


@pytest.mark.parametrize(("mode", "result", "end"), [(GLOBAL, UNSUPPORTED, 0), (THREAD_LOCAL, 0, 0), (RELAXED, 0, 0)])
def test_another_thread_during_a_capture(program, mode, result, end):
    """Another thread may not end a capture unless it is relaxed, nor make a call that a global capture forbids."""
    p, statuses = program, []

    def call_from_thread():
        statuses.append(p.end(p.first)[0] if mode != RELAXED else WRONG_THREAD)
        statuses.append(allocate(p))

    assert p.begin(p.first, mode) == 0
    thread = threading.Thread(target=call_from_thread)
    thread.start(), thread.join()
    assert statuses == [WRONG_THREAD, result]
    assert p.end(p.first)[0] == (INVALID if result else end)


def test_an_unjoined_fork_is_an_error(program):
    p = program
    assert (p.begin(p.first), p.fork(p.first, p.second), p.append(p.second, 1)) == (0, 0, 0)
    result, graph = p.end(p.first)
    assert (result, graph.value, p.state(p.second)) == (UNJOINED, None, NONE)


def test_merging_two_captures_is_an_error(program):
    p = program
    assert (p.begin(p.first), p.begin(p.second)) == (0, 0)
    assert p.fork(p.first, p.second) == MERGE
    assert [p.end(stream)[0] for stream in (p.first, p.second)] == [INVALID, INVALID]


def test_waiting_for_uncaptured_work_is_an_error(program):
    p, event = program, program.event()
    assert p.begin(p.first) == 0
    assert p.cuda.cuStreamWaitEvent(p.first, event, 0) == 0, "never recorded"
    assert p.cuda.cuEventRecord(event, p.second) == 0
    assert p.cuda.cuStreamWaitEvent(p.first, event, 0) == ISOLATION
    assert p.end(p.first)[0] == INVALID


def test_an_external_event_is_recorded_at_each_launch(program):
    p, event = program, program.event()
    run = p.capture(
        p.first,
        lambda: p.append(p.first, 1),
        lambda: p.cuda.cuEventRecordWithFlags(event, p.first, EXTERNAL),
        lambda: p.cuda.cuStreamWaitEvent(p.first, event, EXTERNAL),
    )
    elapsed = ctypes.c_float()
    assert p.cuda.cuEventElapsedTime(ctypes.byref(elapsed), event, event) != 0
    assert p.run(run) == 1
    assert p.cuda.cuEventElapsedTime(ctypes.byref(elapsed), event, event) == 0


@pytest.mark.parametrize(("flags", "result"), [(0, IMPLICIT), (NON_BLOCKING, 0)])
def test_the_default_stream_does_not_wait_for_a_capture(program, flags, result):
    p, stream, state = program, program.stream(flags), ctypes.c_int()
    assert p.begin(stream, RELAXED) == 0
    assert p.cuda.cuStreamIsCapturing(None, ctypes.byref(state)) == result
    assert p.append(None, 1) == result
    assert p.end(stream)[0] == (INVALID if result else 0)


def test_destroying_a_stream_ends_its_capture(program):
    p, stream = program, program.stream()
    assert p.begin(stream) == 0
    assert p.cuda.cuStreamDestroy_v2(stream) == 0
    assert allocate(p) == 0


def test_captured_allocations_and_frees(program):
    """The memory exists at each launch."""
    p, address = program, ctypes.c_uint64()
    run = p.capture(
        p.first,
        lambda: p.cuda.cuMemAllocAsync(ctypes.byref(address), FOUR, p.first),
        lambda: p.fill(p.first, 6),
        lambda: p.cuda.cuMemcpyDtoDAsync_v2(address, p.word, FOUR, p.first),
        lambda: p.fill(p.first, 0),
        lambda: p.cuda.cuMemcpyDtoDAsync_v2(p.word, address, FOUR, p.first),
        lambda: p.cuda.cuMemFreeAsync(address, p.first),
    )
    assert [p.run(run), p.run(run)] == [6, 6]
