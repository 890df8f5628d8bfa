"""The interface of a launcher.  A new one is a class here and an entry in launchers.ALL."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from tfdet_probe.frameworks.base import Framework  # noqa: F401


class Launcher(object):
    """Starts the ranks of a case on this machine.

    Attributes:
        name: in cases and records.
        transport: by which the ranks exchange tensors, as records state it.
    """

    name = transport = ""

    def commands(self, number, command):
        # type: (int, list[str]) -> list[tuple[list[str], dict[str, str]]]
        """The command lines that start `number` ranks of `command`, each with its own environment variables.

        Either one command that starts all ranks, or one command for each rank.
        """
        raise NotImplementedError

    def rank(self):
        # type: () -> int
        """The number of this process, a rank that the launcher has started: 0 to number - 1."""
        raise NotImplementedError

    def join(self, framework):
        # type: (Framework) -> str | None
        """Connect this rank with the others.

        Returns:
            Name and version of the library that exchanges tensors, if it is not the framework itself.
        """
