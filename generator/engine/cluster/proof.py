"""A throw-away Job that writes to the results volume as a trial would: the one proof of its root's mode."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from generator.engine.cluster import hardened
from generator.engine.cluster.health import Finding, State
from generator.engine.cluster.kubectl import Kubectl, conditions
from generator.errors import ToolError
from generator.structs.errands import COMPONENT_LABEL, PROOF
from generator.structs.labels import TRIAL_USER

NAME = PROOF.component
"""One at a time: a second person is told by the cluster that it exists."""
WHAT = "a trial may write results"
LIFE_SECONDS = 120


def job(namespace: str, claim: str, image: str, account: str) -> dict[str, Any]:
    """Make the Job: hardened as a trial's; the kubelet makes its folder, through a subPath, likewise."""
    labels = {"app.kubernetes.io/name": "sweepledger", COMPONENT_LABEL: NAME}
    container = {
        "name": "trial",
        "image": image,
        "command": [*PROOF.command],
        "resources": hardened.amounts("100m", "64Mi"),
        "volumeMounts": [{"name": "results", "mountPath": "/sweep/results", "subPath": f"{NAME}/0"}],
    }
    volumes = [{"name": "results", "persistentVolumeClaim": {"claimName": claim}}]
    pod = hardened.pod(container, volumes, serviceAccountName=account, activeDeadlineSeconds=LIFE_SECONDS)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def prove(
    kubectl: Kubectl,
    manifest: dict[str, Any],
    *,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
) -> Finding:
    """Run the Job and tell how it ended; it is deleted whatever happens."""
    namespace = manifest["metadata"]["namespace"]
    try:
        kubectl.create(manifest)
    except ToolError as error:
        return Finding("storage", WHAT, State.NOT_CHECKED, str(error), error.hint)
    try:
        return _await(kubectl, namespace, clock() + patience, clock)
    except ToolError as error:
        return Finding("storage", WHAT, State.NOT_CHECKED, str(error), error.hint)
    finally:
        with suppress(ToolError):  # what it was to tell is known, or not to be known
            kubectl.delete("jobs.batch", NAME, namespace)


def _await(kubectl: Kubectl, namespace: str, deadline: float, clock: Callable[[], float]) -> Finding:
    while True:
        seen = conditions(kubectl.get("jobs.batch", NAME, namespace) or {})
        if seen.get("Complete") == "True":
            return Finding("storage", WHAT, State.OK, "a Job wrote and removed a file")
        if seen.get("Failed") == "True":
            mend = f"chgrp {TRIAL_USER} . && chmod 2770 ."
            hint = f"at the volume's root: {mend} (NFS: the export without root_squash)"
            return Finding("storage", WHAT, State.WRONG, "a Job could not write as a trial would", hint)
        if clock() >= deadline:
            says = "no node ran the Job in time"
            hint = f"`kubectl get events --namespace {namespace}` says why; longer: --patience SECONDS"
            return Finding("storage", WHAT, State.NOT_CHECKED, says, hint)
        time.sleep(1)
