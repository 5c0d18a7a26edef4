"""Pods that the tool starts by itself, as hardened as any trial's: one container, nothing granted."""

from collections.abc import Mapping
from typing import Any

from generator.structs.labels import TRIAL_USER


def pod(container: Mapping[str, Any], volumes: list[dict[str, Any]], **more: object) -> dict[str, Any]:
    """Give the spec of a pod that Pod Security "restricted" admits; `more` are further keys of it."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": TRIAL_USER,
            "runAsGroup": TRIAL_USER,
            "fsGroup": TRIAL_USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                **container,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "privileged": False,
                    "readOnlyRootFilesystem": True,
                    "runAsNonRoot": True,
                },
            }
        ],
        "volumes": volumes,
        **more,
    }


def amounts(cpu: str, memory: str) -> dict[str, dict[str, str]]:
    """Ask for as much as is allowed."""
    given = {"cpu": cpu, "memory": memory, "ephemeral-storage": "64Mi"}
    return {"requests": given, "limits": dict(given)}
