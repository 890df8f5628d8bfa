"""Launches that a card refuses, and faults of the device, each with CUDA's own error code."""

import ctypes

import numpy as np
import pytest
from bare_program import run_program  # the code finds cuda, text, load(), allocate(), free(), launch(), words()
from virtual_device import HEAD, kernel

INVALID_VALUE, NO_BINARY, TOO_LARGE = 1, 209, 720
ADD = kernel("ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1;", ["p0"])
LIMITED = {
    "maxntid": ".maxntid 64, 1, 1",
    "maxntid-2d": ".maxntid 16, 4, 1",
    "reqntid": ".reqntid 32, 2, 1",
    "none": "",
    "shared": "",
}


def limited(name):
    """Return a kernel with a limit of LIMITED."""
    shared = ".shared .align 4 .b8 held[40000]; st.shared.u32 [held], 1;" if name == "shared" else ""
    body = f"{{ {shared} .reg .b64 %l0; ld.param.u64 %l0, [p0]; red.global.add.u32 [%l0], 1; }}"
    return f"{HEAD}.visible .entry k(.param .b64 p0) {LIMITED[name]} {body}"


# kernel, grid, block, bytes of dynamic shared memory, CUDA's result
LAUNCHES = [
    ("none", (1, 1, 1), (1024, 1, 1), 0, 0),
    ("none", (1, 1, 1), (1, 1, 64), 0, 0),
    ("none", (2, 3, 2), (4, 4, 4), 49152, 0),
    ("none", (1, 1, 1), (1, 1, 65), 0, INVALID_VALUE),
    ("none", (1, 1, 1), (1025, 1, 1), 0, INVALID_VALUE),
    ("none", (1, 1, 1), (1, 1025, 1), 0, INVALID_VALUE),
    ("none", (1, 1, 1), (32, 32, 2), 0, INVALID_VALUE),
    ("none", (1, 65536, 1), (1, 1, 1), 0, INVALID_VALUE),
    ("none", (1, 1, 65536), (1, 1, 1), 0, INVALID_VALUE),
    ("none", (2**31, 1, 1), (1, 1, 1), 0, INVALID_VALUE),
    *[("none", tuple(0 if k == n else 1 for k in range(3)), (1, 1, 1), 0, INVALID_VALUE) for n in range(3)],
    *[("none", (1, 1, 1), tuple(0 if k == n else 1 for k in range(3)), 0, INVALID_VALUE) for n in range(3)],
    ("none", (1, 1, 1), (32, 1, 1), 49153, INVALID_VALUE),
    ("shared", (1, 1, 1), (32, 1, 1), 9152, 0),
    ("shared", (1, 1, 1), (32, 1, 1), 9153, INVALID_VALUE),
    ("maxntid", (1, 1, 1), (64, 1, 1), 0, 0),
    ("maxntid", (1, 1, 1), (65, 1, 1), 0, INVALID_VALUE),
    ("maxntid-2d", (1, 1, 1), (64, 1, 1), 0, 0),
    ("maxntid-2d", (1, 1, 1), (16, 5, 1), 0, INVALID_VALUE),
    ("reqntid", (1, 1, 1), (32, 2, 1), 0, 0),
    ("reqntid", (1, 1, 1), (64, 1, 1), 0, INVALID_VALUE),
    ("reqntid", (1, 1, 1), (32, 1, 1), 0, INVALID_VALUE),
]


class Kernels:
    """The kernels of LIMITED, loaded once, and the counter that they increment."""

    def __init__(self, device):
        self.cuda, self.count = device.cuda, device.allocate(4)
        self.functions = {name: device.function(device.load(limited(name))[1])[1] for name in LIMITED}
        self.given = (ctypes.c_void_p * 1)(ctypes.addressof(self.count))

    def launch(self, name, grid, block, shared, **options):
        """Launch a kernel; return CUDA's result and the counter."""
        arguments = options.get("given", self.given)
        self.cuda.cuMemsetD32_v2(self.count, 0, ctypes.c_size_t(1))
        result = self.cuda.cuLaunchKernel(
            self.functions[name], *grid, *block, shared, None, arguments, options.get("extra")
        )
        values = np.zeros(1, np.uint32)
        self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(values.ctypes.data), self.count, ctypes.c_size_t(4))
        return result, int(values[0])


