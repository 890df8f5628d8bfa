"""Atomic instructions in PTX, the text that the driver compiles for GPUs newer than the library.

PTX is also the only evidence here for GPUs before Volta.  Reference: Parallel Thread Execution ISA, version 8.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tfdet.audit.basic_blocks import ControlFlowGraph

_NAME = rb"[A-Za-z_$%][\w$]*"
_HEADER = re.compile(rb"\.(entry|func)\b\s*(?:\([^)]{0,4096}\)\s*)?(" + _NAME + rb")[^;{]{0,65536}([;{])")
_ATOMIC = re.compile(rb"(?:atom|red|multimem\.red|cp\.reduce\.async\.bulk)\.[\w.:]+")
_STARTS = (b"atom.", b"\tred.", b" red.", b";red.", b"{red.", b"cp.reduce.async.bulk.", b"multimem.red.")
_STATEMENT = re.compile(
    rb"(?<![\w.$%])([a-z][a-z0-9]*(?:[.:][\w:]+)*)[ \t]+(" + _NAME + rb"(?=[ \t|]*,)|\{[^}]{0,1024}\})?"
)
_LABEL = re.compile(rb"\n[ \t]*(" + _NAME + rb"):")
_BRANCH = re.compile(rb"bra(?:\.uni)?[ \t]+(" + _NAME + rb")[ \t]*;")
_GUARD = re.compile(rb"@!?(" + _NAME + rb")\s+$")
_GUARD_LENGTH = 64
_OPERAND = re.compile(rb"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+")
_WORD = re.compile(_NAME)
_NUMBER = re.compile(rb"(?P<decimal>-?[0-9]{1,20})U?|0[xfd](?P<bits>[0-9a-fA-F]{1,16})")
_MEMORY = {"ld": "load", "ldu": "load", "st": "store", "call": "other", "cp": "other", "multimem": "other"}
# A block of its own, as inlined assembler opens one: it declares registers whose names others use too.
_SCOPE = re.compile(rb"\{\s*\.reg\b(?:[^{}]|\{[^{};]*\})*\}")
_DECLARED = re.compile(rb"\.reg\s+\.\w+\s+([^;]+);")
_COMMENT = re.compile(rb"//[^\n]*|/\*.{0,4096}?\*/", re.S)

_FLOAT_TYPE = re.compile(r"(bf16|f16|f32|f64)(?:x\d)?$")
_OPERATIONS = {"add": "add", "min": "minmax", "max": "minmax", "inc": "incdec", "dec": "incdec", "and": "bitop",
               "or": "bitop", "xor": "bitop", "exch": "exch", "cas": "cas"}  # fmt: skip
_FLOAT_ROLES = {"add": "add", "sub": "add", "mul": "multiply", "fma": "multiply-add", "mad": "multiply-add",
                "div": "divide", "rcp": "divide"}  # fmt: skip
_ROLES = {"mov": "move", "cvt": "convert", "cvta": "move", "neg": "convert", "abs": "convert", "setp": "compare",
          "set": "compare", "selp": "select", "min": "minmax", "max": "minmax", "add": "integer", "sub": "integer",
          "mul": "multiply", "mul24": "multiply", "mad": "multiply-add", "and": "bits", "or": "bits", "xor": "bits",
          "not": "bits", "shl": "bits", "shr": "bits", "shf": "bits", "prmt": "bits", "bfe": "bits", "bfi": "bits",
          "lop3": "bits", "popc": "integer", "clz": "integer", "atom": "load", "ld": "load", "ldu": "load"}  # fmt: skip


@dataclass(frozen=True)
class PtxFunction:
    """A function with a body."""

    name: str
    is_kernel: bool
    start: int  # of its body, bytes from the text's start
    end: int


@dataclass(frozen=True)
class PtxAtomic:
    """An atomic instruction."""

    function: PtxFunction
    offset: int  # bytes from the text's start
    kind: str  # one of model.KINDS


class Ptx:
    """The text of one PTX file."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    @cached_property
    def functions(self) -> list[PtxFunction]:
        """All functions with a body, in order."""
        bodies = sorted((header for header in self._headers() if header[3] == b"{"), key=lambda header: header.start())
        ends = [header.start() for header in bodies[1:]] + [len(self.text)]
        return [
            PtxFunction(header[2].decode("utf-8", "backslashreplace"), header[1] == b"entry", header.end(), end)
            for header, end in zip(bodies, ends, strict=False)
        ]

    def _headers(self) -> Iterator[re.Match[bytes]]:
        for word in (b".entry", b".func"):
            at = self.text.find(word)
            while at >= 0:
                header = _HEADER.match(self.text, at)
                if header:
                    yield header
                at = self.text.find(word, at + 1)

    def atomics(self) -> list[PtxAtomic]:
        """All atomic instructions inside functions, in order."""
        found = []
        functions = self.functions
        starts = [function.start for function in functions]
        for offset in self._mentions():
            instruction = _ATOMIC.match(self.text, offset)
            kind = kind_of(instruction[0].decode()) if instruction else None
            index = bisect_right(starts, offset) - 1
            if kind and index >= 0:
                found.append(PtxAtomic(functions[index], offset, kind))
        return found

    def _mentions(self) -> list[int]:
        """Where an atomic may be written; searching for plain strings is much faster than a pattern."""
        found = set()
        for start in _STARTS:
            skip = 0 if start[:1].isalpha() else 1
            at = self.text.find(start)
            while at >= 0:
                if skip or not self.text[max(0, at - 1) : at].strip(b" \t\n\r;{}:"):
                    found.add(at + skip)
                at = self.text.find(start, at + 1)
        return sorted(found)


