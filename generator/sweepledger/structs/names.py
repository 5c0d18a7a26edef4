"""Names of sweeps, batches, files, parameters, variables and interpreters, with the limits that Kubernetes sets.

Also the paths of results and records, relative to the root of the repository.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

MAX_LABEL_LENGTH = 63
"""DNS-1123 label, and the longest value of a Kubernetes label."""

MAX_BATCH_NUMBER = 999
BATCH_NAME = re.compile(r"(?P<sweep>.+)-b(?P<number>[1-9][0-9]{0,2})-(?P<digest>[0-9a-f]{8})", re.ASCII)
MAX_BATCH_SUFFIX_LENGTH = len("-b999-01234567")
MAX_OBJECT_SUFFIX_LENGTH = len("-t0123456789a")
"""The longest suffix of an object's name: shape `jobs` adds the trial id, more than `-99999` or `-table-000`."""

MAX_SWEEP_NAME_LENGTH = MAX_LABEL_LENGTH - MAX_BATCH_SUFFIX_LENGTH - MAX_OBJECT_SUFFIX_LENGTH
SWEEP_NAME = re.compile(rf"[a-z](?:[a-z0-9-]{{0,{MAX_SWEEP_NAME_LENGTH - 2}}}[a-z0-9])?", re.ASCII)

MAX_POD_SUFFIX_LENGTH = len("-49-node-0-99-abcde")
"""Suffix of a JobSet's pods after the name of a distributed trial; no operator adds a longer one."""
MAX_DISTRIBUTED_NAME_LENGTH = MAX_LABEL_LENGTH - MAX_BATCH_SUFFIX_LENGTH - MAX_POD_SUFFIX_LENGTH

SETTINGS_FILE = "sweepledger.yaml"
SPECS = "sweeps"
"""The folder of the specs, each of which is named after its sweep."""
SUFFIX = ".yaml"

LAUNCHER, LAUNCHER_FILE = "launcher/v1", "launch.py"
"""Its folder below `base/`, and its file."""
LAUNCHER_PROGRAM = rf"{LAUNCHER}/launch\w*\.py"
"""The launcher and its parts: a pattern of their paths below `base/`."""
LOCK_FILE = "batch.json"
"""The lock of a batch, in its folder."""

IDENTITY_NAME = "sweepledger"
IDENTITY_EMAIL = "sweepledger@localhost"
"""The author of commits where git knows none, and the signer of the collector's commits."""

RESERVED_SWEEP_NAMES = frozenset({"con", "default", "kube-system", "main"})

PARAMETER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", re.ASCII)

PLACEHOLDER_DIGEST = "0" * 8
"""Takes the place of the digest in a batch's name while the digest is computed."""


def is_sweep_name(text: str) -> bool:
    """Return whether a sweep may have this name: all names derived from it must be DNS-1123 labels."""
    return SWEEP_NAME.fullmatch(text) is not None and text not in RESERVED_SWEEP_NAMES


PLATFORM_SUFFIX = "-platform"
"""What the project of a platform is called after that of its batches; no cluster is called so after another."""


def shortened(name: str, longest: int) -> str:
    """Return a name, or if it is longer its beginning and a digest: no two such names are the same."""
    if len(name) <= longest:
        return name
    digest = sha256(name.encode()).hexdigest()[:8]
    return f"{name[: longest - 1 - len(digest)].rstrip('-')}-{digest}"


def suggest_sweep_name(text: str) -> str | None:
    """Return the sweep name nearest to a text; None if no part of the text can be one."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-0123456789")[:MAX_SWEEP_NAME_LENGTH].strip("-")
    return name if is_sweep_name(name) else None


def file_system_name(name: str) -> str:
    """Return the plainest name that a file system may take for one part of a path.

    macOS ignores letter case, Unicode form and invisible characters; Windows also dots, blanks and the name of a
    stream at the end. `git` refuses the same forms of `.git`.
    """
    if name.isascii():
        return name.lower().partition(":")[0].rstrip(" .")
    visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold().partition(":")[0].rstrip(" .")


def batch_name(sweep: str, number: int, digest: str) -> str:
    """Return the name of a batch, from its sweep, its number and the digest of its files."""
    return f"{sweep}-b{number}-{digest[: len(PLACEHOLDER_DIGEST)]}"


@lru_cache(maxsize=2**16)
def split_batch_name(name: str) -> tuple[str, int, str] | None:
    """Return the sweep, number and digest in the name of a batch; None for any other text."""
    match = BATCH_NAME.fullmatch(name)
    if match is None or not is_sweep_name(match["sweep"]):
        return None
    return match["sweep"], int(match["number"]), match["digest"]


def environment_name(parameter: str) -> str:
    """Return the name of the environment variable for a parameter."""
    return "SWEEP_PARAM_" + re.sub(r"[^A-Z0-9]", "_", parameter.upper())


# What decides which program a container starts. Specs, and the admission policies in CEL, follow the same patterns,
# which are in the syntax that both know.

_PART = r"\.{0,2}[A-Za-z0-9_+-][A-Za-z0-9_.+-]*"
INTERPRETER = rf"\.{{0,2}}[A-Za-z0-9_][A-Za-z0-9_.+-]*|(?:/{_PART})+"
"""A name, which the container's PATH leads to, or an absolute path without empty parts, `.` and `..`."""
LONGEST_INTERPRETER = 255
WRITABLE_FOLDERS = ("/dev/", "/proc/", "/sweep/", "/tmp/")  # noqa: S108 - folders of a container
"""Folders of a container that the image does not determine: a file there may be what a trial wrote."""

