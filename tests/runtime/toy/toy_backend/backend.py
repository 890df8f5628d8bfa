"""Records toyframe, a framework for tests.

TFDET_TRACE_BACKENDS has the entry "toyframe=toy_backend.backend:ToyBackend".
"""

from __future__ import annotations

from typing import Any

from tfdeterminism.trace.backends import Backend
from tfdeterminism.trace.faults import Fault
from tfdeterminism.trace.schema import traits


class ToyBackend(Backend):
    name, label = "toyframe", "Toyframe"
    packages = ("toyframe", "toy_backend")  # whose files are not the program's own

    def install(self, recording: Any) -> None:
        from . import install

        install.install(recording)

    def traits(self, op_type: str) -> frozenset[str]:
        # FORWARDS: the output repeats the inputs, so the op is no cause while any of them differs.
        return frozenset([traits.FORWARDS] if op_type == "Scale" else [])

    def advice_lines(self, fault: Fault, op_type: str | None, on_gpu: bool) -> list[str]:
        # UNEXPLAINED: the inputs agree, the output differs, and nothing says why.
        return ["toyframe.sum(x)  # instead of racy_sum"] if fault is Fault.UNEXPLAINED else []
