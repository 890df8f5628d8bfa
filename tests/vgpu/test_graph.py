"""Graphs of launches, copies and fills: nodes run in order, and can change after the instantiation."""

import ctypes

import numpy as np
import pytest
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

COUNT = 64
ADD = kernel(
    """ld.param.u64 %l0, [p0]; ld.param.u64 %l2, [p1]; cvt.u32.u64 %r1, %l2; mul.wide.u32 %l1, %i, 4;
    add.u64 %l0, %l0, %l1; ld.global.u32 %r2, [%l0]; add.u32 %r2, %r2, %r1; st.global.u32 [%l0], %r2;""",
    ["p0", "p1"],
)


class KernelParameters(ctypes.Structure):
    """The structure CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = [("function", ctypes.c_void_p), ("sizes", ctypes.c_uint * 7), ("arguments", ctypes.c_void_p)]
    _fields_ += [("extra", ctypes.c_void_p), ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Graph:
    """A graph whose nodes change an array of words in device memory."""

    def __init__(self, device):
        self.cuda, self.graph, self.run = device.cuda, ctypes.c_void_p(), ctypes.c_void_p()
        assert self.cuda.cuGraphCreate(ctypes.byref(self.graph), 0) == 0
        self.words, (_, module) = device.allocate(4 * COUNT), device.load(ADD)
        _, self.function = device.function(module)

    def node(self, name, parameters, *more_arguments):
        """Add a node by that call; return its handle."""
        handle = ctypes.c_void_p()
        assert getattr(self.cuda, name)(ctypes.byref(handle), self.graph, None, 0, parameters, *more_arguments) == 0
        return handle

    def addition(self, value):
        """Return the parameters of a launch that adds a value to every word."""
        values = (ctypes.c_uint64 * 2)(self.words.value, value)
        pointers = (ctypes.c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 8)
        sizes = (ctypes.c_uint * 7)(1, 1, 1, COUNT, 1, 1, 0)
        parameters = KernelParameters(self.function, sizes, ctypes.addressof(pointers), None, None, None)
        parameters.keep = values, pointers
        return parameters

    def filling(self, value):
        """Return the parameters of a fill of all words: CUDA_MEMSET_NODE_PARAMS."""
        return (ctypes.c_uint64 * 5)(self.words.value, 0, value | 4 << 32, COUNT, 1)

    def launch(self):
        """Launch the graph, and return the words."""
        if not self.run:
            assert self.cuda.cuGraphInstantiateWithFlags(ctypes.byref(self.run), self.graph, ctypes.c_uint64(0)) == 0
        assert self.cuda.cuGraphLaunch(self.run, None) == 0
        values = np.zeros(COUNT, np.uint32)
        self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.words, ctypes.c_size_t(values.nbytes))
        assert (values == values[0]).all()
        return values[0]


@pytest.fixture
def graph(device):
    """Return an empty Graph."""
    return Graph(device)


def add(graph, value):
    """Add a launch; its arguments are overwritten before the graph runs."""
    parameters = graph.addition(value)
    node = graph.node("cuGraphAddKernelNode_v2", ctypes.byref(parameters))
    parameters.keep[0][1] = 999  # the node has a copy of the argument
    return node


def test_nodes_run_in_their_order(graph):
    graph.node("cuGraphAddMemsetNode", graph.filling(5), None)
    graph.node("cuGraphAddEmptyNode", None)
    add(graph, 7)
    add(graph, 30)
    assert [graph.launch(), graph.launch()] == [42, 42]


def test_a_node_of_an_executable_graph_is_updated(graph):
    fill, addition = graph.node("cuGraphAddMemsetNode", graph.filling(5), None), add(graph, 7)
    assert graph.launch() == 12
    assert graph.cuda.cuGraphExecMemsetNodeSetParams(graph.run, fill, graph.filling(100), None) == 0
    assert graph.cuda.cuGraphExecKernelNodeSetParams_v2(graph.run, addition, ctypes.byref(graph.addition(1))) == 0
    assert graph.launch() == 101
    assert graph.cuda.cuGraphNodeSetEnabled(graph.run, fill, 0) == 0
    assert graph.launch() == 102
    first_executable, graph.run = graph.run, ctypes.c_void_p()
    assert graph.launch() == 12
    assert graph.cuda.cuGraphExecDestroy(first_executable) == 0


def test_a_child_graph_runs_as_a_node(device, graph):
    outer = Graph(device)
    outer.words = graph.words
    outer.node("cuGraphAddMemsetNode", outer.filling(1), None)
    add(graph, 2)
    outer.node("cuGraphAddChildGraphNode", graph.graph)
    add(outer, 4)
    assert outer.launch() == 7


def test_a_copy_node(graph):
    source = np.full(COUNT, 77, np.uint32)
    # The fields of CUDA_MEMCPY3D: the source in host memory, then the destination in device memory.
    side = [
        0,
        0,
        0,
        0,
        1,
        source.ctypes.data,
        0,
        0,
        0,
        4 * COUNT,
        1,
        0,
        0,
        0,
        0,
        2,
        0,
        graph.words.value,
        0,
        0,
        4 * COUNT,
        1,
    ]
    graph.node("cuGraphAddMemcpyNode", (ctypes.c_uint64 * 25)(*side, 4 * COUNT, 1, 1), None)
    add(graph, 3)
    assert graph.launch() == 80
