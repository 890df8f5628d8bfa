"""Programs as kernels: what the virtual GPU makes of them, beside what exact arithmetic does."""

import ctypes
from dataclasses import dataclass, replace

import numpy as np
from virtual_device import HEAD, Device

from fuzzing.forms import CANONICAL, AnyNan
from fuzzing.programs import FILES, LANES, REGISTERS, Program, evaluate
from fuzzing.reals import Format

SLOTS = len(REGISTERS)  # of 64 bits: registers of a lane
FORMATS = {name: Format(name) for name in CANONICAL}


@dataclass
class Disagreement:
    program: Program
    register: str
    lane: int
    made: int
    wanted: object

    def __str__(self) -> str:
        used = {word.strip(",;") for line in self.program.lines for word in line.text().replace("|", " ").split()}
        used |= {line.guard.lstrip("@!") for line in self.program.lines}
        given = [f"{name} = {row[self.lane]:#x}" for name, row in self.program.inputs.items() if name in used]
        wanted = f"{self.wanted:#x}" if isinstance(self.wanted, int) else self.wanted
        return "\n".join(
            [
                f"disagreement: {self.program.number}",
                *(f"    {line.text()}" for line in self.program.lines),
                f"  lane {self.lane} of {self.program.lanes}: {', '.join(given)}",
                f"  {self.register} is {self.made:#x}; expected: {wanted}",
            ]
        )


def declared() -> str:
    return "".join(
        f".reg .{'pred' if width == 1 else f'b{width}'} {name}<{count}>;\n" for width, (name, count) in FILES.items()
    )


def loaded(name: str, width: int, at: int) -> str:
    if width == 1:
        return f"ld.global.b32 %x0, [%a0+{at}]; setp.ne.u32 {name}, %x0, 0;\n"
    return f"ld.global.b{width} {name}, [%a0+{at}];\n"


def stored(name: str, width: int, at: int) -> str:
    if width == 1:
        return f"selp.b32 %x0, 1, 0, {name}; st.global.b32 [%a1+{at}], %x0;\n"
    return f"st.global.b{width} [%a1+{at}], {name};\n"


PROLOGUE = (
    declared()
    + ".reg .b32 %x<2>;\n.reg .b64 %a<3>;\nmov.u32 %x0, %tid.x; mul.wide.u32 %a2, %x0, 8;\n"
    + "ld.param.u64 %a0, [in]; add.u64 %a0, %a0, %a2; ld.param.u64 %a1, [out]; add.u64 %a1, %a1, %a2;\n"
    + "".join(loaded(name, width, k * LANES * 8) for k, (name, width) in enumerate(REGISTERS.items()))
)
EPILOGUE = "".join(stored(name, width, k * LANES * 8) for k, (name, width) in enumerate(REGISTERS.items()))


def kernel(program: Program, name: str) -> str:
    body = "".join(f"{line.text()}\n" for line in program.lines)
    return f".visible .entry {name}(.param .u64 in, .param .u64 out) {{\n{PROLOGUE}{body}{EPILOGUE}ret;\n}}\n"


def module(programs: list[Program]) -> str:
    return HEAD + "".join(kernel(program, f"k{number}") for number, program in enumerate(programs))


class Refused(Exception):
    """The virtual GPU refuses a kernel."""


def results(device: Device, programs: list[Program]) -> np.ndarray:
    """[program, register, lane] as the virtual GPU leaves them."""
    given = np.array([list(program.inputs.values()) for program in programs], np.uint64)
    made = np.zeros_like(given)
    result, loaded_module = device.load(module(programs))
    if result:
        raise Refused("the module")
    cuda, start, end = device.cuda, device.allocate(given.nbytes), device.allocate(made.nbytes)
    cuda.cuMemcpyHtoD_v2(start, given.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(given.nbytes))
    cuda.cuMemsetD8_v2(end, 0, ctypes.c_size_t(made.nbytes))
    for number, program in enumerate(programs):
        result, function = device.function(loaded_module, f"k{number}")
        if result:
            raise Refused(program.number + "\n" + "\n".join(line.text() for line in program.lines))
        at = number * SLOTS * LANES * 8
        values = [ctypes.c_uint64(start.value + at), ctypes.c_uint64(end.value + at)]
        pointers = (ctypes.c_void_p * 2)(*[ctypes.addressof(one) for one in values])
        result = cuda.cuLaunchKernel(function, 1, 1, 1, program.lanes, 1, 1, 0, None, pointers, None)
        assert result == 0, f"CUDA's error {result}: {program.number}"
    assert cuda.cuCtxSynchronize() == 0
    cuda.cuMemcpyDtoH_v2(made.ctypes.data_as(ctypes.c_void_p), end, ctypes.c_size_t(made.nbytes))
    cuda.cuMemFree_v2(start), cuda.cuMemFree_v2(end), cuda.cuModuleUnload(loaded_module)
    return made


def agrees(made: int, wanted: object) -> bool:
    if wanted is None or made == wanted:
        return True
    return isinstance(wanted, AnyNan) and FORMATS[wanted.type].is_nan(made)


def compare(program: Program, made: np.ndarray) -> Disagreement | None:
    expected = evaluate(program)
    for name, row in zip(REGISTERS, made.tolist(), strict=True):
        for lane, (one, wanted) in enumerate(zip(row, expected[name], strict=False)):
            if not agrees(one, wanted):
                return Disagreement(program, name, lane, one, wanted)
    return None


def disagreements(device: Device, programs: list[Program]) -> list[Disagreement]:
    made = results(device, programs)
    found = [compare(program, rows) for program, rows in zip(programs, made, strict=True)]
    return [one for one in found if one]


def minimize(device: Device, found: Disagreement) -> Disagreement:
    """Without the lines that it does not need, in one lane."""
    at = len(found.program.lines) - 1
    while at >= 0:
        lines = [line for k, line in enumerate(found.program.lines) if k != at]
        shorter = disagreements(device, [replace(found.program, lines=lines)])
        if shorter:
            found = shorter[0]
        at -= 1
    return found
