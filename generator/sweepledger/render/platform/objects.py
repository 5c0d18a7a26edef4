"""Names, labels and form of the platform's objects, and the kinds that batches may consist of.

Names and labels of a batch's objects are in render/pod.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import (
    CONFIG_MAP,
    GENERATOR_LABELS,
    JOB,
    WORKLOAD_KINDS,
    Kind,
)
from sweepledger.structs.names import PLATFORM_SUFFIX
from sweepledger.structs.settings import FleetSettings, TrialSettings

WEBHOOK_SECRET = "sweep-webhook"  # noqa: S105 - a Secret's name, not its content

CLUSTERS = "clusters"
"""Folder of the platform's files, and of one folder for each cluster if the settings name several."""


def platform_folder(cluster: str | None) -> str:
    """Return the folder of the platform of a cluster; None: the only one."""
    return CLUSTERS if cluster is None else f"{CLUSTERS}/{cluster}"


def patches_folder(cluster: str | None) -> str:
    """Return the folder of the Kustomize component by which a team changes the platform of a cluster."""
    return f"{CLUSTERS}/extra/platform" if cluster is None else f"{CLUSTERS}/extra/{cluster}/platform"


PART_OF = "app.kubernetes.io/part-of"
PLATFORM = "sweepledger-platform"
"""Label of every object of a platform."""
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that follow from the settings: two repositories of one cluster differ in their namespace."""

    trials: str
    """Namespace of the trials; the name of everything that lies in no namespace begins with it."""
    cluster: str | None = None
    """One of several clusters of the repository."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the team, which never replace ours."""

    @classmethod
    def of(cls, trials: TrialSettings, fleet: FleetSettings) -> "Names":
        """Return the names in one cluster."""
        return cls(trials.namespace, fleet.cluster, trials.labels)

    @property
    def project(self) -> str:
        """Name of what Argo CD has for batches: it may serve several clusters."""
        return self.trials if self.cluster is None else f"{self.trials}-{self.cluster}"

    @property
    def platform_project(self) -> str:
        """Name of what Argo CD has for the platform, apart from batches."""
        return f"{self.project}{PLATFORM_SUFFIX}"

    @property
    def collector(self) -> str:
        """Namespace of the collector, which holds the credential for git."""
        return f"{self.trials}-collector"

    @property
    def flux(self) -> str:
        """Namespace of what Flux reads; nothing runs there."""
        return f"{self.trials}-flux"


def labels(names: Names, **more: str) -> dict[str, str]:
    """Label an object of the platform; the repository's own labels never replace ours."""
    return {**dict(sorted(names.labels.items())), **GENERATOR_LABELS, PART_OF: PLATFORM, **more}


