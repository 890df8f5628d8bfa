"""Contexts, the primary context's owners, host functions, errors of images, the stack, and managed memory."""

import ctypes
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from bare_program import run_program  # code has cuda, text, load(), allocate(), free(), launch(), given(), words()
from test_machine_code import ELF, container  # of (kind: 1 PTX, 2 machine code; compute capability; code)
from virtual_device import HEAD, kernel

INVALID_VALUE, INVALID_DEVICE, INVALID_IMAGE, INVALID_PTX = 1, 101, 200, 218
INVALID_HANDLE, ILLEGAL_ADDRESS, LAUNCH_FAILED, NOT_PERMITTED = 400, 700, 719, 800
STORE = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0], 7;", ["p0"])
# `kept` lies in a context that stays; the objects from `gone` to `managed` are in one that is destroyed in a `way`.
SETUP = """
def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value
def enter_another():
    context = ctypes.c_void_p()
    if {way!r} == "cuCtxDestroy":
        assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    else:
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert cuda.cuCtxPushCurrent_v2(context) == 0
    return context
def leave(context):
    if {way!r} == "cuCtxDestroy":
        return cuda.cuCtxDestroy_v2(context)
    result = cuda.cudaDeviceReset() if {way!r} == "cudaDeviceReset" else cuda.cuDevicePrimaryCtxReset_v2(0)
    return result or cuda.cuCtxPopCurrent_v2(None)
kept, function, before = allocate(64), load(text), free_bytes()
assert launch(function, kept) == 0
context = enter_another()
gone, pinned, stream, event, module = allocate(4096), *(ctypes.c_void_p() for _ in range(4))
managed = ctypes.c_uint64()
assert cuda.cuMemAllocManaged(ctypes.byref(managed), ctypes.c_size_t(512), 1) == 0
assert cuda.cuMemHostAlloc(ctypes.byref(pinned), ctypes.c_size_t(64), 0) == 0
assert cuda.cuStreamCreate(ctypes.byref(stream), 0) == cuda.cuEventCreate(ctypes.byref(event), 0) == 0
assert cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\\0") == 0
assert free_bytes() == before - 4096 - 512
print(leave(context), before - free_bytes())
"""
WAYS = ["cuCtxDestroy", "cudaDeviceReset", "cuDevicePrimaryCtxReset"]


@pytest.mark.parametrize("way", WAYS)
def test_destroying_a_context_destroys_its_objects(device, way):
    code = """
    word, four = (ctypes.c_uint32 * 1)(), ctypes.c_size_t(4)
    for at in (ctypes.c_uint64(gone), managed):
        print(cuda.cuMemcpyDtoH_v2(word, at, four), cuda.cuMemsetD8_v2(at, 1, four), cuda.cuMemFree_v2(at))
    print(cuda.cuMemFreeHost(pinned), cuda.cuStreamQuery(stream), cuda.cuEventQuery(event), cuda.cuModuleUnload(module))
    print(launch(function, kept), *words(kept, 1), cuda.cuMemFree_v2(ctypes.c_uint64(kept)))
    """
    expected = [0, 0, *[INVALID_VALUE] * 6, INVALID_VALUE, *[INVALID_HANDLE] * 3, 0, 7, 0]
    assert run_program(device, SETUP.format(way=way) + textwrap.dedent(code), STORE)[0] == expected


PRIMARY = """
def retain():
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0
def state():
    flags, active = ctypes.c_uint(), ctypes.c_int()
    assert cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
    return flags.value, active.value
def make_current():
    context = ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
release = lambda: cuda.cuDevicePrimaryCtxRelease_v2(0)
flags = ctypes.c_uint(7)
"""
INVALID_CONTEXT = 201


def test_the_last_release_resets_the_primary_context(device):
    code = """
    print(*state(), release())
    make_current(), retain()
    made = allocate(4096)
    print(*state(), release(), cuda.cuMemsetD8_v2(ctypes.c_uint64(made), 1, ctypes.c_size_t(4)))
    print(release(), *state(), cuda.cuMemsetD8_v2(ctypes.c_uint64(made), 1, ctypes.c_size_t(4)))
    print(cuda.cuCtxGetFlags(ctypes.byref(flags)), release())
    make_current()
    print(*state(), cuda.cuCtxGetFlags(ctypes.byref(flags)), flags.value)
    """
    expected = [0, 0, INVALID_CONTEXT, 0, 1, 0, 0, 0, 0, 0, INVALID_VALUE, INVALID_CONTEXT, INVALID_CONTEXT, 0, 1, 0, 0]
    assert run_program(device, PRIMARY + textwrap.dedent(code))[0] == expected


