"""A sweep job of Azure ML is read as azure-ai-ml reads it: with PyYAML, in YAML 1.1, and names in any case."""

from typing import Any

import pytest
import yaml

from sweepledger.formats.foreign_yaml import ForeignError
from tests.exchange.conformance import SEEDS, read
from tests.exchange.imported import sweep_of, whats


def job(**changes: Any) -> bytes:
    """Return a sweep job with other keys."""
    return yaml.safe_dump(yaml.safe_load(SEEDS["azureml"]) | changes).encode()


def space(text: str) -> bytes:
    """Return a sweep job with one parameter, `x`."""
    return job(search_space={}).replace(b"search_space: {}", f"search_space: {{x: {text}}}".encode())


def test_scalars_are_those_of_yaml_1_1() -> None:
    imported = read("azureml", space("{type: choice, values: [010, 1e-4, 1.0, '3', 12:30, 0x10, 1_000]}"))

    assert imported.spec["parameters"]["x"] == {"values": [8, "1e-4", 1.0, "3", 750, 16, 1000]}


def test_a_bound_without_a_point_is_a_number() -> None:
    imported = read("azureml", space("{type: uniform, min_value: 1e-4, max_value: '2'}"))

    assert imported.spec["parameters"]["x"] == {"distribution": "uniform", "min": 0.0001, "max": 2}


def test_a_boolean_of_a_choice_is_reported_since_azure_refuses_it() -> None:
    imported = read("azureml", space("{type: choice, values: [yes, 'no']}"))

    assert imported.spec["parameters"]["x"] == {"values": [True, "no"]}
    assert "search_space.x.values: true" in whats(imported.losses)


def test_types_and_rules_are_in_any_case() -> None:
    content = space("{type: LogUniform, min_value: -2, max_value: 0}")
    other = yaml.safe_load(content) | {"sampling_algorithm": {"type": "Random", "rule": "Sobol"}}

    imported = read("azureml", yaml.safe_dump(other).encode())

    assert imported.spec["method"] == "sobol"
    assert imported.spec["parameters"]["x"] == {"distribution": "log_uniform", "min": -2, "max": 0}


@pytest.mark.parametrize(
    ("base", "kind", "expected"),
    [
        ("e", "loguniform", {"distribution": "log_uniform", "min": -4, "max": -1}),
        (10, "loguniform", {"distribution": "log_uniform_values", "min": 0.0001, "max": 0.1}),
        (0.5, "qloguniform", {"distribution": "q_log_uniform_values", "min": 2, "max": 16, "q": 1}),
        (10, "uniform", {"distribution": "uniform", "min": -4, "max": -1}),
    ],
)
def test_exponents_have_the_base_of_the_algorithm(base: Any, kind: str, expected: dict[str, Any]) -> None:
    content = space(f"{{type: {kind}, min_value: -4, max_value: -1, q: 1}}")
    data = yaml.safe_load(content) | {"sampling_algorithm": {"type": "random", "logbase": base}}

    imported = read("azureml", yaml.safe_dump(data).encode())

    assert imported.spec["parameters"]["x"] == expected
    assert ("sampling_algorithm.logbase: 10" in whats(imported.losses)) == (base == 10)


def test_a_lognormal_of_another_base_is_one_of_e() -> None:
    content = space("{type: lognormal, mu: 1, sigma: 2}")
    data = yaml.safe_load(content) | {"sampling_algorithm": {"type": "random", "logbase": 10}}

    domain = read("azureml", yaml.safe_dump(data).encode()).spec["parameters"]["x"]

    assert domain["distribution"] == "log_normal"
    assert (domain["mu"], domain["sigma"]) == pytest.approx((2.302585, 4.605170))


@pytest.mark.parametrize(
    ("base", "words"), [(1, "other than 1"), (-2, "other than 1"), ("x", "must be a number")]
)
def test_a_base_that_has_no_powers_is_refused(base: Any, words: str) -> None:
    with pytest.raises(ForeignError, match=words):
        read("azureml", job(sampling_algorithm={"type": "random", "logbase": base}))


def test_a_power_that_is_too_large_is_refused() -> None:
    data = yaml.safe_load(space("{type: loguniform, min_value: 0, max_value: 99999}"))

    with pytest.raises(ForeignError, match="finite number"):
        read("azureml", yaml.safe_dump(data | {"sampling_algorithm": {"logbase": 10}}).encode())


def test_a_choice_with_search_spaces_of_its_own_is_refused() -> None:
    with pytest.raises(ForeignError, match="got search spaces") as raised:
        read("azureml", space("{type: choice, values: [{n: 1}, {m: {type: normal, mu: 0, sigma: 1}}]}"))

    assert "`when`" in str(raised.value.hint)


def test_a_mapping_that_only_names_a_type_is_a_value() -> None:
    imported = read("azureml", space("{type: choice, values: [{type: normal, std: 1}, {type: uniform}]}"))

    assert len(imported.spec["parameters"]["x"]["values"]) == 2


def test_a_command_may_have_the_placeholders_of_older_versions() -> None:
    trial = {
        "command": "python train.py --lr {search_space.lr} --e {inputs.epochs} --out {outputs.m}",
        "code": "src",
    }

    imported = read("azureml", job(trial=trial))

    assert imported.spec["command"][2:] == [
        "--lr", "${envvar:SWEEP_PARAM_LR}", "--e", "3", "--out", "${envvar:SWEEP_ARTIFACTS}/m",
    ]  # fmt: skip


def test_lines_that_a_backslash_continues_are_one_command() -> None:
    command = "python train.py \\\n  --lr ${{search_space.lr}} \\\n  --text 'a  b'\n"

    imported = read("azureml", job(trial={"command": command, "code": "src"}))

    assert imported.spec["command"][2:] == ["--lr", "${envvar:SWEEP_PARAM_LR}", "--text", "a  b"]


def test_several_lines_need_a_shell() -> None:
    command = "pip install x\npython train.py --lr ${{search_space.lr}}\n"

    imported = read("azureml", job(trial={"command": command, "code": "src"}))

    assert "command" not in imported.spec
    assert any("needs a shell" in loss.why for loss in imported.losses)


def test_an_input_may_be_written_with_its_value() -> None:
    imported = read("azureml", job(inputs={"epochs": {"value": 42}, "train": {"path": "data"}}))

    assert imported.spec["command"][-4:] == ["--e", "42", "--data", "${envvar:SWEEP_DATA}"]


def test_a_script_outside_the_folder_of_the_code_is_named() -> None:
    trial = {"command": "python ../a/train.py --lr ${{search_space.lr}}", "code": "src"}

    imported = read("azureml", job(trial=trial))

    assert imported.spec["program"] == "train.py"
    assert "program: ../a/train.py" in whats(imported.losses)
    assert sweep_of(imported)


def test_a_trial_has_at_least_a_minute_as_in_azure() -> None:
    imported = read("azureml", job(limits={"max_total_trials": 2, "trial_timeout": 5}))

    assert imported.spec["run"]["timeout"] == "60s"
    assert "limits.trial_timeout: 5" in whats(imported.losses)


def test_a_number_in_quotes_is_refused_with_the_remedy() -> None:
    with pytest.raises(ForeignError, match=r"must be a whole number, got '3'") as raised:
        read("azureml", job(limits={"max_total_trials": "3"}))

    assert raised.value.hint == "write it without quotes"
