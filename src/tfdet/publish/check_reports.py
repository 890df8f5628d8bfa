"""What `tfdet check` found, for code hosts and CI systems: SARIF 2.1.0 and JUnit's XML."""

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


def as_sarif(found: Mapping[InstalledBuild, Sequence[ProgramFinding]]) -> dict[str, Any]:
    """A rule a source; a result a place in the program, or one of the installation."""
    every = [one for some in found.values() for one in some]
    pages = {one.rule_id: one.page for one in every}
    rules = [{"id": key, "name": key, "help": {"text": f"See {page} of tfdet."}} for key, page in pages.items()]
    results = [result for one in every for result in _results(one)]
    driver = {"name": "tfdet", "semanticVersion": __version__, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _results(one: ProgramFinding) -> list[dict[str, Any]]:
    result = {"ruleId": one.rule_id, "level": one.level, "message": {"text": escape_hidden(finding_text(one))}}
    places = [_location(call) for call in one.calls]
    return [result | {"locations": [place]} for place in places] or [result]


def _location(call: Call) -> dict[str, Any]:
    """A line of a cell is no line of the notebook's file."""
    file = {"artifactLocation": {"uri": quote(os.fsencode(Path(call.file).as_posix()))}}
    if call.cell:
        return {"physicalLocation": file, "logicalLocations": [{"name": f"cell {call.cell}, line {call.line}"}]}
    return {"physicalLocation": file | {"region": {"startLine": call.line}}}


def finding_text(one: ProgramFinding) -> str:
    return one.text + (f" (settled by {', '.join(one.settled_by)})" if one.settled_by and one.level != "note" else "")


def as_junit(found: Mapping[InstalledBuild, Sequence[ProgramFinding]]) -> str:
    """A suite a build, a test a finding: errors fail."""
    suites = ElementTree.Element("testsuites", {"name": "tfdet check"})
    for build, some in found.items():
        name = f"{build.package} {build.version}"
        suite = ElementTree.SubElement(suites, "testsuite", {"name": name})
        for one in some:
            test = ElementTree.SubElement(suite, "testcase", {"classname": name, "name": one.rule_id})
            if one.level == "error":
                ElementTree.SubElement(test, "failure", {"message": escape_hidden(finding_text(one))})
            ElementTree.SubElement(test, "system-out").text = escape_hidden(finding_text(one))
        suite.set("tests", str(len(some)))
        suite.set("failures", str(sum(one.level == "error" for one in some)))
    ElementTree.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, "unicode") + "\n"
