"""The virtual GPU (the folder vgpu/): the framework's own kernels, run under schedules of our choice.

A repeat is one schedule; the reference is `serial`.  The n-th run of a case has the same schedule on every machine, so
that whoever runs it again sees the same bytes.
"""

import ctypes
import os
import sys

from tfdet_common.virtual_gpu import CPU_FALLBACKS, FOLDER, NAME, environ

from .base import Device

_LIBRARY = "libcuda.so.1"
_REFERENCE = "serial"
_KEPT = 8  # schedules of a record: its digests are as many


class Vgpu(Device):
    kind = word = "vgpu"
    placement = "GPU"
    absent = ("Run by `tfdet run --device vgpu`, which builds it, or in an image that `tfdet build` made where there "
              "was a compiler for it.")

    def enter(self):
        """Its libraries must be found before any other of their names: by the loader, as this process begins.

        Nothing may stand in for a closed library here: its call is refused by name, whatever the caller has set.
        """
        os.environ.pop(CPU_FALLBACKS, None)
        folder = _folder()
        begun = os.environ.get("LD_LIBRARY_PATH", "").split(":")[0] == folder
        if begun or not os.path.exists(os.path.join(folder, _LIBRARY)):
            return
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(sys.executable, [sys.executable, "-m", "tfdet_probe"] + sys.argv[1:], environ(folder, os.environ))

    def describe(self, framework):
        found = framework.visible(self.placement)
        if not found or not (found[0]["name"] or "").startswith(NAME):
            return None, {}
        return {"kind": self.kind, "model": "vgpu-sm" + (found[0]["compute_capability"] or "").replace(".", "")}, {}

    def turn(self, number):
        schedule = _schedule(number)
        if _library().vgpu_set_schedule(schedule.encode("ascii")):
            raise ValueError("the virtual GPU knows no schedule {}".format(schedule))
        return schedule

    def details(self, turns):
        with open(os.path.join(_folder(), "sources")) as told:
            return {"sources": told.read().strip(), "reference": _REFERENCE, "schedules": turns[:_KEPT]}

    def refusal(self):
        return _library().vgpu_refused().decode("utf-8", "replace").replace("\n", ", ") or None


def _folder():
    """Named for this process, or begun with by whoever started it."""
    return os.environ.get(FOLDER) or os.environ.get("LD_LIBRARY_PATH", "").split(":")[0]


def _schedule(number):
    """Of the n-th run: the reference, the one turned round, and then seeds."""
    if number < 2:
        return (_REFERENCE, "reverse")[number]
    return "{}:{}".format(("random", "adversary")[number % 2], number)


def _library():
    library = ctypes.CDLL(_LIBRARY)
    library.vgpu_refused.restype = ctypes.c_char_p
    return library
