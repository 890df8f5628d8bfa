"""The values of one environment variable that distinguishes runs, such as the virtual GPU's schedule.

The virtual GPU is this project's emulator; a schedule is the order in which it runs blocks, warps and atomics.
"""

import contextlib
import io
import json
import os
import re

from .program_runner import DeviceUnusedError

VGPU = "VGPU_SCHEDULE"
_REPORT = "VGPU_REPORT"
_NAME = re.compile(r"(\d+)(?=[A-Za-z_])")  # the length before each name in a mangled symbol
_SENSITIVITIES = {"rounding": "rounding (a sum of floats)", "last_writer": "which write is last",
                  "returns_old": "the old value"}


class Schedules(object):
    """The values of an environment variable, of which each run takes the next.

    name: of the variable; without a name, runs are not distinguished.
    """

    def __init__(self, name=None, values=()):
        self.name, self.values = name, tuple(values)
        self._launches = None  # file in which the first run reports its launches on the virtual GPU

    def __bool__(self):
        return self.name is not None

    def run_environment(self, number, extra=None):
        """Return the variables of the run `number` of those that are compared; None for none."""
        environment = dict(extra or {})
        if self:
            environment[self.name] = self.values[number % len(self.values)]
        if self._launches:
            environment[_REPORT] = self._launches
        return environment or None

    @contextlib.contextmanager
    def require_launches(self, folder):
        """Raise DeviceUnusedError if the run in the block launches no kernel on the virtual GPU.

        folder: of the run; None for a run that need not launch one. Other schedules than the virtual GPU's require
        nothing.
        """
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
        """Return ({"times", "distinct"}, lines about the kernels) of an op that is run in each schedule."""
        path = os.path.join(folder, "launches.jsonl")
        report = {_REPORT: path} if self.name == VGPU else {}
        runs = [replay(self.run_environment(number, {} if number else report)) for number in range(len(self.values))]
        outputs = zip(*[run["digests"] for run in runs])
        distinct = max([len({tuple(digests) for digests in output}) for output in outputs] or [1])
        return {"times": len(runs), "distinct": distinct}, _kernels(path)


def _kernels(path):
    """Return a line about each kernel that the virtual GPU reports as order-dependent."""
    if not os.path.exists(path):
        return []
    with io.open(path, encoding="utf-8") as launches:
        order_dependent = [launch for launch in map(json.loads, launches) if launch.get("order_dependent")]
    return sorted({_kernel_text(launch, atomic) for launch in order_dependent for atomic in launch["order_dependent"]})


def _kernel_text(launch, atomic):
    code = launch.get("code", "ptx")
    place = "PTX line {}" if code == "ptx" else "byte {} of its machine code (" + code + ")"
    return "kernel {}: {:,} atomics at {} on {:,} addresses; order affects {}".format(
        demangled_name(launch["kernel"]), atomic.get("atomics", 0), place.format(atomic.get("line", "?")),
        atomic.get("addresses", 0), _SENSITIVITIES.get(atomic.get("order_sensitivity"), "the result"))


def demangled_name(mangled):
    """Return the part of a C++ symbol that names the kernel."""
    names, place = [], 0
    while True:
        match = _NAME.search(mangled, place)
        if match is None:
            break
        size = int(match.group(1))
        names.append(mangled[match.end():match.end() + size])
        place = match.end() + size
    kernels = [name for name in names if "kernel" in name.lower()]
    return (kernels or names or [mangled])[0]
