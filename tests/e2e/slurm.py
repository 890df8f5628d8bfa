"""A Slurm cluster of two nodes on this machine, in its own folder, with its own ports and no authentication."""

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
    """A cluster; `environ` has the variables with which commands reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("state", *NODES):
            (folder / name).mkdir(parents=True)
        text = CONF.format(host=socket.gethostname(), folder=folder, ports=_free_ports(3))
        for name, content in (("slurm.conf", text), ("gres.conf", GRES), ("cgroup.conf", CGROUP)):
            (folder / name).write_text(content)
        self.environ = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def start(self) -> None:
        """Start the daemons, and wait until the nodes are idle; raise RuntimeError if they do not start."""
        for name in ("slurmctld", *NODES):
            self.start_node(name)
        wait_for(lambda: self.states() == dict.fromkeys(NODES, "idle"), "two idle nodes", 60)

    def start_node(self, name: str) -> None:
        """Start a daemon (the controller, or a node's), which forks and writes its pid file."""
        (self.folder / f"{name}.pid").unlink(missing_ok=True)
        command = ["slurmctld"] if name == "slurmctld" else ["slurmd", "-N", name]
        process = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=30)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {process.stderr.strip()}")

    def kill(self, name: str) -> None:
        """Kill a daemon with SIGKILL."""
        if (process := self._process(name)) is not None:
            os.kill(process, signal.SIGKILL)
            wait_for(lambda: not Path(f"/proc/{process}").exists(), f"the end of {name}", 10)

    def kill_node(self, name: str) -> None:
        """Kill a node and its jobs as a power failure does: no process sees another one die."""
        self.kill(name)
        for signal_number in (signal.SIGSTOP, signal.SIGKILL):
            for process in self._on_node(name):
                try:
                    os.kill(process, signal_number)
                except ProcessLookupError:
                    continue

    def stop(self) -> None:
        """Kill all daemons and jobs."""
        for name in NODES:
            self.kill_node(name)
        self.kill("slurmctld")

    def states(self) -> dict[str, str]:
        """Return the state of each node."""
        output = self.call("sinfo", "--noheader", "--Node", "--format=%N %t")
        return dict(line.split() for line in output.splitlines() if len(line.split()) == 2)

    def resume_drained(self) -> None:
        """Resume drained nodes, as an operator does.

        A controller that dies before it saves a started job starts it again, and drains nodes that know the job.
        """
        for name, state in self.states().items():
            if state.startswith("dr"):
                self.call("scontrol", "update", f"nodename={name}", "state=resume")

    def describe_state(self) -> str:
        """Return the state of nodes and jobs and the ends of the logs, to explain a failure."""
        reports = [self.call("scontrol", "show", kind) for kind in ("nodes", "jobs")]
        logs = [self.folder / f"{name}.log" for name in ("slurmctld", *NODES)]
        return "\n".join([*reports, *(f"{log.name}:\n{_end(log)}" for log in logs)])

    def call(self, *command: str) -> str:
        """Run a command of Slurm; return what it prints."""
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60).stdout

    def _process(self, name: str) -> int | None:
        """Return the process id of a daemon, or None."""
        try:
            return int((self.folder / f"{name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def _on_node(self, name: str) -> set[int]:
        """Return the processes of a node's jobs, by the variables that Slurm sets, and their descendants."""
        variables = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={self.environ['SLURM_CONF']}".encode()}
        processes = dict(_processes())
        job_processes = {process for process, (_, environ) in processes.items() if variables <= environ}
        while (
            children := {process for process, (parent, _) in processes.items() if parent in job_processes}
            - job_processes
        ):
            job_processes |= children
        return job_processes


def _end(log: Path, lines: int = 40) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-lines:]) if log.exists() else "none"


def _processes() -> Iterator[tuple[int, tuple[int, set[bytes]]]]:
    """Yield (process, (its parent, its environment))."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                yield int(entry.name), (parent, set((entry / "environ").read_bytes().split(b"\0")))
        except OSError:  # the process has ended
            continue


def wait_for(condition: Callable[[], bool], name: str, seconds: float) -> None:
    """Wait until the condition holds; raise RuntimeError after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"no {name} in {seconds:g} s")
        time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    """Return ports of this machine that nothing uses."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()
