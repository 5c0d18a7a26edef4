"""What Argo CD, Flux and Kueue are given."""

import fnmatch
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.render.platform.batch_objects import batch_files, batch_paths
from sweepledger.structs.node_pool import NodeCapacity, Pool, Toleration
from sweepledger.structs.platform import GitSource, url_fault
from sweepledger.structs.settings import CollectorSettings, Controller
from sweepledger.structs.settings.platform import ArgoCdSettings
from tests.render.platforms import (
    DISTRIBUTED,
    PLATFORM_SETTINGS,
    THREE_POOLS,
    URL,
    a_platform,
    a_source,
    manifests,
    the,
)
from tests.sweeps import with_keys

ARGOCD = with_keys(PLATFORM_SETTINGS, controller=Controller.ARGOCD)
BATCH = "lr-b1-3f9a1c2e"


def test_argo_cd_makes_one_application_a_batch_and_never_a_job_twice() -> None:
    spec = the("ApplicationSet", "research", a_platform(ARGOCD))["spec"]
    (generator,) = spec["generators"]
    template = spec["template"]

    directories = generator["git"].pop("directories")
    assert generator["git"] == {"repoURL": URL, "revision": "refs/heads/main", "requeueAfterSeconds": 180}
    assert all(directory["path"].startswith("overlays/active/") for directory in directories)
    assert (spec["goTemplate"], spec["goTemplateOptions"]) == (True, ["missingkey=error"])
    assert spec["syncPolicy"]["applicationsSync"] == "create-delete"
    assert template["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": False}
    # Without validation by the client only because the server, which applies, refuses unknown fields.
    assert {"ServerSideApply=true", "RespectIgnoreDifferences=true", "Validate=false"} <= set(
        template["spec"]["syncPolicy"]["syncOptions"]
    )
    assert template["metadata"]["annotations"] == {
        "argocd.argoproj.io/manifest-generate-paths": ".",
        "sweepledger.dev/repository": URL,
    }
    assert template["metadata"]["finalizers"] == ["resources-finalizer.argocd.argoproj.io"]
    # Longer, and a batch of which one Job is refused could not be cancelled meanwhile.
    assert template["spec"]["syncPolicy"]["retry"]["backoff"]["maxDuration"] == "1m"
    assert template["spec"]["destination"]["namespace"] == "research"


def test_argo_cd_leaves_alone_what_a_queue_writes_and_applies_what_git_says_of_other_jobs() -> None:
    template = the("ApplicationSet", "research", a_platform(ARGOCD))["spec"]["template"]
    ignored = template["spec"]["ignoreDifferences"]

    queued = 'select(.metadata.labels["kueue.x-k8s.io/queue-name"] != null)'
    job = next(entry for entry in ignored if entry["kind"] == "Job")
    assert job == {
        "group": "batch",
        "kind": "Job",
        "jqPathExpressions": [f"{queued} | .spec.suspend", f"{queued} | .spec.parallelism"],
    }


def is_followed(name: str) -> bool:
    """Tell whether the ApplicationSet makes an Application of a folder below overlays/active."""

    def matches(item: dict[str, str]) -> bool:
        # Go's path.Match negates by ^ and escapes a hyphen, where fnmatch has ! and a hyphen at the end.
        pattern = item["path"].replace(r"[^a-z0-9\-]", "[!a-z0-9-]")
        return fnmatch.fnmatchcase(f"overlays/active/{name}", pattern)

    (generator,) = the("ApplicationSet", "research", a_platform(ARGOCD))["spec"]["generators"]
    matching = [directory for directory in generator["git"]["directories"] if matches(directory)]
    return bool(matching) and not any(entry.get("exclude") for entry in matching)


@pytest.mark.parametrize(
    "name", [BATCH, "a-b999-00000000", "a" * (63 - len("-b1-00000000")) + "-b1-00000000"]
)
def test_argo_cd_makes_an_application_of_every_folder_that_may_be_a_batch(name: str) -> None:
    assert is_followed(name)


@pytest.mark.parametrize(
    "name",
    [
        *("Not_A_Name", "Lr-b1-3f9a1c2e", "lR-b1-3f9a1c2e", "-lr-b1-3f9a1c2e", "l.r-b1-3f9a1c2e"),
        *("lr-b1-3f9a1c2g", "lr-b1-3f9a1c2e0", "research-platform", "a" * 63 + "-b1-00000000"),
    ],
)
def test_argo_cd_passes_over_a_folder_that_cannot_name_an_application(name: str) -> None:
    assert not is_followed(name)