@pytest.fixture(scope="module")
def kernels(device):
    return Kernels(device)


@pytest.mark.parametrize(("name", "grid", "block", "shared", "wanted"), LAUNCHES)
def test_launches_that_a_gpu_refuses_are_refused(kernels, name, grid, block, shared, wanted):
    threads = 0 if wanted else int(np.prod(grid) * np.prod(block))
    assert kernels.launch(name, grid, block, shared) == (wanted, threads)
    assert kernels.launch("none", (1, 1, 1), (1, 1, 1), 0) == (0, 1), "nothing stays behind"


def test_missing_parameters_are_refused(kernels):
    one_thread = ((1, 1, 1), (1, 1, 1), 0)
    size, value = ctypes.c_size_t(8), ctypes.c_uint64(kernels.count.value)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(value), 2, ctypes.addressof(size), None)
    assert kernels.launch("none", *one_thread, given=None) == (INVALID_VALUE, 0)
    assert kernels.launch("none", *one_thread, given=(ctypes.c_void_p * 1)(None)) == (INVALID_VALUE, 0)
    assert kernels.launch("none", *one_thread, given=None, extra=extra) == (0, 1)
    assert kernels.launch("none", *one_thread, extra=extra) == (INVALID_VALUE, 0), "one way or the other"
    size.value = 4
    assert kernels.launch("none", *one_thread, given=None, extra=extra) == (INVALID_VALUE, 0)


def test_parameters_are_given_in_one_way(device):
    _, function = device.function(device.load(kernel("", ["p0"]))[1])
    words = (ctypes.c_uint64 * 1)()
    each, extra = (ctypes.c_void_p * 1)(ctypes.addressof(words)), (ctypes.c_void_p * 1)()
    assert device.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, each, extra) == 1
    assert device.cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, each, None) == 0


def test_large_shared_memory_needs_the_function_attribute(kernels):
    cuda, function, value = kernels.cuda, kernels.functions["none"], ctypes.c_int()
    maximum, dynamic = ctypes.c_int(), 8
    cuda.cuDeviceGetAttribute(ctypes.byref(maximum), 97, 0)
    assert cuda.cuFuncGetAttribute(ctypes.byref(value), dynamic, function) == 0 and value.value == 49152
    assert cuda.cuFuncSetAttribute(function, dynamic, maximum.value + 1) == INVALID_VALUE
    assert cuda.cuFuncSetAttribute(kernels.functions["shared"], dynamic, maximum.value) == INVALID_VALUE, (
        "it has some itself"
    )
    assert cuda.cuFuncSetAttribute(function, dynamic, maximum.value) == 0
    assert kernels.launch("none", (1, 1, 1), (32, 1, 1), maximum.value) == (0, 32)
    assert kernels.launch("none", (1, 1, 1), (32, 1, 1), maximum.value + 1) == (INVALID_VALUE, 0)
    assert cuda.cuFuncSetAttribute(function, dynamic, 49152) == 0


def test_a_cooperative_launch_must_fit_the_device(kernels):
    cuda, function, blocks_per_multiprocessor, multiprocessors = (
        kernels.cuda,
        kernels.functions["none"],
        ctypes.c_int(),
        ctypes.c_int(),
    )
    cuda.cuDeviceGetAttribute(ctypes.byref(multiprocessors), 16, 0)
    cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(blocks_per_multiprocessor), function, 1024, ctypes.c_size_t(0)
    )
    launch = cuda.cuLaunchCooperativeKernel
    resident_blocks = blocks_per_multiprocessor.value * multiprocessors.value
    assert launch(function, resident_blocks, 1, 1, 1024, 1, 1, 0, None, kernels.given) == 0
    assert launch(function, resident_blocks + 1, 1, 1, 1024, 1, 1, 0, None, kernels.given) == TOO_LARGE


def test_function_attributes_have_the_thread_limit(kernels):
    value = ctypes.c_int()
    for name, expected in {"none": 1024, "maxntid": 64, "reqntid": 64}.items():
        assert kernels.cuda.cuFuncGetAttribute(ctypes.byref(value), 0, kernels.functions[name]) == 0
        assert value.value == expected
    assert kernels.cuda.cuFuncGetAttribute(ctypes.byref(value), 99, kernels.functions["none"]) == INVALID_VALUE


