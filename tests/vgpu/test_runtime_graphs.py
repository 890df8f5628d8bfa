"""Graphs that a program makes by the runtime's calls, and signatures that CUDA 13 changed.

The runtime knows a kernel by the address of its host function.
"""

import ctypes
from pathlib import Path

import numpy as np
import pytest
import test_graph
from test_contexts import INVALID_VALUE, container
from test_graph import ADD, COUNT, KernelParameters


def open_runtime(device, version):
    return ctypes.CDLL(str(Path(device.library).with_name(f"libcudart.so.{version}")))


def allocate(cuda, size, *flags):
    """Allocate by the runtime: its device need not be the one of the fixture, if this process has loaded two."""
    address = ctypes.c_void_p()
    assert (cuda.cudaMallocManaged if flags else cuda.cudaMalloc)(
        ctypes.byref(address), ctypes.c_size_t(size), *flags
    ) == 0
    return address


class Graph(test_graph.Graph):
    """The same by the runtime's calls.

    The structure cudaKernelNodeParams begins as the driver's does, with a host function in place of a kernel.
    """

    def __init__(self, device, version=13):
        self.cuda, self.graph, self.run = open_runtime(device, version), ctypes.c_void_p(), ctypes.c_void_p()
        self.words, self.host = allocate(self.cuda, 4 * COUNT), ctypes.create_string_buffer(8)
        self.function = ctypes.cast(self.host, ctypes.c_void_p)
        image = container((1, 90, ADD.encode() + b"\0"))
        self.image = ctypes.create_string_buffer(image, len(image))
        self.wrapper = (ctypes.c_uint64 * 3)(0x466243B1 | 1 << 32, ctypes.addressof(self.image), 0)
        register = self.cuda["__cudaRegisterFatBinary"]
        register.restype = ctypes.c_void_p
        unit = ctypes.c_void_p(register(self.wrapper))
        self.cuda["__cudaRegisterFunction"](unit, self.host, b"k", b"k", -1, None, None, None, None, None)
        self.cuda["__cudaRegisterFatBinaryEnd"](unit)
        assert self.cuda.cudaGraphCreate(ctypes.byref(self.graph), 0) == 0

    def node(self, name, *arguments, after=()):
        handle, dependencies = ctypes.c_void_p(), (ctypes.c_void_p * max(len(after), 1))(*after)
        count = ctypes.c_size_t(len(after))
        assert getattr(self.cuda, name)(ctypes.byref(handle), self.graph, dependencies, count, *arguments) == 0
        return handle

    def launch(self):
        """Launch the graph."""
        if not self.run:
            assert self.cuda.cudaGraphInstantiate(ctypes.byref(self.run), self.graph, ctypes.c_uint64(0)) == 0
        assert self.cuda.cudaGraphLaunch(self.run, None) == 0
        assert self.cuda.cudaDeviceSynchronize() == 0


def test_nodes_run_behind_their_dependencies(device):
    graph, copied = Graph(device), np.zeros(COUNT, np.uint32)
    fill = graph.node("cudaGraphAddMemsetNode", graph.filling(5))
    add = graph.node("cudaGraphAddKernelNode", ctypes.byref(graph.addition(2)), after=[fill])
    size = ctypes.c_size_t(copied.nbytes)
    graph.node("cudaGraphAddMemcpyNode1D", copied.ctypes, graph.words, size, 2, after=[add])
    graph.launch()
    assert (copied == 7).all()
    assert graph.cuda.cudaGraphExecKernelNodeSetParams(graph.run, add, ctypes.byref(graph.addition(30))) == 0
    assert graph.cuda.cudaGraphExecMemsetNodeSetParams(graph.run, fill, graph.filling(1)) == 0
    graph.launch()
    assert (copied == 31).all()


@pytest.mark.parametrize("version", [12, 13])
def test_a_dependency_that_is_added_later_orders_nodes(device, version):
    graph, copied = Graph(device, version), np.zeros(COUNT, np.uint32)
    size = ctypes.c_size_t(copied.nbytes)
    copy = graph.node("cudaGraphAddMemcpyNode1D", copied.ctypes, graph.words, size, 2)
    fill = graph.node("cudaGraphAddMemsetNode", graph.filling(9))
    edges = [None] if version == 13 else []
    arguments = (ctypes.byref(fill), ctypes.byref(copy), *edges, ctypes.c_size_t(1))
    assert graph.cuda.cudaGraphAddDependencies(graph.graph, *arguments) == 0
    graph.launch()
    assert (copied == 9).all()


def test_a_copy_from_nowhere_is_refused(device):
    graph, handle, size = Graph(device), ctypes.c_void_p(), ctypes.c_size_t(4)
    add = graph.cuda.cudaGraphAddMemcpyNode1D
    arguments = (ctypes.byref(handle), graph.graph, None, ctypes.c_size_t(0))
    assert [add(*arguments, *ends, size, 4) for ends in ((None, None), (graph.words, None))] == [INVALID_VALUE] * 2


def test_a_circle_is_refused(device):
    graph = Graph(device)
    first = graph.node("cudaGraphAddEmptyNode")
    second = graph.node("cudaGraphAddEmptyNode", after=[first])
    one = ctypes.c_size_t(1)
    graph.cuda.cudaGraphAddDependencies(graph.graph, ctypes.byref(second), ctypes.byref(first), None, one)
    assert graph.cuda.cudaGraphInstantiate(ctypes.byref(graph.run), graph.graph, ctypes.c_uint64(0)) == INVALID_VALUE


def test_an_unregistered_kernel_has_the_runtimes_error(device):
    graph, handle = Graph(device), ctypes.c_void_p()
    parameters = KernelParameters(4096, (ctypes.c_uint * 7)(1, 1, 1, 1, 1, 1, 0))
    add = graph.cuda.cudaGraphAddKernelNode
    assert add(ctypes.byref(handle), graph.graph, None, ctypes.c_size_t(0), ctypes.byref(parameters)) == 98


def test_a_capture_tells_its_graph(device):
    """CUDA 13's cudaStreamGetCaptureInfo has the arguments of _v3."""
    cuda, stream, graph, made = open_runtime(device, 13), *(ctypes.c_void_p() for _ in range(3))
    state, number, count = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_size_t(99)
    assert cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    assert cuda.cudaStreamBeginCapture(stream, 2) == 0
    arguments = (ctypes.byref(value) for value in (state, number, graph))
    assert cuda.cudaStreamGetCaptureInfo(stream, *arguments, None, None, ctypes.byref(count)) == 0
    assert cuda.cudaStreamEndCapture(stream, ctypes.byref(made)) == 0
    assert (state.value, graph.value, count.value) == (1, made.value, 0)


@pytest.mark.parametrize("version", [12, 13])
def test_managed_memory_is_prefetched_to_a_location(device, version):
    """CUDA 13 passes a cudaMemLocation: {1: device, 2: host; number}."""
    cuda, size = open_runtime(device, version), ctypes.c_size_t(64)
    managed = allocate(cuda, 4096, 1)
    if version == 13:
        places = {0: (ctypes.c_uint64(1), 0), -1: (ctypes.c_uint64(2), 0), 3: (ctypes.c_uint64(1 | 3 << 32), 0)}
    else:
        places = {number: (number,) for number in (0, -1, 3)}
    results = [cuda.cudaMemPrefetchAsync(managed, size, *places[number], None) for number in (0, -1, 3)]
    assert results == [0, 0, 101]
    assert [cuda.cudaMemAdvise(managed, size, advice, places[0][0]) for advice in (1, 8)] == [0, INVALID_VALUE]