def test_the_project_of_batches_allows_one_namespace_and_the_chosen_kinds() -> None:
    plain = the("AppProject", "research", a_platform(ARGOCD))["spec"]
    distributed = the("AppProject", "research", a_platform(ARGOCD, a_source(shapes=DISTRIBUTED)))["spec"]

    assert plain["clusterResourceWhitelist"] == []
    assert [kind["kind"] for kind in plain["namespaceResourceWhitelist"]] == ["Job", "ConfigMap"]
    assert [place["namespace"] for place in plain["destinations"]] == ["research"]
    assert plain["sourceRepos"] == [URL]
    assert len(distributed["namespaceResourceWhitelist"]) == 8


def test_groups_of_the_single_sign_on_see_both_projects_and_retry_batches_only() -> None:
    argocd = ArgoCdSettings(groups=("research",), signature_keys=("B5690EEEBB952194",), poll_seconds=60)
    tree = a_platform(with_keys(ARGOCD, argocd=argocd))
    batches, platform = (the("AppProject", name, tree)["spec"] for name in ("research", "research-platform"))
    plain = the("AppProject", "research", a_platform(ARGOCD))["spec"]

    for spec in (batches, platform):
        assert [role["groups"] for role in spec["roles"]] == [["research"]]
        assert spec["signatureKeys"] == [{"keyID": "B5690EEEBB952194"}]
    assert [line.split(", ")[2:4] for line in batches["roles"][0]["policies"]] == [
        ["applications", "get"],
        ["applications", "sync"],
        ["logs", "get"],
    ]
    assert platform["roles"][0]["policies"] == [
        "p, proj:research-platform:members, applications, get, research-platform/*, allow"
    ]
    assert "signatureKeys" not in plain
    assert "groups" not in plain["roles"][0]
    (generator,) = the("ApplicationSet", "research", tree)["spec"]["generators"]
    assert generator["git"]["requeueAfterSeconds"] == 60


def test_the_project_of_the_platform_allows_every_kind_that_is_written_and_no_other() -> None:
    tree = a_platform(ARGOCD)
    spec = the("AppProject", "research-platform", tree)["spec"]
    allowed = {
        (kind["group"], kind["kind"])
        for listed in ("clusterResourceWhitelist", "namespaceResourceWhitelist")
        for kind in spec[listed]
    }

    documents = manifests(tree, "clusters/platform/")
    result = {(made["apiVersion"].rpartition("/")[0], made["kind"]) for made in documents}

    assert result == allowed
    assert {made["metadata"].get("namespace") for made in documents} - {None} == {
        place["namespace"] for place in spec["destinations"]
    }


def test_no_merge_can_widen_what_argo_cd_may_do() -> None:
    tree = a_platform(ARGOCD)

    for project in ("research", "research-platform"):
        spec = the("AppProject", project, tree)["spec"]
        listed = (*spec["clusterResourceWhitelist"], *spec["namespaceResourceWhitelist"])
        assert not [kind for kind in listed if kind["group"] in {"argoproj.io", "*"} or kind["kind"] == "*"]
        assert "argocd" not in {place["namespace"] for place in spec["destinations"]}


def test_the_root_keeps_the_platform_applied_and_prunes_nothing() -> None:
    spec = the("Application", "research-platform", a_platform(ARGOCD))["spec"]

    assert spec["source"]["path"] == "clusters/platform"
    assert spec["syncPolicy"]["automated"]["prune"] is False


def test_flux_applies_a_batch_by_a_kustomization_of_its_own() -> None:
    tree = a_platform(active=(BATCH,))

    spec = the("Kustomization", BATCH, tree)["spec"]

    assert batch_paths(BATCH, [None]) == (f"clusters/flux/active/{BATCH}.yaml",)
    made = batch_files(Controller.FLUX, PLATFORM_SETTINGS.trials.namespace, {BATCH: None})
    assert made.items() <= tree.files.items()
    assert spec == {
        "interval": "1h0m0s",
        "retryInterval": "2m0s",
        "timeout": "5m0s",
        "path": f"./overlays/active/{BATCH}",
        "prune": True,
        "wait": False,
        "serviceAccountName": "sweep-applier",
        "sourceRef": {"kind": "GitRepository", "name": "sweeps"},
    }
    assert "clusters/flux/active/.gitkeep" in tree.files


