"""The schema beside the launcher and the reader of records take the same, tried on what is nearly right."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from sweepledger.formats import record_json
from sweepledger.structs.record import Artifact, Record
from tests.builders import a_record

SCHEMA = json.loads((Path(__file__).parents[2] / "base/launcher/v1/record.schema.json").read_text())


def pattern(_: object, wanted: str, value: object, __: object) -> Iterator[ValidationError]:
    """Match as ECMAScript does, whose `$` is not satisfied by a line end that follows."""
    whole = re.sub(r"\$$", r"\\Z", wanted)
    if isinstance(value, str) and not re.search(whole, value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def is_whole(_: object, value: object) -> bool:
    """Take numbers without a point only: one thing that no schema can ask for."""
    return isinstance(value, int) and not isinstance(value, bool)


Strict = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_whole),
)
VALIDATOR = Strict(SCHEMA)

VALID: dict[str, Any] = {
    **json.loads(record_json.to_line(a_record(artifacts=(Artifact("model.pt", 12, "cd" * 32),)))),
    "curves": {"loss": [[1, 0.5], [2, None]], "acc": [[3, 1]]},
}

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)
WORDS = st.sampled_from(
    ["", "ok", "diverged", "pruned", "failed", "timeout", "exit-1", "t1", "a\n", "..", "process", "OK"]
)
EDGES = st.sampled_from(
    [0, 1, -1, 10**7, 10**7 - 1, 10**9, 10**9 + 1, 2**53, 2**53 + 1, 2**63, 2**63 - 1, -(2**63) - 1]
)
AMOUNTS = st.none() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
NAMES = (
    st.from_regex(r"[A-Za-z][A-Za-z0-9_./@-]{0,62}", fullmatch=True) | st.text(max_size=3) | st.just("m" * 64)
)


def matching(member: str, *, of: str = "properties") -> st.SearchStrategy[str]:
    """Make texts by the pattern of a member, and such with one letter more or less."""
    result = SCHEMA["$defs"]["time"] if of == "time" else SCHEMA[of][member]
    good = st.from_regex(re.compile(re.sub(r"\$$", r"\\Z", result["pattern"]), re.ASCII))
    return good | good.map(lambda text: text + "\n") | good.map(lambda text: text[1:])


ARTIFACT = st.fixed_dictionaries(
    {
        "path": st.text("a/.\0\né", max_size=6),
        "bytes": st.integers(-2, 3) | EDGES | st.floats(0, 3),
        "sha256": st.sampled_from(["cd" * 32, "CD" * 32, "cd" * 31]),
    },
    optional={"extra": st.just(1)},
)
POINT = st.lists(st.integers(-1, 9) | EDGES | AMOUNTS, min_size=1, max_size=3)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "status": WORDS,
    "reason": st.none() | WORDS | matching("reason"),
    "metrics": st.dictionaries(NAMES, AMOUNTS, max_size=4),
    "seconds": AMOUNTS,
    "started": matching("", of="time"),
    "finished": matching("", of="time"),
    "details": st.dictionaries(st.text(max_size=3), ANYTHING, max_size=2),
    "artifacts": st.lists(ARTIFACT, max_size=3),
    "curves": st.dictionaries(
        st.sampled_from(["loss", "acc", "1st", ""]), st.lists(POINT, max_size=3), max_size=3
    ),
    **{name: matching(name) for name in ("trial", "row", "batch", "uid", "ran", "code")},
    **{name: st.none() | matching(name) for name in ("data", "node")},
    **{name: EDGES | st.integers() | st.floats(-5, 5) for name in ("version", "index", "attempt", "seed")},
}


@st.composite
def nearly_records(draw: st.DrawFn) -> dict[str, Any]:
    """Change up to three members of a good record, or take them away, or add one."""
    made = dict(VALID)
    if draw(st.booleans()):
        made |= {"status": "failed", "reason": "exit-1"}
    changes = draw(st.sampled_from([0, 1, 1, 1, 2, 3]))
    for name in draw(st.permutations(sorted(LIKELY)))[:changes]:
        made[name] = draw(LIKELY[name] | ANYTHING if draw(st.booleans()) else LIKELY[name])
    if draw(st.sampled_from([False] * 7 + [True])):
        del made[draw(st.sampled_from(sorted(VALID)))]
    if draw(st.sampled_from([False] * 9 + [True])):
        made[draw(st.text(max_size=3))] = 1
    return made


@settings(max_examples=200, deadline=None)
@given(nearly_records())
@example({**VALID, "metrics": {f"m{number}": 1 for number in range(102)}})
@example({**VALID, "artifacts": VALID["artifacts"] * 1001})
@example({**VALID, "curves": {"loss": VALID["curves"]["loss"] * 101}})
@example({**VALID, "curves": {f"m{number}": [[1, 1]] for number in range(101)}})
@example({**VALID, "reason": "exit-1"})
@example({**VALID, "status": "failed"})
@example({**VALID, "artifacts": [{**VALID["artifacts"][0], "path": "a" * 1025}]})
@example({**VALID, "started": "2023-02-29T00:00:00Z"})
@example({**VALID, "started": "2024-02-29T00:00:00.5Z"})
def test_what_the_schema_takes_the_reader_takes_and_nothing_else(made: dict[str, Any]) -> None:
    is_read = isinstance(record_json.read(json.dumps(made).encode()), Record)

    assert is_read is VALIDATOR.is_valid(made)
