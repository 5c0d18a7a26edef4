"""Every member of launch.json has a type."""

from typing import Any

import pytest

from tests.launcher.folders import TrialFolder, launch

REQUIRED: dict[str, dict[str, Any]] = {
    "str": {"batch": 1, "program": None, "code": 1, "interpreter": None},
    "str or NoneType": {"data": 1},
    "list": {"columns": {}, "shards": {}, "command": "sh"},
    "dict": {"metric": "loss"},
    "int": {"seed_base": 0.5, "max_disruptions": 1.5},
    "int or float": {"timeout_seconds": "1", "grace_seconds": True},
}
OPTIONAL: dict[str, dict[str, Any]] = {
    "dict": {"secrets": [], "data_at": [], "environment": [], "pack": [], "config": []},
    "bool": {"hyperparams_file": 1, "keep_checkpoints": 0, "capture": "yes"},
    "str": {"workdir": None, "thresholds_file": 1},
    "list": {"keep": "*.pt", "stop": {}},
}
"""Wrong values by member, by the types that it must have."""
WRONG = [
    (member, value, types)
    for table in (REQUIRED, OPTIONAL)
    for types, members in table.items()
    for member, value in members.items()
]


@pytest.mark.parametrize(("member", "value", "types"), WRONG)
def test_a_wrong_type_is_refused(member: str, value: Any, types: str, trial_folder: TrialFolder) -> None:
    trial_folder.changes = {member: value}
    trial_folder.write()

    with pytest.raises(launch.Refused) as refused:
        launch.read_launch(str(trial_folder.root / "launch.json"))

    assert str(refused.value) == f"launch.json: launch: {member} must be {types}, got {value!r}"


def test_no_member_but_the_optional_ones_may_be_absent(trial_folder: TrialFolder) -> None:
    trial_folder.write()
    path = trial_folder.root / "launch.json"
    known = launch.read_launch(str(path))

    assert set(known) - {"version"} == set(launch.LAUNCH) == set().union(*REQUIRED.values())
    assert set(launch.OPTIONS) == set().union(*OPTIONAL.values())