def test_a_batch_that_stands_is_not_written_anew_for_a_label() -> None:
    labelled = with_keys(PLATFORM_SETTINGS, labels={"team": "other"})

    (path,) = batch_paths(BATCH, [None])
    assert a_platform(labelled, active=(BATCH,))[path] == a_platform(active=(BATCH,))[path]


def test_flux_may_apply_exactly_the_kinds_of_a_batch() -> None:
    tree = a_platform()

    applier = the("Role", "sweep-applier", tree)
    root = the("Role", "sweep-root", tree)

    assert applier["metadata"]["namespace"] == "research"
    assert [rule["resources"] for rule in applier["rules"]] == [["jobs"], ["configmaps"]]
    assert root["metadata"]["namespace"] == "research-flux"
    assert [rule["resources"] for rule in root["rules"]] == [["kustomizations"]]


def test_no_reference_of_flux_crosses_a_namespace() -> None:
    for made in manifests(a_platform(active=(BATCH,)), "clusters/flux/"):
        if "fluxcd" in made["apiVersion"]:
            assert made["metadata"]["namespace"] == "research-flux"
            assert "namespace" not in made["spec"].get("sourceRef", {})


def test_a_public_repository_is_read_without_a_credential() -> None:
    private, public = a_platform(), a_platform(source=a_source(is_public=True))

    assert the("GitRepository", "sweeps", private)["spec"]["secretRef"] == {"name": "sweep-git-read"}
    assert "secretRef" not in the("GitRepository", "sweeps", public)["spec"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://github.com/team/sweeps", "github"),
        ("https://gitlab.example.org/t/s", "gitlab"),
        ("https://git.example.org/t/s", "github"),
    ],
)
def test_the_receiver_takes_the_webhook_of_the_git_server(url: str, kind: str) -> None:
    assert the("Receiver", "sweeps", a_platform(source=a_source(url=url)))["spec"]["type"] == kind


def test_the_three_pools_become_three_queues_with_what_their_nodes_hold() -> None:
    tree = a_platform(with_keys(ARGOCD, pools=THREE_POOLS))

    heavy = the("ClusterQueue", "research-gpu-heavy", tree)["spec"]["resourceGroups"][0]
    (flavor,) = heavy["flavors"]

    quota = {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}
    assert quota == {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": "16", "ephemeral-storage": "1Ei"}
    assert heavy["coveredResources"] == list(quota)
    assert the("LocalQueue", "heavy", tree)["spec"] == {"clusterQueue": "research-gpu-heavy"}
    assert the("ResourceFlavor", flavor["name"], tree)["spec"]["nodeLabels"] == {
        "nvidia.com/gpu.product": "A100"
    }


def test_a_flavor_has_the_selector_and_the_taints_of_its_pool_so_that_queued_pods_reach_spot_nodes() -> None:
    heavy = replace(
        THREE_POOLS["gpu-heavy"],
        selector={"example.org/pool": "heavy"},
        tolerations=(Toleration("example.org/heavy"),),
        gpu_resource="amd.com/gpu",
        spot=True,
    )

    tree = a_platform(with_keys(ARGOCD, pools={"heavy": replace(heavy, name="heavy")}))
    flavor = the("ResourceFlavor", "research-heavy", tree)

    assert flavor["spec"]["nodeLabels"] == {"example.org/pool": "heavy", "nvidia.com/gpu.product": "A100"}
    assert [taint["key"] for taint in flavor["spec"]["tolerations"]] == [
        "example.org/heavy",
        "cloud.google.com/gke-spot",
        "kubernetes.azure.com/scalesetpriority",
        "amd.com/gpu",
    ]


def test_pools_of_a_cohort_on_the_same_nodes_have_one_flavor_that_tolerates_what_any_of_them_must() -> None:
    place: dict[str, Any] = {"max_nodes": 2, "cohort": "all", "selector": {"example.org/p": "x"}}
    gpus = Pool("gpus", NodeCapacity("8", "32Gi", 4), queue="gpus", **place)
    plain = replace(gpus, name="plain", queue="plain", node=NodeCapacity("8", "32Gi"))
    tree = a_platform(with_keys(ARGOCD, pools={"plain": plain, "gpus": gpus}))

    flavors = [made for made in manifests(tree) if made["kind"] == "ResourceFlavor"]

    assert [flavor["metadata"]["name"] for flavor in flavors] == ["research-gpus"]
    assert [taint["key"] for taint in flavors[0]["spec"]["tolerations"]] == ["nvidia.com/gpu"]
    for name in ("gpus", "plain"):
        (group,) = the("ClusterQueue", f"research-{name}", tree)["spec"]["resourceGroups"]
        assert [flavor["name"] for flavor in group["flavors"]] == ["research-gpus"]


def test_the_collector_has_its_queue_in_its_own_namespace() -> None:
    settings = with_keys(ARGOCD, pools=THREE_POOLS, collector=CollectorSettings(pool="cpu"))
    made = manifests(a_platform(settings), "clusters/optional")

    named = [one["metadata"] for one in made if one["kind"] == "LocalQueue"]
    places = {(metadata["name"], metadata["namespace"]) for metadata in named}
    queues = [one for one in made if one["kind"] == "ClusterQueue"]
    admitted = {one["metadata"]["name"]: one["spec"]["namespaceSelector"] for one in queues}

    everywhere = {(name, "research") for name in ("cpu", "light", "heavy")}
    assert places == everywhere | {("cpu", "research-collector")}
    (expression,) = admitted.pop("research-cpu")["matchExpressions"]
    assert expression["values"] == ["research", "research-collector"]
    for selector in admitted.values():
        assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "research"}}


