"""The plan: which cells to run here, and what documents claim of them.  The host writes it.

A cell is a device, a source of nondeterminism, and a solution, which makes the source deterministic.
"""

import json
import os
import stat

from .. import devices

SCHEMA = 2
CONTROL = "none"  # the solution that changes nothing: its results are compared with those of the others
MAX_BYTES = 1 << 24  # a plan has 100 KiB


class PlanFormatError(Exception):
    """The file is not a plan that this probe can read."""


class Plan(object):
    """A plan, parsed from JSON with these fields:

    schema: 2.
    environment: its key in the matrix.
    framework: its name.
    solutions: [{key, env, call, seed, threads, options}]; env: variables to set; call: a function to call, see
        Framework.apply; options: for the cases, such as workers.
    determinism_variables: names of environment variables to unset.
    cells: [{device, source, solution, expect, may_fail, except_cases, rank}]
        device: its name after `--device`.
        expect: 'deterministic' or 'raises' if documents claim it, or None.
        may_fail: why a crash is expected, or None.
        except_cases: keys of cases that the claim does not cover; absent: none.
        rank: the order if time is short, as a list that sorts; absent: the suite's order.
    """

    def __init__(self, content):
        # type: (object) -> None
        if not isinstance(content, dict):
            raise PlanFormatError("not a plan")
        if content.get("schema") != SCHEMA:
            raise PlanFormatError("the plan has schema {}, expected {}: rebuild it with the tfdet of this checkout"
                                  .format(content.get("schema"), SCHEMA))
        self.environment = content["environment"]
        self.framework = content["framework"]
        self.solutions = {entry["key"]: entry for entry in content["solutions"]}
        self.determinism_variables = content["determinism_variables"]
        self._cells = content["cells"]
        for cell in self._cells:
            if cell["solution"] not in self.solutions:
                raise PlanFormatError("{}: no such solution: {}".format(cell["source"], cell["solution"]))
            if cell["device"] not in devices.CLI_NAMES:
                raise PlanFormatError("{}: no such device: {}".format(cell["source"], cell["device"]))

    @classmethod
    def load(cls, path):
        # type: (str) -> Plan
        """Read a plan; PlanFormatError if the file is missing or is not a plan."""
        try:
            return cls(json.loads(_read_regular(path).decode("utf-8")))
        except (PlanFormatError, IOError, OSError, ValueError, RecursionError) as error:
            raise PlanFormatError("{}: {}".format(path, error))
        except (KeyError, TypeError) as error:
            raise PlanFormatError("{}: not a plan: {}: {}".format(path, type(error).__name__, error))

    def cells(self, device, sources=None, solutions=None):
        # type: (str, list[str] | None, list[str] | None) -> dict[str, list[dict]]
        """The cells to run.

        Args:
            device: its name after `--device`.
            sources: only these; None or empty: all.
            solutions: only these, with the controls of their sources: a result proves nothing without its control.

        Returns:
            {source: [cell]}.
        """
        on_device = [cell for cell in self._cells
                if cell["device"] == device and cell["source"] in (sources or [cell["source"]])]
        solved_sources = {cell["source"] for cell in on_device if cell["solution"] in (solutions or [])}
        chosen = {}
        for cell in on_device:
            control = cell["solution"] == CONTROL and cell["source"] in solved_sources
            if control or cell["solution"] in (solutions or [cell["solution"]]):
                chosen.setdefault(cell["source"], []).append(cell)
        return chosen

    def unknown(self, sources, solutions):
        # type: (list[str] | None, list[str] | None) -> list[str]
        """The requested sources and solutions that the plan does not have, sorted."""
        known = {cell["source"] for cell in self._cells}, set(self.solutions)
        return sorted(set(sources or []) - known[0]) + sorted(set(solutions or []) - known[1])


def _read_regular(path):
    # type: (str) -> bytes
    """Read a regular file of at most MAX_BYTES: reading a FIFO, a device or a sparse file might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PlanFormatError("not a regular file")
    with os.fdopen(descriptor, "rb") as source:
        content = source.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise PlanFormatError("longer than {} MiB, so no plan".format(MAX_BYTES >> 20))
    return content
