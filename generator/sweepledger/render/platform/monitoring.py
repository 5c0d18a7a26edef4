"""What `clusters/monitoring/` holds: Prometheus rules, a Grafana dashboard, and what they need of kube-state-metrics.

Rules read metrics of kube-state-metrics in its default configuration, of Argo CD, and of `sweep cluster metrics`.
A person applies the folder: a cluster without the Prometheus Operator has no kind PrometheusRule.
"""

import json
from collections.abc import Iterator
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.notifications import notification_objects
from sweepledger.render.platform.objects import BANNER, Names, dump_objects, manifest, platform_folder
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT, COMPONENT_LABEL, EXPIRY_ACCOUNT, SYNC_ACCOUNT
from sweepledger.structs.names import PLACEHOLDER_DIGEST, shortened
from sweepledger.structs.settings import Controller, Settings

MINUTE = 60
LATE_RUNS = 2.5
"""Runs without success after which the collector is late: an alert follows the second failure, before the third."""
SYNC_MINUTES = 60
"""Time that a store may lag behind: twice the longest run."""
EXPIRY_HOURS = 49
"""Time without success after which expiry is late: two of its daily runs failed."""
BATCH_MINUTES = 15
"""Time that a controller may take to apply a merged batch: longer than its retries."""
PENDING_MINUTES = 60
BUDGET_SHARE = 0.8

BATCH_OF_JOB = f"(.+-b[1-9][0-9]*-[0-9a-f]{{{len(PLACEHOLDER_DIGEST)}}})(?:-.*)?"
"""The batch in the name of a Job; kube-state-metrics shows labels of objects only if it is told to."""


def monitoring_folder(settings: Settings) -> str:
    """Return the folder that these files are in."""
    return f"{platform_folder(settings.cluster)}/monitoring"


