"""Every member of launch.json has a type."""

from typing import Any

import pytest

from tests.launcher.folders import TrialFolder, launch

WRONG: tuple[tuple[str, Any, str], ...] = (
    ("batch", 1, "str"),
    ("program", None, "str"),
    ("code", 1, "str"),
    ("data", 1, "str or NoneType"),
    ("columns", {}, "list"),
    ("shards", {}, "list"),
    ("command", "sh", "list"),
    ("interpreter", None, "str"),
    ("metric", "loss", "dict"),
    ("seed_base", 0.5, "int"),
    ("timeout_seconds", "1", "int or float"),
    ("grace_seconds", True, "int or float"),
    ("max_disruptions", 1.5, "int"),
    ("secrets", [], "dict"),
    ("hyperparams_file", 1, "bool"),
    ("workdir", None, "str"),
    ("data_at", [], "dict"),
    ("keep", "*.pt", "list"),
    ("stop", {}, "list"),
    ("thresholds_file", 1, "str"),
    ("keep_checkpoints", 0, "bool"),
    ("environment", [], "dict"),
    ("pack", [], "dict"),
    ("capture", "yes", "bool"),
)


@pytest.mark.parametrize(("member", "value", "types"), WRONG)
def test_a_wrong_type_is_refused(
    member: str, value: Any, types: str, trial_folder: TrialFolder
) -> None:
    trial_folder.changes = {member: value}
    trial_folder.write()

    with pytest.raises(launch.Refused) as refused:
        launch.read_launch(str(trial_folder.root / "launch.json"))

    assert str(refused.value) == f"launch.json: launch: {member} must be {types}, got {value!r}"


def test_no_member_but_the_optional_ones_may_be_absent(trial_folder: TrialFolder) -> None:
    trial_folder.write()
    path = trial_folder.root / "launch.json"
    known = launch.read_launch(str(path))

    assert set(known) - {"version"} == set(launch.LAUNCH) == {name for name, _, _ in WRONG[:13]}
    assert set(launch.OPTIONS) == {name for name, _, _ in WRONG[13:]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": {"lock": 5}}, "environment: lock must be str, got 5"),
        ({"secrets": {"TOKEN": 5}}, "secrets: TOKEN must be str, got 5"),
        ({"data_at": {"mnist": 5}}, "data_at: mnist must be str, got 5"),
        ({"keep": ["*.pt", 5]}, "keep and workdir must be paths inside the code, got 5"),
        ({"keep": ["a/../../*"]}, "keep and workdir must be paths inside the code, got 'a/../../*'"),
        ({"workdir": "/etc"}, "keep and workdir must be paths inside the code, got '/etc'"),
        ({"workdir": "../x"}, "keep and workdir must be paths inside the code, got '../x'"),
        ({"columns": [{"name": "x"}]}, "column: type must be str, got None"),
        ({"shards": [5]}, "shard must be an object, got 5"),
        ({"metric": {"name": "loss"}}, "metric: source must be str, got None"),
    ],
)
def test_the_members_of_an_object_have_types_too(
    changes: dict[str, Any], message: str, trial_folder: TrialFolder
) -> None:
    trial_folder.changes = changes
    trial_folder.write()

    with pytest.raises(launch.Refused) as refused:
        launch.read_launch(str(trial_folder.root / "launch.json"))

    assert str(refused.value) == f"launch.json: {message}"
