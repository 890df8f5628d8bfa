"""Ranks that the probe starts itself, for frameworks that have no launcher."""

import json
import os
import socket

from .base import Launcher

_RANK = "TFDET_RANK"


class Processes(Launcher):
    """Starts processes without a connection; the case itself connects them if it needs one."""

    name, transport = "processes", "none"

    def commands(self, number, command):
        return [(command, {_RANK: str(rank)}) for rank in range(number)]

    def rank(self):
        return int(os.environ[_RANK])


class TfConfig(Processes):
    """The workers of tf.distribute.MultiWorkerMirroredStrategy, which TF_CONFIG introduces to each other."""

    name, transport = "TF_CONFIG", "grpc"

    def commands(self, number, command):
        workers = ["localhost:{}".format(port) for port in _free_ports(number)]
        return [(command, {_RANK: str(rank), "TF_CONFIG": json.dumps(
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})}) for rank in range(number)]


def _free_ports(number):
    """Return `number` free TCP ports of localhost."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for listener in sockets:
            listener.bind(("localhost", 0))
        return [bound.getsockname()[1] for bound in sockets]
    finally:
        for listener in sockets:
            listener.close()
