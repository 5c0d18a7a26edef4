"""`clusters/monitoring/`: alerts that fire when they should, by Prometheus' own test of rules, and messages."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from sweepledger.render.platform import monitoring
from sweepledger.structs.platform import Names
from sweepledger.structs.settings import Controller, Egress, ResultsSettings, Settings, TeamBudget
from sweepledger.structs.settings.platform import ClusterSettings, MessageService, MonitoringSettings, Notify
from sweepledger.structs.settings.results import SyncTarget
from tests.cluster import building
from tests.cluster.apiserver import NoClusterToolsError, tool
from tests.command_line import captured
from tests.render.platforms import a_platform, a_source, manifests
from tests.sweeps import real_bases, with_keys

SETTINGS = with_keys(
    Settings(),
    controller=Controller.ARGOCD,
    monitoring=MonitoringSettings(
        labels={"release": "kps"}, notify=Notify(MessageService.SLACK, "sweeps"), commit_status=True
    ),
    budgets={"vision": TeamBudget("vision", gpu_hours=10)},
    egress={"store": Egress("store", ("198.51.100.7/32",), (443,))},
    results=ResultsSettings(sync={"mlflow": SyncTarget("https://mlflow.example.org", "store")}),
)
FLUX = with_keys(SETTINGS, controller=Controller.FLUX)
COLLECTOR = 'namespace="sweeps-collector",cronjob="sweep-collector"'
SUCCESS = f"kube_cronjob_status_last_successful_time{{{COLLECTOR}}}"
SYNC = 'namespace="sweeps-collector",cronjob="sweep-sync"'
SYNCED = f"kube_cronjob_status_last_successful_time{{{SYNC}}}"
EXISTS = f"kube_cronjob_info{{{COLLECTOR}}}"
FAILED_RUN = 'kube_job_status_failed{namespace="sweeps-collector",job_name="sweep-collector-1"'
"""The beginning of a series; kube-state-metrics has one for each reason."""
PEAK = "peak-b1-0a1b2c3d"
MERGED = (
    f'sweepledger_batch_merged_timestamp_seconds{{namespace="sweeps",batch="{PEAK}",sweep="peak",kind="Job"}}'
)


def rule_groups(settings: Settings) -> list[dict[str, Any]]:
    names, budgets = Names.of(settings.trials, settings.fleet), settings.teams.budgets
    platform, bases = settings.platform, real_bases()
    return monitoring.rule_groups(names, platform, settings.results, bases, has_budgets=bool(budgets))


def files(settings: Settings) -> dict[str, Any]:
    tree = a_platform(settings, a_source())
    chosen = {
        path.removeprefix("clusters/monitoring/"): text for path, text in tree if "/monitoring/" in path
    }
    return {name: list(yaml.safe_load_all(text)) for name, text in chosen.items()}


def test_the_rules_of_the_operator_and_of_the_file_are_the_same_and_carry_the_labels() -> None:
    written = files(SETTINGS)
    (rule,), (plain,) = written["alerts.yaml"], written["prometheus-rules.yaml"]

    assert rule["spec"] == plain
    assert rule["metadata"]["labels"]["release"] == "kps"
    assert {alert["alert"] for alert in plain["groups"][0]["rules"]} >= {
        "SweepCollectorLate",
        "SweepTrialsPending",
    }
    assert written["kustomization.yaml"][0]["resources"] == ["alerts.yaml", "notifications.yaml"]


def test_where_argo_cd_runs_a_sample_scrapes_it_and_nobody_applies_it_unasked() -> None:
    written = files(SETTINGS)
    (monitor,) = written["service-monitor.yaml"]

    assert monitor["metadata"]["namespace"] == SETTINGS.platform.argocd.namespace
    assert monitor["metadata"]["labels"] == dict(SETTINGS.platform.monitoring.labels) != {}
    assert "service-monitor.yaml" not in written["kustomization.yaml"][0]["resources"]
    assert "service-monitor.yaml" not in files(FLUX), "kube-state-metrics says what Flux has applied"


EXPIRES = replace(SETTINGS, results=replace(SETTINGS.results, keep_days=30))


@pytest.mark.parametrize(
    ("settings", "rule", "changes"),
    [
        (SETTINGS, "SweepBudget", {"budgets": {}}),
        (EXPIRES, "SweepExpiryLate", {"results": replace(SETTINGS.results, keep_days=None)}),
        (SETTINGS, "SweepSync", {"results": ResultsSettings()}),
    ],
    ids=["budgets", "expiry", "stores"],
)
def test_there_are_rules_about_what_the_settings_have(
    settings: Settings, rule: str, changes: dict[str, Any]
) -> None:
    assert rule in json.dumps(rule_groups(settings))
    assert rule not in json.dumps(rule_groups(with_keys(settings, **changes)))


def test_every_alert_names_the_namespace_and_links_to_its_row_of_the_page() -> None:
    page = Path("docs/how-to/monitor.md").read_text()
    address = "https://docs.example.org/how-to/monitor.html"
    linked = MonitoringSettings(runbooks=address)
    for settings in (replace(EXPIRES, platform=replace(SETTINGS.platform, monitoring=linked)), FLUX):
        for rule in rule_groups(settings)[0]["rules"]:
            anchor = rule["alert"].lower()
            assert f'<a id="{anchor}"></a>' in page
            assert rule["annotations"]["summary"].startswith("sweeps: ")
            # Nothing is lost while any of them fires.
            assert rule["labels"]["severity"] in {"warning", "info"}
            link = f"{address}#{anchor}" if settings is not FLUX else None
            assert rule["annotations"].get("runbook_url") == link


def test_argo_cd_sends_messages_for_what_is_subscribed_to_and_every_subscription_has_its_template() -> None:
    (shared,) = files(SETTINGS)["notifications.yaml"]
    tree = a_platform(SETTINGS, a_source())
    (batches,) = yaml.safe_load_all(tree["clusters/argocd/batches.yaml"])
    (root,) = yaml.safe_load_all(tree["clusters/argocd/root.yaml"])
    annotations = {
        **batches["spec"]["template"]["metadata"]["annotations"],
        **root["metadata"]["annotations"],
    }
    subscribed = {
        name.removeprefix("notifications.argoproj.io/subscribe.").rpartition(".")[0]: channel
        for name, channel in annotations.items()
        if name.startswith("notifications.argoproj.io/")
    }

    assert subscribed == {
        "sweeps-applied": "sweeps",
        "sweeps-failed": "sweeps",
        "sweeps-recorded": "sweeps",
        "sweeps-status": "",
    }
    for name in subscribed:
        (trigger,) = yaml.safe_load(shared["data"][f"trigger.{name}"])
        assert trigger["send"] == [name]
        assert f"template.{name}" in shared["data"]
    assert "labels" not in shared["metadata"]


def test_the_triggers_of_two_long_namespaces_differ_and_fit_into_names_of_annotations() -> None:
    longest = [with_keys(SETTINGS, namespace=f"{'n' * 52}{last}") for last in "ab"]
    names: list[set[str]] = []
    for settings in longest:
        (root,) = yaml.safe_load_all(a_platform(settings, a_source())["clusters/argocd/root.yaml"])
        (shared,) = files(settings)["notifications.yaml"]
        own = [key for key in root["metadata"]["annotations"] if key.startswith("notifications.argoproj.io/")]
        names.append({key.partition("/")[2] for key in own})
        for name in names[-1]:
            assert f"trigger.{name.removeprefix('subscribe.').rpartition('.')[0]}" in shared["data"]

    assert max(map(len, names[0] | names[1])) <= 63
    assert not names[0] & names[1]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://bitbucket.org/lab/sweeps.git", "bitbucket"),
        ("https://dev.azure.com/lab/project/_git/sweeps", "azuredevops"),
        ("https://gitlab.example.org/lab/sweeps.git", "gitlab"),
        ("https://git.example.org/lab/sweeps.git", "gitea"),
    ],
)
def test_flux_sends_commit_statuses_as_the_git_host_takes_them(url: str, kind: str) -> None:
    tree = a_platform(FLUX, a_source(url=url))
    made = yaml.safe_load_all(tree["clusters/monitoring/notifications.yaml"])

    (provider,) = (
        one for one in made if one["metadata"]["name"] == "sweep-commit-status" if "type" in one["spec"]
    )
    assert provider["spec"]["type"] == kind


def test_each_cluster_asks_for_its_own_batches_and_project() -> None:
    fleet = with_keys(SETTINGS, clusters={"eu": ClusterSettings("eu"), "us": ClusterSettings("us")})
    tree = a_platform(fleet, a_source())

    for cluster in ("eu", "us"):
        (rules,) = yaml.safe_load_all(tree[f"clusters/{cluster}/monitoring/prometheus-rules.yaml"])
        asked = {rule["alert"]: rule["expr"] for rule in rules["groups"][0]["rules"]}
        (project,) = (
            one["metadata"]["name"]
            for one in manifests(tree, f"clusters/{cluster}/argocd/")
            if one["kind"] == "ApplicationSet"
        )
        assert f'project="{project}"' in asked["SweepBatchNotSynced"]
        assert f',cluster="{cluster}"}}' in asked["SweepBatchWithoutJobs"]


@pytest.fixture(scope="module")
def promtool() -> Path:
    """Prometheus' tool for rules; skip by name where it was not built."""
    try:
        return tool(building.PROMETHEUS, "promtool")
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


