from types import MappingProxyType

from sweepledger.formats.evidence_jsonl import ForeignEvidence, ForeignTrial, read, write
from sweepledger.structs.record import Status

EVIDENCE = ForeignEvidence(
    "optuna",
    "old.db: study-1",
    "sha256:" + "a" * 64,
    (
        ForeignTrial(MappingProxyType({"x": 1, "name": "a"}), MappingProxyType({"score": 0.5}), Status.OK),
        ForeignTrial(MappingProxyType({"x": 2, "name": "b"}), MappingProxyType({}), Status.FAILED),
    ),
)


def test_what_is_written_is_read_as_the_same() -> None:
    text = write(EVIDENCE)

    assert read(text.encode()) == EVIDENCE
    assert text.splitlines()[0] == (
        f'{{"digest":"sha256:{"a" * 64}","foreign":true,"format":"optuna","source":"old.db: study-1","version":1}}'
    )


def test_its_label_says_that_nobody_verifies_it() -> None:
    assert EVIDENCE.label("old") == "2 foreign trials of old (optuna: old.db: study-1), never verified"
