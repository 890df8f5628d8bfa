"""Streams: work on a stream runs in order, host functions included, and calls wait only where CUDA specifies it."""

import ctypes
import threading
import time

import numpy as np
import pytest
from virtual_device import kernel

NOT_READY, NOT_PERMITTED, INVALID_HANDLE = 600, 800, 400
DOUBLE = kernel(
    "ld.param.u64 %l0, [p0]; ld.global.u32 %r1, [%l0]; shl.b32 %r1, %r1, 1; st.global.u32 [%l0], %r1;", ["p0"]
)
HOST_FUNCTION, CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p), ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
FOUR, NON_BLOCKING = ctypes.c_size_t(4), 1


class Streams:
    """A word of device memory, a word of pinned memory, and a kernel that doubles the first one."""

    def __init__(self, device):
        self.device, self.event = device, device.event
        self.cuda, self.keep, self.word, host_address = device.cuda, [], device.allocate(4), ctypes.c_void_p()
        self.cuda.cuMemHostAlloc(ctypes.byref(host_address), FOUR, 0)
        self.pinned = (ctypes.c_uint32 * 1).from_address(host_address.value)
        _, self.module = device.load(DOUBLE)
        _, self.function = device.function(self.module)

    def stream(self, flags=0):
        return self.device.stream(flags)

    def host(self, stream, function, call="cuLaunchHostFunc"):
        """Add a host function to the stream by any of CALLS."""
        arguments = (
            (CALLBACK(lambda *_: function()), None, 0)
            if "Callback" in call
            else (HOST_FUNCTION(lambda _: function()), None)
        )
        self.keep.append(arguments[0])
        assert getattr(self.cuda, call)(stream, *arguments) == 0

    def double(self, stream):
        """Launch the kernel that doubles the word."""
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.word))
        assert self.cuda.cuLaunchKernel(self.function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None) == 0

    def read(self):
        values = np.zeros(1, np.uint32)
        assert self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.word, FOUR) == 0
        return int(values[0])

    def set(self, value):
        assert self.cuda.cuMemsetD32_v2(self.word, value, ctypes.c_size_t(1)) == 0


@pytest.fixture
def streams(device):
    """Return a fresh Streams."""
    return Streams(device)


CALLS = ["cuLaunchHostFunc", "cudaLaunchHostFunc", "cuStreamAddCallback", "cudaStreamAddCallback"]


@pytest.mark.parametrize("call", CALLS)
def test_a_host_function_runs_in_the_order_of_its_stream(streams, call):
    """The host function sees earlier kernels, copies and fills, and later ones see its effects."""
    cuda, stream, values = streams.cuda, streams.stream(), []

    def add():
        time.sleep(0.02)
        values.append(streams.pinned[0])
        streams.pinned[0] += 1

    assert cuda.cuMemsetD32Async(streams.word, 20, ctypes.c_size_t(1), stream) == 0
    for _ in range(2):
        streams.double(stream)
        assert cuda.cuMemcpyDtoHAsync_v2(streams.pinned, streams.word, FOUR, stream) == 0
        streams.host(stream, add, call)
        assert cuda.cuMemcpyHtoDAsync_v2(streams.word, streams.pinned, FOUR, stream) == 0
    assert cuda.cuStreamSynchronize(stream) == 0
    assert (values, streams.read()) == ([40, 82], 83)


@pytest.mark.parametrize("call", CALLS)
def test_calls_return_before_the_host_function_ends(streams, call):
    """Calls return at once, as a card's do: the host function waits for what its caller does after them."""
    stream, event, waits = streams.stream(), threading.Event(), []
    streams.set(1)
    streams.host(stream, lambda: waits.append(event.wait(20)), call)
    streams.double(stream)
    assert streams.cuda.cuStreamQuery(stream) == NOT_READY
    event.set()
    assert streams.cuda.cuStreamSynchronize(stream) == 0
    assert (streams.cuda.cuStreamQuery(stream), streams.read(), waits) == (0, 2, [True])


def test_a_fill_comes_after_the_host_function_before_it(streams):
    cuda, stream, event = streams.cuda, streams.stream(), threading.Event()
    streams.pinned[0] = 7
    streams.host(stream, event.wait)
    pinned = ctypes.c_uint64(ctypes.addressof(streams.pinned))
    assert cuda.cuMemcpyDtoDAsync_v2(streams.word, pinned, FOUR, stream) == 0
    assert cuda.cuMemsetD32Async(streams.word, 9, ctypes.c_size_t(1), stream) == 0
    event.set()
    assert cuda.cuStreamSynchronize(stream) == 0
    assert streams.read() == 9