def test_nothing_of_kueue_is_applied_by_a_controller() -> None:
    tree = a_platform(with_keys(ARGOCD, pools=THREE_POOLS))

    for path, content in tree:
        assert (b'kind: "ClusterQueue"' in content) == (path == "clusters/optional/kueue.yaml")


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org/team/sweeps.git",
        "http://127.0.0.1:8080/sweeps.git",
        "ssh://git@git.example.org:2222/team/sweeps.git",
        "file:///srv/git/sweeps.git",
    ],
)
def test_a_url_of_a_repository_is_accepted(url: str) -> None:
    assert url_fault(url) is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://user:secret@git.example.org/x", "password"),
        ("ssh://git:secret@git.example.org/x", "password"),
        ("git@git.example.org:team/sweeps.git", "ssh://git@git.example.org/team/sweeps.git"),
        ("ext::sh -c id", "special character"),
        ("https://git.example.org/$(id)", "special character"),
        ("https://git.example.org/${HOME}", "special character"),
        ("ftp://u:secret@git.example.org/x", "'ftp'"),
        ("/srv/git", "must begin with"),
        ("https://git.example.org:99999/x", "port"),
        ("https://git.example.org/", "name a repository"),
    ],
)
def test_a_url_that_leaks_or_expands_is_refused(url: str, says: str) -> None:
    text = url_fault(url)

    assert text is not None
    assert says in text
    assert "secret" not in text


@pytest.mark.parametrize("branch", ["", "-x", "a b", "a..b", "main/", "x.lock", "a'b"])
def test_a_branch_that_is_no_plain_name_is_refused(branch: str) -> None:
    with pytest.raises(ValueError, match="branch"):
        GitSource(URL, branch)


@pytest.mark.parametrize(
    ("settings", "destination"),
    [
        (ArgoCdSettings(), {"server": "https://kubernetes.default.svc"}),
        (ArgoCdSettings(cluster="https://10.0.0.5:6443"), {"server": "https://10.0.0.5:6443"}),
        (ArgoCdSettings(cluster="gpu-eu"), {"name": "gpu-eu"}),
    ],
)
def test_every_destination_is_that_of_settings(settings: ArgoCdSettings, destination: dict[str, str]) -> None:
    tree = a_platform(with_keys(ARGOCD, argocd=settings))

    applications = the("ApplicationSet", "research", tree)["spec"]["template"]["spec"]
    platform = the("Application", "research-platform", tree)["spec"]
    projects = [one["spec"]["destinations"] for one in manifests(tree) if one.get("kind") == "AppProject"]
    assert applications["destination"] == {**destination, "namespace": "research"}
    assert platform["destination"] == {**destination, "namespace": "research"}
    assert all(one.items() >= destination.items() for listed in projects for one in listed)


def test_with_another_cluster_the_lease_is_applied_where_the_collector_runs() -> None:
    remote = a_platform(with_keys(ARGOCD, argocd=ArgoCdSettings(cluster="gpu-eu")))
    local = a_platform(ARGOCD)

    page = remote["clusters/README.md"].decode()
    assert "clusters/remote/lease.yaml" in remote.files
    assert "clusters/argocd/lease.yaml" not in remote.files
    assert "-k clusters/remote`, in the cluster of the trials" in page
    assert "In the cluster of Argo CD." in page
    assert "clusters/argocd/lease.yaml" in local.files
    assert "cluster of the trials" not in local["clusters/README.md"].decode()
