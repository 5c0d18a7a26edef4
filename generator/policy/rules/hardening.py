"""What Pod Security leaves open and no pod needs: a writable image, a token, everybody's account."""

from collections.abc import Iterator

from generator.policy.findings import Finding
from generator.policy.workloads import Object, Pod
from generator.reader.shown import shown

CODE = "pod-not-hardened"

LOWEST_USER = 10_000
"""Below, a number may be somebody's on the node."""
KNOWN_USER = {"MPIJob": 1000}
"""sshd asks the image who runs it, and images for MPI know this one."""


def check(thing: Object) -> Iterator[Finding]:
    """Check every pod that an object is or would start."""
    for pod in thing.pods:
        for key in ("automountServiceAccountToken", "enableServiceLinks"):
            if pod.spec.get(key) is not False:
                message = f"must be false, got {shown(pod.spec.get(key))}"
                yield Finding((*pod.at, key), message, CODE)
        account = pod.spec.get("serviceAccountName")
        if account in {None, "", "default"}:
            message = f"must be an account of its own, got {shown(account)}"
            yield Finding((*pod.at, "serviceAccountName"), message, CODE, "the default one is everybody's")
        if "serviceAccount" in pod.spec:
            message = "must be absent: serviceAccountName has replaced it"
            yield Finding((*pod.at, "serviceAccount"), message, CODE)
        yield from _containers(pod, KNOWN_USER.get(thing.kind, LOWEST_USER))


def _containers(pod: Pod, lowest: int) -> Iterator[Finding]:
    for container in pod.containers:
        context = container.data.get("securityContext") or {}
        at = (*container.path, "securityContext")
        if context.get("readOnlyRootFilesystem") is not True:
            found = shown(context.get("readOnlyRootFilesystem"))
            hint = "mount an emptyDir where it must write"
            yield Finding((*at, "readOnlyRootFilesystem"), f"must be true, got {found}", CODE, hint)
        user = context.get("runAsUser", pod.security.get("runAsUser"))
        if user is None or 0 < user < lowest:  # 0 is refused elsewhere
            message = f"must be at least {lowest}, here or in the pod's context, got {shown(user)}"
            yield Finding((*at, "runAsUser"), message, CODE)
