"""The one table of kinds is whole."""

from generator.structs.kinds import JOB, MPI_JOB, RUNNERS, TRAIN_JOB, TRAINING_RUNTIME
from generator.structs.sweep import Shape


def test_every_shape_has_a_kind_that_runs_its_trials() -> None:
    assert set(RUNNERS) == set(Shape)


def test_a_kind_is_named_as_manifests_and_as_kubectl_name_it() -> None:
    assert (JOB.api_version, JOB.resource) == ("batch/v1", "jobs.batch")
    assert (MPI_JOB.api_version, MPI_JOB.resource) == ("kubeflow.org/v2beta1", "mpijobs.kubeflow.org")


def test_what_cannot_say_when_it_is_deleted_is_told_apart() -> None:
    assert not TRAIN_JOB.has_ttl
    assert TRAIN_JOB.policy == ("spec",)
    assert TRAINING_RUNTIME.policy == ()