def kind_of(instruction: str) -> str | None:
    """The kind of an instruction such as `atom.global.add.f32`; None where it is no atomic."""
    parts = instruction.replace("::", "_").split(".")
    base = next((_OPERATIONS[part] for part in parts[1:] if part in _OPERATIONS), None)
    if base is None:
        return None
    floating = next((match[1] for part in parts if (match := _FLOAT_TYPE.match(part))), None)
    spaces = [part for part in parts if part.startswith(("shared", "global"))]
    shared = "_shared" if spaces and spaces[0].startswith("shared") else ""
    if base == "add":
        return (f"float_add_{floating}" if floating else "int_add") + shared
    if base == "minmax":
        return ("float_minmax" if floating else "int_minmax") + shared
    return base + shared


class PtxDataflow:
    """Data flow of one function: every virtual register is written in one place, or in a few that join.

    Statements are known by their number; only those that are asked about are taken apart.
    """

    def __init__(self, text: bytes, function: PtxFunction) -> None:
        body = _COMMENT.sub(lambda comment: b" " * len(comment[0]), text[function.start : function.end])
        self.body = body
        self.start = function.start
        self.offsets: list[int] = []
        self.opcodes: list[bytes] = []
        self.writers: dict[bytes, set[int]] = defaultdict(set)
        for number, found in enumerate(_STATEMENT.finditer(body)):
            opcode, result = found.groups()
            self.offsets.append(found.start())
            self.opcodes.append(opcode)
            if result:
                for register in _WORD.findall(result) if result[:1] == b"{" else (result,):
                    self.writers[register].add(number)

        self.scopes = _scopes(body)

    def number(self, offset: int) -> int:
        """The number of the statement whose instruction is written at `offset` of the text."""
        return bisect_left(self.offsets, offset - self.start)

    @cached_property
    def _labels(self) -> dict[bytes, int]:
        """label: its offset"""
        return {match[1]: match.start() for match in _LABEL.finditer(self.body)}

    @cached_property
    def _branches(self) -> list[tuple[int, int]]:
        """(offset of a branch, offset of its label)"""
        found = [(match.start(), self._labels.get(match[1], -1)) for match in _BRANCH.finditer(self.body)]
        return [(branch, label) for branch, label in found if label >= 0]

    def blocks(self) -> ControlFlowGraph:
        return self._blocks

    @cached_property
    def _blocks(self) -> ControlFlowGraph:
        size = len(self.offsets)
        targets = {
            bisect_left(self.offsets, branch): bisect_left(self.offsets, label) for branch, label in self._branches
        }
        ends = {at for at, opcode in enumerate(self.opcodes) if opcode.split(b".")[0] in (b"bra", b"ret", b"exit")}
        labels = {bisect_left(self.offsets, label) for label in self._labels.values()}
        starts = sorted(cut for cut in {0, *labels, *(at + 1 for at in ends)} if cut < size)
        number = {start: block for block, start in enumerate(starts)}
        before: list[list[int]] = [[] for _ in starts]
        for block, end in enumerate([*starts[1:], size]):
            follows = [end] if end - 1 not in ends or self.condition(end - 1) is not None else []
            for following in [*follows, *([targets[end - 1]] if end - 1 in targets else [])]:
                if following in number:
                    before[number[following]].append(block)
        return ControlFlowGraph(starts, [*starts[1:], size], before)

    def position(self, at: int) -> int:
        return at

    def _operands(self, at: int) -> list[bytes]:
        """The texts of a statement's operands."""
        start = self.offsets[at] + len(self.opcodes[at])
        end = self.body.find(b";", start)
        return [operand.strip() for operand in _OPERAND.findall(self.body, start, end) if operand.strip()]

    def swap(self, at: int) -> tuple[list[bytes], list[bytes]]:
        operands = self._operands(at)
        return (_WORD.findall(operands[2]), _WORD.findall(operands[3])) if len(operands) > 3 else ([], [])

    def definitions(self, register: bytes, at: int) -> set[int]:
        writers = self.writers.get(register, set())
        if register not in self.scopes:
            return writers
        here = self.offsets[at]
        around = [(start, end) for start, end in self.scopes[register] if start <= here < end]
        start, end = max(around, default=(0, len(self.body)))
        return {writer for writer in writers if start <= self.offsets[writer] < end}

    def constants(self, at: int) -> tuple[Hashable, ...]:
        operands = self._operands(at)
        if b"cas" in self.opcodes[at].split(b"."):
            return tuple(self._constant(operands[n], at) if len(operands) > n else None for n in (2, 3))
        return (self._constant(operands[-1], at) if operands else None,)

    def _constant(self, operand: bytes, at: int) -> Hashable:
        """A value that is the same in all threads: a number, or the one that was moved there; None for all else."""
        definitions = self.definitions(operand, at)
        for move in definitions if len(definitions) == 1 else ():
            moved = self._operands(move)
            if self.role(move) == "move" and self.condition(move) is None and len(moved) == 2:
                operand = moved[1]
        return _number(operand)

    def memory(self, at: int) -> str:
        name, *parts = self.opcodes[at].decode().split(".")
        if {"param", "local", "const"} & {part.split(":")[0] for part in parts}:
            return ""
        if name in ("atom", "red"):
            operation = _OPERATIONS.get(next((part for part in parts if part in _OPERATIONS), ""))
            exchange = "exchange" if self._unread(at) else "other"
            return {"cas": "swap", "exch": exchange, "incdec": "count"}.get(operation or "", "other")
        return _MEMORY.get(name, "")

    def _unread(self, at: int) -> bool:
        """Does nothing use what the instruction writes?  Damaged code may name no operand at all."""
        result = _WORD.search(b"".join(self._operands(at)[:1]))
        return result is None or len(re.findall(re.escape(result[0]) + rb"(?![\w$])", self.body)) == 1

    def sources(self, at: int) -> list[bytes]:
        return [word for operand in self._operands(at)[1:] if operand[:1] != b"[" for word in _WORD.findall(operand)]

    def role(self, at: int) -> str:
        name, *parts = self.opcodes[at].decode().split(".")
        if name in ("ld", "ldu") and ("param" in parts or "const" in parts):
            return "source"
        floating = next((match[1] for part in parts if (match := _FLOAT_TYPE.match(part))), None)
        if floating and name in _FLOAT_ROLES:
            return f"{_FLOAT_ROLES[name]} {floating}"
        return _ROLES.get(name, "unknown")

    def condition(self, at: int) -> bytes | None:
        if self.opcodes[at].startswith(b"selp.") and (operands := self._operands(at)):
            return operands[-1]
        guard = _GUARD.search(self.body, max(0, self.offsets[at] - _GUARD_LENGTH), self.offsets[at])
        return guard[1] if guard else None

    def combined_predicates(self, at: int) -> list[bytes]:
        return self.sources(at) if self.opcodes[at].endswith(b".pred") else []

    def loop_head(self, at: int) -> int:
        here = self.offsets[at]
        heads = [label for branch, label in self._branches if label <= here <= branch]
        return bisect_left(self.offsets, max(heads)) if heads else at


def _number(text: bytes) -> int | None:
    """What a literal stands for, a float by its bits."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return int(found["bits"], 16) if found["bits"] else int(found["decimal"])


def _scopes(body: bytes) -> dict[bytes, list[tuple[int, int]]]:
    """Where each register that is declared inside a nested block is known: {register: [(offset, offset)]}."""
    found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for block in _SCOPE.finditer(body):
        for declared in _DECLARED.finditer(body, block.start(), block.end()):
            for register in _WORD.findall(declared[1]):
                found[register].append(block.span())
    return found
