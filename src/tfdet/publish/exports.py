"""Exports of cells and records for spreadsheets and CI systems: CSV and JUnit XML.

A cell is one environment, device, source of nondeterminism and solution; a record is the result of one case.
"""

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

_FORMULA_PREFIXES = ("=", "+", "-", "@")  # a spreadsheet would execute a text that begins so


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return CSV with the keys of the first row as header; an empty text if there are no rows."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow(rows[0])
    writer.writerows([_spreadsheet_safe(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _spreadsheet_safe(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = escape_hidden(value).replace("\n", " ")
    return f"'{text}" if text.startswith(_FORMULA_PREFIXES) else text


def cell_row(cell: StatusCell) -> dict[str, Any]:
    """Return the fields of `status --json`, with texts in place of the objects about audits and signers."""
    texts = {
        "signers_agreeing": " and ".join(cell.inferred.agreeing_signers),
        "agreements": "; ".join(
            f"{' and '.join(agreement.signers)}: {agreement.text}" for agreement in cell.inferred.agreements
        ),
        "disagreement": cell.signed_text if cell.inferred.signers_conflict else "",
    }
    return {**cell.as_json(), **texts, "audit": cell.finding.kind if cell.finding else None}


def record_row(record: Record) -> dict[str, Any]:
    """Return the main fields of a record as a row of CSV."""
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
    """Return JUnit XML with a suite for each environment and device, and a test for each cell.

    A test fails if the evidence contradicts a claim; it is skipped if the cell was not run.
    """
    suites = ElementTree.Element("testsuites", {"name": "tfdet"})
    for (environment, device), suite_cells in groupby(sorted(cells, key=_place), key=_place):
        suite = ElementTree.SubElement(suites, "testsuite", {"name": f"{environment} {device}"})
        for cell in suite_cells:
            _add_test(suite, cell)
        for name, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
            suite.set(name, str(len(suite.findall(tag))))
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, "unicode") + "\n"


def _place(cell: StatusCell) -> tuple[str, str]:
    return cell.key.environment, cell.key.device


def _add_test(suite: ElementTree.Element, cell: StatusCell) -> None:
    name = f"{cell.key.source}[{cell.key.solution}]"
    test = ElementTree.SubElement(suite, "testcase", {"classname": suite.get("name", ""), "name": name})
    if cell.contradiction:
        ElementTree.SubElement(test, "failure", {"message": escape_hidden(cell.contradiction)})
    elif not cell.was_run:
        ElementTree.SubElement(test, "skipped", {"message": f"{cell.backing or 'nothing'}, not run"})
    result = f"{cell.inferred.verdict or 'never run'}, {cell.inferred.differed} of {cell.inferred.runs} runs differed"
    ElementTree.SubElement(test, "system-out").text = result
