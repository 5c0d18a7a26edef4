import copy
from collections.abc import Callable
from typing import Any

import pytest

from sweepledger.engine.local import manifests
from sweepledger.engine.local.job_spec import (
    BatchSpec,
    ConfigSource,
    ConfigVolume,
    FailureAction,
    KeptVolume,
    ResourceAmounts,
    ResultsVolume,
    ScratchVolume,
)
from tests.engine.batches import indexed, jobs, parsed, trial

Change = Callable[[dict[str, Any]], object]


def pod_of(job: dict[str, Any]) -> Any:
    return job["spec"]["template"]["spec"]


def container_of(job: dict[str, Any]) -> Any:
    return pod_of(job)["containers"][0]


def of_code(job: dict[str, Any]) -> dict[str, Any]:
    return next(variable for variable in container_of(job)["env"] if variable["name"] == "SWEEP_CODE")


def messages(made: list[dict[str, Any]]) -> list[str]:
    spec = manifests.parse_batch("lr-b1-00000001", made)
    assert not isinstance(spec, BatchSpec)
    assert {problem.code for problem in spec} == {"unsupported-manifest"}
    assert list(spec) == sorted(spec)
    return [f"{problem.path}: {problem.message}" for problem in spec]


def test_an_indexed_job_has_one_index_per_row() -> None:
    batch = parsed(indexed(["", "", ""], parallelism=2, retries=1))

    (job,) = batch.jobs
    assert (job.indexes, job.parallelism) == ((0, 1, 2), 2)
    assert (job.retries, job.max_failed) == (1, 3)
    assert [job.failure_action(code) for code in (1, 42, 43)] == [
        FailureAction.COUNT,
        FailureAction.FAIL_INDEX,
        FailureAction.FAIL_JOB,
    ]
    assert [row.trial for row in batch.table.rows] == [trial(0), trial(1), trial(2)]


def test_shape_jobs_has_one_job_per_row_by_index() -> None:
    made = jobs([""] * 12, retries=2)

    batch = parsed([*reversed(made[2:]), *made[:2]])

    assert [job.indexes for job in batch.jobs] == [(index,) for index in range(12)]
    assert {(job.retries, job.max_failed) for job in batch.jobs} == {(2, 1)}


def test_all_fields_of_the_pod_are_parsed() -> None:
    pod = parsed(indexed([""], resources={"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": 1})).jobs[0].pod

    assert pod.command == ("python3", "/sweep/launcher/launch.py")
    assert pod.requests == pod.limits == ResourceAmounts(500, 2 << 30, 1)
    assert (pod.grace, pod.deadline, pod.code) == (2.0, 300, "/code")
    assert pod.volumes["table"] == ConfigVolume((ConfigSource("lr-b1-00000001-table-000"),))
    assert pod.volumes["results"] == ResultsVolume()
    assert pod.volumes["scratch"] == ScratchVolume(2 << 30)


def test_fields_that_choose_nodes_are_ignored() -> None:
    made = copy.deepcopy(indexed([""]))

    pod_of(made[-1]).update(
        nodeSelector={"pool": "gpu"},
        tolerations=[{"key": "x", "operator": "Exists"}],
        affinity={"nodeAffinity": {}},
        imagePullSecrets=[{"name": "registry"}],
        serviceAccountName="sweep-trial",
    )

    assert parsed(made).jobs[0].pod == parsed(indexed([""])).jobs[0].pod


def test_tokens_of_a_cluster_are_a_folder_without_them_on_this_machine() -> None:
    made = copy.deepcopy(indexed([""]))
    pod = pod_of(made[-1])
    token = {"audience": "vault", "expirationSeconds": 3600, "path": "vault"}
    pod["volumes"].append({"name": "tokens", "projected": {"sources": [{"serviceAccountToken": token}]}})
    pod["containers"][0]["volumeMounts"].append(
        {"name": "tokens", "mountPath": "/sweep/tokens", "readOnly": True}
    )

    volumes = parsed(made).jobs[0].pod.volumes

    assert volumes["tokens"] == ConfigVolume(())


def test_claims_for_checkpoints_and_artifacts_are_separate_volumes() -> None:
    made = copy.deepcopy(indexed([""]))

    for name in ("checkpoints", "artifacts"):
        pod_of(made[-1])["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": "x"}})

    volumes = parsed(made).jobs[0].pod.volumes
    assert volumes["checkpoints"] == KeptVolume("checkpoints")
    assert volumes["artifacts"] == KeptVolume("artifacts")