def test_the_runtime_holds_the_primary_context_until_a_reset(device):
    code = """
    made = ctypes.c_void_p()
    print(cuda.cudaFree(None), *state(), cuda.cuCtxSetCurrent(None))
    print(cuda.cudaMalloc(ctypes.byref(made), ctypes.c_size_t(64)), *state())
    retain()
    print(release(), *state(), cuda.cudaMemset(made, 1, ctypes.c_size_t(4)))
    print(cuda.cudaDeviceReset(), *state(), int(cuda.cudaMemset(made, 1, ctypes.c_size_t(4)) != 0))
    print(cuda.cudaFree(None), *state())
    """
    expected = [0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1]
    assert run_program(device, PRIMARY + textwrap.dedent(code))[0] == expected


@pytest.mark.parametrize("reset", ["cudaDeviceReset()", "cuDevicePrimaryCtxReset_v2(0)"])
def test_a_reset_waits_for_a_host_function_that_asks_for_the_context(device, reset):
    """The call of the host function is refused, so there is no deadlock."""
    code = f"""
    import time
    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def ask(_):
        time.sleep(0.2)
        asked.append(cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(64)))
    asked, stream = [], ctypes.c_void_p()
    make_current()
    print(cuda.cudaStreamCreate(ctypes.byref(stream)), cuda.cudaLaunchHostFunc(stream, ask, None))
    print(cuda.{reset}, *asked)
    """
    assert run_program(device, PRIMARY + textwrap.dedent(code))[0] == [0, 0, 0, NOT_PERMITTED]


@pytest.mark.parametrize("given", [0, 4, 0x0C, 3, 0x100])
def test_flags_of_the_primary_context_are_kept(device, given):
    code = f"""
    print(cuda.cuDevicePrimaryCtxSetFlags_v2(0, {given}), state()[0])
    print(cuda.cudaSetDeviceFlags({given}), cuda.cudaGetDeviceFlags(ctypes.byref(flags)), flags.value)
    make_current()
    print(cuda.cuCtxGetFlags(ctypes.byref(flags)), flags.value)
    """
    flags, status = (0, INVALID_VALUE) if given in (3, 0x100) else (given, 0)
    assert run_program(device, PRIMARY + textwrap.dedent(code))[0] == [status, flags, status, 0, flags, 0, flags]


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_a_destroyed_context_is_inaccessible(device, way):
    code = "print(launch(function, gone))\n"
    assert run_program(device, SETUP.format(way=way) + code, STORE)[0] == [0, 0, ILLEGAL_ADDRESS]


IN_A_HOST_FUNCTION = """
function, kept, seen = load(text), allocate(64), []
stream, event, new, value, size = *(ctypes.c_void_p() for _ in range(3)), ctypes.c_int(), ctypes.c_size_t(64)
cuda.cuStreamCreate(ctypes.byref(stream), 0), cuda.cuEventCreate(ctypes.byref(event), 0)
at64, word, made = ctypes.c_uint64(kept), (ctypes.c_uint32 * 1)(), ctypes.byref(ctypes.c_uint64())
four, held, one = ctypes.c_size_t(4), given(kept), ctypes.c_size_t(1)
hosted = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
def calls():
    seen.extend([
        cuda.cuMemAlloc_v2(made, size), cuda.cuMemFree_v2(at64), cuda.cuMemHostAlloc(ctypes.byref(new), size, 0),
        cuda.cuMemAllocManaged(made, size, 1), cuda.cuMemcpyDtoH_v2(word, at64, four),
        cuda.cuMemcpyHtoDAsync_v2(at64, word, four, stream), cuda.cuMemsetD32_v2(at64, 1, one),
        cuda.cuMemsetD32Async(at64, 1, one, stream),
        cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, held, None),
        cuda.cuStreamCreate(ctypes.byref(new), 0), cuda.cuStreamSynchronize(stream), cuda.cuStreamQuery(stream),
        cuda.cuStreamWaitEvent(stream, event, 0), cuda.cuStreamDestroy_v2(stream),
        cuda.cuEventCreate(ctypes.byref(new), 0), cuda.cuEventRecord(event, stream),
        cuda.cuEventQuery(event), cuda.cuEventSynchronize(event),
        cuda.cuLaunchHostFunc(stream, hosted, None), cuda.cuCtxSynchronize(),
        cuda.cuModuleLoadData(ctypes.byref(new), text.encode() + b"\\0"),
        cuda.cuFuncGetAttribute(ctypes.byref(value), 0, function),
        cuda.cuDeviceGetAttribute(ctypes.byref(value), 75, 0), cuda.cuCtxGetDevice(ctypes.byref(value)),
        cuda.cuCtxSetLimit(0, size), cuda.cudaMalloc(made, size), cuda.cudaStreamSynchronize(stream),
        cuda.cudaDeviceSynchronize(), cuda.cudaDeviceReset(),
    ])
launch_ = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: calls())
callback = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(lambda *_: calls())
if {call!r} == "cuLaunchHostFunc":
    assert cuda.cuLaunchHostFunc(stream, launch_, None) == 0
else:
    assert cuda.cuStreamAddCallback(stream, callback, None, 0) == 0
print(cuda.cuStreamSynchronize(stream), *words(kept, 1), len(seen), *set(seen))
print(launch(function, kept), *words(kept, 1), cuda.cuMemFree_v2(at64))
"""


