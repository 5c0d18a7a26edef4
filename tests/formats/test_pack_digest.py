"""What messages of pods with several trials vouch for: exactly the records that they mean."""

import hashlib
import json

from sweepledger.formats import pack_digest

RECORDS = {row: hashlib.sha256(str(row).encode()).hexdigest() for row in (0, 1, 2, 5, 10)}


def launchers(rows: dict[str, str | None]) -> str:
    return json.dumps({"rows": rows, "version": 1}, sort_keys=True, separators=(",", ":")) + "\n"


def test_a_vouch_names_rows_as_a_job_does_and_means_these_records() -> None:
    text = pack_digest.vouch(RECORDS)

    assert text.startswith("0-2,5,10 ")
    assert list(pack_digest.vouched(text, RECORDS)) == [0, 1, 2, 5, 10]
    assert list(pack_digest.vouched(text, RECORDS | {7: "ab" * 32})) == [0, 1, 2, 5, 10], (
        "later ones do not matter"
    )


def test_a_missing_or_another_record_or_a_broken_text_vouches_for_nothing() -> None:
    text = pack_digest.vouch(RECORDS)

    assert not list(pack_digest.vouched(text, {row: RECORDS[row] for row in (0, 1)}))
    assert not list(pack_digest.vouched(text, RECORDS | {5: "ab" * 32}))
    for broken in ("", "x", "0-999999999 " + "ab" * 32, text.replace("0-2", "2-0"), text[:-1]):
        assert not list(pack_digest.vouched(broken, RECORDS))


def test_a_launcher_confirms_its_rows_one_by_one_or_by_one_digest() -> None:
    rows = range(11)
    named = {str(row): RECORDS.get(row) for row in rows}
    long = {"rows_sha256": hashlib.sha256(launchers(named).encode()).hexdigest(), "version": 1}

    assert sorted(pack_digest.vouched_by_launcher({"rows": named}, rows, RECORDS)) == [0, 1, 2, 5, 10]
    assert sorted(pack_digest.vouched_by_launcher(long, rows, RECORDS)) == [0, 1, 2, 5, 10]
    assert not list(pack_digest.vouched_by_launcher(long, rows, RECORDS | {3: "ab" * 32}))
    assert not list(pack_digest.vouched_by_launcher({"rows": {"0": "ab" * 32}}, rows, RECORDS))
    assert not list(pack_digest.vouched_by_launcher({}, rows, RECORDS))
