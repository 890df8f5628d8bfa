"""The plan the host made: which cells of the matrix to run here, and what documents claim of them."""

import json

from .. import devices

SCHEMA = 2
CONTROL = "none"


class BadPlan(Exception):
    pass


class Plan(object):
    """schema: 2; environment; framework: its name; solutions: [{key, env, call, seed, threads, options}];
    cells: [{device, source, solution, expect, may_fail}]; determinism_variables: [names].

    expect: what documents say of the cell, or None.  may_fail: why a crash there is no surprise, or None.
    apart_from: cases of which that is not said; absent: none.
    rank: where the cell comes when time is short, as a list that sorts; absent: in the suite's order.
    """

    def __init__(self, content):
        # type: (object) -> None
        if not isinstance(content, dict):
            raise BadPlan("not a plan")
        if content.get("schema") != SCHEMA:
            raise BadPlan("a plan of schema {}, this probe reads {}: build the plan anew with the tfdet "
                          "of this checkout".format(content.get("schema"), SCHEMA))
        self.environment = content["environment"]
        self.framework = content["framework"]
        self.solutions = {entry["key"]: entry for entry in content["solutions"]}
        self.determinism_variables = content["determinism_variables"]
        self._cells = content["cells"]
        for cell in self._cells:
            if cell["solution"] not in self.solutions:
                raise BadPlan("{}: no such solution: {}".format(cell["source"], cell["solution"]))
            if cell["device"] not in devices.WORDS:
                raise BadPlan("{}: no such device: {}".format(cell["source"], cell["device"]))

    @classmethod
    def load(cls, path):
        # type: (str) -> Plan
        try:
            with open(path) as source:
                return cls(json.load(source))
        except (BadPlan, IOError, OSError, ValueError, RecursionError) as error:
            raise BadPlan("{}: {}".format(path, error))
        except (KeyError, TypeError) as error:
            raise BadPlan("{}: not a plan: {}: {}".format(path, type(error).__name__, error))

    def cells(self, device, sources=None, solutions=None):
        # type: (str, list[str] | None, list[str] | None) -> dict[str, list[dict]]
        """{source: [cell]} on what `--device` calls so.

        Under a chosen solution nothing is shown without the control: it comes along, for the sources that have one.
        """
        here = [cell for cell in self._cells
                if cell["device"] == device and cell["source"] in (sources or [cell["source"]])]
        solved = {cell["source"] for cell in here if cell["solution"] in (solutions or [])}
        chosen = {}
        for cell in here:
            control = cell["solution"] == CONTROL and cell["source"] in solved
            if control or cell["solution"] in (solutions or [cell["solution"]]):
                chosen.setdefault(cell["source"], []).append(cell)
        return chosen

    def unknown(self, sources, solutions):
        # type: (list[str] | None, list[str] | None) -> list[str]
        """Names asked for that no cell has."""
        known = {cell["source"] for cell in self._cells}, set(self.solutions)
        return sorted(set(sources or []) - known[0]) + sorted(set(solutions or []) - known[1])
