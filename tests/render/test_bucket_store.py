"""Trials whose results go to a bucket: the sidecar in every shape, what admission allows it, and the platform."""

import fnmatch
import json
import re
import textwrap
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.bucket import layout
from sweepledger.bucket.layout import ObjectKind, ObjectName
from sweepledger.engine.cluster import helper_pods
from sweepledger.formats import yaml
from sweepledger.render import base_files, pod
from sweepledger.spec import parse_settings
from sweepledger.structs.names import DELETING_PREFIX
from sweepledger.structs.run_config import Pack, Shape
from sweepledger.structs.settings import (
    BucketSettings,
    Controller,
    Dataset,
    ResultsSettings,
    ResultsStore,
    Settings,
)
from tests.render.building import accepted, built, named, pod_templates, rendered
from tests.render.judging import check_batch, refusals
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, cron_pod, the, trial_policy
from tests.sweeps import a_batch, a_full_sweep, a_sweep, real_bases, with_keys

Manifest = dict[str, Any]
IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
BUCKET = BucketSettings(
    "s3://sweeps/vision",
    "hub",
    region="eu-central-1",
    secret="sweep-bucket",  # noqa: S106 - the name of one
    seals="sweep-seals",
)


def in_a_bucket(bucket: BucketSettings = BUCKET, **results: Any) -> Settings:
    chosen = ResultsSettings(store=ResultsStore.BUCKET, bucket=bucket, **results)
    return replace(PLATFORM_SETTINGS, results=chosen)


