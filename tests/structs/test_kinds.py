"""The one table of kinds is whole."""

from sweepledger.structs.kubernetes import JOB, MPI_JOB, TRAIN_JOB, TRAINING_RUNTIME, WORKLOAD_KINDS
from sweepledger.structs.run_config import Shape


def test_every_shape_has_a_kind_that_runs_its_trials() -> None:
    assert set(WORKLOAD_KINDS) == set(Shape)


def test_a_kind_is_named_as_manifests_and_as_kubectl_name_it() -> None:
    assert (JOB.api_version, JOB.resource) == ("batch/v1", "jobs.batch")
    assert (MPI_JOB.api_version, MPI_JOB.resource) == ("kubeflow.org/v2beta1", "mpijobs.kubeflow.org")


def test_what_cannot_say_when_it_is_deleted_is_told_apart() -> None:
    assert not TRAIN_JOB.has_ttl
    assert TRAIN_JOB.policy == ("spec",)
    assert TRAINING_RUNTIME.policy == ()