@pytest.mark.parametrize("call", ["cuLaunchHostFunc", "cuStreamAddCallback"])
def test_a_host_function_may_call_nothing_of_cuda(device, call):
    """Each call returns an error and does nothing; later work runs."""
    numbers = run_program(device, IN_A_HOST_FUNCTION.format(call=call), STORE)[0]
    assert numbers == [0, 0, 29, NOT_PERMITTED, 0, 7, 0]


def load_result(device, image):
    """Return CUDA's result of loading the image."""
    module, buffer = ctypes.c_void_p(), ctypes.create_string_buffer(image, len(image) + 1)
    result = device.cuda.cuModuleLoadData(ctypes.byref(module), buffer)
    if result == 0:
        device.cuda.cuModuleUnload(module)
    return result


def entry(body):
    """Return the PTX of a kernel without parameters."""
    return f"{HEAD}.visible .entry k() {{ .reg .b32 %r<4>; {body} ret; }}\n".encode()


@pytest.mark.parametrize(
    ("image", "wanted"),
    [
        (b"no PTX at all", INVALID_IMAGE),
        (b"", INVALID_IMAGE),
        (b"\xff" * 64, INVALID_IMAGE),
        (container((1, 70, b"no PTX at all\0")), INVALID_IMAGE),
        (container((2, 70, ELF))[:8] + b"\xff" * 64, INVALID_IMAGE),
        (entry("frobnicate.u32 %r1, %r2;"), INVALID_PTX),
        (entry("@%p1 bogus.sync;"), INVALID_PTX),
        (entry("{ inner: moove.b32 %r1, %r2; }"), INVALID_PTX),
        (HEAD.encode() + b".visible .entry k( { ret; }", INVALID_PTX),
        (HEAD.encode() + b".global .b32 x[;", INVALID_PTX),
        (HEAD.encode() + b"hello", INVALID_PTX),
        (entry("wgmma.fence.sync.aligned;"), 0),
        (entry("ld.shared::cluster.u32 %r1, [%r2];"), 0),
        (entry("l: { .reg .b32 %q; mov.b32 %q, 1; } bra.uni l; t: .branchtargets l; .pragma \"nounroll\";"), 0),
        (container((1, 70, entry("frobnicate.u32 %r1, %r2;") + b"\0")), 0),
    ],
)  # fmt: skip
def test_invalid_images_return_their_errors(device, image, wanted):
    """A container is compiled on demand; of PTX alone, the names of all instructions are checked when it is loaded."""
    assert load_result(device, image) == wanted