def manifest(kind: str, name: str, names: Names, *, namespace: str | None = None, **parts: Any) -> Manifest:
    """Return an object of `group/version/Kind`, or of `version/Kind` in the core group."""
    version, _, kind = kind.rpartition("/")
    place = {} if namespace is None else {"namespace": namespace}
    metadata = {"name": name, **place, "labels": labels(names)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def from_base(
    content: bytes, names: Names, words: Mapping[str, Any] = MappingProxyType({})
) -> list[Manifest]:
    """Return the objects of a file of `base/platform` with a team's labels, and values in place of `<words>`.

    In a text, a word is replaced by its value. Alone it may stand for any value; a list joins the list that it is
    in. As a key, it adds the keys of a mapping. None takes the key, the item or, as a key, the whole mapping away.
    """
    own = {"trials": names.trials, "collector": names.collector, "flux": names.flux, "labels": labels(names)}
    made: list[Manifest] = fill([*documents(content)], {**own, **words})
    for one in made:
        one["metadata"]["labels"] = labels(names, **one["metadata"].get("labels", {}))
    return made


@cache
def documents(content: bytes) -> tuple[Any, ...]:
    """Return the documents of a file of `base/`, which nobody may change: several objects are made of some files."""
    return yaml.load_all(content)


WORD = re.compile("<([a-z][a-z-]*)>")


def fill(part: Any, words: Mapping[str, Any]) -> Any:
    """Return a part of a document of `base/platform` with values for words. Raises KeyError for an unknown one."""
    match part:
        case str():
            word = WORD.fullmatch(part)
            return words[word[1]] if word else WORD.sub(lambda word: str(words[word[1]]), part)
        case list():
            items = [(item, fill(item, words)) for item in part]
            lists = [
                made if isinstance(item, str) and isinstance(made, list) else [made] for item, made in items
            ]
            return [made for made in chain.from_iterable(lists) if made is not None]
        case dict():
            return _filled_mapping(part, words)
        case _:
            return part


def _filled_mapping(part: Mapping[str, Any], words: Mapping[str, Any]) -> Manifest | None:
    filled: Manifest = {}
    for key, value in part.items():
        word = WORD.fullmatch(key)
        if word and value is None:
            if words[word[1]] is None:
                return None
            filled |= words[word[1]]
        elif (made := fill(value, words)) is not None:
            filled[fill(key, words)] = made
    return filled


BANNER = "Generated by `sweep cluster bootstrap` from sweepledger.yaml. Do not edit: change settings and run it again."


FILES = {
    "platform/namespaces.yaml": "Where trials run, and apart from them the collector; nothing is open",
    "platform/bounds.yaml": "What trials may have together, and a container that asks for nothing",
    "platform/network.yaml": "What may be reached beside names: by trials what the settings open, by the collector git",
    "platform/access.yaml": "Who may do what: trials nothing, the collector reads Jobs and pods, and takes its Lease",
    "platform/volumes.yaml": "Results twice over one NFS export, once to read; datasets to read. All are kept for ever",
    "platform/admission.yaml": "What the API server refuses to run as a trial, even if it was merged",
    "platform/owner.yaml": "No object of this platform is given to another repository",
    "platform/collector.yaml": "Records what trials left: the one thing in the cluster that writes to git",
    "platform/sync.yaml": "Writes recorded results to the stores of the settings; it reads git alone",
    "platform/expiry.yaml": "Deletes from the volumes what trials left, days after its results came to the branch",
    "argocd/projects.yaml": "What batches may be, and what the platform may be",
    "argocd/batches.yaml": "One Application a folder of `overlays/active` that is for this cluster",
    "argocd/lease.yaml": "Who collects, and the last commit that was seen on the branch",
    "argocd/root.yaml": "Keeps `platform/` applied, and prunes nothing; this folder is applied by a person",
    "remote/lease.yaml": "Who collects, and the last commit that was seen; in the cluster of the trials",
    "flux/namespace.yaml": "Where Flux reads what follows; nothing runs there",
    "flux/access.yaml": "With whose rights Flux applies batches",
    "flux/admission.yaml": "What Flux may be asked for there",
    "flux/source.yaml": "The branch that the cluster follows",
    "flux/root.yaml": "One Kustomization a batch, from `flux/active/`",
    "flux/lease.yaml": "Who collects, and the last commit that was seen on the branch",
    "flux/receiver.yaml": "A push is seen at once",
    "allowed_signers": "Who may sign results, for git: the `signers` of the settings",
    "pre-receive.sh": "A hook for the git server: confines what the collector may push",
    "push-ruleset.json": "The same for GitHub, where no hooks run: deploy keys and Apps leave these paths alone",
    "bootstrap.yaml": "What `sweep cluster bootstrap` was asked for, and the digests of what it wrote",
    "monitoring/alerts.yaml": "Alerts for the Prometheus Operator; applied by hand, like all of this folder",
    "monitoring/prometheus-rules.yaml": "The same alerts as a file of rules, for a Prometheus without operator",
    "monitoring/dashboard.json": "A dashboard for Grafana",
    "monitoring/kube-state-metrics.yaml": "For kube-state-metrics, custom-resource-state-config-file: Flux's objects",
    "monitoring/notifications.yaml": "Who is told what of batches and results, and commit statuses",
    "optional/kueue.yaml": "Samples for the pools with queues; say your quotas, then apply it once. No controller does",
    "optional/priority-class.yaml": "The class that sweepledger.yaml names, for a cluster that has none; apply it once",
}
"""What each file of a cluster's folder is for: a row of its README, and the first line of the file."""


KUSTOMIZATION = "What is applied of this folder, and a base for patches of yours."


def dump_objects(*manifests: Manifest, purpose: str, banner: str = BANNER) -> bytes:
    """Return the content of a file with these objects, below a banner with its purpose."""
    return yaml.dump(*manifests, banner=f"{purpose}\n{banner}").encode()


def batch_kinds(source: GitSource) -> tuple[Kind, ...]:
    """Return the kinds that overlays may contain in this cluster."""
    return (JOB, CONFIG_MAP, *custom_kinds(source))


def custom_kinds(source: GitSource) -> tuple[Kind, ...]:
    """Return the custom kinds that the cluster has controllers for."""
    return tuple(
        kind
        for shape in sorted(source.shapes)
        for kind in (WORKLOAD_KINDS[shape], WORKLOAD_KINDS[shape].shared)
        if kind is not None
    )
