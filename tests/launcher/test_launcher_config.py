"""The configuration file of a trial: the base with its values, which every reader of the format reads alike."""

import json
import tomllib
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from tests.launcher.folders import TRIALS, TrialFolder, launch, python, sha256

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text() | st.sampled_from(
    ["on", "no", "1e-4", "012", "12:30", "2001-01-01", "~", "", "null", "0o17"]
)
VALUES = st.recursive(
    NUMBERS | TEXTS | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)
READERS: dict[str, list[Callable[[str], Any]]] = {
    "yaml": [yaml.safe_load, lambda text: YAML(typ="safe", pure=True).load(StringIO(text))],
    "toml": [tomllib.loads],
    "json": [json.loads],
}


@pytest.mark.parametrize("form", READERS)
@settings(max_examples=20)
@given(data=st.dictionaries(TEXTS.filter(lambda name: "." not in name), VALUES, min_size=1, max_size=4))
def test_every_reader_of_a_format_reads_what_the_launcher_writes(form: str, data: dict[str, Any]) -> None:
    written = launch.config_text({"format": form, "text": json.dumps({})}, data)

    for read in READERS[form]:
        assert json.dumps(read(written)) == json.dumps(data)


BASE = {"lr": 0.5, "optimizer": {"name": "adam", "betas": [0.9, 0.99]}}
READ = """
import json, os, pathlib, sys
values = json.loads(pathlib.Path(sys.argv[1]).read_text())
number = values["optimizer"]["learning_rate"]
pathlib.Path(os.environ["SWEEP_RESULT"]).write_text(json.dumps({"test_accuracy": number}))
pathlib.Path(os.environ["SWEEP_ARTIFACTS"], "seen.json").write_text(json.dumps(values))
"""


def test_values_stand_at_their_dotted_names_and_the_record_has_the_digest(trial_folder: TrialFolder) -> None:
    config = {"format": "json", "text": json.dumps(BASE)}
    trial_folder.changes = {"config": config}
    trial_folder.command = [*python(READ), {"macro": "config"}]
    trial_folder.columns = [("optimizer.learning_rate", "number")]
    trial_folder.rows = [f"{TRIALS[0]},1e-05"]

    record = trial_folder.try_once()

    expected = {"lr": 0.5, "optimizer": {**BASE["optimizer"], "learning_rate": 1e-05}}  # type: ignore[dict-item]
    assert record["metrics"] == {"test_accuracy": 1e-05}
    written = launch.config_text(config, {"optimizer.learning_rate": 1e-05})
    assert json.loads(written) == expected
    assert record["details"]["config"] == f"sha256:{sha256(written.encode())}"


def test_a_value_inside_of_a_number_is_refused() -> None:
    with pytest.raises(launch.Refused, match="inside of lr, which is no mapping"):
        launch.config_text({"format": "json", "text": json.dumps(BASE)}, {"lr.start": 1})


def test_a_value_that_the_format_lacks_is_refused() -> None:
    with pytest.raises(launch.Refused, match="lr is null, which TOML lacks"):
        launch.config_text({"format": "toml", "text": json.dumps(BASE)}, {"lr": None})
