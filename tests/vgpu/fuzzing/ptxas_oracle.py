"""A comparison of the statements that ptxas accepts with those that the virtual GPU accepts."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from virtual_device import HEAD, Device

PTXAS = shutil.which("ptxas", path="/usr/local/cuda/bin") or shutil.which("ptxas")
VARIABLES = """.global .align 16 .b8 g[256];
.const .align 16 .b8 c[256];
.func f() { ret; }
"""
HEADER = HEAD + VARIABLES
DECLARATIONS = """.reg .pred %p<4>; .reg .b16 %h<6>; .reg .b32 %r<10>; .reg .b64 %l<6>; .reg .b128 %q<3>;
.reg .b8 %b<4>;
.shared .align 16 .b8 s[256]; .local .align 16 .b8 own[64];
"""
REQUIREMENT = re.compile(r"line (\d+); error\s*: .* requires (?:\.target sm_(\d+)|PTX ISA \.version (\d+)\.(\d+))")
# A 32-bit address is an error, though it is told as a warning; a 16-bit one is not.
AT_LINE = re.compile(r"(?:line |32-bit address on line ')(\d+)(?:; (?:error|fatal)|' which is conflicting)")


def function(statement: str, name: str) -> str:
    """Return a kernel with the statement."""
    return f".visible .entry {name}(.param .align 16 .b8 p0[64]) {{\n{DECLARATIONS}{statement}\nout: ret;\n}}\n"


class PtxasFailed(Exception):
    """An error: ptxas fails without a complaint about any of the statements."""


def complaints(statements: dict[int, str], folder: Path) -> tuple[set[int], bool]:
    """Return the numbers of the statements that ptxas complains about, and whether it reached the end."""
    text, numbers = HEADER, {}
    for number, statement in statements.items():
        text += function(statement, f"k{number}")
        numbers[text.count("\n") - 2] = number
    path = folder / "statements.ptx"
    path.write_text(text)
    command = [PTXAS, "-arch=sm_90", "-O0", "-o", "/dev/null", str(path)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [int(number_text) for number_text in AT_LINE.findall(process.stderr)]
    refused = {numbers[line] for line in lines if line in numbers}
    if process.returncode and not refused:
        raise PtxasFailed(f"{process.returncode}: {process.stderr[:500]}")
    return refused, process.returncode == 0


def accepted_by_ptxas(statements: list[str], chunk: int = 300) -> list[bool | None]:
    """Return whether ptxas accepts each statement, or None if it crashes on the statement."""
    answers: dict[int, bool | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(statements), chunk):
            ask(dict(enumerate(statements[first : first + chunk], first)), answers, Path(folder))
    return [answers[number] for number in range(len(statements))]


def requirements(statements: list[str], chunk: int = 300) -> list[tuple[int, int]]:
    """Return the PTX version and the architecture that each statement needs, such as (86, 90).

    They come from the errors of ptxas for the oldest target; 0 stands for PTX 2.0 or sm_20 and older.  ptxas must
    accept all of the statements.
    """
    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statements.ptx"
        for first in range(0, len(statements), chunk):
            text, lines = f".version 1.4\n.target sm_10\n{VARIABLES}", []
            for number, statement in enumerate(statements[first : first + chunk]):
                text += function(statement, f"k{number}")
                lines.append(text.count("\n") - 2)
            path.write_text(text)
            command = [PTXAS, "-arch=sm_90", "-O0", "-o", "/dev/null", str(path)]
            stderr = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            needed = {line: [0, 0] for line in lines}
            for line, target, major, minor in REQUIREMENT.findall(stderr):
                requirement = needed.get(int(line), [0, 0])
                requirement[0] = max(requirement[0], int(major + minor or 0))
                requirement[1] = max(requirement[1], int(target or 0))
            results += [tuple(number if number > 20 else 0 for number in needed[line]) for line in lines]
    return results


def ask(statements: dict[int, str], answers: dict[int, bool | None], folder: Path) -> None:
    """Add the answers of ptxas; it stops at a syntax error, so the remaining statements are given to it again."""
    is_complete = False
    try:
        while statements and not is_complete:
            refused, is_complete = complaints(statements, folder)
            answers.update(dict.fromkeys(refused, False))
            statements = {number: statement for number, statement in statements.items() if number not in refused}
        answers.update(dict.fromkeys(statements, True))
    except PtxasFailed:
        if len(statements) == 1:
            answers.update(dict.fromkeys(statements, None))
            return
        items = list(statements.items())
        for half in (items[: len(items) // 2], items[len(items) // 2 :]):
            ask(dict(half), answers, folder)


def accepted_by_virtual_gpu(device: Device, statements: list[str], head: str = HEAD) -> list[bool]:
    """Return whether the device accepts each statement."""
    text = head + VARIABLES + "".join(function(statement, f"k{number}") for number, statement in enumerate(statements))
    result, module = device.load(text)
    if result:
        return [False] * len(statements) if len(statements) == 1 else one_by_one(device, statements, head)
    answers = [device.function(module, f"k{number}")[0] == 0 for number in range(len(statements))]
    device.cuda.cuModuleUnload(module)
    return answers


TARGET_SINCE = {30: 30, 32: 40, 35: 31, 50: 40, 52: 41, 53: 42, 60: 50, 61: 50, 70: 60, 72: 61, 75: 63, 80: 70, 86: 71}
TARGET_SINCE |= {87: 74, 89: 78, 90: 78}  # {target: the PTX version since which there is one}


def wrong_requirements(device: Device, expected: list[tuple[int, int, str]]) -> list[str]:
    """Return messages on statements that the device accepts too early, or not with just what they need.

    expected: (PTX version, architecture, statement); statements that the device never accepts are left out.
    """
    cases = []
    for version, target, statement in expected:
        version, target = max(version, 23), max(target, 20)
        cases.append((max(version, TARGET_SINCE.get(target, 0)), target, True, statement))
        if version > 23:
            cases.append((version - 1, target, False, statement))
        if target > 20:
            cases.append((version, target - 1, False, statement))
    supported = {text for text in {entry[2] for entry in expected} if accepted_by_virtual_gpu(device, [text])[0]}
    wrong = []
    for version, target in sorted({case[:2] for case in cases}):
        head = f".version {version // 10}.{version % 10}\n.target sm_{target}\n.address_size 64\n"
        group = [case for case in cases if case[:2] == (version, target) and case[3] in supported]
        results = accepted_by_virtual_gpu(device, [case[3] for case in group], head)
        wrong += [
            f"PTX {version / 10}, sm_{target}: {'refused' if is_valid else 'taken'}: {text}"
            for (_, _, is_valid, text), is_accepted in zip(group, results, strict=True)
            if is_accepted != is_valid
        ]
    return wrong


def one_by_one(device: Device, statements: list[str], head: str) -> list[bool]:
    """Return whether the device accepts each statement, each in a module of its own."""
    return [accepted_by_virtual_gpu(device, [statement], head)[0] for statement in statements]


# Statements that ptxas accepts, and that the virtual GPU refuses, naming the instruction.
NOT_SUPPORTED = re.compile(
    r"isspacep\.shared::cluster|fma\.[a-z.]*(oob|r[zmp]\.[a-z.]*bf16)"
    r"|(atom|sust|suld)\..*b128|(mov|st)\..*b128.*, (-?\d+|\w+)(\+\d+)?;|(ldu?|st)\.\S*(?<!b128) .*%q"
    r"|mov\.[bu]64 %l\d, (out|p0)|(addc|subc|madc)\.[a-z.]*[us]16|testp\.f|madc\.hi\.sat"
    r"|rcp\.[a-z.]*ftz[a-z.]*\.f64"
    r"|atom\.[a-z_.:]*(and|or|xor|exch)\.b\d+ %\w+, \[[^]]*\], [^,]*, "
    r"|barrier\.cluster|createpolicy|\.(?P<twice>\w+)\.(\w+\.)*(?P=twice)\b"
    # What follows has no stated meaning; for some of it ptxas leaves the operation out.
    r"|cp\.async.*, \[%r|mov\.b\d+ [^{]*\{(\d+,|.*_)|mov\.b128.*, %[a-z]+;"
    r"|setp\..*bf16x2 .*, %p\d;|mov\.v[24].*\}, (\w+|%clock\w*);|isspacep\..*, %r|red\..* _,"
    r"|[a-z]+\.[A-Za-z.]*bf16(x2)? .*\{"
    r"|\[4096\]|prefetch\.local|local.*\[%r|vm(in|ax)2\.add|set\..*[us]32\.b?f16x2|red\..*\[own|[ ,]f[,;]|\.const.*\[%r"
)
# Statements that the virtual GPU accepts, and ptxas refuses: they are valid for other targets, or have no effect.
TOLERATED = re.compile(
    # ptxas permits blanks before the dots of most names, but not of all.
    r"prefetchu|mad24\.sat|^(@!?%p\d )?\w+ \.|cvt\.sat\.[us]\d+\.[us]\d+"
    r"|setp\..*f16 .*\||st\.param|cc\.(lo|hi)|(wrap|clamp)\.[lr]"
)


def differs(statement: str, by_ptxas: bool | None, by_virtual_gpu: bool) -> bool:
    """Return whether just one of both accepts the statement, and no list of exceptions matches it."""
    if by_ptxas is None or by_ptxas == by_virtual_gpu:
        return False
    return not (NOT_SUPPORTED.search(statement.replace(" .", ".")) if by_ptxas else TOLERATED.search(statement))


def answers(device: Device, statements: list[str]) -> list[tuple[str, bool | None, bool]]:
    """Return (statement, by ptxas, by the device).

    If they differ, ptxas gets the statement alone, as its error may belong to the next line.
    """
    pairs = zip(statements, accepted_by_ptxas(statements), accepted_by_virtual_gpu(device, statements), strict=True)
    return [
        (text, accepted_by_ptxas([text])[0], by_virtual_gpu)
        if differs(text, by_ptxas, by_virtual_gpu)
        else (text, by_ptxas, by_virtual_gpu)
        for text, by_ptxas, by_virtual_gpu in pairs
    ]