SETTINGS = in_a_bucket()
IDENTITY = {"eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/sweep-trials"}
WITH_IDENTITY = in_a_bucket(
    BucketSettings("s3://sweeps/vision", "hub", identity=IDENTITY, collector_identity={"a": "b"})
)
SHAPES = [Shape.INDEXED, Shape.JOBS, Shape.JOB_SET, Shape.PYTORCH_JOB]
"""One of each way to name the pods of a trial."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_in_every_shape_a_sidecar_moves_the_files_of_its_own_trial(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch(shape, sweep=a_full_sweep("chosen", retries=0, nodes=2), image=IMAGE)

    made, manifests = accepted(batch, tmp_path, SETTINGS)

    assert made.lock.store is ResultsStore.BUCKET
    assert pod_templates(manifests)
    for template in pod_templates(manifests):
        pod = template["spec"]
        sidecar, (trial,) = named(pod["initContainers"], "store"), pod["containers"]
        env = {variable["name"]: variable.get("value") for variable in sidecar["env"]}
        assert template["metadata"]["finalizers"] == ["sweepledger.dev/record"]
        assert template["metadata"]["labels"]["sweepledger.dev/egress-hub"] == "true"
        assert sidecar["restartPolicy"] == "Always"
        assert (env["SWEEP_BATCH"], env["SWEEP_STORE_URL"]) == (made.name, "s3://sweeps/vision")
        own, theirs = (named(each["volumeMounts"], "results") for each in (sidecar, trial))
        assert own == theirs
        assert named(pod["volumes"], "results")["emptyDir"] == {"sizeLimit": "10Gi"}
        assert pod["terminationGracePeriodSeconds"] == 300
        secret = {volume["name"] for volume in pod["volumes"] if "sweep-" in json.dumps(volume.get("secret"))}
        assert secret == {"store-credentials", "store-seals"}
        for other in (trial, *(each for each in pod["initContainers"] if each is not sidecar)):
            assert not secret & {mount["name"] for mount in other["volumeMounts"]}
        ranks = [[v for v in each["env"] if v["name"] == "SWEEP_RANK"] for each in (sidecar, trial)]
        assert ranks[0] == ranks[1]
        if shape is not Shape.INDEXED:
            assert env["SWEEP_INDEX"] in theirs["subPath"]


def test_the_sidecar_of_a_pack_knows_its_rows_and_bounds_the_files_of_each(tmp_path: Path) -> None:
    sweep = replace(a_full_sweep("chosen", pack=Pack(3, 2), parallelism=4), replicates=4)
    batch = a_batch(sweep=sweep, image=IMAGE)

    _, manifests = accepted(batch, tmp_path, SETTINGS)

    (template,) = pod_templates(manifests)
    sidecar = named(template["spec"]["initContainers"], "store")
    env = {variable["name"]: variable.get("value") for variable in sidecar["env"]}
    assert (env["SWEEP_STORE_PACK"], env["SWEEP_STORE_TRIALS"]) == ("3", str(len(batch.trials)))
    assert env["SWEEP_STORE_MOST_BYTES"] == str(10 << 30)
    assert named(template["spec"]["volumes"], "results")["emptyDir"] == {"sizeLimit": "20Gi"}


def test_the_grace_period_of_a_pool_is_shared_by_launcher_and_sidecar(tmp_path: Path) -> None:
    pool = SETTINGS.trials.pools["chosen"]
    own = replace(pool, pod=replace(pool.pod, grace_seconds=60))
    settings = with_keys(SETTINGS, pools={**SETTINGS.trials.pools, "chosen": own})
    batch = a_batch(sweep=a_full_sweep("chosen"), image=IMAGE)

    (template,) = pod_templates(built(batch, tmp_path, settings))
    launch = json.loads(rendered(batch, settings).tree.files["launch.json"])

    sidecar = named(template["spec"]["initContainers"], "store")
    assert template["spec"]["terminationGracePeriodSeconds"] == 60
    assert named(sidecar["env"], "SWEEP_STORE_GRACE")["value"] == "60"
    assert launch["grace_seconds"] == 25


IN_THE_BUCKET = with_keys(
    SETTINGS,
    datasets={"mnist": Dataset("mnist", None, "sha256:" + "d" * 64, copied_from="data/mnist", size="3Gi")},
)


@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOB_SET], ids=str)
def test_in_every_shape_the_sidecar_copies_data_that_trials_only_read(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch(shape, sweep=a_full_sweep("chosen", retries=0, nodes=2, data="mnist"), image=IMAGE)
    judge = trial_policy(IN_THE_BUCKET)

    made, manifests = accepted(batch, tmp_path, IN_THE_BUCKET)

    assert pod_templates(manifests)
    for template in pod_templates(manifests):
        pod = template["spec"]
        sidecar, (trial,) = named(pod["initContainers"], "store"), pod["containers"]
        env = {variable["name"]: variable.get("value") for variable in sidecar["env"]}
        assert env["SWEEP_STORE_DATA"] == "data/mnist"
        assert env["SWEEP_STORE_DATA_DIGEST"] == "sha256:" + "d" * 64
        assert env["SWEEP_STORE_DATA_BYTES"] == str(3 << 30)
        assert env["SWEEP_DATA"] == named(sidecar["volumeMounts"], "data")["mountPath"] == "/sweep/data"
        assert named(trial["env"], "SWEEP_DATA")["value"] == "/sweep/data"
        assert named(trial["volumeMounts"], "data")["readOnly"] is True
        assert named(pod["volumes"], "data") == {"name": "data", "emptyDir": {"sizeLimit": "3Gi"}}
        assert trial["resources"]["requests"]["ephemeral-storage"] == "25Gi", "two folders, data, and 2Gi"
    for manifest in manifests:
        if manifest["kind"] == "Job":
            template = deepcopy(manifest)
            a_variable("SWEEP_STORE_DATA", "other-b1-3f9a1c2e/records")(template["spec"]["template"]["spec"])
            assert any("this batch's folder" in message for message in refusals(judge, template))
            assert check_batch(made.name, IN_THE_BUCKET, (template,), file="x")


def test_data_in_the_bucket_needs_no_volume_on_the_platform() -> None:
    tree = a_platform(IN_THE_BUCKET)

    assert not any(b"kind: PersistentVolume" in content for _, content in tree)


def with_parent() -> Any:
    batch = a_batch(Shape.JOBS, sweep=a_sweep(), image=IMAGE)
    return replace(batch, parents={1: "t-1"}, parent_folders={1: "lr-b1-3f9a1c2e/7"})


def test_a_trial_reads_the_checkpoints_of_its_parent_which_the_sidecar_restores(tmp_path: Path) -> None:
    manifests = built(with_parent(), tmp_path, SETTINGS)
    for job in (manifest for manifest in manifests if manifest["kind"] == "Job"):
        assert refusals(trial_policy(SETTINGS), job) == set()
    made = pod_templates(manifests)
    first, second = sorted(made, key=lambda each: each["metadata"]["labels"]["sweepledger.dev/index"])

    sidecar, (trial,) = named(second["spec"]["initContainers"], "store"), second["spec"]["containers"]
    assert named(sidecar["env"], "SWEEP_PARENT_FOLDER")["value"] == "lr-b1-3f9a1c2e/7"
    assert named(sidecar["volumeMounts"], "parent") == {"name": "parent", "mountPath": "/sweep/parent"}
    assert named(trial["volumeMounts"], "parent")["readOnly"] is True
    assert named(trial["env"], "SWEEP_PARENT")["value"] == "/sweep/parent"
    assert "SWEEP_PARENT" not in json.dumps(first)
    assert first["spec"]["volumes"] == second["spec"]["volumes"], "a hook compares the rounds of a search"


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    batch = a_batch(sweep=a_full_sweep("chosen"), image=IMAGE)
    made = built(batch, tmp_path_factory.mktemp("built"), SETTINGS)
    return next(manifest for manifest in made if manifest["kind"] == "Job")


def sidecar_of(pod: Manifest) -> Manifest:
    return named(pod["initContainers"], "store")


def a_variable(name: str, value: str) -> Callable[[Manifest], None]:
    def change(pod: Manifest) -> None:
        others = [each for each in sidecar_of(pod)["env"] if each["name"] != name]
        sidecar_of(pod)["env"] = [*others, {"name": name, "value": value}]

    return change


def a_variable_from_the_pod(name: str) -> Callable[[Manifest], None]:
    """Give a variable once more: the last of a name counts."""
    source = {"fieldRef": {"fieldPath": "metadata.annotations['x']"}}
    return lambda pod: sidecar_of(pod)["env"].append({"name": name, "valueFrom": source})


def a_mount(container: str, volume: str, path: str) -> Callable[[Manifest], None]:
    def change(pod: Manifest) -> None:
        (chosen,) = [
            each for each in (*pod["containers"], *pod["initContainers"]) if each["name"] == container
        ]
        chosen["volumeMounts"].append({"name": volume, "mountPath": path, "readOnly": True})

    return change


def another_volume(source: Manifest) -> Callable[[Manifest], None]:
    def change(pod: Manifest) -> None:
        pod["volumes"].append({"name": "other", **source})
        pod["containers"][0]["volumeMounts"].append({"name": "other", "mountPath": "/sweep/other"})

    return change


HOOK = {"exec": {"command": ["sh", "-c", "true"]}}
BY_RULE: dict[str, dict[str, Callable[[Manifest], Any]]] = {
    "mounts the Secrets": {
        "the trial has the credential": a_mount("trial", "store-credentials", "/sweep/store-credentials"),
        "the trial has the key of seals": a_mount("trial", "store-seals", "/sweep/s"),
        "the clone has the credential": a_mount("code", "store-credentials", "/sweep/s"),
        "the credential by another volume": another_volume({"secret": {"secretName": "sweep-bucket"}}),
        "the credential by a projected volume": another_volume(
            {"projected": {"sources": [{"secret": {"name": "sweep-bucket"}}]}}
        ),
    },
    "mounts its own folders": {
        **{
            f"the credential at {path}, which it saves": a_mount("store", "store-credentials", path)
            for path in (
                *("/sweep/results/checkpoints/x", "/sweep/results/x", "/sweep/checkpoints", "/sweep/data"),
                *("/sweep/store/x", "/sweep/store-credentials/x", "/sweep/x"),
            )
        },
        "the key of seals below the results": a_mount("store", "store-seals", "/sweep/results/checkpoints"),
        "the code, in which it restores": a_mount("store", "code", "/sweep/parent"),
        "the trial has the sidecar's state": a_mount("trial", "store", "/sweep/x"),
    },
    "base/components/bucket-store": {
        "another command": lambda pod: sidecar_of(pod).update(
            command=["sh", "-c", "cat /sweep/store-credentials/*"]
        ),
        "arguments": lambda pod: sidecar_of(pod).update(args=["x"]),
        "another hook": lambda pod: sidecar_of(pod).update(lifecycle={"postStart": HOOK}),
        "a second hook": lambda pod: sidecar_of(pod)["lifecycle"].update(preStop=HOOK),
        "a container that ends": lambda pod: sidecar_of(pod).pop("restartPolicy"),
        "the image of trials": lambda pod: sidecar_of(pod).update(image=IMAGE),
    },
    "this batch's folder": {
        "another batch": a_variable("SWEEP_BATCH", "lr-b9-00000000"),
        "another bucket": a_variable("SWEEP_STORE_URL", "s3://elsewhere/vision"),
        "another server": a_variable("AZURE_STORAGE_ENDPOINT", "http://elsewhere"),
        "another program": a_variable("PYTHONSTARTUP", "/sweep/results/x.py"),
        "the parent of another sweep": a_variable("SWEEP_PARENT_FOLDER", "other-b1-3f9a1c2e/7"),
        "another region": a_variable("AWS_REGION", "x.example.org/"),
        **{
            f"{name} from an annotation": a_variable_from_the_pod(name)
            for name in (
                "SWEEP_BATCH",
                "SWEEP_STORE_URL",
                "SWEEP_STORE_DATA",
                "SWEEP_PARENT_FOLDER",
                "AWS_REGION",
            )
        },
    },
    "below /sweep": {"a program over that of the image": a_mount("store", "results", "/opt/sweepledger/bin")},
    "neither hooks nor probes": {
        "a hook of the trial": lambda pod: pod["containers"][0].update(lifecycle={"postStart": HOOK})
    },
}
FAULTS = {fault: (says, faults[fault]) for says, faults in BY_RULE.items() for fault in faults}


@pytest.mark.parametrize("fault", FAULTS)
def test_admission_refuses_any_other_sidecar_and_use_of_the_credential(fault: str, job: Manifest) -> None:
    says, change = FAULTS[fault]
    faulty = deepcopy(job)
    change(faulty["spec"]["template"]["spec"])

    for manifest in (faulty, faulty["spec"]["template"]):
        assert any(says in message for message in refusals(trial_policy(SETTINGS), manifest))


@pytest.mark.parametrize("fault", ["the trial has the credential", "another batch"])
def test_the_check_of_a_batch_finds_the_same_before_it_is_merged(fault: str, tmp_path: Path) -> None:
    _, change = FAULTS[fault]
    batch = a_batch(sweep=a_full_sweep("chosen"), image=IMAGE)
    manifests = deepcopy(built(batch, tmp_path, SETTINGS))
    (template,) = pod_templates(manifests)
    change(template["spec"])

    assert check_batch(rendered(batch, SETTINGS).name, SETTINGS, manifests, file="x")


@pytest.mark.parametrize("settings", [SETTINGS, WITH_IDENTITY], ids=["secret", "identity"])
def test_the_doctors_proof_has_the_same_sidecar_and_is_admitted(settings: Settings) -> None:
    assert settings.results.bucket is not None
    component = base_files.component_patch(real_bases(), ResultsStore.BUCKET.facts.component)
    trials, network = settings.trials, settings.network
    store = pod.store_proof("sweep-doctor", trials, network, settings.results.bucket, component)
    job = helper_pods.write_test_job("research", None, IMAGE, "sweep-trial", is_held=True, store=store)
    elsewhere = deepcopy(job)
    a_variable("SWEEP_BATCH", "lr-b1-3f9a1c2e")(elsewhere["spec"]["template"]["spec"])

    judge = trial_policy(settings)
    assert refusals(judge, job) == set()
    assert refusals(judge, job["spec"]["template"]) == set()
    assert any("this batch's folder" in message for message in refusals(judge, elsewhere))


def test_where_the_store_is_no_bucket_a_sidecar_is_refused(job: Manifest) -> None:
    settings = replace(PLATFORM_SETTINGS, results=ResultsSettings(store=ResultsStore.API))
    judge = trial_policy(settings)

    assert any("gets the code" in message for message in refusals(judge, job))


TOKEN = {"serviceAccountToken": {"audience": "sts.amazonaws.com", "path": "token"}}


def with_token(template: Manifest, container: str) -> Manifest:
    """Return what the webhook of a cloud makes of a pod."""
    made = deepcopy(template)
    made["spec"]["volumes"].append({"name": "aws-iam-token", "projected": {"sources": [TOKEN]}})
    a_mount(container, "aws-iam-token", "/var/run/secrets/eks.amazonaws.com/serviceaccount")(made["spec"])
    a_variable("AWS_ROLE_ARN", "arn")(made["spec"])
    return made


def test_an_identity_of_the_cloud_is_for_the_sidecar_alone(tmp_path: Path) -> None:
    batch = a_batch(sweep=a_full_sweep("chosen"), image=IMAGE)
    manifests = built(batch, tmp_path, WITH_IDENTITY)
    (template,) = pod_templates(manifests)
    judge = trial_policy(WITH_IDENTITY)

    name = rendered(batch, WITH_IDENTITY).name
    assert check_batch(name, WITH_IDENTITY, manifests, file="x") == ()
    account = the("ServiceAccount", "sweep-trial", a_platform(WITH_IDENTITY))
    assert account["metadata"]["annotations"].items() >= IDENTITY.items()
    assert template["metadata"]["annotations"] == {
        "eks.amazonaws.com/skip-containers": "code,pytorch,tensorflow,trial"
    }
    assert refusals(judge, with_token(template, "store")) == set()
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_CONFIG_FILE"):
        elsewhere = with_token(template, "store")
        a_variable(variable, "https://elsewhere.example.org")(elsewhere["spec"])
        assert any("this batch's folder" in message for message in refusals(judge, elsewhere))
    from_git = deepcopy(next(each for each in manifests if each["kind"] == "Job"))
    assert refusals(judge, from_git) == set()
    a_variable("AZURE_AUTHORITY_HOST", "https://elsewhere.example.org")(from_git["spec"]["template"]["spec"])
    assert any("this batch's folder" in message for message in refusals(judge, from_git))
    (message,) = refusals(judge, with_token(template, "trial"))
    assert "has the identity" in message


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX], ids=str)
def test_the_platform_has_no_volume_and_the_collector_reaches_the_bucket(controller: Controller) -> None:
    tree = a_platform(with_keys(in_a_bucket(keep_days=30), controller=controller, datasets={}))
    pod = cron_pod("sweep-collector", tree)
    (collect,) = pod["containers"]
    env = {variable["name"]: variable["value"] for variable in collect["env"]}

    assert not any(b"kind: PersistentVolume" in content for _, content in tree)
    assert collect["command"] == ["sweep", "cluster", "collect", "--push", "--cluster"]
    assert (env["AWS_REGION"], env["SWEEP_STORE_SECRETS"]) == ("eu-central-1", "/sweep/store-credentials")
    assert named(pod["volumes"], "store-credentials")["secret"]["secretName"] == "sweep-bucket"
    opened = the("NetworkPolicy", "allow-egress-hub", tree, "research-collector")["spec"]
    assert opened["policyTypes"] == ["Egress"]
    expiry = the("CronJob", "sweep-expiry", tree)["spec"]["jobTemplate"]["spec"]["template"]
    (expire,) = expiry["spec"]["containers"]
    assert expire["command"] == ["sweep", "cluster", "expire", "--remote=origin"]
    assert expiry["metadata"]["labels"]["sweepledger.dev/egress-hub"] == "true"
    assert "persistentVolumeClaim" not in json.dumps(expiry["spec"])
    readme = tree.files["clusters/README.md"].decode()
    assert "results export" not in readme


def test_the_settings_of_the_page_are_valid_and_have_a_bucket() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/buckets.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```$", page, re.MULTILINE | re.DOTALL)
    whole, *parts = [yaml.load(textwrap.dedent(block)) for block in blocks]
    assert len(parts) == 5

    for part in ({}, *parts):
        settings = parse_settings(yaml.dump({**whole, **part}).encode(), "sweepledger.yaml")
        assert isinstance(settings, Settings), settings
        assert settings.results.bucket is not None


BATCH = "lr-b1-0a1b2c3d"
RECORD, CHECKPOINT = (
    ObjectName(BATCH, kind, 3, "uid", "0" * 64, number).key
    for kind, number in ((ObjectKind.RECORD, 0), (ObjectKind.CHECKPOINT, 7))
)
DELETING = f"{DELETING_PREFIX}{BATCH}/deleting"


def test_the_policies_of_the_page_allow_what_each_client_does_and_no_more() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/buckets.md").read_text(encoding="utf-8")
    blocks = dict(
        re.findall(r"^`(sweep-[a-z]+\.json)`[^\n]*\n\n```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )

    def may(client: str, action: str, key: str) -> bool:
        arn = f"arn:aws:s3:::ml-sweeps/vision/{key}"
        return any(
            f"s3:{action}Object" in statement["Action"]
            and any(fnmatch.fnmatchcase(arn, pattern) for pattern in flat(statement["Resource"]))
            for statement in json.loads(blocks[f"sweep-{client}.json"])["Statement"]
        )

    def flat(texts: str | list[str]) -> list[str]:
        return [texts] if isinstance(texts, str) else texts

    chunk, journal = layout.chunk_key(BATCH, 3, "0" * 64), f"{BATCH}/{ObjectKind.PACK}/pod/uid/x.json"
    for key in (RECORD, CHECKPOINT, chunk, journal):
        assert all(may(client, "Get", key) for client in ("trials", "collector", "expiry"))
        assert may("trials", "Put", key)
        assert may("expiry", "Delete", key)
        assert may("trials", "Delete", key) is (key != RECORD)
        assert not may("expiry", "Put", key)
        assert not any(may("collector", action, key) for action in ("Put", "Delete"))
    assert all(may("expiry", action, DELETING) for action in ("Get", "Put", "Delete"))
    assert not may("trials", "Put", DELETING)
    assert not may("trials", "Put", "data/mnist/train.bin")


@pytest.mark.parametrize("own", [{}, {"c": "d"}], ids=["without an identity", "with one"])
def test_expiry_never_has_the_identity_of_the_collector(own: dict[str, str]) -> None:
    bucket = BucketSettings("s3://sweeps/vision", "hub", collector_identity={"a": "b"}, expiry_identity=own)

    platform = a_platform(in_a_bucket(bucket, keep_days=30))

    expiry, collector = (
        the("ServiceAccount", name, platform) for name in ("sweep-expiry", "sweep-collector")
    )
    assert expiry["metadata"]["annotations"].items() >= own.items()
    assert "a" not in expiry["metadata"]["annotations"]
    assert collector["metadata"]["annotations"]["a"] == "b"
