"""`sweep lint` has nothing against what `sweep bootstrap` writes, whatever the settings say."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sweepledger import policy
from sweepledger.problems import Problem, Severity
from sweepledger.reader import manifests
from sweepledger.structs.settings import (
    ArgoCdSettings,
    ClusterSettings,
    Controller,
    MessageService,
    MonitoringSettings,
    Notify,
    ResultsSettings,
    ResultsStore,
    Settings,
    SyncTarget,
)
from tests.policy import drawn_settings
from tests.render.platforms import DISTRIBUTED, PLATFORM_SETTINGS, THREE_POOLS, a_platform, a_source
from tests.render.test_bucket_store import in_a_bucket
from tests.render.test_egress_hosts import BY_NAME
from tests.render.test_sidecars import MESHED
from tests.sweeps import POD_POOL_SETTINGS

RESULTS = PLATFORM_SETTINGS.results
TOLD = MonitoringSettings(
    enabled=True,
    labels={"release": "prometheus"},
    notify=Notify(MessageService.SLACK, "sweeps"),
    commit_status=True,
)
EVERY: Mapping[str, Settings] = {
    "plain": PLATFORM_SETTINGS,
    "results.keep": replace(PLATFORM_SETTINGS, results=replace(RESULTS, keep_days=30, checkpoints="fast")),
    "results.store: api": replace(PLATFORM_SETTINGS, results=ResultsSettings(store=ResultsStore.API)),
    "results.store: bucket": in_a_bucket(keep_days=30),
    "results.sync": replace(
        PLATFORM_SETTINGS,
        results=replace(
            RESULTS, sync={"mlflow": SyncTarget("https://mlflow.example.org", "store", "account")}
        ),
    ),
    "monitoring": replace(PLATFORM_SETTINGS, monitoring=TOLD),
    "queues": replace(PLATFORM_SETTINGS, pools=THREE_POOLS),
    "pools": replace(PLATFORM_SETTINGS, pools=POD_POOL_SETTINGS.pools),
    "sidecars": MESHED,
    "egress by host": BY_NAME,
    "argocd elsewhere": replace(PLATFORM_SETTINGS, argocd=ArgoCdSettings(cluster="gpu")),
    "clusters": replace(PLATFORM_SETTINGS, clusters={name: ClusterSettings(name) for name in ("eu", "us")}),
}


def errors(settings: Settings, cluster: str | None) -> list[Problem]:
    """Lint the files of a cluster together, as `sweep lint clusters/NAME` does."""
    folder = "clusters/" if cluster is None else f"clusters/{cluster}/"
    read = [
        manifests.read(content, path)
        for path, content in a_platform(settings, a_source(shapes=DISTRIBUTED))
        if path.startswith(folder) and path.endswith(".yaml")
    ]
    report = policy.lint([document for one in read for document in one.documents], settings)
    found = [*(problem for one in read for problem in one.problems), *report.problems]
    return [problem for problem in found if problem.severity is Severity.ERROR]


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX])
@pytest.mark.parametrize("name", EVERY)
def test_what_bootstrap_writes_passes_lint(name: str, controller: Controller) -> None:
    settings = replace(EVERY[name], controller=controller)

    for own in settings.in_clusters:
        assert errors(settings, own.cluster) == []


SEED = 3
ROWS = 57
"""As many settings as the draw needs; a test counts them."""


@pytest.mark.sampled(30)
@pytest.mark.parametrize("number", range(ROWS))
def test_what_bootstrap_writes_for_drawn_settings_passes_lint(number: int) -> None:
    settings = drawn_settings.parse(drawn_settings.draw_rows(SEED)[number])
    assert isinstance(settings, Settings), "\n".join(map(str, settings))

    for own in settings.in_clusters:
        assert errors(settings, own.cluster) == []


def test_the_right_to_patch_pods_is_refused_where_no_policy_restrains_it() -> None:
    settings = replace(EVERY["results.store: api"], controller=Controller.FLUX)
    read = manifests.read(a_platform(settings)["clusters/platform/access.yaml"], "access.yaml")

    report = policy.lint(read.documents, PLATFORM_SETTINGS)

    assert "rights-too-wide" in {problem.code for problem in report.problems}
