"""The files of `clusters/monitoring/`: Prometheus rules, a Grafana dashboard, and their kube-state-metrics settings.

Rules and dashboard are files of `base/platform/monitoring`, in which names and times are filled in. A person
applies the folder: a cluster without the Prometheus Operator has no kind PrometheusRule.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.controllers import GITOPS
from sweepledger.controllers.controller import GitOps
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import (
    FILES,
    KUSTOMIZATION,
    documents,
    dump_objects,
    fill,
    from_base,
    manifest,
)
from sweepledger.structs.names import shortened
from sweepledger.structs.platform import GitSource, Names, platform_folder
from sweepledger.structs.settings import PlatformSettings, ResultsSettings

MONITORING = "platform/monitoring/v1"
"""The folder of alerts, messages and the dashboard below `base/`."""
MINUTE = 60
LATE_RUNS = 2.5
"""Runs without success after which the collector is late: an alert follows the second failure, before the third."""
SYNC_MINUTES = 60
"""Time that a store may lag behind: twice the longest run."""
BATCH_MINUTES = 15
"""Time that a controller may take to apply a merged batch: longer than its retries."""
LONGEST_UID = 40
"""Characters of a dashboard's uid in Grafana."""


def monitoring_files(
    names: Names,
    platform: PlatformSettings,
    results: ResultsSettings,
    source: GitSource,
    bases: Mapping[str, bytes],
    *,
    has_budgets: bool,
) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the folder; nothing if the settings do not enable monitoring."""
    if not platform.monitoring.enabled:
        return
    own = GITOPS[platform.controller]
    groups = rule_groups(names, platform, results, bases, has_budgets=has_budgets)
    folder = f"{platform_folder(names.cluster)}/monitoring"
    rule = manifest(
        "monitoring.coreos.com/v1/PrometheusRule",
        f"{names.trials}-sweeps",
        names,
        namespace=names.collector,
        spec={"groups": groups},
    )
    rule["metadata"]["labels"] |= dict(platform.monitoring.labels)
    objects = {"alerts.yaml": [rule]}
    if notifications := _notifications(names, platform, own, source, bases):
        objects["notifications.yaml"] = notifications
    files = {**objects, "prometheus-rules.yaml": [{"groups": groups}]}
    for name in own.monitoring_files:
        words = {**_words(names, platform, results), "monitoring-labels": dict(platform.monitoring.labels)}
        files[name] = [fill(documents(bases[f"{MONITORING}/{name}"])[0], words)]
    for name, manifests in files.items():
        yield f"{folder}/{name}", dump_objects(*manifests, purpose=f"{FILES[f'monitoring/{name}']}.")
    dashboard = fill(bases[f"{MONITORING}/dashboard.json"].decode(), _words(names, platform, results))
    yield f"{folder}/dashboard.json", dashboard.encode()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(objects),
        "configMapGenerator": [
            {
                "name": f"{names.trials}-dashboard",
                "namespace": names.collector,
                "files": ["dashboard.json"],
                # The label by which Grafana's sidecar finds dashboards.
                "options": {"disableNameSuffixHash": True, "labels": {"grafana_dashboard": "1"}},
            }
        ],
    }
    yield f"{folder}/kustomization.yaml", dump_objects(kustomization, purpose=KUSTOMIZATION)


def rule_groups(
    names: Names,
    platform: PlatformSettings,
    results: ResultsSettings,
    bases: Mapping[str, bytes],
    *,
    has_budgets: bool,
) -> list[dict[str, Any]]:
    """Return the group of alerting rules: those of every feature that the settings use."""
    lists = fill(documents(bases[f"{MONITORING}/alerts.yaml"])[0], _words(names, platform, results))
    page = platform.monitoring.runbooks
    chosen = {
        "collector": True,
        "sync": bool(results.sync),
        "expiry": results.keep_days is not None,
        platform.controller.value: True,
        "batches": True,
        "budgets": has_budgets,
    }
    rules = [rule for name, is_used in chosen.items() if is_used for rule in lists.get(name, ())]
    for rule in rules if page else ():
        rule["annotations"]["runbook_url"] = f"{page}#{rule['alert'].lower()}"
    return [{"name": f"{names.trials}-sweeps", "interval": "1m", "rules": rules}]


def _notifications(
    names: Names, platform: PlatformSettings, own: GitOps, source: GitSource, bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the objects that make the controller send messages and commit statuses, if the settings ask for them."""
    words = own.notification_words(names, platform, source)
    if words is None:
        return []
    words[own.name] = own.namespace(names, platform)
    made = from_base(bases[f"{MONITORING}/notifications-{own.name}.yaml"], names, words)
    for one in made if own.shares_notifications else ():
        del one["metadata"]["labels"]
    return made


def _words(names: Names, platform: PlatformSettings, results: ResultsSettings) -> dict[str, Any]:
    """Return the placeholder values of alerts and the dashboard: names and times."""
    every = results.every_minutes
    late = int(LATE_RUNS * every)
    return {
        "trials": names.trials,
        "collector": names.collector,
        **{own.name: own.namespace(names, platform) for own in GITOPS.values()},
        "project": names.project,
        "cluster": "" if names.cluster is None else f',cluster="{names.cluster}"',
        "uid": f"sweepledger-{shortened(names.trials, LONGEST_UID - len('sweepledger-'))}",
        "minutes": every,
        "late": int(LATE_RUNS * every * MINUTE),
        "late-sync": max(SYNC_MINUTES, late) * MINUTE,
        "unrecorded": BATCH_MINUTES + 4 * every,
    }
