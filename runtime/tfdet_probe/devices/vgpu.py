"""The virtual GPU (the folder vgpu/): it runs the framework's own kernels under chosen schedules.

Each repeat has its schedule; the reference is `serial`.  The n-th run of a case has the same schedule on every machine,
so it gives the same bytes everywhere.
"""

import ctypes
import os
import sys
import tempfile

from tfdet_common import order_report
from tfdet_common.virtual_gpu import (
    AXIS_VARIABLES,
    CHOSEN_CODE,
    CODE,
    CPU_FALLBACKS,
    FOLDER,
    NAME,
    SCHEDULES,
    environ,
    is_schedule,
)

from .base import NO_CHOICES, Device

_LIBRARY = "libcuda.so.1"
_REFERENCE = "serial"
_MAX_SCHEDULES = 8  # that a record lists
_MAX_CALLS = 64  # of vendor libraries, that a record lists


class Vgpu(Device):
    """The virtual GPU; devices.base.Device says what each method does."""

    kind = cli_name = "vgpu"
    placement = "GPU"
    can_prove = True
    unavailable_advice = ("Use `tfdet run --device vgpu`, which builds it, or an image that `tfdet build` created on a "
                          "host with a C++ compiler.")

    def choose(self, choices):
        unknown = [schedule for schedule in choices.schedules if not is_schedule(schedule)]
        if unknown:
            raise ValueError("schedule {!r} not found: {}".format(unknown[0], SCHEDULES))
        self._choices = choices

    def initialize(self):
        """Restart the process with the virtual GPU's libraries first in LD_LIBRARY_PATH, which the loader reads once.

        Whatever the caller has set, a record says all that changes its bits: there are no CPU fallbacks, since a call
        of a vendor library is not supported here, and the choices of code, placement and number of multiprocessors are
        the defaults, unless choose() asks for something else.
        """
        for name in [CPU_FALLBACKS, CODE] + list(AXIS_VARIABLES.values()):
            os.environ.pop(name, None)
        for detail, number in self._choices.axes.items():
            os.environ[AXIS_VARIABLES[detail]] = str(number)
        if self._choices.cpu_fallbacks:
            os.environ[CPU_FALLBACKS] = "all"
        if self._choices.code:
            os.environ[CODE] = self._choices.code
        folder = _folder()
        restarted = os.environ.get("LD_LIBRARY_PATH", "").split(":")[0] == folder
        if restarted or not os.path.exists(os.path.join(folder, _LIBRARY)):
            return
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, "-m", "tfdet_probe"] + sys.argv[1:], environ(folder, os.environ))

    def describe(self, framework):
        visible = framework.visible(self.placement)
        if not visible or not (visible[0]["name"] or "").startswith(NAME):
            return None, {}
        return {"kind": self.kind, "model": "vgpu-sm" + (visible[0]["compute_capability"] or "").replace(".", "")}, {}

    def before_run(self, number):
        schedule = self._schedule(number)
        if _library().vgpu_set_schedule(schedule.encode("ascii")):
            raise ValueError("the virtual GPU does not know the schedule {}".format(schedule))
        return schedule

    def codes(self):
        return _library().vgpu_codes().decode("ascii").split()

    def _schedule(self, number):
        """The schedule of the n-th run: the reference, then the chosen ones in turn, if any are."""
        chosen = self._choices.schedules
        return chosen[(number - 1) % len(chosen)] if number and chosen else _schedule(number)

    def fallback_calls(self):
        return _library().vgpu_fallback_calls().decode("ascii").split() if self._choices.cpu_fallbacks else []

    def details(self, schedules, codes=(), fallback_calls=()):
        with open(os.path.join(_folder(), "sources")) as digest:  # of the virtual GPU's source code
            content = {"sources": digest.read().strip(), "reference": _REFERENCE,
                       "schedules": schedules[:_MAX_SCHEDULES]}
        if self._choices.cpu_fallbacks:  # a detail that no evidence may have
            content["cpu_fallbacks"] = list(fallback_calls)[:_MAX_CALLS]
        if self._choices.code:
            content[CHOSEN_CODE] = self._choices.code
        content.update(self._choices.axes)
        return dict(content, code=codes) if codes else content

    def is_chosen(self, details):
        axes = {detail: details[detail] for detail in AXIS_VARIABLES if detail in details}
        return details.get(CHOSEN_CODE) == self._choices.code and axes == self._choices.axes

    def __init__(self):
        self._choices = NO_CHOICES
        self._report = ""  # the file that the device appends to, if it proves

    def enable_proofs(self):
        """The device may be made while the framework is imported, and then reads these variables once."""
        handle, self._report = tempfile.mkstemp(prefix="tfdet-order-report-")
        os.close(handle)
        os.environ.update(VGPU_CHECK="order", VGPU_REPORT=self._report)

    def begin_proof(self):
        with open(self._report, "w"):  # emptied; the device appends
            pass

    def proof(self):
        return order_report.read(self._report)

    def end_proofs(self):
        if self._report:
            os.unlink(self._report)

    def refusal(self):
        return _library().vgpu_unsupported_calls().decode("utf-8", "replace").replace("\n", ", ") or None


def _folder():
    """The folder of its libraries: set for this process, or first in the LD_LIBRARY_PATH that it was started with."""
    return os.environ.get(FOLDER) or os.environ.get("LD_LIBRARY_PATH", "").split(":")[0]


def _schedule(number):
    """The schedule of the n-th run: the reference, the reverse order, then seeded ones."""
    if number < 2:
        return (_REFERENCE, "reverse")[number]
    return "{}:{}".format(("random", "adversary")[number % 2], number)


def _library():
    library = ctypes.CDLL(_LIBRARY)
    for text in (library.vgpu_unsupported_calls, library.vgpu_codes, library.vgpu_fallback_calls):
        text.restype = ctypes.c_char_p
    return library
