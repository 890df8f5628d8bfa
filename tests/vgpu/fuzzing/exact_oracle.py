"""A comparison of random PTX programs: results of the virtual GPU, and of exact arithmetic."""

import ctypes
from dataclasses import dataclass, replace

import numpy as np
from virtual_device import HEAD, Device

from fuzzing.forms import CANONICAL, AnyNan
from fuzzing.programs import LANES, REGISTER_FILES, REGISTERS, Program, evaluate
from fuzzing.reals import Format

REGISTER_COUNT = len(REGISTERS)  # registers of a lane, in words of 64 bits
FORMATS = {name: Format(name) for name in CANONICAL}


@dataclass
class Disagreement:
    """A register's result in one lane that differs from the expected one."""

    program: Program
    register: str
    lane: int
    result: int
    expected_value: object

    def __str__(self) -> str:
        used = {token.strip(",;") for line in self.program.lines for token in line.text().replace("|", " ").split()}
        used |= {line.guard.lstrip("@!") for line in self.program.lines}
        inputs = [f"{name} = {row[self.lane]:#x}" for name, row in self.program.inputs.items() if name in used]
        expected = f"{self.expected_value:#x}" if isinstance(self.expected_value, int) else self.expected_value
        return "\n".join(
            [
                f"disagreement: {self.program.options}",
                *(f"    {line.text()}" for line in self.program.lines),
                f"  lane {self.lane} of {self.program.lanes}: {', '.join(inputs)}",
                f"  {self.register} is {self.result:#x}; expected: {expected}",
            ]
        )


def declarations() -> str:
    """Return the PTX declarations of all registers."""
    return "".join(
        f".reg .{'pred' if width == 1 else f'b{width}'} {name}<{count}>;\n"
        for width, (name, count) in REGISTER_FILES.items()
    )


def load_text(name: str, width: int, offset: int) -> str:
    """Return the PTX that loads a register from the array of inputs."""
    if width == 1:
        return f"ld.global.b32 %x0, [%a0+{offset}]; setp.ne.u32 {name}, %x0, 0;\n"
    return f"ld.global.b{width} {name}, [%a0+{offset}];\n"


def store_text(name: str, width: int, offset: int) -> str:
    """Return the PTX that stores a register into the array of outputs."""
    if width == 1:
        return f"selp.b32 %x0, 1, 0, {name}; st.global.b32 [%a1+{offset}], %x0;\n"
    return f"st.global.b{width} [%a1+{offset}], {name};\n"


PROLOGUE = (
    declarations()
    + ".reg .b32 %x<2>;\n.reg .b64 %a<3>;\nmov.u32 %x0, %tid.x; mul.wide.u32 %a2, %x0, 8;\n"
    + "ld.param.u64 %a0, [in]; add.u64 %a0, %a0, %a2; ld.param.u64 %a1, [out]; add.u64 %a1, %a1, %a2;\n"
    + "".join(load_text(name, width, k * LANES * 8) for k, (name, width) in enumerate(REGISTERS.items()))
)
EPILOGUE = "".join(store_text(name, width, k * LANES * 8) for k, (name, width) in enumerate(REGISTERS.items()))


def kernel(program: Program, name: str) -> str:
    """Return the PTX of a kernel that runs the program in each lane."""
    body = "".join(f"{line.text()}\n" for line in program.lines)
    return f".visible .entry {name}(.param .u64 in, .param .u64 out) {{\n{PROLOGUE}{body}{EPILOGUE}ret;\n}}\n"


def module(programs: list[Program]) -> str:
    """Return a PTX module with a kernel for each program."""
    return HEAD + "".join(kernel(program, f"k{number}") for number, program in enumerate(programs))


class Refused(Exception):
    """An error: the virtual GPU refuses a kernel."""


def results(device: Device, programs: list[Program]) -> np.ndarray:
    """Return the registers after the programs as [program, register, lane]."""
    inputs = np.array([list(program.inputs.values()) for program in programs], np.uint64)
    outputs = np.zeros_like(inputs)
    result, loaded_module = device.load(module(programs))
    if result:
        raise Refused("the module")
    cuda, device_inputs, device_outputs = device.cuda, device.allocate(inputs.nbytes), device.allocate(outputs.nbytes)
    cuda.cuMemcpyHtoD_v2(device_inputs, inputs.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(inputs.nbytes))
    cuda.cuMemsetD8_v2(device_outputs, 0, ctypes.c_size_t(outputs.nbytes))
    for number, program in enumerate(programs):
        result, function = device.function(loaded_module, f"k{number}")
        if result:
            raise Refused(program.options + "\n" + "\n".join(line.text() for line in program.lines))
        offset = number * REGISTER_COUNT * LANES * 8
        values = [ctypes.c_uint64(device_inputs.value + offset), ctypes.c_uint64(device_outputs.value + offset)]
        pointers = (ctypes.c_void_p * 2)(*[ctypes.addressof(value) for value in values])
        result = cuda.cuLaunchKernel(function, 1, 1, 1, program.lanes, 1, 1, 0, None, pointers, None)
        assert result == 0, f"CUDA's error {result}: {program.options}"
    assert cuda.cuCtxSynchronize() == 0
    cuda.cuMemcpyDtoH_v2(outputs.ctypes.data_as(ctypes.c_void_p), device_outputs, ctypes.c_size_t(outputs.nbytes))
    cuda.cuMemFree_v2(device_inputs), cuda.cuMemFree_v2(device_outputs), cuda.cuModuleUnload(loaded_module)
    return outputs


def agrees(result: int, expected: object) -> bool:
    """Return whether a result is the expected one: None expects nothing, an AnyNan any NaN."""
    if expected is None or result == expected:
        return True
    return isinstance(expected, AnyNan) and FORMATS[expected.type].is_nan(result)


def compare(program: Program, rows: np.ndarray) -> Disagreement | None:
    """Return the first register and lane whose result is not the expected one, or None."""
    expected = evaluate(program)
    for name, row in zip(REGISTERS, rows.tolist(), strict=True):
        for lane, (result, expected_value) in enumerate(zip(row, expected[name], strict=False)):
            if not agrees(result, expected_value):
                return Disagreement(program, name, lane, result, expected_value)
    return None


def disagreements(device: Device, programs: list[Program]) -> list[Disagreement]:
    """Run the programs; return what differs from the expected results."""
    outputs = results(device, programs)
    comparisons = [compare(program, rows) for program, rows in zip(programs, outputs, strict=True)]
    return [disagreement for disagreement in comparisons if disagreement]


def minimize(device: Device, disagreement: Disagreement) -> Disagreement:
    """Return the disagreement with as few lines as possible."""
    index = len(disagreement.program.lines) - 1
    while index >= 0:
        lines = [line for k, line in enumerate(disagreement.program.lines) if k != index]
        shorter = disagreements(device, [replace(disagreement.program, lines=lines)])
        if shorter:
            disagreement = shorter[0]
        index -= 1
    return disagreement
