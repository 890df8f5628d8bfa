"""Is a statement PTX?  ptxas' answer beside the virtual GPU's."""

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
DECLARED = """.reg .pred %p<4>; .reg .b16 %h<6>; .reg .b32 %r<10>; .reg .b64 %l<6>; .reg .b128 %q<3>;
.shared .align 16 .b8 s[256]; .local .align 16 .b8 own[64];
"""
REQUIREMENT = re.compile(r"line (\d+); error\s*: .* requires (?:\.target sm_(\d+)|PTX ISA \.version (\d+)\.(\d+))")
AT_LINE = re.compile(r"line '?(\d+)'?(?:; (?:error|fatal)| which is conflicting)")


def function(statement: str, name: str) -> str:
    return f".visible .entry {name}(.param .align 16 .b8 p0[64]) {{\n{DECLARED}{statement}\nout: ret;\n}}\n"


class NoAnswer(Exception):
    """ptxas ends without a word about any of them."""


def complaints(statements: dict[int, str], folder: Path) -> tuple[set[int], bool]:
    """The numbers of those that ptxas complains about, and has it gone on to the end?"""
    text, numbers = HEADER, {}
    for number, statement in statements.items():
        text += function(statement, f"k{number}")
        numbers[text.count("\n") - 2] = number
    path = folder / "statements.ptx"
    path.write_text(text)
    command = [PTXAS, "-arch=sm_90", "-O0", "-o", "/dev/null", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [int(one) for one in AT_LINE.findall(done.stderr)]
    found = {numbers[line] for line in lines if line in numbers}
    if done.returncode and not found:
        raise NoAnswer(f"{done.returncode}: {done.stderr[:500]}")
    return found, done.returncode == 0


def accepted_by_ptxas(statements: list[str], chunk: int = 300) -> list[bool | None]:
    """None where ptxas dies of one."""
    answers: dict[int, bool | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(statements), chunk):
            ask(dict(enumerate(statements[first : first + chunk], first)), answers, Path(folder))
    return [answers[number] for number in range(len(statements))]


def requirements(statements: list[str], chunk: int = 300) -> list[tuple[int, int]]:
    """The PTX version and the architecture that each needs, as 86 and 90: what ptxas misses in the oldest text.

    0: nothing.  What PTX 2.0 and sm_20 have counts as nothing.  Of statements that it accepts.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "statements.ptx"
        for first in range(0, len(statements), chunk):
            text, lines = f".version 1.4\n.target sm_10\n{VARIABLES}", []
            for number, one in enumerate(statements[first : first + chunk]):
                text += function(one, f"k{number}")
                lines.append(text.count("\n") - 2)
            path.write_text(text)
            command = [PTXAS, "-arch=sm_90", "-O0", "-o", "/dev/null", str(path)]
            said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            needed = {line: [0, 0] for line in lines}
            for line, target, major, minor in REQUIREMENT.findall(said):
                needs = needed.get(int(line), [0, 0])
                needs[0] = max(needs[0], int(major + minor or 0))
                needs[1] = max(needs[1], int(target or 0))
            found += [tuple(one if one > 20 else 0 for one in needed[line]) for line in lines]
    return found


def ask(statements: dict[int, str], answers: dict[int, bool | None], folder: Path) -> None:
    """It ends at the first error of syntax, so what it complained about is left out and all others are shown again."""
    done = False
    try:
        while statements and not done:
            refused, done = complaints(statements, folder)
            answers.update(dict.fromkeys(refused, False))
            statements = {number: one for number, one in statements.items() if number not in refused}
        answers.update(dict.fromkeys(statements, True))
    except NoAnswer:
        if len(statements) == 1:
            answers.update(dict.fromkeys(statements, None))
            return
        items = list(statements.items())
        for half in (items[: len(items) // 2], items[len(items) // 2 :]):
            ask(dict(half), answers, folder)


def accepted_by_virtual_gpu(device: Device, statements: list[str], head: str = HEAD) -> list[bool]:
    text = head + VARIABLES + "".join(function(one, f"k{number}") for number, one in enumerate(statements))
    result, module = device.load(text)
    if result:
        return [False] * len(statements) if len(statements) == 1 else one_by_one(device, statements, head)
    answers = [device.function(module, f"k{number}")[0] == 0 for number in range(len(statements))]
    device.cuda.cuModuleUnload(module)
    return answers


def wrong_requirements(device: Device, told: list[tuple[int, int, str]]) -> list[str]:
    """What the virtual GPU takes with less than it needs, or not with just that.  What it never takes is left out."""
    cases = []
    for version, target, statement in told:
        version, target = max(version, 23), max(target, 20)
        cases.append((version, target, True, statement))
        if version > 23:
            cases.append((version - 1, target, False, statement))
        if target > 20:
            cases.append((version, target - 1, False, statement))
    known = {one for one in {one[2] for one in told} if accepted_by_virtual_gpu(device, [one])[0]}
    wrong = []
    for version, target in sorted({one[:2] for one in cases}):
        head = f".version {version // 10}.{version % 10}\n.target sm_{target}\n.address_size 64\n"
        here = [one for one in cases if one[:2] == (version, target) and one[3] in known]
        made = accepted_by_virtual_gpu(device, [one[3] for one in here], head)
        wrong += [
            f"PTX {version / 10}, sm_{target}: {'refused' if wanted else 'taken'}: {text}"
            for (_, _, wanted, text), taken in zip(here, made, strict=True)
            if taken != wanted
        ]
    return wrong


def one_by_one(device: Device, statements: list[str], head: str) -> list[bool]:
    return [accepted_by_virtual_gpu(device, [one], head)[0] for one in statements]


# What ptxas takes and the virtual GPU refuses by its name.
NOT_SUPPORTED = re.compile(
    r"isspacep\.(const|param|shared::cluster)|fma\.(rz|rm|rp)\.[a-z.]*bf16"
    r"|fma\.rn\.oob|\.b128|mov\.[bu]64 %l\d, (out|p0)|(addc|subc|madc)\.[a-z.]*[us]16|testp\.f"
    r"|rcp\.[a-z.]*ftz[a-z.]*\.f64"
    r"|atom\.[a-z_.:]*(and|or|xor)\.b\d+ %\w+, \[[^]]*\], [^,]*, "
    r"|barrier\.cluster|createpolicy|\.(?P<twice>\w+)\.(\w+\.)*(?P=twice)\b"
    r"|\[4096\]|prefetch\.local|local.*\[%r|vm(in|ax)2\.add|set\..*[us]32\.b?f16x2|red\..*\[own|[ ,]f[,;]|\.const.*\[%r"
)
# What ptxas refuses and the virtual GPU takes: they are valid of other targets, or change nothing.
TOLERATED = re.compile(
    r"prefetchu|cvt\.sat\.[us]\d+\.[us]\d+"
    r"|setp\..*f16 .*\||st\.param|cc\.(lo|hi)|(wrap|clamp)\.[lr]"
)


def differs(statement: str, by_ptxas: bool | None, by_virtual_gpu: bool) -> bool:
    """Does only one of the two take it, and does no list say so?"""
    if by_ptxas is None or by_ptxas == by_virtual_gpu:
        return False
    return not (NOT_SUPPORTED if by_ptxas else TOLERATED).search(statement)


def answers(device: Device, statements: list[str]) -> list[tuple[str, bool | None, bool]]:
    """Of both.  Where they differ ptxas is asked again of this one alone: a fault may show in the line behind it."""
    told = zip(statements, accepted_by_ptxas(statements), accepted_by_virtual_gpu(device, statements), strict=True)
    return [
        (text, accepted_by_ptxas([text])[0], other) if differs(text, one, other) else (text, one, other)
        for text, one, other in told
    ]
