"""Objects of Kubernetes, as tests give them to a server."""

from typing import Any

from sweepledger.structs.run_config import SHAPE_KINDS


def manifest(kind: str, name: str, namespace: str = "", *, api: str = "v1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def controlled_by(kind: str, name: str) -> list[dict[str, Any]]:
    """Return the owners of what the controller of a kind makes for an object."""
    api = "batch/v1" if kind == "CronJob" else SHAPE_KINDS[kind].api_version
    return [{"apiVersion": api, "kind": kind, "name": name, "uid": "1", "controller": True}]


AUTHORIZATION = "rbac.authorization.k8s.io"


def bound_to_account(role: str, namespace: str, account: str) -> dict[str, Any]:
    """Return what gives a role in the whole cluster to an account."""
    reference = {"apiGroup": AUTHORIZATION, "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]
    api = f"{AUTHORIZATION}/v1"
    return manifest("ClusterRoleBinding", account, api=api, roleRef=reference, subjects=subjects)
