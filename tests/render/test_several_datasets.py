"""Sweeps that read several datasets: their mounts in every shape and store, and what admission allows of them."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.structs.program import Data, data_name
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Dataset, Settings, SeveralDatasets
from tests.render.building import accepted, job_of, named, pod_templates
from tests.render.judging import check_batch, refusals
from tests.render.platforms import PLATFORM_SETTINGS, trial_policy
from tests.render.test_bucket_store import SETTINGS as BUCKET_SETTINGS
from tests.render.test_bucket_store import a_variable
from tests.sweeps import a_batch, a_full_sweep, with_keys

IMAGE = "registry.example.org/team/trainer@sha256:" + "a" * 64
DIGESTS = {
    name: f"sha256:{letter * 64}" for name, letter in zip(("labels", "mnist", "words"), "abc", strict=True)
}
NAMES = data_name(DIGESTS)
IN_CLAIMS = with_keys(
    PLATFORM_SETTINGS,
    datasets={
        "mnist": Dataset("mnist", "shared", DIGESTS["mnist"], path="mnist/v1"),
        "labels": Dataset("labels", "labels", DIGESTS["labels"]),
        "words": Dataset("words", "shared", DIGESTS["words"], path="words"),
        "others": Dataset("others", "others", "version:1"),
    },
)
IN_THE_BUCKET = with_keys(
    BUCKET_SETTINGS,
    datasets={
        name: Dataset(name, None, digest, copied_from=f"data/{name}", size="1536Mi")
        for name, digest in DIGESTS.items()
    },
)
Manifest = dict[str, Any]


def a_batch_of_several(settings: Settings, shape: Shape = Shape.INDEXED, **run: Any) -> Any:
    known = settings.trials.dataset_named(NAMES)
    assert known is not None
    sweep = a_full_sweep("chosen", data=NAMES, **run)
    return a_batch(shape, sweep=sweep, image=IMAGE, data=Data(NAMES, known.identity))


def data_of(items: list[Manifest]) -> list[Manifest]:
    """Give the volumes or mounts with data, by name and place."""
    chosen = [item for item in items if item["name"].split("-")[0] == "data"]
    return sorted(chosen, key=lambda item: (item["name"], item.get("mountPath", "")))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", Shape, ids=str)
def test_in_every_shape_each_dataset_is_mounted_read_only(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch_of_several(IN_CLAIMS, shape, retries=0, nodes=2)

    made, manifests = accepted(batch, tmp_path, IN_CLAIMS)

    assert made.lock.program.data == Data("labels+mnist+words", batch.program.data.digest)
    assert pod_templates(manifests)
    for template in pod_templates(manifests):
        spec, (trial,) = template["spec"], template["spec"]["containers"]
        assert data_of(trial["volumeMounts"]) == [
            {"name": "data-0", "mountPath": "/sweep/data/labels", "readOnly": True},
            {"name": "data-1", "mountPath": "/sweep/data/mnist", "readOnly": True, "subPath": "mnist/v1"},
            {"name": "data-1", "mountPath": "/sweep/data/words", "readOnly": True, "subPath": "words"},
        ]
        assert data_of(spec["volumes"]) == [
            {"name": f"data-{number}", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
            for number, claim in enumerate(("labels", "shared"))
        ]
        if trial["command"] != ["/usr/sbin/sshd"]:  # gets its environment from rank 0
            assert named(trial["env"], "SWEEP_DATA")["value"] == "/sweep/data"


@pytest.mark.parametrize("shape", [Shape.INDEXED, Shape.JOB_SET], ids=str)
def test_the_sidecar_of_a_bucket_copies_all_of_them_into_one_volume(shape: Shape, tmp_path: Path) -> None:
    batch = a_batch_of_several(IN_THE_BUCKET, shape, retries=0, nodes=2)

    _, manifests = accepted(batch, tmp_path, IN_THE_BUCKET)

    assert pod_templates(manifests)
    for template in pod_templates(manifests):
        spec, (trial,) = template["spec"], template["spec"]["containers"]
        sidecar = named(spec["initContainers"], "store")
        env = {variable["name"]: variable.get("value") for variable in sidecar["env"]}
        assert env["SWEEP_STORE_DATA"] == "labels=data/labels mnist=data/mnist words=data/words"
        assert env["SWEEP_STORE_DATA_DIGEST"] == batch.program.data.digest
        assert env["SWEEP_STORE_DATA_BYTES"] == str(3 * (1536 << 20))
        assert data_of(trial["volumeMounts"]) == [
            {"name": "data", "mountPath": "/sweep/data", "readOnly": True}
        ]
        assert data_of(spec["volumes"]) == [{"name": "data", "emptyDir": {"sizeLimit": "4608Mi"}}]
        assert trial["resources"]["requests"]["ephemeral-storage"] == "27136Mi", "two folders, data, and 2Gi"


@pytest.mark.parametrize(
    "folders",
    [
        "labels=data/mnist",
        "labels=data/labels mnist=lr-b1-3f9a1c2e/records",
        "labels=data/labels  mnist=data/mnist",
        *("labels=data/labels data/mnist", "../labels=data/labels", ""),
    ],
)
def test_a_sidecar_copies_no_other_folder_and_none_to_another_place(folders: str, tmp_path: Path) -> None:
    judge = trial_policy(IN_THE_BUCKET)
    made, manifests = accepted(a_batch_of_several(IN_THE_BUCKET), tmp_path, IN_THE_BUCKET)
    job = copy.deepcopy(job_of(manifests))

    a_variable("SWEEP_STORE_DATA", folders)(job["spec"]["template"]["spec"])

    assert any("this batch's folder" in message for message in refusals(judge, job["spec"]["template"]))
    problems = check_batch(made.name, IN_THE_BUCKET, (job,))
    assert any("this batch's folder" in problem.message for problem in problems)


def volume(spec: Manifest, number: int) -> Manifest:
    return named(spec["volumes"], f"data-{number}")


def mount(spec: Manifest, place: str) -> Manifest:
    return named(spec["containers"][0]["volumeMounts"], f"/sweep/data/{place}", "mountPath")


FAULTS: dict[str, Callable[[Manifest], object]] = {
    "a claim that no dataset has": lambda spec: volume(spec, 0)["persistentVolumeClaim"].update(
        claimName="x"
    ),
    "the results": lambda spec: volume(spec, 1)["persistentVolumeClaim"].update(
        claimName="results", readOnly=False
    ),
}
OF_ADMISSION: dict[str, Callable[[Manifest], object]] = {
    "a volume that can be written": lambda spec: volume(spec, 0)["persistentVolumeClaim"].pop("readOnly")
}
OF_A_BATCH: dict[str, Callable[[Manifest], object]] = {
    "a mount that can be written": lambda spec: mount(spec, "mnist").update(readOnly=False),
    "another folder": lambda spec: mount(spec, "mnist").update(subPath="private"),
    "the whole volume": lambda spec: mount(spec, "mnist").pop("subPath"),
    "under another's name": lambda spec: mount(spec, "mnist").update(mountPath="/sweep/data/labels"),
    "elsewhere": lambda spec: mount(spec, "labels").update(mountPath="/code"),
}


@pytest.mark.parametrize("fault", [*FAULTS, *OF_A_BATCH])
def test_a_check_refuses_anything_else_in_the_volumes_of_several_datasets(fault: str, tmp_path: Path) -> None:
    made, manifests = accepted(a_batch_of_several(IN_CLAIMS), tmp_path, IN_CLAIMS)
    job = copy.deepcopy(job_of(manifests))

    (FAULTS | OF_A_BATCH)[fault](job["spec"]["template"]["spec"])

    others = [each for each in manifests if each["kind"] != "Job"]
    problems = check_batch(made.name, IN_CLAIMS, (*others, job), file="x")
    assert "volume-not-allowed" in {problem.code for problem in problems}


@pytest.mark.parametrize("fault", [*FAULTS, *OF_ADMISSION])
def test_the_admission_policies_judge_these_volumes_by_their_claims(fault: str, tmp_path: Path) -> None:
    judge = trial_policy(IN_CLAIMS)
    _, manifests = accepted(a_batch_of_several(IN_CLAIMS), tmp_path, IN_CLAIMS)
    job = copy.deepcopy(job_of(manifests))

    (FAULTS | OF_ADMISSION)[fault](job["spec"]["template"]["spec"])

    assert refusals(judge, job)
    assert refusals(judge, job["spec"]["template"])


def test_the_digest_of_several_depends_on_names_and_contents_and_not_on_their_order() -> None:
    parts = tuple(IN_CLAIMS.trials.datasets[name] for name in ("labels", "mnist"))
    moved = tuple(replace(part, claim="elsewhere", path="v9") for part in parts)
    changed = (parts[0], replace(parts[1], identity="sha256:" + "f" * 64))
    renamed = (parts[0], replace(parts[1], name="digits"))

    digest = SeveralDatasets(parts).identity

    # printf '%s  %s\n' sha256:aa… labels sha256:bb… mnist | sha256sum
    assert digest == "sha256:12f91ebc24429b8050008f2a92c535547e15032202ecb85969278852d75cad42"
    assert SeveralDatasets(moved).identity == digest
    assert len({digest, SeveralDatasets(changed).identity, SeveralDatasets(renamed).identity}) == 3


def test_several_of_which_one_has_a_version_cannot_be_verified_as_a_whole() -> None:
    parts = tuple(IN_CLAIMS.trials.datasets[name] for name in ("labels", "others"))

    assert SeveralDatasets(parts).identity.startswith("version:")


def test_a_name_that_the_settings_lack_is_no_dataset() -> None:
    assert IN_CLAIMS.trials.dataset_named("labels+gone") is None
    with pytest.raises(KeyError):
        IN_CLAIMS.trials.dataset(Data("labels+gone", "sha256:" + "0" * 64))