def recursive_kernel(levels):
    """Return a kernel that calls itself that many levels deep."""
    head = """.func (.param .b32 r) down(.param .b32 n) { .reg .b32 %a<5>; .reg .pred %p; ld.param.u32 %a0, [n];
    mov.u32 %a1, 0; setp.eq.u32 %p, %a0, 0; @%p bra done; sub.u32 %a2, %a0, 1;
    { .param .b32 q; .param .b32 s; st.param.b32 [q], %a2; call.uni (s), down, (q); ld.param.b32 %a1, [s]; }
    add.u32 %a1, %a1, 1; done: st.param.b32 [r], %a1; ret; }"""
    body = f"""{{ .param .b32 q; .param .b32 s; mov.u32 %r1, {levels}; st.param.b32 [q], %r1; call.uni (s), down, (q);
    ld.param.b32 %r2, [s]; ld.param.u64 %l0, [p0]; st.global.u32 [%l0], %r2; }}"""
    return kernel(body, ["p0"], head=head)


@pytest.mark.parametrize(("bytes_", "wanted"), [(1024, LAUNCH_FAILED), (4096, 0)])
def test_the_stack_limit_bounds_the_call_depth(device, bytes_, wanted):
    code = f"""
    held = ctypes.c_size_t()
    print(cuda.cudaDeviceSetLimit(0, ctypes.c_size_t({bytes_})), cuda.cuCtxGetLimit(ctypes.byref(held), 0), held.value)
    print(launch(load(text), allocate(4)))
    """
    assert run_program(device, code, recursive_kernel(2000))[0] == [0, 0, bytes_, wanted]


def test_the_stack_limit_has_a_maximum(device):
    assert device.cuda.cuCtxSetLimit(0, ctypes.c_size_t(1 << 30)) == INVALID_VALUE


@pytest.fixture
def managed(device):
    """Return the address of 4096 bytes of managed memory."""
    address = ctypes.c_void_p()
    assert device.cuda.cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(4096), 1) == 0
    yield address
    assert device.cuda.cudaFree(address) == 0


def test_the_host_accesses_managed_memory(device, managed):
    words = (ctypes.c_uint32 * 4).from_address(managed.value)
    words[1] = 5
    text = kernel(
        "ld.param.u64 %l0, [p0]; ld.global.u32 %r1, [%l0+4]; add.u32 %r1, %r1, 1; st.global.u32 [%l0], %r1;", ["p0"]
    )
    assert device.run(text, [managed.value])[0] == 0
    assert list(words) == [6, 5, 0, 0]
    attributes = np.zeros(6, np.int32)
    assert device.cuda.cudaPointerGetAttributes(ctypes.c_void_p(attributes.ctypes.data), managed) == 0
    assert (attributes[0], attributes[2:].view(np.uint64).tolist()) == (3, [managed.value, managed.value])
    value = ctypes.c_int()
    assert device.cuda.cuPointerGetAttribute(ctypes.byref(value), 8, managed) == 0 and value.value == 1


@pytest.mark.parametrize(
    ("attribute", "size", "value"),
    [
        (14, 8, 0),  # allowed handle types
        (16, 4, 3),  # access flags: read and write
        (17, 8, 0),  # memory pool
        (18, 8, 4096),  # size of the mapping
        (20, 8, None),  # identifier of the physical allocation
        (21, 4, 0),  # whether hardware can decompress into it
    ],
)
def test_attributes_of_memory_are_written_with_their_size(device, attribute, size, value):
    memory, out = device.allocate(4096), (ctypes.c_uint8 * 16)(*[0xAA] * 16)
    assert device.cuda.cuPointerGetAttribute(out, attribute, ctypes.c_uint64(memory.value + 8)) == 0
    assert bytes(out)[size:] == b"\xaa" * (16 - size)
    written = int.from_bytes(bytes(out)[:size], "little")
    assert written == value if value is not None else written > 0


def test_a_mapping_begins_where_its_allocation_does(device):
    memory, begin = device.allocate(4096), ctypes.c_uint64()
    assert device.cuda.cuPointerGetAttribute(ctypes.byref(begin), 19, ctypes.c_uint64(memory.value + 8)) == 0
    assert begin.value == memory.value