CREATED, SUSPENDED = f"kube_cronjob_created{{{COLLECTOR}}}", f"kube_cronjob_spec_suspend{{{COLLECTOR}}}"
NO_NODE = 'kube_pod_status_unschedulable{namespace="sweeps-collector",pod="sweep-collector-1-x"}'
STARTED = 'kube_job_status_start_time{namespace="sweeps-collector",job_name="sweep-collector-1"}'
PENDING = 'kube_pod_status_phase{namespace="sweeps",pod="p",phase="Pending"}'
CASES: tuple[tuple[str, str, dict[str, str], str, str], ...] = (
    # alert; what it is about; series; when it is silent still; when it fires
    ("SweepCollectorLate", "it stopped succeeding", {SUCCESS: "0x30"}, "12m", "14m"),
    ("SweepCollectorLate", "it has never succeeded", {CREATED: "0x30"}, "12m", "14m"),
    (
        *("SweepCollectorFailing", "its last run failed"),
        {
            SUCCESS: "0x30",
            STARTED: "_x4 300x25",
            f'{FAILED_RUN},reason="BackoffLimitExceeded"}}': "_x4 1x25",
            f'{FAILED_RUN},reason="DeadlineExceeded"}}': "_x4 0x25",
        },
        *("4m", "7m"),
    ),
    ("SweepCollectorUnschedulable", "no node takes its pod", {NO_NODE: "1x30"}, "4m", "6m"),
    ("SweepCollectorSuspended", "a person suspended it", {SUSPENDED: "1x90"}, "59m", "61m"),
    ("SweepCollectorUnknown", "it is not there", {"up": "1x30"}, "14m", "16m"),
    ("SweepSyncLate", "a store does not answer any more", {SYNCED: "0x90"}, "60m", "62m"),
    ("SweepSyncLate", "no run has succeeded", {f"kube_cronjob_created{{{SYNC}}}": "0x90"}, "60m", "62m"),
    (
        *("SweepBatchWithoutJobs", "it was merged and never applied"),
        {MERGED: "0x60", 'kube_job_info{namespace="sweeps",job_name="other-b1-00000000-0"}': "1x60"},
        *("29m", "32m"),
    ),
    (
        *("SweepBatchUnrecorded", "all of its Jobs have ended"),
        {
            f'kube_job_info{{namespace="sweeps",job_name="{PEAK}-0"}}': "1x90",
            f'kube_job_info{{namespace="sweeps",job_name="{PEAK}-1"}}': "1x90",
            f'kube_job_complete{{namespace="sweeps",job_name="{PEAK}-0",condition="true"}}': "1x90",
            f'kube_job_failed{{namespace="sweeps",job_name="{PEAK}-1",condition="true"}}': "0x9 1x80",
        },
        *("44m", "46m"),
    ),
    ("SweepTrialsPending", "a pod waits", {PENDING: "1x90"}, "59m", "61m"),
    (
        *("SweepBudgetNearlyUsed", "four fifths of it are used or reserved"),
        {
            'sweepledger_budget_limit{namespace="sweeps",team="vision",unit="gpu_hours"}': "10x30",
            'sweepledger_budget_used{namespace="sweeps",team="vision",unit="gpu_hours"}': "0x9 6x20",
            'sweepledger_budget_reserved{namespace="sweeps",team="vision",unit="gpu_hours"}': "2x30",
        },
        *("9m", "11m"),
    ),
)
NOT_SYNCED = {
    Controller.ARGOCD: {'argocd_app_info{project="sweeps",name="peak",sync_status="OutOfSync"}': "1x30"},
    Controller.FLUX: {
        'gotk_resource_info{customresource_kind="Kustomization",exported_namespace="sweeps-flux",'
        'name="peak",ready="False"}': "1x30"
    },
}
HEALTHY = {
    EXISTS: "1x120",
    SUCCESS: "0+300x24",
    SYNCED: "0+1800x4",
    SUSPENDED: "0x120",
    NO_NODE: "0x120",
    'kube_pod_status_unschedulable{namespace="sweeps-collector",pod="sweep-sync-1-x"}': "1x120",
    f'{FAILED_RUN},reason="BackoffLimitExceeded"}}': "1x120",
    f'{FAILED_RUN},reason="Evicted"}}': "0x120",
    STARTED: "0x120",
    f'kube_job_info{{namespace="sweeps",job_name="{PEAK}-0"}}': "1x120",
    f'kube_job_info{{namespace="sweeps",job_name="{PEAK}-1"}}': "1x120",
    f'kube_job_complete{{namespace="sweeps",job_name="{PEAK}-0",condition="true"}}': "1x120",
    MERGED: "0x120",
    PENDING: "0x120",
}
"""A collector that succeeds every five minutes after a failure long ago, and a batch of two of which one has ended."""


