"""Runs that are told apart by one variable of their environment: the virtual GPU's schedules, above all."""

import contextlib
import io
import json
import os
import re

from .launcher import DeviceUnusedError

VGPU = "VGPU_SCHEDULE"
_REPORT = "VGPU_REPORT"
_NAME = re.compile(r"(\d+)(?=[A-Za-z_])")
_SENSITIVITIES = {"rounding": "rounding (a sum of floats)", "last_writer": "which write is last",
                  "returns_old": "the old value"}


class Schedules(object):
    """name: of the variable; values: each run takes the next. Without a name, runs are as they are."""

    def __init__(self, name=None, values=()):
        self.name, self.values = name, tuple(values)
        self._launches = None  # where the first run tells what it launches on the virtual GPU

    def __bool__(self):
        return self.name is not None

    def run_environment(self, turn, more=None):
        """The variables of the run number `turn` of those that are compared; None for none."""
        found = dict(more or {})
        if self:
            found[self.name] = self.values[turn % len(self.values)]
        if self._launches:
            found[_REPORT] = self._launches
        return found or None

    @contextlib.contextmanager
    def require_launches(self, folder):
        """The run meanwhile has to launch something, if it is the virtual GPU on which runs are to differ. folder: of
        the run, None for one that need not. Raises DeviceUnusedError."""
        if folder is not None and self.name == VGPU:
            self._launches = folder + "-launches.jsonl"
        try:
            yield
            if self._launches and not (os.path.exists(self._launches) and os.path.getsize(self._launches)):
                raise DeviceUnusedError("the program ran no kernel on the virtual GPU: nothing can be said of one",
                             "see that it places its model there, and that its framework's build is one for CUDA")
        finally:
            self._launches = None

    def replay_summary(self, replay, folder):
        """({"times", "distinct"}, lines about the kernels) of an op that is run once in each schedule."""
        path = os.path.join(folder, "launches.jsonl")
        report = {_REPORT: path} if self.name == VGPU else {}
        runs = [replay(self.run_environment(turn, report if not turn else None)) for turn in range(len(self.values))]
        outputs = zip(*[one["digests"] for one in runs])
        distinct = max([len({tuple(digests) for digests in output}) for output in outputs] or [1])
        return {"times": len(runs), "distinct": distinct}, _kernels(path)


def _kernels(path):
    """One line about each kernel whose atomics show their order, as the virtual GPU reports it."""
    if not os.path.exists(path):
        return []
    with io.open(path, encoding="utf-8") as launches:
        found = [launch for launch in map(json.loads, launches) if launch["order_dependent"]]
    return sorted({_kernel_text(launch, atomic) for launch in found for atomic in launch["order_dependent"]})


def _kernel_text(launch, atomic):
    code = launch.get("code", "ptx")
    place = "PTX line {}" if code == "ptx" else "byte {} of its machine code (" + code + ")"
    return "kernel {}: {:,} atomics at {} on {:,} addresses; order affects {}".format(
        demangled_name(launch["kernel"]), atomic.get("atomics", 0), place.format(atomic.get("line", "?")),
        atomic.get("addresses", 0), _SENSITIVITIES.get(atomic.get("order_sensitivity"), "the result"))


def demangled_name(mangled):
    """The part of a C++ symbol that says which kernel it is."""
    names, place = [], 0
    while True:
        found = _NAME.search(mangled, place)
        if found is None:
            break
        size = int(found.group(1))
        names.append(mangled[found.end():found.end() + size])
        place = found.end() + size
    kernels = [name for name in names if "kernel" in name.lower()]
    return (kernels or names or [mangled])[0]
