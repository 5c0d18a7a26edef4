"""What decides which program a container starts: the interpreter's name, and variables that loaders and shells obey.

Specs, and the admission policies in CEL, follow the same rules; the patterns are in the syntax that both know.
"""

import re
from collections.abc import Iterable

_PART = r"\.{0,2}[A-Za-z0-9_+-][A-Za-z0-9_.+-]*"
INTERPRETER = rf"\.{{0,2}}[A-Za-z0-9_][A-Za-z0-9_.+-]*|(?:/{_PART})+"
"""A name, which the container's PATH leads to, or an absolute path without empty parts, `.` and `..`."""
LONGEST_INTERPRETER = 255
WRITABLE_FOLDERS = ("/dev/", "/proc/", "/sweep/", "/tmp/")  # noqa: S108 - folders of a container
"""Folders of a container that the image does not determine: a file there may be what a trial wrote."""
CODE_FOLDER = "/code/"
"""Also one where an init container fetches the code."""

HOOKS = (
    r"PATH|LD_[A-Za-z0-9_]*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|BASH_ENV|BASH_FUNC_.*|ENV|SHELLOPTS|_PYTHON.*"
    r"|PYTHON_?(?:BREAKPOINT|EXECUTABLE|HOME|INSPECT|PATH|PLATLIBDIR|PRESITE|PYCACHEPREFIX|STARTUP|USERBASE|WARNINGS)"
)
"""Variables with which the dynamic loader, a shell or Python runs other code before, or in place of, the launcher."""

_is_interpreter = re.compile(INTERPRETER, re.ASCII).fullmatch
_is_hook = re.compile(HOOKS, re.ASCII).fullmatch


def is_interpreter(program: str, mounts: Iterable[str] = ()) -> bool:
    """Return whether a cluster's policies let a program start the launcher; `mounts` are further folders, with `/`."""
    outside = (*WRITABLE_FOLDERS, *mounts)
    return (
        len(program) <= LONGEST_INTERPRETER
        and _is_interpreter(program) is not None
        and not f"{program}/".startswith(outside)
    )


def is_hook(variable: str) -> bool:
    """Return whether a variable may change which program starts."""
    return _is_hook(variable) is not None
