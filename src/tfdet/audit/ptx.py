"""Parser of PTX, which the driver compiles for GPUs newer than the library: finds atomics and their data flow.

For GPUs before Volta the audit reads PTX only, not machine code.
Reference: Parallel Thread Execution ISA, version 8.
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
_PREFIXES = (b"atom.", b"\tred.", b" red.", b";red.", b"{red.", b"cp.reduce.async.bulk.", b"multimem.red.")
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
# A nested block, as inline assembly uses: its registers may have the same names as those of other blocks.
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
    start: int  # of the body, in bytes from the start of the text
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
        """Return all functions with a body, in order."""
        bodies = sorted((header for header in self._headers() if header[3] == b"{"), key=lambda header: header.start())
        ends = [header.start() for header in bodies[1:]] + [len(self.text)]
        return [
            PtxFunction(header[2].decode("utf-8", "backslashreplace"), header[1] == b"entry", header.end(), end)
            for header, end in zip(bodies, ends, strict=False)
        ]

    def _headers(self) -> Iterator[re.Match[bytes]]:
        for directive in (b".entry", b".func"):
            at = self.text.find(directive)
            while at >= 0:
                header = _HEADER.match(self.text, at)
                if header:
                    yield header
                at = self.text.find(directive, at + 1)

    def atomics(self) -> list[PtxAtomic]:
        """Return all atomic instructions inside functions, in order."""
        atomics = []
        functions = self.functions
        starts = [function.start for function in functions]
        for offset in self._candidate_offsets():
            instruction = _ATOMIC.match(self.text, offset)
            kind = kind_of(instruction[0].decode()) if instruction else None
            index = bisect_right(starts, offset) - 1
            if kind and index >= 0:
                atomics.append(PtxAtomic(functions[index], offset, kind))
        return atomics

    def _candidate_offsets(self) -> list[int]:
        """Return the offsets at which an atomic may be; searching for plain strings is faster than for a pattern."""
        offsets = set()
        for prefix in _PREFIXES:
            skip = 0 if prefix[:1].isalpha() else 1
            at = self.text.find(prefix)
            while at >= 0:
                if skip or not self.text[max(0, at - 1) : at].strip(b" \t\n\r;{}:"):
                    offsets.add(at + skip)
                at = self.text.find(prefix, at + 1)
        return sorted(offsets)


def kind_of(instruction: str) -> str | None:
    """Return the kind of an instruction such as `atom.global.add.f32`, or None if it is not an atomic."""
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
    """The data flow of one function: see `cas_analysis.Dataflow` for the methods.

    Instructions are the numbers of statements; operands are parsed when a method needs them.
    """

    def __init__(self, text: bytes, function: PtxFunction) -> None:
        body = _COMMENT.sub(lambda comment: b" " * len(comment[0]), text[function.start : function.end])
        self.body = body
        self.start = function.start
        self.offsets: list[int] = []
        self.opcodes: list[bytes] = []
        self.writers: dict[bytes, set[int]] = defaultdict(set)
        for number, statement in enumerate(_STATEMENT.finditer(body)):
            opcode, result = statement.groups()
            self.offsets.append(statement.start())
            self.opcodes.append(opcode)
            if result:
                for register in _WORD.findall(result) if result[:1] == b"{" else (result,):
                    self.writers[register].add(number)

        self.scopes = _scopes(body)

    def number(self, offset: int) -> int:
        """Return the number of the statement whose instruction is at `offset` of the text."""
        return bisect_left(self.offsets, offset - self.start)

    @cached_property
    def _labels(self) -> dict[bytes, int]:
        """Return {label: offset}."""
        return {match[1]: match.start() for match in _LABEL.finditer(self.body)}

    @cached_property
    def _branches(self) -> list[tuple[int, int]]:
        """Return (offset of a branch, offset of its label) for each branch."""
        branches = [(match.start(), self._labels.get(match[1], -1)) for match in _BRANCH.finditer(self.body)]
        return [(branch, label) for branch, label in branches if label >= 0]

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
        block_numbers = {start: block for block, start in enumerate(starts)}
        predecessors: list[list[int]] = [[] for _ in starts]
        for block, end in enumerate([*starts[1:], size]):
            successors = [end] if end - 1 not in ends or self.condition(end - 1) is not None else []
            for successor in [*successors, *([targets[end - 1]] if end - 1 in targets else [])]:
                if successor in block_numbers:
                    predecessors[block_numbers[successor]].append(block)
        return ControlFlowGraph(starts, [*starts[1:], size], predecessors)

    def position(self, at: int) -> int:
        return at

    def _operands(self, at: int) -> list[bytes]:
        """Return the texts of a statement's operands."""
        start = self.offsets[at] + len(self.opcodes[at])
        end = self.body.find(b";", start)
        return [operand.strip() for operand in _OPERAND.findall(self.body, start, end) if operand.strip()]

    def swap(self, at: int) -> tuple[list[bytes], list[bytes]]:
        """Return the registers with the compared value and those with the new value of a compare-and-swap."""
        operands = self._operands(at)
        return (_WORD.findall(operands[2]), _WORD.findall(operands[3])) if len(operands) > 3 else ([], [])

    def definitions(self, register: bytes, at: int) -> set[int]:
        """Return the statements that may write the register that statement `at` sees under this name."""
        writers = self.writers.get(register, set())
        if register not in self.scopes:
            return writers
        offset = self.offsets[at]
        scopes = [(start, end) for start, end in self.scopes[register] if start <= offset < end]
        start, end = max(scopes, default=(0, len(self.body)))
        return {writer for writer in writers if start <= self.offsets[writer] < end}

    def constants(self, at: int) -> tuple[Hashable, ...]:
        """Return the operands of an atomic (of a CAS: compared, new) or a store; None for what may differ by thread."""
        operands = self._operands(at)
        if b"cas" in self.opcodes[at].split(b"."):
            return tuple(self._constant(operands[n], at) if len(operands) > n else None for n in (2, 3))
        return (self._constant(operands[-1], at) if operands else None,)

    def _constant(self, operand: bytes, at: int) -> Hashable:
        """Return a number that is the same in all threads, directly or by a `mov`; None for other operands."""
        definitions = self.definitions(operand, at)
        for move in definitions if len(definitions) == 1 else ():
            operands = self._operands(move)
            if self.role(move) == "move" and self.condition(move) is None and len(operands) == 2:
                operand = operands[1]
        return _number(operand)

    def memory(self, at: int) -> str:
        """Return how it accesses shared or global memory, such as "swap" for a CAS; "" if it does not."""
        name, *parts = self.opcodes[at].decode().split(".")
        if {"param", "local", "const"} & {part.split(":")[0] for part in parts}:
            return ""
        if name in ("atom", "red"):
            operation = _OPERATIONS.get(next((part for part in parts if part in _OPERATIONS), ""))
            exchange = "exchange" if self._is_result_unused(at) else "other"
            return {"cas": "swap", "exch": exchange, "incdec": "count"}.get(operation or "", "other")
        return _MEMORY.get(name, "")

    def _is_result_unused(self, at: int) -> bool:
        """Return whether no statement reads the instruction's result, or damaged code gives it no operand."""
        result = _WORD.search(b"".join(self._operands(at)[:1]))
        return result is None or len(re.findall(re.escape(result[0]) + rb"(?![\w$])", self.body)) == 1

    def sources(self, at: int) -> list[bytes]:
        return [name for operand in self._operands(at)[1:] if operand[:1] != b"[" for name in _WORD.findall(operand)]

    def role(self, at: int) -> str:
        """Return what the statement does to its sources, such as "add f32"; "input" for parameters and constants."""
        name, *parts = self.opcodes[at].decode().split(".")
        if name in ("ld", "ldu") and ("param" in parts or "const" in parts):
            return "input"
        floating = next((match[1] for part in parts if (match := _FLOAT_TYPE.match(part))), None)
        if floating and name in _FLOAT_ROLES:
            return f"{_FLOAT_ROLES[name]} {floating}"
        return _ROLES.get(name, "unknown")

    def condition(self, at: int) -> bytes | None:
        """Return the predicate that guards the statement or, for a selection, selects its source; None without."""
        if self.opcodes[at].startswith(b"selp.") and (operands := self._operands(at)):
            return operands[-1]
        guard = _GUARD.search(self.body, max(0, self.offsets[at] - _GUARD_LENGTH), self.offsets[at])
        return guard[1] if guard else None

    def combined_predicates(self, at: int) -> list[bytes]:
        return self.sources(at) if self.opcodes[at].endswith(b".pred") else []

    def loop_head(self, at: int) -> int:
        offset = self.offsets[at]
        heads = [label for branch, label in self._branches if label <= offset <= branch]
        return bisect_left(self.offsets, max(heads)) if heads else at


def _number(text: bytes) -> int | None:
    """Return the value of an integer literal, or the bits of a float literal; None for other operands."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return int(match["bits"], 16) if match["bits"] else int(match["decimal"])


def _scopes(body: bytes) -> dict[bytes, list[tuple[int, int]]]:
    """Return {register: the (start, end) offsets of the nested blocks that declare it}."""
    scopes: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for block in _SCOPE.finditer(body):
        for declaration in _DECLARED.finditer(body, block.start(), block.end()):
            for register in _WORD.findall(declaration[1]):
                scopes[register].append(block.span())
    return scopes
