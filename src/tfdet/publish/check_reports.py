"""Reports of `tfdet check` for code hosts and CI systems: SARIF 2.1.0 and JUnit XML.

`tfdet check` finds sources of nondeterminism in an installed framework, or in a program's calls to it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from tfdet.base.sanitize import escape_hidden
from tfdet.verdicts.program_check import InstalledBuild, ProgramFinding
from tfdet.verdicts.programs import Call
from tfdeterminism.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_sarif(findings_by_build: Mapping[InstalledBuild, Sequence[ProgramFinding]]) -> dict[str, Any]:
    """Return a SARIF log, with a rule for each source, and a result for each call or for the installation."""
    findings = [finding for group in findings_by_build.values() for finding in group]
    pages = {finding.rule_id: finding.page for finding in findings}
    rules = [{"id": key, "name": key, "help": {"text": f"See {page} of tfdet."}} for key, page in pages.items()]
    results = [result for finding in findings for result in _results(finding)]
    driver = {"name": "tfdet", "semanticVersion": __version__, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _results(finding: ProgramFinding) -> list[dict[str, Any]]:
    result = {
        "ruleId": finding.rule_id,
        "level": finding.level,
        "message": {"text": escape_hidden(finding_text(finding))},
    }
    locations = [_location(call) for call in finding.calls]
    return [result | {"locations": [location]} for location in locations] or [result]


def _location(call: Call) -> dict[str, Any]:
    """Return a SARIF location; logical for a notebook's cell, as its lines are not those of the file."""
    file = {"artifactLocation": {"uri": quote(os.fsencode(Path(call.file).as_posix()))}}
    if call.notebook_cell:
        return {
            "physicalLocation": file,
            "logicalLocations": [{"name": f"cell {call.notebook_cell}, line {call.line}"}],
        }
    return {"physicalLocation": file | {"region": {"startLine": call.line}}}


def finding_text(finding: ProgramFinding) -> str:
    """Return the text of a finding, with the solutions that resolve it unless it is a note."""
    return finding.text + (
        f" (settled by {', '.join(finding.settled_by)})" if finding.settled_by and finding.level != "note" else ""
    )


def as_junit(findings_by_build: Mapping[InstalledBuild, Sequence[ProgramFinding]]) -> str:
    """Return JUnit XML with a suite for each build and a test for each finding, which fails if it is an error."""
    suites = ElementTree.Element("testsuites", {"name": "tfdet check"})
    for build, findings in findings_by_build.items():
        name = f"{build.package} {build.version}"
        suite = ElementTree.SubElement(suites, "testsuite", {"name": name})
        for finding in findings:
            test = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": finding.rule_id})
            if finding.level == "error":
                ElementTree.SubElement(test, "failure", {"message": escape_hidden(finding_text(finding))})
            ElementTree.SubElement(test, "system-out").text = escape_hidden(finding_text(finding))
        suite.set("tests", str(len(findings)))
        suite.set("failures", str(sum(finding.level == "error" for finding in findings)))
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, "unicode") + "\n"
