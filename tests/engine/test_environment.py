from dataclasses import replace
from pathlib import Path

import pytest

from sweepledger.engine.local import environment
from sweepledger.engine.local.environment import HostVariables, PathTranslation, PodIdentity
from sweepledger.engine.local.job_spec import FieldVariable, LiteralVariable, Variable
from tests.engine.batches import indexed, jobs, parsed

IDENTITY = PodIdentity(uid="u-1", node="here", index=3, failures=2)


def test_only_container_paths_become_folders() -> None:
    translate = PathTranslation({"/sweep": Path("/s"), "/sweep/results": Path("/r r"), "/tmp": Path("/t")})  # noqa: S108

    seen = [
        translate(text)
        for text in (
            "/sweep/results",
            "/sweep/results/x",
            "/sweep/resultsx",
            "/sweep",
            "a/sweep",
            "/temp",
            "",
        )
    ]

    assert seen == ["/r r", "/r r/x", "/s/resultsx", "/s", "a/sweep", "/temp", ""]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)", "1"),
        ("x$(A)$(B)y", "x12y"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$A ${A} $", "$A ${A} $"),
    ],
)
def test_references_expand_as_in_kubernetes(text: str, value: str) -> None:
    assert environment.expand(text, {"A": "1", "B": "2"}) == value


def test_field_variables_describe_the_pod() -> None:
    job = parsed(indexed([""] * 4)).jobs[0]
    fields = {
        "UID": "metadata.uid",
        "NAMESPACE": "metadata.namespace",
        "NODE": "spec.nodeName",
        "BATCH": "metadata.labels['sweepledger.dev/batch']",
        "INDEX": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
        "FAILURES": "metadata.annotations['batch.kubernetes.io/job-index-failure-count']",
        "NOTHING": "metadata.annotations['other']",
    }
    variables: list[Variable] = [FieldVariable(name, path) for name, path in fields.items()]
    variables.append(LiteralVariable("JOINED", "$(NODE)/$(JOB_COMPLETION_INDEX)"))

    declared_variables = environment.declared_variables(
        replace(job, pod=replace(job.pod, environment=tuple(variables))), IDENTITY
    )

    assert declared_variables == {
        "JOB_COMPLETION_INDEX": "3",
        "UID": "u-1",
        "NAMESPACE": "sweeps",
        "NODE": "here",
        "BATCH": "lr-b1-00000001",
        "INDEX": "3",
        "FAILURES": "2",
        "NOTHING": "",
        "JOINED": "here/3",
    }


def test_a_job_of_one_trial_names_its_row_beside_its_only_index() -> None:
    job = parsed(jobs(["", ""])).jobs[1]

    declared_variables = environment.declared_variables(job, IDENTITY)

    assert declared_variables["JOB_COMPLETION_INDEX"] == "0"
    assert declared_variables["SWEEP_INDEX"] == "1"


def test_the_engines_environment_does_not_reach_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    extras = HostVariables(Path("/own"), Path("/own/log"), Path("/bin"), {"CUDA_VISIBLE_DEVICES": ""})

    results = environment.process_environment(
        {"SWEEP_RAN": "local", "A": "/data/x"}, IDENTITY, PathTranslation({"/data": Path("/d")}), extras
    )

    assert results == {
        "A": "/d/x",
        "CUDA_VISIBLE_DEVICES": "",
        "HOME": "/own",
        "PATH": "/bin:/bin:/usr/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SWEEP_FAILURES": "2",
        "SWEEP_NODE": "here",
        "SWEEP_POD_UID": "u-1",
        "SWEEP_RAN": "process",
        "SWEEP_TERMINATION_LOG": "/own/log",
        "TMPDIR": "/own",
    }


def test_temporary_files_go_where_the_manifest_mounts_them() -> None:
    extras = HostVariables(Path("/own"), Path("/own/log"), Path("/bin"), {})
    translate = PathTranslation({"/tmp": Path("/mine")})  # noqa: S108

    assert environment.process_environment({}, IDENTITY, translate, extras)["TMPDIR"] == "/mine"
