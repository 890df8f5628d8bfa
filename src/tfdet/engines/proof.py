"""Proofs of the virtual GPU: what its report says of the kernels of one program (VGPU_CHECK=order)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfdet.base.errors import RunFailedError
from tfdet.engines import vgpu
from tfdet_common import order_report
from tfdet_common.order_report import OrderReport


def prove(words: Sequence[str], environ: Mapping[str, str]) -> tuple[int, OrderReport]:
    """Run a program on the virtual GPU with VGPU_CHECK=order: its exit code, and what was proved.

    DeviceUnavailableError where it ends well and never used the device; RunFailedError where there is no report.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.jsonl")
        code = vgpu.run(words, {**environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report)})
        return code, read_report(report)


def read_report(report: Path) -> OrderReport:
    """What a report says; RunFailedError where it is cut off or says nothing of an order."""
    try:
        return order_report.read(str(report))
    except FileNotFoundError:
        return OrderReport()  # the program launched nothing
    except ValueError as error:
        raise RunFailedError(
            f"the virtual GPU's report cannot be read: {error}", "Is the disk full? Nothing is proved."
        ) from None
