"""A real Slurm on loopback: munged, slurmctld and a slurmd for each of three nodes, all of this machine."""

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.children import Children, until

NODES = ("n1", "n2", "n3")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
START_SECONDS = 180.0
CONFIGURATION = """
ClusterName=sweeps
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
MpiDefault=none
NodeName={node}[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{ports[1]}-{ports[3]}] CPUs=8 RealMemory=100000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class NoSlurmError(Exception):
    """Slurm cannot be started; the message says what is missing."""


@dataclass(frozen=True)
class Slurm:
    """A running Slurm."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command, cwd=cwd, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def queue(self, *options: str) -> list[str]:
        """Return lines of squeue without its head."""
        return self.run("squeue", "--noheader", *options).splitlines()


def _free_ports() -> list[int]:
    """Return four ports in a row that nobody listens on."""
    for first in range(23000, 32000, 4):
        ports = list(range(first, first + 4))
        with ExitStack() as stack:
            try:
                for port in ports:
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return ports
    raise NoSlurmError("no free ports")


@contextmanager
def running() -> Iterator[Slurm]:
    """Run Slurm for a block. Raises NoSlurmError."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    if missing:
        raise NoSlurmError(f"{', '.join(missing)} not installed: `make cluster-tools`")
    with tempfile.TemporaryDirectory(prefix="slurm-") as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)  # munged asks for it
        children = Children(folder / "logs")
        try:
            yield _started(children, folder)
        finally:
            children.end_all()


def _path() -> str:
    return os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])


def _started(children: Children, folder: Path) -> Slurm:
    key, configuration = folder / "munge.key", folder / "slurm.conf"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(1024))
    values = {"host": socket.gethostname(), "user": getpass.getuser(), "node": NODES[0][0], "folder": folder}
    configuration.write_text(CONFIGURATION.format(ports=_free_ports(), **values))
    environment = {"SLURM_CONF": str(configuration), "PATH": _path()}
    places = {name: f"{folder}/munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")}
    children.start(
        "munged",
        [
            *("munged", "--foreground", "--force"),
            *("--key-file", str(key)),
            *(part for name, path in places.items() for part in (f"--{name}", path)),
        ],
        env=environment,
    )
    socket_file = folder / "munge.socket"
    until("munged listens", socket_file.exists, seconds=START_SECONDS, pause=0.1)
    children.start("slurmctld", ["slurmctld", "-D"], env=environment)
    for node in NODES:
        children.start(node, ["slurmd", "-D", "-N", node], env=environment)
    slurm = Slurm(folder)

    def is_idle() -> bool:
        try:
            return slurm.run("sinfo", "--noheader", "--format=%t %D") == f"idle {len(NODES)}"
        except subprocess.CalledProcessError:
            return False

    until("all nodes are idle", is_idle, seconds=START_SECONDS)
    return slurm