@pytest.mark.parametrize("wait", ["stream", "event", "context"])
def test_synchronizing_waits_for_host_functions(streams, wait):
    """The effect is read from pinned memory, because a copy would wait."""
    cuda, stream, event = streams.cuda, streams.stream(1), streams.event()
    streams.pinned[0] = 0
    streams.host(stream, lambda: time.sleep(0.05) or streams.pinned.__setitem__(0, 5))
    assert cuda.cuEventRecord(event, stream) == 0
    call = {"stream": cuda.cuStreamSynchronize, "event": cuda.cuEventSynchronize}.get(wait)
    assert (call({"stream": stream, "event": event}[wait]) if call else cuda.cuCtxSynchronize()) == 0
    assert streams.pinned[0] == 5


def test_a_stream_waits_for_an_event(streams):
    cuda, first, second, host_event, event = (
        streams.cuda,
        streams.stream(1),
        streams.stream(1),
        threading.Event(),
        streams.event(),
    )
    streams.set(1)
    assert cuda.cuEventQuery(event) == 0, "never recorded"
    streams.host(first, lambda: host_event.wait() and streams.pinned.__setitem__(0, 50))
    assert cuda.cuMemcpyHtoDAsync_v2(streams.word, streams.pinned, FOUR, first) == 0
    assert cuda.cuEventRecord(event, first) == 0 and cuda.cuEventQuery(event) == NOT_READY
    assert cuda.cuStreamWaitEvent(second, event, 0) == 0
    streams.double(second)
    host_event.set()
    assert cuda.cuEventSynchronize(event) == 0 and cuda.cuStreamSynchronize(second) == 0
    assert streams.read() == 100


@pytest.mark.parametrize(("flags", "waits"), [(0, True), (NON_BLOCKING, False)])
def test_the_legacy_stream_waits_for_blocking_streams(streams, flags, waits):
    cuda, stream, event = streams.cuda, streams.stream(flags), threading.Event()
    streams.set(3)
    streams.host(stream, event.wait)
    streams.double(None)
    assert cuda.cuStreamQuery(None) == (NOT_READY if waits else 0)
    assert cuda.cuStreamQuery(streams.stream()) == (NOT_READY if waits else 0), "and they wait for it"
    event.set()
    assert cuda.cuCtxSynchronize() == 0
    assert streams.read() == 6


def test_a_synchronous_copy_waits(streams):
    stream = streams.stream()
    streams.set(1)
    streams.host(stream, lambda: time.sleep(0.02))
    streams.double(stream)
    assert streams.read() == 2


def test_a_host_function_of_a_graph(streams):
    cuda, graph, node, executable, values = streams.cuda, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), []
    function = HOST_FUNCTION(lambda _: (time.sleep(0.02), values.append("host")))
    # CUDA_MEMSET_NODE_PARAMS: address, pitch, value and element size, width, height.
    fill = (ctypes.c_uint64 * 5)(streams.word.value, 0, 9 | 4 << 32, 1, 1)
    assert cuda.cuGraphCreate(ctypes.byref(graph), 0) == 0
    host = (ctypes.c_void_p * 2)(ctypes.cast(function, ctypes.c_void_p), None)
    assert cuda.cuGraphAddHostNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), host) == 0
    assert cuda.cuGraphAddMemsetNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), fill, None) == 0
    assert cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_uint64(0)) == 0
    stream = streams.stream()
    streams.set(1)
    assert cuda.cuGraphLaunch(executable, stream) == 0
    streams.double(stream)
    assert cuda.cuStreamSynchronize(stream) == 0
    assert (values, streams.read()) == (["host"], 18)


def test_a_host_function_may_not_call_cuda(streams):
    stream, values = streams.stream(), []
    streams.host(stream, lambda: values.append(streams.cuda.cuStreamSynchronize(stream)))
    assert streams.cuda.cuStreamSynchronize(stream) == 0
    assert values == [NOT_PERMITTED]


def test_elapsed_time_needs_two_recorded_events(streams):
    cuda, first, second, milliseconds = streams.cuda, streams.event(), streams.event(), ctypes.c_float()
    assert cuda.cuEventElapsedTime(ctypes.byref(milliseconds), first, second) == INVALID_HANDLE
    assert cuda.cuEventRecord(first, None) == cuda.cuEventRecord(second, None) == 0
    assert cuda.cuEventElapsedTime(ctypes.byref(milliseconds), first, second) == 0 and milliseconds.value > 0