def expected(name: str, at: str, number: int) -> dict[str, Any]:
    """Return a test of promtool for the count of firing alerts, by a pattern of their names."""
    expression = f'count(ALERTS{{alertname=~"{name}",alertstate="firing"}}) or vector(0)'
    return {"eval_time": at, "expr": expression, "exp_samples": [{"labels": "{}", "value": number}]}


@pytest.mark.full_suite("Prometheus")
@pytest.mark.parametrize("settings", [SETTINGS, FLUX], ids=["argocd", "flux"])
def test_each_alert_fires_when_it_should(settings: Settings, promtool: Path, tmp_path: Path) -> None:
    not_synced = (
        "SweepBatchNotSynced",
        "it cannot be applied",
        NOT_SYNCED[settings.platform.controller],
        "14m",
        "16m",
    )
    tests: list[dict[str, Any]] = [
        {
            "name": f"{name}: {what}",
            "interval": "1m",
            "input_series": [{"series": series, "values": values} for series, values in inputs.items()],
            "promql_expr_test": [expected(name, silent, 0), expected(name, fires, 1)],
        }
        for name, what, inputs, silent, fires in (*CASES, not_synced)
    ]
    tests.append(
        {
            "name": "a healthy day",
            "interval": "5m",
            "input_series": [{"series": series, "values": values} for series, values in HEALTHY.items()],
            "promql_expr_test": [expected("Sweep.*", "100m", 0)],
        }
    )
    (tmp_path / "rules.yaml").write_bytes(
        a_platform(settings, a_source())["clusters/monitoring/prometheus-rules.yaml"]
    )
    (tmp_path / "tests.yaml").write_text(
        json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
    )

    done = captured([str(promtool), "test", "rules", "tests.yaml"], cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    named = {case[0] for case in (*CASES, not_synced)}
    assert named == {rule["alert"] for rule in rule_groups(settings)[0]["rules"]}
