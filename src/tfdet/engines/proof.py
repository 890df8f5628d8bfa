"""Proofs of the virtual GPU: what its report says of the kernels of one program (VGPU_CHECK=order)."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfdet.base.errors import RunFailedError
from tfdet.engines import vgpu

Reason = tuple[str, tuple[int, ...]]  # why a proof ended, and the lines of PTX (offsets of machine code) that meet


@dataclass
class KernelProof:
    """What all launches of one kernel showed.

    Attributes:
        kernel: its name as the binary has it.
        launches: how many the program made.
        proved: of how many of them it was proved that every order of execution leaves the same bytes.
        reasons: why the others were not, and how many launches each reason ended.
        rules: by which rules the proved ones were.
    """

    kernel: str
    launches: int = 0
    proved: int = 0
    reasons: Counter[Reason] = field(default_factory=Counter)
    rules: set[str] = field(default_factory=set)

    @property
    def is_proved(self) -> bool:
        return self.proved == self.launches


@dataclass
class ProgramProof:
    """kernels: in the order of their first launch.  host: copies, fills and calls that no order carries."""

    kernels: dict[str, KernelProof] = field(default_factory=dict)
    host: Counter[str] = field(default_factory=Counter)

    @property
    def is_proved(self) -> bool:
        return bool(self.kernels) and not self.host and all(kernel.is_proved for kernel in self.kernels.values())


def prove(words: Sequence[str], environ: Mapping[str, str]) -> tuple[int, ProgramProof]:
    """Run a program on the virtual GPU with VGPU_CHECK=order: its exit code, and what was proved.

    DeviceUnavailableError where it ends well and never used the device; RunFailedError where there is no report.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.jsonl")
        code = vgpu.run(words, {**environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report)})
        return code, read_report(report)


def read_report(report: Path) -> ProgramProof:
    """What a report says; RunFailedError where it is cut off or says nothing of an order."""
    found = ProgramProof()
    try:
        with report.open(encoding="utf-8") as lines:
            for line in _parsed(lines):
                _add(found, line)
    except FileNotFoundError:
        pass  # the program launched nothing
    except (ValueError, KeyError, TypeError) as error:
        raise RunFailedError(
            f"the virtual GPU's report cannot be read: {error}", "Is the disk full? Nothing is proved."
        ) from None
    return found


def _parsed(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {number}: {error.msg}") from None


def _add(found: ProgramProof, line: dict[str, Any]) -> None:
    if "kernel" not in line:
        what = line.get("operation") or line.get("cpu_fallback") or "call"
        reasons = line.get("order", {}).get("reasons", [])
        found.host.update(f"{what}: {one['reason']}" for one in reasons)
        return
    kernel = found.kernels.setdefault(line["kernel"], KernelProof(line["kernel"]))
    kernel.launches += 1
    kernel.proved += line["order"]["proved"]
    kernel.rules.update(line["order"]["rules"] if line["order"]["proved"] else ())
    kernel.reasons.update({(one["reason"], tuple(sorted(set(one["lines"])))) for one in line["order"]["reasons"]})