def run_with_capability(device, code, capability=None):
    """Run a program on a device of this compute capability, and return the numbers that it prints."""
    return run_program(device, code, **({"VGPU_COMPUTE_CAPABILITY": str(capability)} if capability else {}))[0]


@pytest.mark.parametrize(
    ("capability", "runs", "refused"),
    [
        (70, "sm_30 sm_70", "sm_75 sm_80 sm_90"),
        (80, "sm_70 sm_80", "sm_86 sm_90 sm_90a"),
        (90, "sm_90 sm_90a", "sm_100 sm_100f"),
        (100, "sm_90 sm_100 sm_100a sm_100f", "sm_90a sm_103f sm_120"),
        (103, "sm_100 sm_100f sm_103f", "sm_100a sm_120f"),
        (120, "sm_90 sm_100 sm_120f", "sm_100f sm_103f sm_121f"),
    ],
)
def test_ptx_runs_on_its_target_and_newer_devices(device, capability, runs, refused):
    code = f"""
    module = ctypes.c_void_p()
    for target in {(runs + " " + refused).split()}:
        text = f".version 9.0\\n.target {{target}}\\n.address_size 64\\n.visible .entry k() {{{{ ret; }}}}"
        print(cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\\0"))
    """
    expected = [0] * len(runs.split()) + [NO_BINARY] * len(refused.split())
    assert run_with_capability(device, code, capability) == expected


@pytest.mark.parametrize(("version", "status"), [("9.0", 0), ("9.1", 222), ("99.9", 222)])
def test_ptx_newer_than_the_driver_is_refused(device, version, status):
    text = f".version {version}\n.target sm_70\n.address_size 64\n.visible .entry k() {{ ret; }}"
    assert device.load(text)[0] == status


def test_the_default_capability_is_that_of_the_first_ptx(device):
    code = """
    module, value = ctypes.c_void_p(), ctypes.c_int()
    for target in (80, 90):
        text = b".version 8.6\\n.target sm_%d\\n.address_size 64\\n.visible .entry k() { ret; }\\0" % target
        print(cuda.cuModuleLoadData(ctypes.byref(module), text))
        cuda.cuDeviceGetAttribute(ctypes.byref(value), 75, 0)
        print(value.value)
    """
    assert run_with_capability(device, code) == [0, 8, NO_BINARY, 8]


# opt_in, whole: KiB of shared memory of a block and of a multiprocessor; threads, blocks: of a multiprocessor.
@pytest.mark.parametrize(
    ("capability", "opt_in", "whole", "threads", "blocks"),
    [(70, 96, 96, 2048, 32), (75, 64, 64, 1024, 16), (80, 163, 164, 2048, 32), (86, 99, 100, 1536, 16),
     (89, 99, 100, 1536, 24), (90, 227, 228, 2048, 32), (100, 227, 228, 2048, 32), (120, 99, 100, 1536, 24)],
)  # fmt: skip
def test_device_limits_follow_from_the_capability(device, capability, opt_in, whole, threads, blocks):
    code = """
    value = ctypes.c_int()
    for which in (75, 76, 97, 81, 39, 106, 8, 1):
        cuda.cuDeviceGetAttribute(ctypes.byref(value), which, 0)
        print(value.value)
    """
    expected = [*divmod(capability, 10), opt_in << 10, whole << 10, threads, blocks, 48 << 10, 1024]
    assert run_with_capability(device, code, capability) == expected


