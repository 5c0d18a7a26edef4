"""What Flux is pointed at: a source, a root over `clusters/flux/active`, and one Kustomization a batch.

Everything lies in a namespace of its own: no reference crosses a namespace, and one admission policy there
keeps a merged file from asking for more than the rights of the service account that applies batches.
"""

from generator.render.platform.names import (
    APPLIER_ACCOUNT,
    GIT_READ_SECRET,
    ROOT_ACCOUNT,
    WEBHOOK_SECRET,
    Manifest,
    Names,
    manifest,
    written,
)
from generator.render.platform.source import Source
from generator.structs.settings import Settings

KUSTOMIZATION = "kustomize.toolkit.fluxcd.io/v1/Kustomization"
SOURCE_NAME = "sweeps"
ACTIVE = "clusters/flux/active"

SIGNED_WEBHOOKS = {"github.com": "github", "gitlab.com": "gitlab", "bitbucket.org": "bitbucket"}
"""Senders whose own form of webhook Flux knows; any other signs the body with the shared token."""

READ = """\
/*
!/base
!/clusters
!/overlays
/overlays/archive
"""
"""What of the repository enters the artifact: results and archive only grow, and nothing applies them."""


def batch_file(name: str) -> str:
    """Say where the Kustomization of a batch lies in the repository."""
    return f"{ACTIVE}/{name}.yaml"


def batch_kustomization(name: str, settings: Settings) -> bytes:
    """Write the Kustomization that applies one batch, and prunes its objects when this file goes.

    It never waits and never forces: a Job is created once, and what cannot be applied stops no other batch.
    Of the settings only the namespace matters: a batch that stands is not written anew for a label.
    """
    made = manifest(
        KUSTOMIZATION,
        name,
        Settings(namespace=settings.namespace),
        namespace=Names.of(settings).flux,
        spec={
            "interval": "1h0m0s",
            "retryInterval": "2m0s",
            "timeout": "5m0s",
            "path": f"./overlays/active/{name}",
            "prune": True,
            "wait": False,
            "serviceAccountName": APPLIER_ACCOUNT,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE_NAME},
        },
    )
    return written(made, says=f"Flux applies batch {name} from here; the collector removes this file.")


def source(settings: Settings, source: Source) -> Manifest:
    """Follow the branch."""
    credential = {} if source.is_public else {"secretRef": {"name": GIT_READ_SECRET}}
    return manifest(
        "source.toolkit.fluxcd.io/v1/GitRepository",
        SOURCE_NAME,
        settings,
        namespace=Names.of(settings).flux,
        spec={
            "interval": "1m0s",
            "timeout": "1m0s",
            "url": source.url,
            "ref": {"branch": source.branch},
            "ignore": READ,
            **credential,
        },
    )


def root(settings: Settings) -> Manifest:
    """Apply and prune the batches' Kustomizations, and nothing else."""
    return manifest(
        KUSTOMIZATION,
        SOURCE_NAME,
        settings,
        namespace=Names.of(settings).flux,
        spec={
            "interval": "10m0s",
            "retryInterval": "1m0s",
            "timeout": "5m0s",
            "path": f"./{ACTIVE}",
            "prune": True,
            "wait": False,
            "serviceAccountName": ROOT_ACCOUNT,
            "sourceRef": {"kind": "GitRepository", "name": SOURCE_NAME},
        },
    )


def receiver(settings: Settings, source: Source) -> Manifest:
    """Be told of a push at once."""
    return manifest(
        "notification.toolkit.fluxcd.io/v1/Receiver",
        SOURCE_NAME,
        settings,
        namespace=Names.of(settings).flux,
        spec={
            "type": SIGNED_WEBHOOKS.get(source.host or "", "generic-hmac"),
            **({"events": ["ping", "push"]} if source.host == "github.com" else {}),
            "interval": "10m0s",
            "secretRef": {"name": WEBHOOK_SECRET},
            "resources": [{"kind": "GitRepository", "name": SOURCE_NAME}],
        },
    )