def test_advice_and_prefetches_need_managed_memory(device, managed):
    cuda, n, device_memory = device.cuda, ctypes.c_size_t, device.allocate(4096)
    advise, prefetch = cuda.cuMemAdvise, cuda.cuMemPrefetchAsync
    assert [advise(managed, n(4096), advice, 0) for advice in range(8)] == [INVALID_VALUE, *[0] * 6, INVALID_VALUE]
    assert [prefetch(managed, n(4096), target, None) for target in (0, -1, 3)] == [0, 0, INVALID_DEVICE]
    assert advise(managed, n(4096), 3, 7) == INVALID_DEVICE and advise(managed, n(4096), 1, 7) == 0
    for address, size in ((managed, 4097), (managed, 0), (device_memory, 64), (ctypes.c_void_p(4096), 64)):
        assert advise(address, n(size), 1, 0) == prefetch(address, n(size), 0, None) == INVALID_VALUE
    assert prefetch(managed, n(64), 0, ctypes.c_void_p(0xDEAD0000)) == INVALID_HANDLE
    location = ctypes.c_uint64(1)  # device 0 as a CUmemLocation
    assert (
        cuda.cuMemPrefetchAsync_v2(managed, n(64), location, 0, None)
        == cuda.cuMemAdvise_v2(managed, n(64), 3, location)
        == 0
    )
    assert cuda.cuMemFree_v2(device_memory) == 0


@pytest.mark.parametrize(("size", "flags"), [(0, 1), (64, 0), (64, 3)])
def test_invalid_managed_allocations_are_refused(device, size, flags):
    address = ctypes.c_void_p(1)
    assert device.cuda.cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(size), flags) == INVALID_VALUE
    assert address.value == 1


def test_a_managed_variable_has_a_host_pointer(device):
    """The registration by nvcc's code sets the host's pointer once the module is initialized."""
    cuda, pointer = device.cuda, ctypes.c_void_p()
    text = HEAD + ".visible .global .attribute(.managed) .align 4 .u32 shared_word[2] = {41, 7};\n"
    image = container((1, 90, text.encode() + b"\0"))
    buffer = ctypes.create_string_buffer(image, len(image))
    wrapper = (ctypes.c_uint64 * 3)(0x466243B1 | 1 << 32, ctypes.addressof(buffer), 0)
    cuda.__cudaRegisterFatBinary.restype = ctypes.c_void_p
    unit = ctypes.c_void_p(cuda.__cudaRegisterFatBinary(wrapper))
    cuda.__cudaRegisterManagedVar(
        unit, ctypes.byref(pointer), b"shared_word", b"shared_word", 0, ctypes.c_size_t(8), 0, 0
    )
    cuda.__cudaRegisterFatBinaryEnd(unit)
    assert pointer.value is None
    cuda.__cudaInitModule(unit)
    assert list((ctypes.c_uint32 * 2).from_address(pointer.value)) == [41, 7]


# What code by nvcc registers before main(), with a kernel and a variable; there is no context yet.
REGISTER = """
import ctypes, sys
cuda, host, number = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(16), ctypes.c_int(7)
image = ctypes.create_string_buffer(bytes.fromhex({image!r}))
wrapper = (ctypes.c_uint64 * 3)(0x466243B1 | 1 << 32, ctypes.addressof(image), 0)
cuda.__cudaRegisterFatBinary.restype = ctypes.c_void_p
unit = ctypes.c_void_p(cuda.__cudaRegisterFatBinary(wrapper))
cuda.__cudaRegisterVar(unit, host, host, b"number", 0, ctypes.c_size_t(4), 0, 0)
cuda.__cudaRegisterFunction(unit, ctypes.byref(host, 8), b"k", b"k", -1, None, None, None, None, None)
kernel, four, other = ctypes.byref(host, 8), ctypes.c_size_t(4), (ctypes.c_int * 16)()
print(cuda.{call})
"""


@pytest.mark.parametrize(
    "call",
    [
        "cudaMemcpyToSymbol(host, ctypes.byref(number), four, ctypes.c_size_t(0), 1)",
        "cudaGetSymbolAddress(other, host)",
        "cudaGetSymbolSize(other, host)",
        "cudaFuncGetAttributes(other, kernel)",
        "cudaFuncSetAttribute(kernel, 8, 1024)",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor(other, kernel, 64, ctypes.c_size_t(0))",
    ],
    ids=lambda call: call.partition("(")[0],
)
def test_the_runtime_makes_a_context_at_the_first_call_that_needs_one(device, call):
    text = STORE + ".visible .global .align 4 .u32 number;\n"
    image = container((1, 90, text.encode() + b"\0")).hex()
    command = [sys.executable, "-S", "-c", REGISTER.format(image=image, call=call), device.library]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    assert process.stdout == "0\n", process.stderr
