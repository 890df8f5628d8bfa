"""What commands tell spreadsheets and CI systems: CSV and JUnit's XML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from tfdet.base.sanitize import escape_hidden
from tfdet.store.records import Record
from tfdet.verdicts.status import StatusCell

_FORMULA_PREFIXES = ("=", "+", "-", "@")  # what a spreadsheet would run


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line a row, under the names of the first; empty where there is none."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    writer.writerows([_spreadsheet_safe(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _spreadsheet_safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    shown = escape_hidden(value).replace("\n", " ")
    return f"'{shown}" if shown.startswith(_FORMULA_PREFIXES) else shown


def cell_row(cell: StatusCell) -> dict[str, Any]:
    """As `status --json`; of the audit what it found, of signers who agrees, or what each says."""
    said = {
        "signers_agreeing": " and ".join(cell.cell.agreeing_signers),
        "agreements": "; ".join(f"{' and '.join(one.signers)}: {one.text}" for one in cell.cell.agreements),
        "disagreement": cell.signed_text if cell.cell.signers_conflict else "",
    }
    return {**cell.as_json(), **said, "audit": cell.finding.kind if cell.finding else None}


def record_row(record: Record) -> dict[str, Any]:
    return {
        "environment": record.environment, "device": record.device.model, "source": record.source, "case": record.case,
        "solution": record.solution, "observation": record.observation, "runs": record.runs,
        "differed": record.differed, "distinct": record.distinct, "max_ulp": record.max_ulp,
        "max_absolute": record.max_absolute, "median_seconds": record.median_seconds,
        "ran_on": " ".join(record.ran_on), "framework": record.framework.version, "machine": record.machine,
        "started": record.started, "error": f"{record.error.type}: {record.error.message}" if record.error else None,
        "digests": " ".join(record.digests), "checksum": record.checksum,
    }  # fmt: skip


def as_junit(cells: Iterable[StatusCell]) -> str:
    """A suite an environment and device, a test a cell: it fails where the evidence contradicts what documents claim,
    and is skipped where there is no evidence.
    """
    suites = ElementTree.Element("testsuites", {"name": "tfdet"})
    for (environment, device), some in groupby(sorted(cells, key=_place), key=_place):
        suite = ElementTree.SubElement(suites, "testsuite", {"name": f"{environment} {device}"})
        for cell in some:
            _test(suite, cell)
        for name, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
            suite.set(name, str(len(suite.findall(tag))))
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, "unicode") + "\n"


def _place(cell: StatusCell) -> tuple[str, str]:
    return cell.key.environment, cell.key.device


def _test(suite: ElementTree.Element, cell: StatusCell) -> None:
    name = f"{cell.key.source}[{cell.key.solution}]"
    test = ElementTree.SubElement(suite, "testcase", {"classname": suite.get("name", ""), "name": name})
    if cell.contradiction:
        ElementTree.SubElement(test, "failure", {"message": escape_hidden(cell.contradiction)})
    elif not cell.was_run:
        ElementTree.SubElement(test, "skipped", {"message": f"{cell.backing or 'nothing'}, not run"})
    told = f"{cell.cell.verdict or 'never run'}, {cell.cell.differed} of {cell.cell.runs} runs differed"
    ElementTree.SubElement(test, "system-out").text = told
