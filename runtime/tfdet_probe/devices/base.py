"""The interface of a kind of device.  A new kind is a file in this folder and an entry in devices.ALL."""

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Callable, Sequence  # noqa: F401

    from tfdet_common.order_report import OrderReport  # noqa: F401
    from tfdet_probe.frameworks.base import Framework  # noqa: F401


class ContentionError(Exception):
    """The device cannot be kept busy."""


# What a caller may ask of a kind of device.  schedules: orders of execution, one for each run, in turn; none: the
# device's own.  cpu_fallbacks: compute calls of vendor libraries on the CPU; the records are then no evidence.  code:
# of virtual_gpu.CODES, where a container has both; None: the device's default.  axes: {what else changes results, a key
# of virtual_gpu.AXIS_VARIABLES: its number}, without those that keep their defaults.
DeviceChoices = collections.namedtuple("DeviceChoices", "schedules cpu_fallbacks code axes")
NO_CHOICES = DeviceChoices((), False, None, {})


class Device(object):
    """One kind of device; a case runs on the first device of its kind.

    Attributes:
        kind: its name in records and matrix/devices.
        cli_name: its name after `--device`.
        placement: the prefix of its name in frameworks: GPU of GPU:0.
        is_shared_by_ranks: whether the ranks of a case can all run on it.
        contention_by_default: whether it is kept busy beside later processes unless --no-contention is given.
        launches_kernels: whether it runs kernels that a profiler can name.
        can_prove: whether it shows that no order of execution gives other bytes, see proof().
        unavailable_advice: what the user can do if there is no such device.
    """

    kind = cli_name = placement = ""
    is_shared_by_ranks = False
    contention_by_default = launches_kernels = can_prove = False
    unavailable_advice = ""

    @property
    def name(self):
        # type: () -> str
        return self.placement + ":0"

    def choose(self, choices):
        # type: (DeviceChoices) -> None
        """Take what the caller asks of this kind of device; called once, before initialize().

        Raises:
            ValueError: this kind has no such choice.
        """
        if choices != NO_CHOICES:
            raise ValueError(
                "the device {} has no schedules, no CPU fallbacks, and no choice of code, placement or size".format(
                    self.cli_name))

    def initialize(self):
        # type: () -> None
        """Prepare the process; called once, before the framework is imported.  May restart it by execve."""

    def describe_installation(self):
        # type: () -> dict[str, object]
        """What this machine has of this kind, for the stack of every record, whatever device the case runs on."""
        return {}

    def describe(self, framework):
        # type: (Framework) -> tuple[dict[str, str] | None, dict[str, object]]
        """Describe the device; called in a child.

        Returns:
            {kind, model}, or None if the framework sees no such device; and fields of the record's stack.  model is the
            device's key in the evidence: the kind, or the kind, a dash and a name.
        """
        raise NotImplementedError

    def before_run(self, number):
        # type: (int) -> str | None
        """Called before each run; run 0 is the reference, which the others are compared with.

        Returns:
            The schedule of the run, if the device has schedules.
        """

    def codes(self):
        # type: () -> list[str]
        """The kinds of code that kernels of this process ran, if the device has a choice."""
        return []

    def is_chosen(self, details):
        # type: (dict[str, object]) -> bool
        """Were these details of a record made under the choices of this run?"""
        return True

    def fallback_calls(self):
        # type: () -> list[str]
        """The calls of vendor libraries that were computed on the CPU in this process, if the caller chose that."""
        return []

    def details(self, schedules, codes=(), fallback_calls=()):
        # type: (list[str], Sequence[str], Sequence[str]) -> dict[str, object] | None
        """Fields of the record's device beside its model.

        schedules: of the runs that differed.  codes, fallback_calls: what these functions told in any process.
        """

    def enable_proofs(self):
        # type: () -> None
        """Observe all accesses in this process and its children; called once, before the framework is imported."""
        raise NotImplementedError

    def begin_proof(self):
        # type: () -> None
        """Forget what was observed so far.  Called in a child, one child at a time, before it uses the device."""
        raise NotImplementedError

    def proof(self):
        # type: () -> OrderReport
        """What was observed since begin_proof().  ValueError, OSError: it cannot be read, so nothing is proved."""
        raise NotImplementedError

    def end_proofs(self):
        # type: () -> None
        """Remove what enable_proofs() made, if anything."""

    def refusal(self):
        # type: () -> str | None
        """The unsupported calls of this process, as text; None if there were none, or if it does not report them."""

    def state(self):
        # type: () -> dict[str, object] | None
        """The device's state now, for the record, such as clocks; None if it does not report one."""

    def contention_work(self):
        # type: () -> tuple[str, list[Callable[[], Callable[[], object]]]]
        """The work that keeps the device busy.

        Returns:
            A description for the record, and a list of functions.  Each is called in a thread of its own and returns a
            step, which is called repeatedly.

        Raises:
            ContentionError: the device cannot be kept busy.
        """
        raise ContentionError("no load is known for this device")