HOOKS = (
    r"PATH|LD_[A-Za-z0-9_]*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_ENV|BASH_FUNC_.*|ENV|SHELLOPTS|_PYTHON.*"
    r"|PYTHON_?(?:BREAKPOINT|EXECUTABLE|HOME|INSPECT|PATH|PLATLIBDIR|PRESITE|PYCACHEPREFIX|STARTUP|USERBASE|WARNINGS)"
)
"""Variables with which the dynamic loader, a shell or Python runs other code before, or in place of, the launcher."""
DEVICES = (
    r"NVIDIA_(?:VISIBLE_DEVICES|MIG_[A-Z0-9_]*|IMEX_CHANNELS|GDS|GDRCOPY|MOFED|NVSWITCH)|DOCKER_RESOURCE_[A-Z0-9_]*"
    r"|(?:AMD|ASCEND|AWS_NEURON|CAMBRICON|HABANA|IX|MTHREADS)_VISIBLE_DEVICES"
)
"""Variables by which the container runtimes of vendors give a container devices of its node that nobody counts.

Those that only hide devices from a program (`CUDA_`, `HIP_` and `ROCR_VISIBLE_DEVICES`), or name parts of the driver
(`NVIDIA_DRIVER_CAPABILITIES`), do no harm.
"""


def is_interpreter(program: str, mounts: Iterable[str] = ()) -> bool:
    """Return whether a cluster's policies let a program start the launcher; `mounts` are further folders, with `/`."""
    outside = (*WRITABLE_FOLDERS, *mounts)
    return (
        len(program) <= LONGEST_INTERPRETER
        and re.fullmatch(INTERPRETER, program, re.ASCII) is not None
        and not f"{program}/".startswith(outside)
    )


def is_hook(variable: str) -> bool:
    """Return whether a variable may change which program starts."""
    return re.fullmatch(HOOKS, variable, re.ASCII) is not None


def gives_devices(variable: str) -> bool:
    """Return whether a container runtime may give devices to whoever sets a variable."""
    return re.fullmatch(DEVICES, variable, re.ASCII) is not None


RESULTS = "results"
DELETING_PREFIX = ".gone-"
"""Prefix of the name under which a batch is being deleted: a crash leaves no partial batch under its own name."""
RECORDS = "records"
"""Folder of records below a sweep's results folder."""

LOCKS = "overlays/archive"
"""Folder of recorded batches, by name."""
LAPTOP_FILE = "laptop.txt"
"""Names the batches that a person ran and recorded, one on a line; no signature vouches for their records."""
LAPTOP_WARNING = "made on a laptop, and signed by nobody"
"""What readers are told of such batches."""


def results_folder(sweep: str) -> str:
    """Return the results folder of a sweep, from the repository's root."""
    return f"{RESULTS}/{sweep}"


def records_path(batch: str, part: int = 0) -> str:
    """Return the path of a file of a batch's records, below its sweep's results folder; most batches have one."""
    return f"records/{batch}-{part:03d}.jsonl" if part else f"records/{batch}.jsonl"


def laptop_path(sweep: str) -> str:
    """Return the path of the file that names a sweep's batches made on a laptop, from the repository's root."""
    return f"{results_folder(sweep)}/{LAPTOP_FILE}"


def laptop_batches(content: bytes) -> tuple[str, ...]:
    """Return the batches that such a file names."""
    return tuple(content.decode("ascii", "replace").splitlines())


def batch_of_records(path: str) -> str:
    """Return the batch of a file of records, by its path."""
    name = path.rpartition("/")[2].removesuffix(".jsonl")
    # The name of a batch ends in eight digits, so the number of a part is no part of it.
    return re.sub(r"-[0-9]{3}\Z", "", name, flags=re.ASCII)