def monitoring_files(settings: Settings, source: GitSource) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the folder; nothing if the settings do not enable monitoring."""
    if not settings.monitoring.enabled:
        return
    names, groups = Names.of(settings), rule_groups(settings)
    folder = monitoring_folder(settings)
    rule = manifest(
        "monitoring.coreos.com/v1/PrometheusRule",
        f"{names.trials}-sweeps",
        settings,
        namespace=names.collector,
        spec={"groups": groups},
    )
    rule["metadata"]["labels"] |= dict(settings.monitoring.labels)
    objects = {"alerts.yaml": ("Alerts for a Prometheus of the Prometheus Operator.", [rule])}
    notifications = notification_objects(settings, source)
    if notifications:
        objects["notifications.yaml"] = ("Who is told what of batches and results.", notifications)
    for name, (purpose, manifests) in objects.items():
        yield f"{folder}/{name}", dump_objects(*manifests, purpose=purpose)
    purpose = "The same alerts as a file of rules, for a Prometheus without operator."
    yield (
        f"{folder}/prometheus-rules.yaml",
        yaml.dump({"groups": groups}, banner=f"{purpose}\n{BANNER}").encode(),
    )
    yield f"{folder}/dashboard.json", (json.dumps(dashboard(settings), indent=2) + "\n").encode()
    if settings.controller is Controller.FLUX:
        purpose = "For kube-state-metrics, --custom-resource-state-config-file: whether Flux has applied each batch."
        yield (
            f"{folder}/kube-state-metrics.yaml",
            yaml.dump(flux_metrics(), banner=f"{purpose}\n{BANNER}").encode(),
        )
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
    yield f"{folder}/kustomization.yaml", yaml.dump(kustomization, banner=BANNER).encode()


def rule_groups(settings: Settings) -> list[dict[str, Any]]:
    """Return the groups of alerting rules."""
    rules = [
        *_collector_rules(settings),
        *_sync_rules(settings),
        *_expiry_rules(settings),
        *_batch_rules(settings),
        *_budget_rules(settings),
    ]
    return [{"name": f"{settings.namespace}-sweeps", "interval": "1m", "rules": rules}]


def _without_success(chosen: str, seconds: int) -> str:
    """Return the condition that a CronJob has not succeeded for some time, or ever since it exists."""
    success = f"kube_cronjob_status_last_successful_time{{{chosen}}}"
    return (
        f"(time() - {success} > {seconds}) or (time() - kube_cronjob_created{{{chosen}}} > {seconds} "
        f"unless on (namespace, cronjob) {success})"
    )


def _collector_rules(settings: Settings) -> Iterator[dict[str, Any]]:
    names, every = Names.of(settings), settings.results.every_minutes
    chosen = f'namespace="{names.collector}",cronjob="{COLLECTOR_ACCOUNT}"'
    pods = f'namespace="{names.collector}",pod=~"{COLLECTOR_ACCOUNT}-.*"'
    success = f"kube_cronjob_status_last_successful_time{{{chosen}}}"
    seconds = int(LATE_RUNS * every * MINUTE)
    selector = f"--selector={COMPONENT_LABEL}={COLLECTOR_ACCOUNT}"
    logs = f"kubectl --namespace {names.collector} logs {selector} --all-containers"
    yield _rule(
        "SweepCollectorLate",
        _without_success(chosen, seconds),
        "critical",
        "The collector has not succeeded for two runs: ended trials are not recorded.",
        f"`sweep cluster doctor` says why; its output: `{logs}`",
    )
    yield _rule(
        "SweepCollectorFailing",
        "max by (namespace) (kube_job_status_start_time"
        f'{{namespace="{names.collector}",job_name=~"{COLLECTOR_ACCOUNT}-.*"}} * on (namespace, job_name) '
        # Of each Job there is a series for each reason why it may fail.
        f"(max by (namespace, job_name) (kube_job_status_failed) > bool 0)) > on (namespace) {success}",
        "warning",
        "The last run of the collector failed.",
        f"`sweep cluster doctor` says why; its output: `{logs}`",
        minutes=1,
    )
    yield _rule(
        "SweepCollectorUnschedulable",
        f"sum by (namespace) (kube_pod_status_unschedulable{{{pods}}}) > 0",
        "critical",
        "No node takes the collector's pod.",
        f"kubectl --namespace {names.collector} describe pods",
        minutes=every,
    )
    yield _rule(
        "SweepCollectorSuspended",
        f"kube_cronjob_spec_suspend{{{chosen}}} == 1",
        "warning",
        "The collector is suspended: ended trials are not recorded.",
        "`sweep cluster pin collector` sets its image, then `sweep cluster bootstrap`; or resume it with kubectl",
        minutes=PENDING_MINUTES,
    )
    yield _rule(
        "SweepCollectorUnknown",
        f"absent(kube_cronjob_info{{{chosen}}})",
        "critical",
        "Prometheus knows no collector: its CronJob is missing, or kube-state-metrics is not scraped.",
        "`sweep cluster doctor` says whether the CronJob exists",
        minutes=BATCH_MINUTES,
    )


def _sync_rules(settings: Settings) -> Iterator[dict[str, Any]]:
    if not settings.results.sync:
        return
    place = Names.of(settings).collector
    chosen = f'namespace="{place}",cronjob="{SYNC_ACCOUNT}"'
    seconds = max(SYNC_MINUTES, int(LATE_RUNS * settings.results.every_minutes)) * MINUTE
    yield _rule(
        "SweepSyncLate",
        _without_success(chosen, seconds),
        "warning",
        "Recorded results have not been written to the stores of results.sync. The records are complete.",
        f"kubectl --namespace {place} logs --selector={COMPONENT_LABEL}={SYNC_ACCOUNT} --all-containers",
    )


def _expiry_rules(settings: Settings) -> Iterator[dict[str, Any]]:
    if settings.results.keep_days is None:
        return
    place = Names.of(settings).trials
    yield _rule(
        "SweepExpiryLate",
        _without_success(f'namespace="{place}",cronjob="{EXPIRY_ACCOUNT}"', EXPIRY_HOURS * 60 * MINUTE),
        "warning",
        "Nothing older than results.keep has been deleted for two days. The records are complete.",
        f"kubectl --namespace {place} logs --selector={COMPONENT_LABEL}={EXPIRY_ACCOUNT} --all-containers",
    )


def _batch_rules(settings: Settings) -> Iterator[dict[str, Any]]:
    names, every = Names.of(settings), settings.results.every_minutes
    if settings.controller is Controller.FLUX:
        chosen = f'customresource_kind="Kustomization",exported_namespace="{names.flux}",ready="False"'
        applied = f"gotk_resource_info{{{chosen}}}"
    else:
        applied = f'argocd_app_info{{project="{names.project}",sync_status!="Synced"}}'
    yield _rule(
        "SweepBatchNotSynced",
        f"{applied} > 0",
        "warning",
        "The controller has not applied the batch {{ $labels.name }}.",
        "sweep why NAME",
        minutes=BATCH_MINUTES,
    )
    jobs = _by_batch(f'kube_job_info{{namespace="{names.trials}"}}')
    cluster = "" if names.cluster is None else f',cluster="{names.cluster}"'
    merged = f'namespace="{names.trials}",kind="Job"{cluster}'
    yield _rule(
        "SweepBatchWithoutJobs",
        f"(time() - sweepledger_batch_merged_timestamp_seconds{{{merged}}} > "
        f"{BATCH_MINUTES * MINUTE}) unless on (namespace, batch) {jobs}",
        "warning",
        "The merged batch {{ $labels.batch }} has no Job in the cluster: it was not applied, or its Jobs are gone.",
        "sweep why {{ $labels.sweep }}",
        minutes=BATCH_MINUTES,
    )
    ended = _by_batch(
        f'(kube_job_complete{{namespace="{names.trials}",condition="true"}} or '
        f'kube_job_failed{{namespace="{names.trials}",condition="true"}}) == 1'
    )
    yield _rule(
        "SweepBatchUnrecorded",
        f"{ended} == on (namespace, batch) {jobs}",
        "warning",
        "All Jobs of {{ $labels.batch }} have ended, and it is still not recorded.",
        "sweep why {{ $labels.batch }}'s sweep; `sweep cluster doctor` says how the collector is",
        minutes=BATCH_MINUTES + 4 * every,
    )
    yield _rule(
        "SweepTrialsPending",
        f'count by (namespace) (kube_pod_status_phase{{namespace="{names.trials}",phase="Pending"}} == 1) > 0',
        "info",
        "{{ $value }} pod(s) of trials have been pending for an hour.",
        "`sweep status --cluster` counts their causes",
        minutes=PENDING_MINUTES,
    )


def _by_batch(metric: str) -> str:
    """Return a count of Jobs by batch."""
    labelled = f'label_replace({metric}, "batch", "$1", "job_name", "{BATCH_OF_JOB}")'
    return f"count by (namespace, batch) ({labelled})"


def _budget_rules(settings: Settings) -> Iterator[dict[str, Any]]:
    if not settings.budgets:
        return
    chosen = f'{{namespace="{settings.namespace}"}}'
    yield _rule(
        "SweepBudgetNearlyUsed",
        f"{_budget_share(chosen)} >= {BUDGET_SHARE}",
        "warning",
        "{{ $labels.team }} has used or reserved {{ $value | humanizePercentage }} of its {{ $labels.unit }}.",
        "`sweep cluster budget` shows the sweeps",
    )


def _budget_share(chosen: str) -> str:
    used, reserved = f"sweepledger_budget_used{chosen}", f"sweepledger_budget_reserved{chosen}"
    return f"({used} + {reserved}) / sweepledger_budget_limit{chosen}"


def _rule(
    name: str, expression: str, severity: str, summary: str, action: str, *, minutes: int = 0
) -> dict[str, Any]:
    wait = {"for": f"{minutes}m"} if minutes else {}
    return {
        "alert": name,
        "expr": expression,
        **wait,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "action": action},
    }


def flux_metrics() -> Manifest:
    """Return the configuration by which kube-state-metrics shows the state of Flux's Kustomizations."""
    return {
        "kind": "CustomResourceStateMetrics",
        "spec": {
            "resources": [
                {
                    "groupVersionKind": {
                        "group": "kustomize.toolkit.fluxcd.io",
                        "version": "v1",
                        "kind": "Kustomization",
                    },
                    "metricNamePrefix": "gotk",
                    "metrics": [
                        {
                            "name": "resource_info",
                            "help": "The state of a resource of Flux.",
                            "each": {
                                "type": "Info",
                                "info": {"labelsFromPath": {"name": ["metadata", "name"]}},
                            },
                            "labelsFromPath": {
                                "exported_namespace": ["metadata", "namespace"],
                                "ready": ["status", "conditions", "[type=Ready]", "status"],
                                "suspended": ["spec", "suspend"],
                            },
                        }
                    ],
                }
            ]
        },
    }


DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
LONGEST_UID = 40
"""Characters of a dashboard's uid in Grafana."""
WIDTH, HEIGHT = 12, 8
"""Of a panel; Grafana's grid has 24 columns."""


def dashboard(settings: Settings) -> dict[str, Any]:
    """Return the Grafana dashboard."""
    names = Names.of(settings)
    trials, collector = f'namespace="{names.trials}"', f'namespace="{names.collector}"'
    jobs = f"kube_job_info{{{trials}}}"
    panels = [
        (
            "Time since the collector last succeeded",
            "timeseries",
            "s",
            [f"time() - kube_cronjob_status_last_successful_time{{{collector}}}"],
        ),
        (
            "Failed runs of the collector",
            "timeseries",
            "short",
            [f"sum(kube_job_status_failed{{{collector}}})"],
        ),
        (
            "Pods of trials by phase",
            "timeseries",
            "short",
            [f"sum by (phase) (kube_pod_status_phase{{{trials}}})"],
        ),
        ("Jobs by batch", "timeseries", "short", [_by_batch(jobs)]),
        (
            "Reasons of waiting containers",
            "timeseries",
            "short",
            [f"sum by (reason) (kube_pod_container_status_waiting_reason{{{trials}}})"],
        ),
        (
            "Budget used and reserved",
            "bargauge",
            "percentunit",
            [_budget_share(f"{{{trials}}}")],
        ),
        ("Alerts", "table", "short", ['ALERTS{alertname=~"Sweep.*",alertstate="firing"}']),
    ]
    return {
        "uid": f"sweepledger-{shortened(names.trials, LONGEST_UID - len('sweepledger-'))}",
        "title": f"Sweeps of {names.trials}",
        "tags": ["sweepledger"],
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": [
            {
                "id": number + 1,
                "title": title,
                "type": form,
                "datasource": DATASOURCE,
                "gridPos": {
                    "x": number % 2 * WIDTH,
                    "y": number // 2 * HEIGHT,
                    "w": WIDTH,
                    "h": HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + place), "datasource": DATASOURCE, "expr": expression}
                    for place, expression in enumerate(expressions)
                ],
            }
            for number, (title, form, unit, expressions) in enumerate(panels)
        ],
    }
