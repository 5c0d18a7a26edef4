"""What a trial could do that reaches the bucket itself: the threat model of SECURITY.md, row by row."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sweepledger.bucket import layout, results
from sweepledger.bucket.layout import ObjectKind, ObjectName
from sweepledger.bucket.objects import Bucket
from sweepledger.bucket.results import BucketResults
from sweepledger.engine.cluster import pods as cluster_pods
from sweepledger.engine.termination import ExpectedRecord
from sweepledger.errors import StorageError
from sweepledger.formats import record_json
from sweepledger.formats.launch_json import LAUNCHER_PATH
from sweepledger.formats.pack_digest import vouch
from sweepledger.operations.collection.cluster_evidence import UNCONFIRMED, PodAccount
from sweepledger.structs.kubernetes import BATCH_LABEL
from sweepledger.structs.record import LARGEST_TRIAL_FILE, Record
from tests.bucket.pods import BATCH, SEALS, Pod
from tests.builders import a_record
from tests.launcher.folders import shell

MakePod = Callable[..., Pod]
NOW = 1_900_000_000.0


def record(index: int = 0, **changes: Any) -> Record:
    return a_record(index, **{"batch": BATCH, "uid": f"uid-{index}", **changes})


def content(record: Record) -> bytes:
    return record_json.to_line(record).encode() + b"\n"


def put(bucket: Bucket, record: Record, key: bytes | None = None, **changes: Any) -> str:
    text = content(record)
    fields = {"index": record.index, "uid": record.uid, "sha256": layout.digest(text), **changes}
    bucket.put(ObjectName(BATCH, ObjectKind.RECORD, **fields).sealed(key).key, text)
    return str(fields["sha256"])


def pod(uid: str, index: int, message: str, sidecar: dict[str, Any] | None = None) -> cluster_pods.TrialPod:
    state = {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z"}
    status: dict[str, Any] = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "trial", "state": {"terminated": {**state, "message": message}}}],
    }
    if sidecar is not None:
        said = {"terminated": {**state, "message": json.dumps(sidecar)}}
        status["initContainerStatuses"] = [{"name": "store", "state": said}]
    parsed = cluster_pods.parse_pod(
        {
            "metadata": {
                "uid": uid,
                "name": uid,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {BATCH_LABEL: BATCH},
                "ownerReferences": [{"kind": "Job", "name": BATCH, "controller": True}],
                "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            },
            "spec": {"containers": [{"name": "trial", "command": ["python3", LAUNCHER_PATH]}]},
            "status": status,
        }
    )
    assert parsed is not None
    return parsed


def account(
    stored: BucketResults | Bucket, *trials: Record, ended: Sequence[cluster_pods.TrialPod]
) -> PodAccount:
    if isinstance(stored, Bucket):
        stored = BucketResults(stored)
    expected = tuple(ExpectedRecord(BATCH, r.index, r.trial, r.row, r.code, r.data, r.seed) for r in trials)
    read = [record_json.read(text) for trial in trials for text in stored.records(BATCH, trial.index)]
    records = [found for found in read if isinstance(found, Record)]
    unconfirmed = stored.unconfirmed(BATCH)
    known = [found for found in records if (found.index, found.uid) not in unconfirmed]
    waiting = {
        (found.index, found.uid, unconfirmed[found.index, found.uid]): found
        for found in records
        if (found.index, found.uid) in unconfirmed
    }
    judged = PodAccount(expected, known, stored=waiting)
    judged.add_pods(ended, NOW)
    return judged


@pytest.mark.parametrize(
    "message",
    ["{record}", '{{"sha256": "{sha256}"}}', '{{"sha256": "sha256:{sha256}"}}'],
    ids=["record", "digest", "prefixed"],
)
def test_a_record_counts_if_the_launchers_message_is_that_record_or_its_digest(
    bucket: Bucket, message: str
) -> None:
    good = record()
    text = message.format(sha256=put(bucket, good), record=content(good).decode())

    judged = account(bucket, good, ended=(pod("uid-0", 0, text),))

    assert judged.confirmed == (good,)
    assert dict(judged.doubts()) == {}
    assert list(judged.records()) == []


def test_a_record_of_a_lost_node_counts_once_the_next_sidecar_has_seen_it(bucket: Bucket) -> None:
    good = record(uid="lost")
    sha256 = put(bucket, good)
    said = {"store": 1, "complete": True, "records": {"lost": sha256}}

    judged = account(bucket, good, ended=(pod("second", 0, "", said),))

    assert judged.confirmed == (good,)
    assert list(judged.records()) == [], "the second pod ended as one that had nothing to do"


def test_a_record_under_another_trials_prefix_is_reported_and_does_not_count(bucket: Bucket) -> None:
    good = record(1)
    forged = record(1, uid="forged", metrics={"test_accuracy": 1.0})
    put(bucket, forged)
    put(bucket, good)

    judged = account(bucket, record(0), good, ended=(pod("uid-1", 1, content(good).decode()),))

    assert judged.confirmed == (good,)
    assert dict(judged.doubts()) == {1: (UNCONFIRMED,)}


def test_a_pod_cannot_confirm_a_record_of_another_trial(bucket: Bucket) -> None:
    forged = record(1, uid="forged")
    sha256 = put(bucket, forged)
    said = {"store": 1, "complete": True, "records": {"forged": sha256}}

    judged = account(bucket, record(0), forged, ended=(pod("uid-0", 0, "", said),))

    assert judged.confirmed == ()


@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced under its key", "a second one"])
def test_a_forged_record_of_an_attempt_does_not_count_and_the_message_does(
    bucket: Bucket, *, is_replaced: bool
) -> None:
    good, forged = record(), record(metrics={"test_accuracy": 1.0})
    if is_replaced:
        put(bucket, forged, sha256=layout.digest(content(good)))
    else:
        put(bucket, forged)
        put(bucket, good)

    judged = account(bucket, good, ended=(pod("uid-0", 0, content(good).decode()),))

    assert [found.metrics for found in (*judged.confirmed, *judged.records())] == [good.metrics]


def test_without_pods_only_a_sealed_record_counts(bucket: Bucket) -> None:
    sealed, plain = record(0), record(1)
    put(bucket, sealed, SEALS)
    put(bucket, plain, b"of another" * 8)
    stored = BucketResults(bucket, SEALS)

    judged = account(stored, sealed, plain, ended=())

    assert {*stored.unconfirmed(BATCH)} == {(1, "uid-1")}
    assert dict(judged.doubts()) == {1: (UNCONFIRMED,)}
    assert {*BucketResults(bucket).unconfirmed(BATCH)} == set(), "nothing was read yet"


def test_a_seal_is_of_one_trial_one_attempt_and_one_content(bucket: Bucket) -> None:
    good = record(0)
    name = ObjectName(BATCH, ObjectKind.RECORD, 0, "uid-0", layout.digest(content(good))).sealed(SEALS)
    for changes in ({"index": 1}, {"uid": "other"}, {"sha256": "0" * 64}, {"batch": "other"}):
        assert not replace(name, **changes).is_sealed(SEALS)


def test_with_a_key_a_forged_record_does_not_keep_a_trial_from_running(plain_pod: MakePod) -> None:
    victim = plain_pod(key=SEALS, command=shell("exit 3"))
    row = victim.folder.row_digest()
    forged = record(0, uid="forged", row=row, trial="t00000000000", code="cd" * 20, data=None)
    put(victim.bucket(), forged)

    assert victim.run().code == 3

    assert victim.message["unsealed"] == 1
    assert "forged" not in victim.message["records"]


def test_with_a_key_a_forged_checkpoint_is_not_restored(plain_pod: MakePod, tmp_path: Path) -> None:
    first = plain_pod(key=b"of another" * 8, command=shell('echo evil > "$SWEEP_CHECKPOINTS/state"; exit 3'))
    first.run()

    made = plain_pod(uid="uid-2", key=SEALS).start()

    assert not (made.results / "checkpoints").exists()


def test_a_trial_that_fills_its_own_prefix_hides_no_sealed_record(bucket: Bucket) -> None:
    good = record(0)
    for number in range(record_json.MOST_RECORDS + 20):
        put(bucket, record(0, uid=f"a{number:04}"))
    put(bucket, good, SEALS)
    stored = BucketResults(bucket, SEALS)

    contents = list(stored.records(BATCH, 0))

    assert content(good) in contents
    assert sum(text != record_json.UNREAD for text in contents) == record_json.MOST_RECORDS


def test_a_bucket_that_somebody_fills_ends(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_LISTED", 10)
    for number in range(11):
        put(bucket, record(number))

    with pytest.raises(StorageError, match="must have at most 10 records"):
        list(BucketResults(bucket).records(BATCH, 0))


def test_records_that_are_too_large_are_not_fetched(bucket: Bucket) -> None:
    large = b"x" * (LARGEST_TRIAL_FILE + 1)
    bucket.put(ObjectName(BATCH, ObjectKind.RECORD, 0, "uid-0", layout.digest(large)).key, large)

    assert list(BucketResults(bucket).records(BATCH, 0)) == [record_json.UNREAD]


def test_names_that_no_sidecar_writes_are_ignored(bucket: Bucket) -> None:
    for key in ("x", "0/uid", "00/uid/" + "0" * 64 + ".json", "0/../" + "0" * 64 + ".json", "-1/u/a.json"):
        assert layout.parse(BATCH, ObjectKind.RECORD, f"{BATCH}/records/{key}") is None


def test_a_sidecar_that_had_no_time_is_reported(bucket: Bucket) -> None:
    good = record()
    said = {"store": 1, "complete": False, "records": {}}

    judged = account(bucket, good, ended=(pod("uid-0", 0, content(good).decode(), said),))

    assert judged.incomplete == {0}
    assert [found.uid for found in judged.records()] == ["uid-0"]


def test_messages_that_are_no_json_confirm_nothing(bucket: Bucket) -> None:
    good = record()
    put(bucket, good)
    for message in ("", "[]", "{", '{"sha256": 3}', "x" * 4096):
        assert account(bucket, good, ended=(pod("uid-0", 0, message),)).confirmed == ()


def pack(
    uid: str, rows: range, message: str, packs: dict[str, str] | None = None
) -> list[cluster_pods.TrialPod]:
    """Make a pod of several trials, as the collector sees it: once for each."""
    said = None if packs is None else {"store": 1, "complete": True, "packs": packs}
    shared = pod(uid, 0, message, said)
    return [replace(shared, uid=f"{uid}-{row}", index=row, rows=rows) for row in rows]


def put_rows(bucket: Bucket, uid: str, rows: range) -> tuple[tuple[Record, ...], dict[int, str]]:
    """Put the records of a pod into the bucket; give them and their digests by row."""
    made = tuple(record(row, uid=f"{uid}-{row}") for row in rows)
    return made, {one.index: put(bucket, one) for one in made}


def test_rows_of_a_pack_count_if_sidecar_or_launcher_name_them_or_one_digest_of_all(bucket: Bucket) -> None:
    good, digests = put_rows(bucket, "pod-1", range(20))
    said = {"rows": {str(row): digest for row, digest in digests.items()}, "version": 1}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    whole = json.dumps({"rows_sha256": layout.digest(f"{text}\n".encode()), "version": 1})

    for message, packs in ((text, None), (whole, None), ("", {"pod-1": vouch(digests)})):
        judged = account(bucket, *good, ended=pack("pod-1", range(20), message, packs))
        assert (judged.confirmed, dict(judged.doubts()), list(judged.records())) == (good, {}, [])


def test_rows_of_a_lost_node_count_once_the_next_pod_of_the_pack_has_seen_them(bucket: Bucket) -> None:
    good, digests = put_rows(bucket, "lost", range(2))
    late, _ = put_rows(bucket, "lost", range(2, 3))

    judged = account(bucket, *good, *late, ended=pack("next", range(3), "", {"lost": vouch(digests)}))

    assert judged.confirmed == good, "what came after that pod had looked is not confirmed by it"
    assert judged.doubts() == {2: (UNCONFIRMED,)}


def test_a_pod_vouches_for_its_own_rows_alone(bucket: Bucket) -> None:
    own, digests = put_rows(bucket, "pod-1", range(2))
    foreign, others = put_rows(bucket, "pod-2", range(2, 4))
    said = {"pod-1": vouch(digests), "pod-2": vouch(others)}

    judged = account(bucket, *own, *foreign, ended=pack("pod-1", range(2), "", said))

    assert judged.confirmed == own


def test_a_record_that_another_has_replaced_makes_a_vouch_void(bucket: Bucket) -> None:
    good, digests = put_rows(bucket, "pod-1", range(2))
    forged = record(3, uid="pod-1-3", metrics={"test_accuracy": 1.0})
    put(bucket, forged)
    said = {"pod-1": vouch({**digests, 3: "ab" * 32})}

    judged = account(bucket, *good, record(2), forged, ended=pack("pod-1", range(4), "", said))

    assert judged.confirmed == ()
