"""What the probe asks of a kind of device.  A new kind is a file here and its name in devices.ALL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Callable  # noqa: F401

    from tfdet_probe.frameworks.base import Framework  # noqa: F401


class Busy(Exception):
    """The device could not be kept busy."""


class Device(object):
    """One kind of device; a case runs on the first of it.

    kind: as records and matrix/devices call it.  word: what `--device` calls it.  placement: how frameworks begin its
    name, as in GPU:0.  in_company: is it kept busy beside later processes where nobody says otherwise?
    launches_kernels: ones that a profiler can name.  absent: what to do where there is none.
    """

    kind = word = placement = ""
    in_company = launches_kernels = False
    absent = ""

    @property
    def name(self):
        # type: () -> str
        return self.placement + ":0"

    def enter(self):
        # type: () -> None
        """Called once, before the framework is imported.  May begin this program anew, with the same arguments."""

    def installed(self):
        # type: () -> dict[str, object]
        """What every record's stack says of this kind on this machine, whichever device the case runs on."""
        return {}

    def describe(self, framework):
        # type: (Framework) -> tuple[dict[str, str] | None, dict[str, object]]
        """({kind, model} or None where the framework sees none, more of the stack).  Called in a child.

        model: the key of the evidence: the kind, or the kind, a dash and more.
        """
        raise NotImplementedError

    def turn(self, number):
        # type: (int) -> str | None
        """Called before the run of this number: 0 is the reference, which the others are compared with.

        The name of what it chose for this run, where a device can choose.
        """

    def details(self, turns):
        # type: (list[str]) -> dict[str, object] | None
        """What the record tells of the device beside its model.  turns: of the runs that differed."""

    def refusal(self):
        # type: () -> str | None
        """What the device cannot do and was asked for in this process; None: nothing, or it does not tell."""

    def state(self):
        # type: () -> dict[str, object] | None
        """What it says of itself now, for the record; None where it tells nothing."""

    def work(self):
        # type: () -> tuple[str, list[Callable[[], Callable[[], object]]]]
        """(what keeps it busy, [work]): in its own thread, each work() gives a step to be done again and again."""
        raise Busy("nothing is known that would")
