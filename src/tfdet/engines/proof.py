"""Proofs by the virtual GPU: runs a program with VGPU_CHECK=order and reads the report about its kernels.

The virtual GPU is an emulator. Under the check `order`, it tries to prove for each kernel launch that every order of
execution leaves the same bytes in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfdet.base.errors import RunFailedError
from tfdet.engines import vgpu
from tfdet_common import order_report
from tfdet_common.order_report import OrderReport


def prove(command: Sequence[str], environ: Mapping[str, str]) -> tuple[int, OrderReport]:
    """Run a program on the virtual GPU with VGPU_CHECK=order; return its exit code and the report.

    DeviceUnavailableError if the program succeeds without using the device; RunFailedError for a damaged report.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.jsonl")
        code = vgpu.run(command, {**environ, "VGPU_CHECK": "order", "VGPU_REPORT": str(report)})
        return code, read_report(report)


def read_report(report: Path) -> OrderReport:
    """Read a report, empty if there is none; RunFailedError if it is truncated or of another check."""
    try:
        return order_report.read(str(report))
    except FileNotFoundError:
        return OrderReport()  # the program launched no kernel
    except ValueError as error:
        raise RunFailedError(
            f"the virtual GPU's report cannot be read: {error}", "Is the disk full? Nothing is proved."
        ) from None
