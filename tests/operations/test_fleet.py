"""Several clusters that follow one branch: whose batch is which, who applies it, and who records it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.formats import yaml
from sweepledger.operations.collection.collector import Collection, collect_from_cluster
from sweepledger.operations.collection.record_store import on_volume, reader_queue
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.scaffold.bootstrap import Bootstrapped, BootstrapRequest, bootstrap
from sweepledger.problems import Severity
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.settings import Controller, TrialSettings
from sweepledger.verbs.cluster.upgrade import upgrade_files
from sweepledger.verbs.why import explain_waiting
from tests.builders import present
from tests.operations.clusters import Cluster
from tests.operations.test_bootstrap import URL, install, push
from tests.operations.test_collect import leave
from tests.operations.test_pushed_rounds import amended, followed
from tests.repository import Sandbox, append_to, followed_by, replace_in

TWO = "clusters: {eu: {weight: 3}, us: {}}\n"
LOST = "clusters: {eu: {weight: 3}, us: {lost: true}}\n"


def with_settings(
    sandbox: Sandbox, clusters: str = TWO, *, controller: str = "flux", namespace: str = "sweeps"
) -> None:
    sandbox.write("sweepledger.yaml", f"{followed_by(controller)}namespace: {namespace}\n{clusters}")


def ask(sandbox: Sandbox, name: str, cluster: str | None, *, shape: str = "indexed") -> None:
    path = sandbox.spec(name)
    named = f"  cluster: {cluster}\n" if cluster else ""
    append_to(path, f"  shape: {shape}\n{named}")


def bootstrapped(sandbox: Sandbox, controller: Controller = Controller.FLUX) -> tuple[str, ...]:
    return bootstrap(sandbox.workspace, BootstrapRequest(controller, url=URL, branch="main")).written


def founded(sandbox: Sandbox, controller: str = "flux", **changes: str) -> Sandbox:
    """Give a repository with two clusters, whose platforms are merged, and a sweep in each."""
    with_settings(sandbox, controller=controller, **changes)
    bootstrapped(sandbox, Controller(controller))
    for cluster in ("eu", "us"):
        ask(sandbox, f"in-{cluster}", cluster)
    sandbox.publish_batches("Ask for a sweep in each cluster")
    return sandbox


def in_cluster(sandbox: Sandbox, cluster: str) -> StoredBatch:
    (batch,) = (one for one in sandbox.batches() if one.sweep == f"in-{cluster}")
    return batch


def codes(sandbox: Sandbox) -> list[str]:
    return [problem.code for problem in sandbox.check().problems]


def test_a_lock_names_the_cluster_and_neither_pods_nor_trials_know_it(sandbox: Sandbox) -> None:
    founded(sandbox)
    here, there = in_cluster(sandbox, "eu"), in_cluster(sandbox, "us")

    assert [batch.lock.cluster for batch in (here, there)] == ["eu", "us"]
    assert [row.trial for row in here.rows] == [row.trial for row in there.rows]
    assert b"cluster" not in here.contents.read("job.yaml")


def test_without_a_name_the_rule_decides_and_further_batches_stay(sandbox: Sandbox) -> None:
    with_settings(sandbox, controller="argocd")
    ask(sandbox, "peak", None)
    sandbox.publish_batches("Ask")
    (first,) = sandbox.batches()
    other = {"eu": "us", "us": "eu"}[first.lock.cluster or ""]
    weights = f"clusters: {{{other}: {{weight: 100}}, {first.lock.cluster}: {{weight: 0}}}}\n"
    with_settings(sandbox, weights, controller="argocd")
    replace_in(sandbox.root / "sweeps/peak.yaml", "1, 2, 3", "1, 2, 3, 4")

    sandbox.generate()

    newest = batches.newest(sandbox.batches())
    assert (present(newest).lock.number, present(newest).lock.cluster) == (2, first.lock.cluster)


def test_a_sweep_goes_on_where_it_ran_though_no_cluster_takes_new_ones(sandbox: Sandbox) -> None:
    with_settings(sandbox, controller="argocd")
    ask(sandbox, "peak", None)
    sandbox.publish_batches("Ask")
    with_settings(sandbox, "clusters: {eu: {weight: 0}, us: {weight: 0}}\n", controller="argocd")
    sandbox.publish("Let no cluster take new sweeps")
    replace_in(sandbox.root / "sweeps/peak.yaml", "1, 2, 3", "1, 2, 3, 4")
    sandbox.commit_batches("Ask for one more")

    assert [(one.code, one.severity) for one in sandbox.check().problems] == [
        ("not-in-settings", Severity.WARNING)
    ]
    ask(sandbox, "other", None)
    with pytest.raises(RepositoryError, match="no cluster can run the next batch of other"):
        sandbox.generate()


POOL = "pools: {small: {node: {cpu: 4, memory: 16Gi}, max_nodes: 1}}\n"


def test_a_plan_names_the_cluster_and_counts_no_other_ones_batches(sandbox: Sandbox) -> None:
    with_settings(sandbox, f"{TWO}{POOL}", controller="argocd")
    for name, cluster in (("in-eu", "eu"), ("new-in-eu", "eu"), ("new-in-us", "us")):
        append_to(sandbox.spec(name), f"  expected_minutes: 0.5\n  pool: small\n  cluster: {cluster}\n")
    sandbox.generate("in-eu")
    sandbox.publish("Ask")

    (here,) = sandbox.plan("new-in-eu").reviews
    (there,) = sandbox.plan("new-in-us").reviews

    assert (here.cluster, there.cluster) == ("eu", "us")
    assert (present(here.forecast).ahead, present(there.forecast).ahead) == (1, 0)


def test_each_cluster_has_a_platform_and_its_own_batches(sandbox: Sandbox) -> None:
    founded(sandbox)

    for cluster, other in (("eu", "us"), ("us", "eu")):
        folder = sandbox.root / "clusters" / cluster
        (root,) = yaml.load_all((folder / "flux/root.yaml").read_bytes())
        assert root["spec"]["path"] == f"./clusters/{cluster}/flux/active"
        assert (folder / f"flux/active/{in_cluster(sandbox, cluster).name}.yaml").is_file()
        assert not (folder / f"flux/active/{in_cluster(sandbox, other).name}.yaml").exists()
        (collector,) = yaml.load_all((folder / "platform/collector.yaml").read_bytes())
        pod = collector["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert f"--in={cluster}" in pod["containers"][0]["command"]
    assert not (sandbox.root / "clusters/platform").exists()
    assert codes(sandbox) == []


def test_one_argo_cd_tells_its_clusters_apart(sandbox: Sandbox) -> None:
    clusters = "clusters: {eu: {argocd: {cluster: gpu-eu}}, us: {argocd: {cluster: gpu-us}}}\n"
    with_settings(sandbox, clusters, controller="argocd")

    bootstrapped(sandbox, Controller.ARGOCD)

    named = {}
    for cluster in ("eu", "us"):
        folder = sandbox.root / "clusters" / cluster / "argocd"
        (made,) = yaml.load_all((folder / "batches.yaml").read_bytes())
        (generator,) = made["spec"]["generators"]
        assert generator["selector"] == {"matchLabels": {"cluster": cluster}}
        assert generator["git"]["files"][0]["path"].endswith("/batch.json")
        assert made["spec"]["template"]["spec"]["destination"]["name"] == f"gpu-{cluster}"
        objects = [one for path in folder.glob("*.yaml") for one in yaml.load_all(path.read_bytes())]
        named[cluster] = {(one["kind"], one["metadata"]["name"]) for one in objects if "metadata" in one}
    assert not named["eu"] & named["us"], "both are in one namespace of one cluster"


def test_a_secret_is_made_once_in_the_cluster_that_reads_it(sandbox: Sandbox) -> None:
    clusters = "clusters: {eu: {argocd: {cluster: gpu-eu}}, us: {argocd: {cluster: gpu-us}}}\n"
    with_settings(sandbox, clusters, controller="argocd")
    central = bootstrap(sandbox.workspace, BootstrapRequest(Controller.ARGOCD, url=URL, branch="main"))
    with_settings(sandbox, "clusters: {eu: {}, us: {argocd: {cluster: gpu-us}}}\n", controller="argocd")
    beside = bootstrap(sandbox.workspace, BootstrapRequest(Controller.ARGOCD, url=URL, branch="main"))

    def places(result: Bootstrapped) -> dict[str | None, list[str]]:
        return {cluster: [one.name for one in group] for cluster, group in result.secrets_by_cluster}

    collectors = ["sweep-git-write", "sweep-git-signing"]
    expected = {None: ["sweeps-git-read"], "eu": collectors, "us": collectors}
    assert places(central) == expected
    assert places(beside) == {"eu": ["sweeps-git-read", *collectors], "us": collectors}


def test_an_upgrade_says_what_to_apply_in_each_cluster(sandbox: Sandbox) -> None:
    with_settings(sandbox)
    bootstrapped(sandbox)
    for cluster in ("eu", "us"):
        file = next((sandbox.root / "clusters" / cluster / "flux").glob("*.yaml"))
        file.unlink()  # as if this version had added it

    *_, last = upgrade_files(sandbox.workspace, check=True).steps

    for cluster in ("eu", "us"):
        assert f"in cluster {cluster}, kubectl apply" in last
        assert f"-k clusters/{cluster}/flux" in last


def test_a_reader_pod_waits_in_a_queue_of_its_own_cluster(sandbox: Sandbox) -> None:
    pools = "pools:\n  a: {queue: a, node: {cpu: 8, memory: 32Gi}}\n  b: {queue: b, node: {cpu: 8, memory: 32Gi}}\n"
    with_settings(sandbox, f"clusters: {{eu: {{pools: [b]}}, us: {{pools: [a]}}}}\n{pools}")

    queues = {
        cluster: reader_queue(settings.trials, settings.platform.controller)
        for cluster in ("eu", "us")
        for settings in [sandbox.workspace.in_cluster(cluster).cluster_settings]
    }

    assert queues == {"eu": "b", "us": "a"}
    assert reader_queue(TrialSettings(), Controller.ARGOCD) is None
    assert reader_queue(TrialSettings("lab"), Controller.SUBMIT) == "lab-user-queue"


def test_an_active_batch_of_no_cluster_forbids_clusters(sandbox: Sandbox) -> None:
    with_settings(sandbox, "")
    sandbox.spec()
    bootstrapped(sandbox)
    sandbox.publish_batches("Ask, with one cluster")
    with_settings(sandbox)

    with pytest.raises(RepositoryError, match="active in the only cluster"):
        bootstrapped(sandbox)

    assert "batch-cluster" in codes(sandbox)


def test_a_command_that_needs_a_cluster_asks_for_it(sandbox: Sandbox) -> None:
    with_settings(sandbox)

    with pytest.raises(UsageError, match="several clusters"):
        sandbox.workspace.in_cluster(None)
    with pytest.raises(UsageError, match="no cluster of"):
        sandbox.workspace.in_cluster("asia")
    assert sandbox.workspace.in_cluster("us").cluster_settings.fleet.cluster == "us"


def test_why_and_status_send_to_the_cluster_of_a_batch(sandbox: Sandbox) -> None:
    founded(sandbox)

    explained = explain_waiting(sandbox.workspace.in_cluster("eu"), "in-us")

    (group,) = explained.batches[0].causes
    assert "runs in cluster us" in group.cause.text
    assert "--in us" in group.cause.remedy


# Who records. Both clusters are namespaces of one API server here: each collector sees its own Jobs and its own volume.


Collect = Callable[[str], Collection]


@pytest.fixture
def collect(sandbox: Sandbox, cluster: Cluster, tmp_path: Path) -> Collect:
    founded(sandbox, namespace=cluster.namespace)

    def run(name: str) -> Collection:
        target = sandbox.target(cluster=name)
        return collect_from_cluster(target, on_volume(tmp_path / name), Kubectl(), cluster.namespace)

    return run


def recorded(collection: Collection) -> tuple[str, ...]:
    return tuple(name for commit in collection.collected for name in commit.batches)


def test_each_collector_has_own(sandbox: Sandbox, cluster: Cluster, collect: Collect, tmp_path: Path) -> None:
    here, there = in_cluster(sandbox, "eu"), in_cluster(sandbox, "us")
    # Its folder exists on the volume, so that of an own batch nothing but the Job would be missing.
    leave(tmp_path / "eu", there, 0)
    assert collect("eu") == Collection()
    for batch, name in ((here, "eu"), (there, "us")):
        cluster.job(batch.name, ends="Complete")
        for index in range(3):
            leave(tmp_path / name, batch, index)

    first, second = collect("eu"), collect("us")

    assert (recorded(first), recorded(second)) == ((here.name,), (there.name,))
    assert first.stalled == second.stalled == ()
    sandbox.pull()
    assert sandbox.active() == []
    assert not list((sandbox.root / "clusters").rglob("flux/active/*.yaml"))
    assert recorded(collect("eu")) == recorded(collect("us")) == ()


def test_a_cluster_is_given_up(sandbox: Sandbox, cluster: Cluster, collect: Collect, tmp_path: Path) -> None:
    lost = in_cluster(sandbox, "us")
    cluster.job(lost.name, ends="Complete")
    leave(tmp_path / "us", lost, 0)
    with_settings(sandbox, LOST, namespace=cluster.namespace)
    ask(sandbox, "in-us", None)
    sandbox.publish("Give us up")
    with pytest.raises(RepositoryError, match="active in cluster 'us', which was given up"):
        bootstrapped(sandbox)
    sandbox.cancel("in-us", replace=True)
    bootstrapped(sandbox)
    # Without the empty folder, its Flux would delete no Job when the cluster comes back.
    assert [path.name for path in (sandbox.root / "clusters/us").rglob("*") if path.is_file()] == [".gitkeep"]
    sandbox.publish("Its platform is no more")

    with pytest.raises(RepositoryError, match="us was given up"):
        collect("us")
    cluster.delete("jobs", lost.name)
    assert recorded(collect("eu")) == (lost.name,)
    sandbox.pull()
    sandbox.publish_batches("Run them elsewhere")
    (again,) = (one for one in sandbox.batches() if one.is_active and one.sweep == "in-us")
    assert (again.lock.cluster, again.lock.trials) == ("eu", 3)
    assert codes(sandbox) == []
    cluster.job(again.name, ends="Complete")
    for index in range(3):
        leave(tmp_path / "eu", again, index)
    assert recorded(collect("eu")) == (again.name,)

    # It comes back with its volume: nothing of it is recorded beside the repetition.
    with pytest.raises(RepositoryError, match="us was given up"):
        collect("us")
    sandbox.pull()
    lines = (sandbox.root / "results/in-us/summary.csv").read_text().splitlines()[1:]
    assert [line.split(",")[5] for line in lines] == ["ok"] * 3


@pytest.mark.parametrize("path", ["clusters/eu/flux/active/{}.yaml", "clusters/eu/platform/access.yaml"])
def test_the_server_lets_it_take_nothing_else_out_of_a_cluster(sandbox: Sandbox, path: str) -> None:
    batch = in_cluster(founded(sandbox), "eu")
    install(sandbox)
    (sandbox.root / path.format(batch.name)).unlink()
    sandbox.commit("Stop a batch that runs")

    assert "the collector may push nothing but" in push(sandbox)


def test_the_server_lets_the_collector_record_a_batch_unless_flux_still_has_it(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    batch = in_cluster(founded(sandbox), "us")
    file = f"clusters/us/flux/active/{batch.name}.yaml"
    content = (sandbox.root / file).read_text()
    install(sandbox)
    leave(tmp_path, batch, 0)
    commit_results(sandbox.target(push=False, cluster="us"), on_volume(tmp_path), {batch.name})
    assert not (sandbox.root / file).exists()
    recorded = sandbox.head()
    sandbox.write(file, content)
    amended(sandbox)

    assert f"{batch.name} was moved and Flux still reads it" in push(sandbox)
    sandbox.git("reset", "-q", "--hard", recorded)
    assert push(sandbox) == ""


def test_the_server_lets_the_collector_push_the_next_round_into_the_same_cluster(tmp_path: Path) -> None:
    sandbox = followed(tmp_path, settings=TWO)
    install(sandbox)
    first, second = sandbox.batches()
    assert first.lock.cluster == second.lock.cluster is not None

    assert push(sandbox) == ""


def test_trials_do_not_continue_from_checkpoints_of_another_cluster(tmp_path: Path) -> None:
    resource = "resource: {parameter: epochs, min: 1, max: 4, eta: 2}\n"
    sandbox = followed(tmp_path, settings=TWO, method="halving", size=4, more=resource)
    (batch,) = (one for one in sandbox.batches() if one.is_active)
    other = {"eu": "us", "us": "eu"}[batch.lock.cluster or ""]
    replace_in(sandbox.root / batch.lock.spec.path, "run:\n", f"run:\n  cluster: {other}\n")

    with pytest.raises(RepositoryError, match="continues from checkpoints in cluster"):
        sandbox.generate()
