"""The box: process, mount and network namespaces of its own, so that whatever runs in it ends with it.

    python -m tests.cluster.box COMMAND [ARGUMENT]...

The kernel ends every process, mount and interface of the box when its first process ends, however that comes.
What it does not end are the cgroups that the kubelet makes: the process outside removes them. Needs root.
"""

import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ADDRESS = "10.209.0.1"
"""The node's, on a bridge: the kubelet takes no address of loopback."""
SERVICE = "10.0.0.1"
"""Of the Service `kubernetes`, which the API server answers itself: no proxy is needed."""
BRIDGE = "node0"
HOME = Path("/tmp")  # noqa: S108 - where every clone of this repository finds what another's box left
CGROUPS = Path("/sys/fs/cgroup")
PREFIX = "sweepledger-"
NAME = "SWEEPLEDGER_BOX"
EMPTIED = ("/run", "/var/log", "/var/lib/cni")
"""Where programs leave things that no option of theirs moves."""
WANTED_BY_KUBELETS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
"""What a kubelet sets for the whole machine; it writes nothing where it reads this."""
MAKES_NAMESPACES = (
    # Killed with the process outside, however that ends; and with it the box, by --kill-child.
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"),
    *("--pid", "--mount-proc", "--mount", "--net", "--ipc", "--uts"),
)
TOOLS = ("setpriv", "unshare", "nsenter", "ip", "mount")


class NoBoxError(Exception):
    """This machine cannot give a box."""


def why_not() -> str | None:
    """Say why there can be no box here; None where there can."""
    if sys.platform != "linux":
        return "Linux is needed"
    if os.geteuid() != 0:
        return "root is needed"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"{', '.join(missing)} not found" if missing else None


def is_inside() -> bool:
    return NAME in os.environ


def folder() -> Path:
    return HOME / os.environ[NAME]


def cgroup() -> str:
    """Name the folder that this box's cgroups lie in, in every hierarchy."""
    return os.environ[NAME]


def run(command: list[str]) -> int:
    """Run a command in a box of its own; give its exit status. Raises NoBoxError."""
    reason = why_not()
    if reason:
        raise NoBoxError(reason)
    sweep_out()
    with _named() as name:
        process = subprocess.Popen(
            [*MAKES_NAMESPACES, sys.executable, "-m", "tests.cluster.box", "--inside", *command],
            env={**os.environ, NAME: name},
        )
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: end(process.pid))
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the command got it, too, and ends in its own time
                continue


def first_process(unshare: int) -> int | None:
    """Give the number, outside, of a box's first process, by that of the program that made it."""
    with suppress(OSError):
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        return int(children[0]) if children else None
    return None


def end(unshare: int) -> None:
    """Ask the command of a box to end, as Ctrl-C does: what it started ends with it."""
    first = first_process(unshare)
    if first is not None:
        os.kill(first, signal.SIGTERM)


@contextmanager
def _named() -> Iterator[str]:
    """Give a box its name, and hold it by a lock: a name that nobody holds is of a box that is no more."""
    name = f"{PREFIX}{os.getpid()}-{time.time_ns()}"
    path = HOME / f"{name}.lock"
    with _held(path):
        (HOME / name).mkdir(mode=0o711)
        make_cgroups(name)
        try:
            yield name
        finally:
            _remove(path)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a lock by its file; one that another took for left over in that moment is made anew."""
    while True:
        with path.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if path.exists() and path.stat().st_ino == os.fstat(held.fileno()).st_ino:
                yield
                return


def sweep_out() -> None:
    """Remove what boxes left whose process outside was killed."""
    for path in HOME.glob(f"{PREFIX}*.lock"):
        with suppress(OSError), path.open("r") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)


def _remove(lock: Path) -> None:
    _remove_cgroups(lock.stem)
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    lock.unlink()


def _cgroups(pattern: str) -> list[Path]:
    # One hierarchy (v2), or one a controller (v1).
    return [*CGROUPS.glob(pattern), *CGROUPS.glob(f"*/{pattern}")]


def below(top: Path, pattern: str) -> list[Path]:
    """List what lies below a folder of cgroups. `Path.glob` fails where one goes meanwhile."""
    results = glob.glob(pattern, root_dir=top, recursive=True)  # noqa: PTH207 - see above
    return [top / path for path in results]


def make_cgroups(name: str) -> None:
    """Make the folder below which a kubelet makes its own; it makes no first one itself."""
    if (CGROUPS / "cgroup.controllers").is_file():
        (CGROUPS / name).mkdir()
        return
    for hierarchy in CGROUPS.iterdir():
        if hierarchy.is_symlink() or not (hierarchy / "tasks").is_file():
            continue
        (hierarchy / name).mkdir()
        for file in hierarchy.glob(
            "cpuset.[cm][pe][um]s"
        ):  # of a new one both are empty, and nothing may run
            (hierarchy / name / file.name).write_text(file.read_text())


def _remove_cgroups(name: str) -> None:
    deadline = time.monotonic() + 20
    for top in _cgroups(name):
        while top.is_dir() and time.monotonic() < deadline:
            for folder, _, _ in os.walk(top, topdown=False):
                with suppress(OSError):  # a process in it is still being ended
                    Path(folder).rmdir()
            if top.is_dir():
                time.sleep(0.1)


def _inside(command: list[str]) -> int:
    """Be the box's first process: prepare it, run the command, take in what others leave."""
    for folder in EMPTIED:
        Path(folder).mkdir(parents=True, exist_ok=True)
        do("mount", "-t", "tmpfs", "tmpfs", folder)
    Path("/run/netns").mkdir()
    _pretend_settings()
    do("ip", "link", "set", "lo", "up")
    do("ip", "link", "add", BRIDGE, "type", "bridge")
    do("ip", "address", "add", f"{ADDRESS}/24", "dev", BRIDGE)
    do("ip", "address", "add", f"{SERVICE}/32", "dev", BRIDGE)
    do("ip", "link", "set", BRIDGE, "up")
    do("ip", "route", "add", "default", "dev", BRIDGE)  # packets to the world are lost, not refused
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    # What a shell starts in the background ignores Ctrl-C, and hands that down: nothing here would ever end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: process.send_signal(signal.SIGINT))
    while True:
        try:
            pid, status = os.wait()
        except KeyboardInterrupt:
            continue
        if pid == process.pid:
            return os.waitstatus_to_exitcode(status)


def _pretend_settings() -> None:
    """Let a kubelet read what it would otherwise set for the whole machine, for ever."""
    for name, value in WANTED_BY_KUBELETS.items():
        file = Path("/run/kernel") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value)
        do("mount", "--bind", str(file), f"/proc/sys/{name}")


def do(*argv: str) -> None:
    """Run a program that must succeed; its words are the error's."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoBoxError(f"{' '.join(argv)}: {done.stderr.strip()}")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        return abs(_inside(arguments[1:]))
    try:
        return run(arguments)
    except NoBoxError as error:
        print(f"skipped: no cluster tools ({error})", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
