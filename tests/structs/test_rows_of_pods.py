"""Which rows a pod runs, and what attempts and folders of trials are called."""

from sweepledger.structs.run_config import Pack
from tests.builders import a_lock


def test_without_a_pack_a_pod_runs_the_row_of_its_index() -> None:
    lock = a_lock(trials=3)

    assert [lock.rows(pod) for pod in range(4)] == [range(1), range(1, 2), range(2, 3), range(3, 3)]
    assert (lock.run.packed.pod(2), lock.attempt("uid", 2), lock.place(2)) == (2, "uid", "2")


def test_a_pod_of_a_pack_runs_consecutive_rows() -> None:
    lock = a_lock(trials=3, pack=Pack(2, 1))

    assert [lock.rows(pod) for pod in range(3)] == [range(2), range(2, 3), range(3, 3)]
    assert (lock.run.packed.pod(2), lock.attempt("uid", 2), lock.place(2)) == (1, "uid-2", "1/2")