def test_the_digest_covers_job_and_config_maps_in_any_order() -> None:
    before = parsed(indexed(["", ""])).jobs[0].digest
    table, more = indexed(["", "sleep:1"]), indexed(["", ""], parallelism=5)

    assert parsed(list(reversed(indexed(["", ""])))).jobs[0].digest == before
    assert parsed(table).jobs[0].digest != before
    assert parsed(more).jobs[0].digest != before


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (lambda job: job["spec"].update(ttlSecondsAfterFinished=1), "spec.ttlSecondsAfterFinished"),
        (lambda job: job["spec"].update(suspend=True), "spec.suspend"),
        (lambda job: job["spec"].update(completionMode="NonIndexed"), "spec.completionMode"),
        (lambda job: job["spec"].pop("completionMode"), "spec.completionMode"),
        (lambda job: job["spec"].pop("backoffLimitPerIndex"), "spec.backoffLimitPerIndex"),
        (lambda job: job["spec"].update(backoffLimit=1), "spec.backoffLimit"),
        (lambda job: job["spec"].update(parallelism="4"), "spec.parallelism"),
        (lambda job: job["spec"].update(completions=0), "spec.completions"),
        (lambda job: job["spec"]["podFailurePolicy"]["rules"][0].update(action="FailJob"), "rules[0].action"),
        (lambda job: pod_of(job).update(restartPolicy="OnFailure"), "spec.restartPolicy"),
        (lambda job: pod_of(job).update(initContainers=[{"name": "x"}]), "spec.initContainers[0].name"),
        (lambda job: pod_of(job).update(hostAliases=[{"ip": "x"}]), "spec.hostAliases"),
        (lambda job: pod_of(job)["containers"].append({"name": "two"}), "exactly one container"),
        (
            lambda job: pod_of(job)["volumes"].append({"name": "n", "nfs": {"server": "x"}}),
            "volume type that the local engine does not support",
        ),
        (lambda job: pod_of(job)["volumes"][3]["emptyDir"].update(medium="HugePages"), "emptyDir.medium"),
        (lambda job: pod_of(job)["volumes"][3]["emptyDir"].update(sizeLimit="2gi"), "must be a quantity"),
        (lambda job: pod_of(job)["volumes"][2].update(name="other"), "volumes[2].name"),
        (lambda job: pod_of(job)["volumes"][0]["configMap"].update(name="gone"), "'gone'"),
        (lambda job: pod_of(job)["volumes"][0]["configMap"].update(optional=True), "configMap.optional"),
        (
            lambda job: pod_of(job)["volumes"].append({"name": "n", "secret": {"secretName": "hub-token"}}),
            "must be absent on this machine, which does not have the cluster's Secret 'hub-token'",
        ),
        (lambda job: container_of(job).update(livenessProbe={}), "livenessProbe"),
        (lambda job: container_of(job).update(envFrom=[{"secretRef": {"name": "s"}}]), "envFrom"),
        (lambda job: container_of(job).update(workingDir="/code"), "workingDir"),
        (lambda job: of_code(job).pop("value"), "must set SWEEP_CODE"),
        (lambda job: of_code(job).update(value="code"), "SWEEP_CODE to an absolute path, got 'code'"),
        (lambda job: container_of(job)["env"].remove(of_code(job)), "must set SWEEP_CODE"),
        (lambda job: container_of(job).pop("command"), "command: must be set"),
        (
            lambda job: container_of(job)["env"].append(
                {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
            ),
            "secretKeyRef",
        ),
        (
            lambda job: container_of(job)["env"].append(
                {"name": "S", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
            ),
            "status.podIP",
        ),
        (lambda job: container_of(job)["resources"]["limits"].update({"amd.com/gpu": 1}), "amd.com/gpu"),
        (lambda job: container_of(job)["volumeMounts"][2].update(subPathExpr="../x"), "must stay inside"),
        (lambda job: container_of(job)["volumeMounts"][2].update(subPathExpr="one"), "for each index"),
        (lambda job: container_of(job)["volumeMounts"][2].update(subPathExpr="$(HOME)"), "for each index"),
        (lambda job: container_of(job)["volumeMounts"][3].update(mountPath="/code/x"), "outside the code"),
        (lambda job: container_of(job)["volumeMounts"].pop(2), "must mount the results volume once"),
        (lambda job: job["metadata"].update(name="../up"), "'../up'"),
    ],
)
def test_unsupported_fields_are_problems(change: Change, output: str) -> None:
    made = copy.deepcopy(indexed(["", ""]))

    change(made[-1])

    assert any(output in message for message in messages(made))


def test_all_problems_are_reported() -> None:
    made = copy.deepcopy(indexed([""]))
    pod_of(made[-1]).update(hostNetwork=True, initContainers=[{"name": "x"}])
    made.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})

    results = messages(made)

    assert len(results) == 3


@pytest.mark.parametrize("key", ["launch.json", "hyperparams.csv"])
def test_a_batch_without_its_table_is_refused(key: str) -> None:
    made = copy.deepcopy(indexed([""]))
    for manifest in made[:2]:
        manifest["data"].pop(key, None)

    assert any(
        "must contain launch.json and the table that it names" in message for message in messages(made)
    )


def test_a_job_with_more_indexes_than_rows_is_refused() -> None:
    made = copy.deepcopy(indexed(["", ""]))
    made[-1]["spec"]["completions"] = 3

    assert any("a row for every index" in message for message in messages(made))


def test_a_config_map_key_with_a_path_is_refused() -> None:
    made = copy.deepcopy(indexed([""]))
    made[0]["data"]["../x"] = "y"

    assert any("keys that are file names" in message for message in messages(made))


def test_a_batch_without_a_job_is_refused() -> None:
    assert any("must contain a Job" in message for message in messages(indexed([""])[:2]))