# name: PTX, the error of the launch and of every later call, as on a card
FAULTS = {
    "an assertion": (
        """{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
        ld.param.u64 %l0, [p0]; st.param.b64 [m], %l0; st.param.b64 [f], %l0; st.param.b32 [l], 1;
        st.param.b64 [n], %l0; st.param.b64 [s], 1; call.uni __assertfail, (m, f, l, n, s); }""", 710),
    "an address of nobody": ("mov.u64 %l0, 4096; ld.global.u32 %r1, [%l0];", 700),
    "a null pointer": ("mov.u64 %l0, 0; st.u32 [%l0], 1;", 700),
    "an odd address": ("ld.param.u64 %l0, [p0]; ld.global.u32 %r1, [%l0+2];", 716),
    "a trap": ("trap;", 719),
    "a barrier that is none": ("mov.u32 %r1, 99; bar.sync %r1;", 715),
    "no end": ("loop: bra loop;", 702),
    "a write to constant memory": ("mov.u64 %l0, table; cvta.const.u64 %l0, %l0; st.u32 [%l0], 1;", 700),
    "a write to a parameter": ("mov.b64 %l0, p0; cvta.param.u64 %l0, %l0; st.u32 [%l0], 1;", 700),
    "an atomic on a parameter": ("mov.b64 %l0, p0; cvta.param.u64 %l0, %l0; red.add.u32 [%l0], 1;", 700),
    "an atomic on constant memory": ("mov.u64 %l0, table; cvta.const.u64 %l0, %l0; red.add.u32 [%l0], 1;", 700),
}  # fmt: skip
DECLARED = """.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.const .align 4 .u32 table[4] = {1, 2, 3, 4};"""
CALLS_AFTER_FAULT = """
size, four, new = ctypes.c_size_t(16), ctypes.c_size_t(4), ctypes.c_void_p()
before, (stream, event, pinned) = ctypes.c_uint64(allocate(16)), (ctypes.c_void_p() for _ in range(3))
cuda.cuStreamCreate(ctypes.byref(stream), 0), cuda.cuEventCreate(ctypes.byref(event), 0)
cuda.cuMemHostAlloc(ctypes.byref(pinned), size, 0)
print(launch(load(text), before.value, block=32))
for result in (
    cuda.cuCtxSynchronize(), cuda.cuStreamSynchronize(stream), cuda.cuStreamQuery(stream), cuda.cuEventQuery(event),
    cuda.cuEventRecord(event, stream), cuda.cuMemAlloc_v2(ctypes.byref(at), size), cuda.cuMemFree_v2(before),
    cuda.cuMemcpyDtoH_v2(pinned, before, four), cuda.cuMemcpyDtoHAsync_v2(pinned, before, four, stream),
    cuda.cuMemsetD32_v2(before, 1, ctypes.c_size_t(1)), cuda.cuStreamCreate(ctypes.byref(new), 0),
    cuda.cuModuleLoadData(ctypes.byref(new), text.encode() + b"\\0"), cuda.cudaDeviceSynchronize(),
    cuda.cudaGetLastError(), cuda.cudaGetLastError(),
):
    print(result)
"""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_returns_its_error_and_is_sticky(device, name):
    body, error = FAULTS[name]
    text = kernel(body, ["p0"], head=DECLARED)
    assert run_program(device, CALLS_AFTER_FAULT, text, VGPU_MAX_INSTRUCTIONS="200000")[0] == [error] * 16


def test_ptx_has_no_store_to_constant_memory(device):
    _, module = device.load(kernel("st.const.u32 [table], 1;", [], head=DECLARED))
    assert device.function(module)[0] == NO_BINARY


ENTRY = ".visible .entry k() { ret; }"


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (f".version 7.0\n.target sm_80\n{ENTRY}", True),
        (f".version 6.5\n.target sm_80\n{ENTRY}", False),
        (f".version 7.0\n{ENTRY}", False),
        (f".target sm_80\n.version 7.0\n{ENTRY}", False),
        (f".version 7.0\n.target sm_80a\n{ENTRY}", False),
        (f".version 7.0\n.target sm_80\n{ENTRY.replace('{', '.maxntid 0 {')}", False),
        (f".version 7.0\n.target sm_80\n.global .u32 x[];\n{ENTRY}", False),
        (f".version 7.0\n.target sm_80\n.extern .shared .b8 x[];\n{ENTRY}", True),
        (f".version 7.0\n.target sm_80\n{ENTRY.replace('{', '{ .local .u32 x = 1;')}", False),
    ],
)
def test_headers_and_declarations_are_taken_as_by_ptxas(device, text, is_valid):
    result, module = device.load(text)
    assert (not result and not device.function(module)[0]) == is_valid
