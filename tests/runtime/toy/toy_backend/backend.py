"""Records toyframe; registered by the entry "toyframe=toy_backend.backend:ToyBackend"."""

from __future__ import annotations

from typing import Any

from tfdeterminism.trace.backends import Backend
from tfdeterminism.trace.faults import Fault
from tfdeterminism.trace.schema import traits


class ToyBackend(Backend):
    name, label = "toyframe", "Toyframe"
    packages = ("toyframe", "toy_backend")

    def install(self, recording: Any) -> None:
        from . import install

        install.install(recording)

    def traits(self, op_type: str) -> frozenset[str]:
        return frozenset([traits.FORWARDS] if op_type == "Scale" else [])

    def advice_lines(self, fault: Fault, op_type: str | None, on_gpu: bool) -> list[str]:
        return ["toyframe.sum(x)  # instead of racy_sum"] if fault is Fault.UNEXPLAINED else []
