"""Single faults of a trial's pod, and what must be said of each."""

from collections.abc import Callable
from typing import Any

Manifest = dict[str, Any]
Change = Callable[[Manifest], Any]


def container(pod: Manifest) -> Manifest:
    found: Manifest = pod["containers"][0]
    return found


def a_volume(**source: Any) -> Change:
    return lambda pod: pod["volumes"].append({"name": "other", **source})


def a_variable(**variable: Any) -> Change:
    return lambda pod: container(pod).setdefault("env", []).append({"name": "X", **variable})


POD_FAULTS: dict[str, tuple[str, Change]] = {
    "another account": ("service account sweep-trial", lambda pod: pod.update(serviceAccountName="default")),
    "no account": ("service account sweep-trial", lambda pod: pod.pop("serviceAccountName")),
    "a token": ("token", lambda pod: pod.update(automountServiceAccountToken=True)),
    "a token by default": ("token", lambda pod: pod.pop("automountServiceAccountToken")),
    "a projected token": (
        "token",
        a_volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
    ),
    "a tag": ("digest", lambda pod: container(pod).update(image="registry.example.org/t:1")),
    "a tag in an init container": (
        "digest",
        lambda pod: pod["initContainers"][0].update(image="registry.example.org/t:1"),
    ),
    "a short digest": ("digest", lambda pod: container(pod).update(image="registry.example.org/t@sha256:ab")),
    "no memory limit": (
        "requests and limits",
        lambda pod: container(pod)["resources"]["limits"].pop("memory"),
    ),
    "no cpu request": ("requests and limits", lambda pod: container(pod)["resources"]["requests"].pop("cpu")),
    "no resources": ("requests and limits", lambda pod: container(pod).pop("resources")),
    "hostPath": ("hostPath", a_volume(hostPath={"path": "/"})),
    "gitRepo": ("hostPath", a_volume(gitRepo={"repository": "https://git.example.org/x"})),
    "inline nfs": ("hostPath", a_volume(nfs={"server": "nfs.example.org", "path": "/"})),
    "csi": ("hostPath", a_volume(csi={"driver": "secrets.example.org"})),
    "a Secret that nobody listed": ("volumes hold no Secret", a_volume(secret={"secretName": "git-write"})),
    "a projected Secret": (
        "volumes hold no Secret",
        a_volume(projected={"sources": [{"secret": {"name": "git-write"}}]}),
    ),
    "a Secret in a variable": (
        "environment holds no Secret",
        a_variable(valueFrom={"secretKeyRef": {"name": "hub-token", "key": "token"}}),
    ),
    "a Secret as environment": (
        "environment holds no Secret",
        lambda pod: container(pod).update(envFrom=[{"secretRef": {"name": "git-write"}}]),
    ),
    "another pull secret": ("pull secret", lambda pod: pod.update(imagePullSecrets=[{"name": "git-write"}])),
}
