"""The scanner's findings in real kernels equal the stored ones: a change requires a new version of the scanner."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from library_builders import DATA, library

from tfdet.audit.scan import scan_library
from tfdet.store.audits import SCANNER

GOLDEN = DATA / "golden"


def stored_form(fatbin: Path, folder: Path) -> dict[str, dict[str, list[object]]]:
    """Wrap the fat binary in a library in `folder`; return {architecture: {kernel: finding as stored}}."""
    path = folder / "library.so"
    path.write_bytes(library(fatbin.read_bytes()))
    result: dict[str, dict[str, list[object]]] = {}
    audit = scan_library(path, "library.so")
    assert audit.faults == ()
    for kernel in audit.kernels:
        result.setdefault(kernel.arch, {})[kernel.name] = [kernel.order_dependent, kernel.reason, kernel.atomics]
    return result


@pytest.mark.parametrize("name", ["tf1.14", "tf2.21"])
def test_findings_in_real_kernels_equal_the_stored_ones(name: str, tmp_path: Path) -> None:
    audited: dict[str, Any] = {"scanner": SCANNER, "kernels": stored_form(GOLDEN / f"{name}.fatbin", tmp_path)}
    path = GOLDEN / f"{name}.json"
    if os.environ.get("TFDET_WRITE_GOLDEN"):
        path.write_text(json.dumps(audited, indent=1, sort_keys=True) + "\n", "utf-8")
    assert audited == json.loads(path.read_text("utf-8")), (
        "the scanner says something else than its version did: raise SCANNER in src/tfdet/store/audits.py, write these "
        "files anew (TFDET_WRITE_GOLDEN=1), and make the audits again: tfdet audit ENV --write"
    )
    answers = {answer for kernels in audited["kernels"].values() for answer, *_ in kernels.values()}
    assert {"yes", "no"} <= answers
