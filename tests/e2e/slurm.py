"""A Slurm of two nodes on this machine: its own folder, its own ports, nobody's key."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue")
NODES = ("n1", "n2")
CONF = """\
ClusterName=tfdet
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ReturnToService=2
MpiDefault=none
SlurmdTimeout=5
KillWait=2
MessageTimeout=5
GresTypes=gpu
SchedulerParameters=sched_interval=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=16000 Gres=gpu:h100:1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=16000 Gres=gpu:a100:1
PartitionName=p Nodes=n1,n2 Default=YES State=UP
"""
GRES = """\
NodeName=n1 Name=gpu Type=h100 File=/dev/null
NodeName=n2 Name=gpu Type=a100 File=/dev/zero
"""
CGROUP = """\
CgroupPlugin=cgroup/v1
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=no
"""


class Slurm:
    """environ: what commands need to speak with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("state", *NODES):
            (folder / name).mkdir(parents=True)
        text = CONF.format(host=socket.gethostname(), folder=folder, ports=_free_ports(3))
        for name, content in (("slurm.conf", text), ("gres.conf", GRES), ("cgroup.conf", CGROUP)):
            (folder / name).write_text(content)
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """RuntimeError says why it does not come up."""
        for name in ("slurmctld", *NODES):
            self.bring_up(name)
        wait_for(lambda: self.states() == dict.fromkeys(NODES, "idle"), "two idle nodes", 60)

    def bring_up(self, name: str) -> None:
        """A daemon: the controller, or a node's.  It forks, and its pid file tells of it."""
        (self.folder / f"{name}.pid").unlink(missing_ok=True)
        command = ["slurmctld"] if name == "slurmctld" else ["slurmd", "-N", name]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=30)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")

    def kill(self, name: str) -> None:
        """By force."""
        if (process := self._process(name)) is not None:
            os.kill(process, signal.SIGKILL)
            wait_for(lambda: not Path(f"/proc/{process}").exists(), f"the end of {name}", 10)

    def kill_node(self, name: str) -> None:
        """With all that ran on it, as a machine dies that loses its power: no process sees another die."""
        self.kill(name)
        for what in (signal.SIGSTOP, signal.SIGKILL):
            for process in self._on_node(name):
                try:
                    os.kill(process, what)
                except ProcessLookupError:
                    continue

    def stop(self) -> None:
        for name in NODES:
            self.kill_node(name)
        self.kill("slurmctld")

    def states(self) -> dict[str, str]:
        done = self.call("sinfo", "--noheader", "--Node", "--format=%N %t")
        return dict(line.split() for line in done.splitlines() if len(line.split()) == 2)

    def resume_drained(self) -> None:
        """What Slurm leaves to an operator.

        A controller that dies before it wrote down what it started starts it again, and drains nodes that know the job.
        """
        for name, state in self.states().items():
            if state.startswith("dr"):
                self.call("scontrol", "update", f"nodename={name}", "state=resume")

    def told(self) -> str:
        """What it knows of its nodes and jobs, and the ends of its logs: for whoever has to explain a failure."""
        known = [self.call("scontrol", "show", what) for what in ("nodes", "jobs")]
        logs = [self.folder / f"{name}.log" for name in ("slurmctld", *NODES)]
        return "\n".join([*known, *(f"{log.name}:\n{_end(log)}" for log in logs)])

    def call(self, *command: str) -> str:
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60).stdout

    def _process(self, name: str) -> int | None:
        try:
            return int((self.folder / f"{name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _on_node(self, name: str) -> set[int]:
        """What runs for jobs there: Slurm tells each its node, and where its settings lie; and what these started."""
        ours = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={self.environ['SLURM_CONF']}".encode()}
        there = dict(_processes())
        found = {process for process, (_, environ) in there.items() if ours <= environ}
        while more := {process for process, (parent, _) in there.items() if parent in found} - found:
            found |= more
        return found


def _end(log: Path, lines: int = 40) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:]) if log.exists() else "none"


def _processes() -> Iterator[tuple[int, tuple[int, set[bytes]]]]:
    """(process, (its parent, its environment))."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), (parent, set((entry / "environ").read_bytes().split(b"\0")))
        except OSError:  # gone
            continue


def wait_for(what: Callable[[], bool], name: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise RuntimeError(f"no {name} in {seconds:g} s")
        time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
