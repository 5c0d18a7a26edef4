"""What the images of the tests stand on: Debian from its packages, and the pause program. Nothing is pulled.

Each is a layer, the tar of a root file system. Debian's comes from the mirrors that this machine uses, and
names none of them. What no test needs is left out, half a gigabyte of it under torch.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import oci
from tests.cluster.apiserver import NoClusterToolsError

PAUSE = Path(__file__).with_name("pause.c")
SUITE = "bookworm"
PYTHON = (3, 11)
"""The suite's Python, whose wheels the collector needs."""
OURS = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources")
EPOCH = "315532800"
"""1980. With it compiled Python knows its sources by content, not by time."""
LEFT_OUT = (
    *("/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*"),
    # Perl beyond its base, of which a git without `add -p` and `send-email` needs nothing.
    *("/usr/share/perl/5*", "/usr/lib/*/perl/5*"),
    # What the libraries behind torch's image readers draw, translate and map with.
    *("/usr/share/X11/*", "/usr/share/iso-codes/*", "/usr/share/proj/*", "/usr/share/xml/*"),
    *(
        *("/usr/lib/*/dri/*", "/usr/lib/*/libLLVM*", "/usr/lib/*/libmfxhw64*", "/usr/lib/*/libz3.so*"),
        "/usr/lib/*/mfx/*",
    ),
    *("/usr/lib/libtorch-test/*", "/usr/lib/python3/dist-packages/torch/bin/test_*"),
    *("/usr/lib/python3/dist-packages/torch/include/*", "/usr/lib/python3/dist-packages/torch/test/*"),
    *("/usr/lib/python3/dist-packages/hypothesis/*", "/usr/lib/python3/dist-packages/sympy/*"),
    # It fails where files are missing. What is left is compiled by the hook below.
    "/usr/bin/py3compile",
)
COMPILE = 'chroot "$1" python3 -m compileall -q /usr/lib/python3/dist-packages'
FORGET = (
    'cd "$1" && rm -f etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/apt.conf.d/99mmdebstrap'
    " && for name in hosts hostname resolv.conf; do : > etc/$name; done"
)
ENDS_WITH_US = (
    # Killed with this process, however that ends; and no mount outlives them.
    *("setpriv", "--pdeathsig", "KILL", "unshare", "--fork", "--kill-child"),
    *("--pid", "--mount-proc", "--mount"),
)
MERGED = "/usr/share/mmdebstrap/hooks/merged-usr"
"""With it usr-is-merged will do in place of usrmerge, which is a program in Perl."""


@dataclass(frozen=True, slots=True)
class Base:
    """A Debian for one of the images."""

    name: str
    packages: tuple[str, ...]
    takes: str
    """With a mirror nearby, on two cores."""

    @property
    def key(self) -> str:
        """Stand for all that goes into it but the mirrors' state: a Debian is made once and kept."""
        content = (SUITE, EPOCH, LEFT_OUT, COMPILE, FORGET, self.packages)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


COLLECTOR = Base(
    "collector", ("ca-certificates", "git", "openssh-client", "python3", "python3-venv"), "40 seconds"
)
TRAINER = Base("trainer", ("python3", "python3-torch"), "2 minutes")


def missing() -> str:
    """Say what is missing here for the images to be built; empty where nothing is."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return "they are built on Linux, on x86-64"
    if os.geteuid() != 0:
        return "they are built by root"
    programs = [
        name for name in ("buildah", "gcc", "mmdebstrap", "setpriv", "unshare") if shutil.which(name) is None
    ]
    return f"{', '.join(programs)} not found" if programs else ""


def debian(base: Base, layer: Path) -> None:
    """Make the layer of a Debian. Raises NoClusterToolsError where its packages cannot be had."""
    argv = [*ENDS_WITH_US, "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=tar"]
    argv += ['--aptopt=APT::Install-Recommends "false"', "--dpkgopt=force-unsafe-io"]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    argv += [f"--hook-dir={MERGED}", f"--customize-hook={COMPILE}", f"--customize-hook={FORGET}"]
    argv += [f"--include={','.join(('usr-is-merged', *base.packages))}", SUITE, str(layer), *_mirrors()]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "TMPDIR": str(layer.parent)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        output = "\n".join(done.stderr.splitlines()[-10:])
        raise NoClusterToolsError(f"mmdebstrap cannot make the base of {base.name}:\n{output}")


def pause(layer: Path) -> None:
    """Make the layer of the program that holds a pod's namespaces. Raises NoClusterToolsError."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "pause")
        argv = ["gcc", "-Os", "-s", "-static", "-Wall", "-Werror", "-o", str(program), str(PAUSE)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoClusterToolsError(f"gcc cannot make a static program here:\n{done.stderr}")
        oci.layer_of(program, layer)


def _mirrors() -> list[str]:
    """Name the files of this machine's own mirrors where they serve the suite; mmdebstrap knows Debian's."""
    ours = [path for path in map(Path, OURS) if path.is_file() and SUITE in path.read_text()]
    return [str(path) for path in ours]
