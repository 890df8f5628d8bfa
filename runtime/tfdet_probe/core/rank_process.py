"""python -m tfdet_probe.core.rank_process DIRECTORY LAUNCHER: what a launcher starts for each rank, see core.ranks.

It tells the probe the environment variables that the launcher gave it, and waits until the probe has ended the rank.
"""

import json
import os
import socket
import sys

from .. import launchers

SOCKET = "ranks"  # in the directory


def main(directory, launcher):
    # type: (str, str) -> None
    """Ask for a fork that becomes this rank, and stay until the connection ends."""
    connection = socket.socket(socket.AF_UNIX)  # its path has at most 107 bytes: so by /proc/self/fd
    connection.connect("/proc/self/fd/{}/{}".format(os.open(directory, os.O_RDONLY), SOCKET))
    hello = {"rank": launchers.load(launcher).rank(), "environ": dict(os.environ)}
    connection.sendall(json.dumps(hello).encode("ascii") + b"\n")
    connection.recv(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
