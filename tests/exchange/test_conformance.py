"""Every importer reads what its tool means, reports what it loses, and survives any input."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.errors import UsageError
from sweepledger.exchange.conversion import Exported
from sweepledger.exchange.hydra.grammar import parse_value
from sweepledger.exchange.registry import IMPORTS, WRITERS
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.sweep import Sweep
from tests.exchange.conformance import EXAMPLES, SEEDS, TRIALS, mutations, read, survive, survive_trials
from tests.exchange.imported import assignments_of, sweep_of, whats
from tests.written_specs import good

pytest.importorskip("hydra")


def test_every_format_has_an_example() -> None:
    assert {name.partition(":")[0] for name in SEEDS} == set(IMPORTS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_becomes_the_sweep_that_it_means(name: str) -> None:
    example, imported = EXAMPLES[name], read(name)

    sweep = sweep_of(imported)

    (block,) = sweep.blocks
    assert str(block.method) == example.method
    assert {parameter.name: parameter.domain for parameter in block.space.parameters} == example.domains
    assert (str(sweep.metric.goal), sweep.metric.name, sweep.command) == (
        example.goal,
        example.metric,
        example.command,
    )
    assert example.reported <= set(whats(imported.losses))
    if sweep.search is None:
        assert assignments_of(sweep)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("argo", SEEDS["argo"]),
        ("dvc", b"dvc exp run --queue -S lr=0.1 -S opt=sgd\ndvc exp run --queue -S opt=adam -S lr=0.2\n"),
        ("dvc", b"stages: {t: {foreach: {a: {lr: 0.1, opt: sgd}, b: {lr: 2e-1, opt: adam}}, do: {cmd: x}}}"),
    ],
    ids=["loop", "queue", "items"],
)  # fmt: skip
def test_the_configurations_of_a_loop_are_its_items(name: str, content: bytes) -> None:
    rows = assignments_of(sweep_of(read(name, content)))

    assert rows == ({"lr": 0.1, "opt": "sgd"}, {"lr": 0.2, "opt": "adam"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"), ("no", "no"), ("12:30:00", "12:30:00"), ("010", 10), ("0o17", 15), ("0x1F", 31), ("1e-3", 0.001),
        ("1_000", 1000), ("TRUE", True), ("-.5", -0.5), ("~", None),
    ],
)  # fmt: skip
def test_dvc_reads_yaml_1_2(text: str, value: Any) -> None:
    """`on`, `no`, times and a leading 0 mean other values in YAML 1.1, which most tools read."""
    parameters = read("dvc", f"mode: {text}\nother: 1".encode()).spec["parameters"]

    assert parameters["mode"] == {"value": value}
    assert type(parameters["mode"]["value"]) is type(value)


@pytest.mark.parametrize(
    "runs",
    [
        b"dvc exp run -S a=1,2 -S b=x\n# dvc exp run -S c=1\ndvc exp run -S a=3 \\\n -S b=y\ndvc exp run --run-all",
        b"With `dvc exp run -S`, queue `dvc exp run --queue -S a=1,2 -S b=x` and `dvc exp run --queue -S a=3 -S b=y`\n",
    ],
    ids=["script", "document"],
)
def test_several_queued_runs_are_the_combinations_of_each(runs: bytes) -> None:
    rows = assignments_of(sweep_of(read("dvc", runs)))

    assert rows == ({"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 3, "b": "y"})


def test_an_mlproject_may_run_a_module_and_have_its_parameters_in_a_later_entry_point() -> None:
    content = (
        b"entry_points: {main: {command: python a.py}, prepare: {command: python b.py},"
        b"train: {parameters: {lr: {type: float, default: 0.1}}, command: 'python3 -m pack.train --model x --lr {lr}'}}"
    )

    imported = read("mlproject", content)

    assert imported.spec["parameters"] == {"lr": {"value": 0.1}}
    assert imported.spec["command"] == [
        "python3", "-m", "pack.train", "--model", "x", "--lr", "${envvar:SWEEP_PARAM_LR}",
    ]  # fmt: skip
    assert imported.spec["run"]["code"] == {"path": "pack"}
    assert {"entry_points.main", "entry_points.prepare"} <= set(whats(imported.losses))
    assert sweep_of(imported)


def test_a_command_with_values_of_dvc_is_reported_as_such() -> None:
    imported = read(
        "dvc", b"stages: {t: {foreach: {a: {lr: 1}, b: {lr: 2}}, do: {cmd: 'python t.py ${key} ${item.lr}'}}}"
    )

    reasons = {loss.what: loss.why for loss in imported.losses}
    assert "only DVC fills in" in reasons["stages.t.do.cmd: python t.py ${key} ${item.lr}"]
    assert "command" not in imported.spec


@pytest.mark.parametrize(
    ("name", "cap", "seed", "parallelism"),
    [
        ("optimization-job", 8, 3, 2), ("sagemaker", 8, 4, 2), ("azureml", 8, 5, 4), ("vertex", 8, 0, 2),
        ("ray", 8, 0, 2), ("optuna", 8, 0, 1),
    ],
)  # fmt: skip
def test_number_of_trials_seed_and_parallelism_are_kept(
    name: str, cap: int, seed: int, parallelism: int
) -> None:
    sweep = sweep_of(read(name))

    block = sweep.blocks[0]
    assert (getattr(block, "cap", None), getattr(block, "seed", None)) == (cap, seed)
    assert sweep.run.parallelism == parallelism


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("optuna", b"not json", "must be a line of JSON"),
        ("optuna", b'{"op_code": 0, "study_name": "a"}\n{"op_code": 0, "study_name": "b"}', "one study, got a, b"),
        ("optuna", b'{"op_code": 0, "study_name": "a"}', "has no trials with parameters"),
        ("optuna", SEEDS["optuna"].replace(b"null, 1", b"1e999, 1"), "choices: a value must be finite"),
        ("optuna", SEEDS["optuna"].replace(b"null, 1", b"NaN, 1"), "choices: a value must be finite"),
        ("optuna", SEEDS["optuna"].replace(b'low\\": 0.001', b'low\\": -Infinity'), "must be a finite number"),
        ("optuna", b"SQLite format 3\0" + b"x" * 200, "must be Optuna's SQLite storage"),
        ("ray", b"import os; os.system('true')", "must have one search space"),
        ("ray", b"s = {'a': tune.choice([open('/etc/passwd')])}", "is code"),
        ("ray", b"s = {'a': tune.choice(range(9))}", "is code"),
        ("ray", b"s = {'a': tune.uniform(0, 9**9**9)}", "simple arithmetic"),
        ("ray", b"s = {'a': tune.randint(" + b"9" * 400 + b", 10)}", "must have finite numbers"),
        ("ray", b"s = {'a': tune.uniform(0)}", "must have lower, upper"),
        ("ray", b"def (", "must be a Python file"),
        ("dvc", b"stages: {a: {cmd: x}}", "must have one stage with matrix or foreach, got none"),
        ("dvc", b"stages: {a: {matrix: {x: ['${y}']}, cmd: x}}", "refers to another file"),
        ("dvc", b"stages: {a: {matrix: {x: '${y}'}, cmd: x}}", "refers to a list elsewhere, ${y}"),
        ("dvc", b"dvc exp run -S a=1,2\ndvc exp run -S b=3,4\n", "must set the same parameters, got a and b"),
        ("dvc", b"dvc exp run -S a=1\ndvc exp run -S ~a\n", "each dvc exp run must set a parameter"),
        ("dvc", b"dvc exp run -S a=1\ndvc exp run -S 'a=interval(0,1)'\n", "must set values, not ranges"),
        ("dvc", b"dvc exp run -S a=1 && dvc exp run -S a=2\n", "one dvc exp run -S each, got several in a line"),
        ("dvc", b"stages: {a: {foreach: [{x: 1}, {y: 2}], do: {cmd: x}}}", "items with the same keys"),
        ("dvc", b"stages: {a: {foreach: [{x: '${y}'}], do: {cmd: x}}}", "refers to another file"),
        ("dvc", b"stages: {a: {foreach: '${y}', do: {cmd: x}}}", "must be a list or a mapping"),
        ("dvc", b"for m in x y; do\n dvc exp run -S a=$m\ndone\n", "a=$m is completed by the shell"),
        ("dvc", b"dvc exp run -S a=`date`\n", "is completed by the shell"),
        ("dvc", b"dvc exp run -S a=1 -S a=2\n", "-S a must be set once"),
        ("dvc", b"dvc exp run -S a=1,1e999", "must be finite"),
        ("dvc", b"dvc exp run -S 'a=range(1'", "must be a value that Hydra reads"),
        ("mlproject", b"entry_points: {main: {parameters: {a: float}, command: x}}", "with a default, got none"),
        ("mlproject", b"name: x", "with entry_points, got none"),
        ("sagemaker", b"kind: Job", "must be a HyperParameterTuningJob"),
        ("azureml", b"type: command", "must be a sweep job"),
        ("azureml", b"type: pipeline", "got 'pipeline'"),
        ("azureml", b"{type: sweep, search_space: {a: {type: odd}}}", "must be one of choice, lognormal"),
        ("vertex", b"studySpec: {metrics: []}", "with parameters, got none"),
        ("vertex", SEEDS["vertex"].replace(b"parameterId", b"id"), "a name of its own, got one without"),
        ("vertex", b"studySpec: {parameters: [{parameterId: a}]}", "must have one of doubleValueSpec"),
        ("vertex", b"studySpec: {}\nstudy_spec: {}", "there twice, as studySpec and as study_spec: keep one"),
        ("sagemaker", b"{HyperParameterTuningJobConfig: {Strategy: Random}, TrainingJobDefinitions: [{}, {}]}",
         "must have one training job, since a sweep has one program, got 2"),
        ("optimization-job", b"kind: Experiment", "must be an OptimizationJob"),
        ("optimization-job", SEEDS["optimization-job"].replace(b'max: "0.1"', b'max: "x"'), "must be a number"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(name: str, content: bytes, words: str) -> None:
    with pytest.raises(ForeignError) as refused:
        read(name, content)

    assert words in str(refused.value)


def test_a_storage_that_never_ends_is_refused() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE VIEW studies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS study_id, 'a' AS study_name FROM n WHERE i < 0;"
    )
    with pytest.raises(ForeignError, match="must be Optuna's SQLite storage"):
        read("optuna", database.serialize())


def test_a_storage_with_a_name_that_a_view_makes_too_long_is_refused() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE VIEW studies AS SELECT 1 AS study_id, hex(zeroblob(2000000)) AS study_name;"
    )

    with pytest.raises(ForeignError, match="too big"):
        read("optuna", database.serialize())


def test_no_code_of_a_search_space_is_executed(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'made')!r}, 'w')\nspace = {{'a': tune.choice([1, 2])}}\n"

    assert read("ray", code.encode()).spec["parameters"] == {"a": {"values": [1, 2]}}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SEEDS)
def test_a_changed_file_is_read_or_refused(name: str) -> None:
    for content in mutations(SEEDS[name], seed=1, count=40):
        survive(name, content)


@pytest.mark.parametrize("form", TRIALS)
def test_a_changed_file_of_trials_is_read_or_refused(form: str) -> None:
    for content in mutations(TRIALS[form], seed=3, count=1000):
        survive_trials(form, content)


@pytest.mark.full_suite("more changed files")
@pytest.mark.parametrize("name", SEEDS)
def test_two_thousand_changed_files_are_read_or_refused(name: str) -> None:
    for content in mutations(SEEDS[name], seed=2, count=2_000 // len(SEEDS) + 1):
        survive(name, content)


@pytest.mark.parametrize("name", ["optimization-job", "sagemaker", "vertex"])
def test_two_parameters_of_one_name_are_refused(name: str) -> None:
    """Entries of a list could replace each other in silence; keys of a mapping cannot."""
    data = yaml.safe_load(SEEDS[name])
    twice(data)

    with pytest.raises(ForeignError, match="twice"):
        read(name, yaml.safe_dump(data).encode())


def twice(data: Any) -> None:
    """Write the first entry of each list of parameters a second time."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, list) and value and key.lower().endswith(("parameters", "parameterranges")):
            value.append(value[0])
        else:
            twice(value)


def test_objects_of_the_operator_before_ack_have_their_constants_in_a_list() -> None:
    older = SEEDS["sagemaker"].replace(b"kind: HyperParameter", b"kind: Hyperparameter")
    data = yaml.safe_load(older)
    training = data["spec"]["trainingJobDefinition"]
    constants = training["staticHyperParameters"]
    training["staticHyperParameters"] = [{"name": name, "value": value} for name, value in constants.items()]

    assert read("sagemaker", yaml.safe_dump(data).encode()).spec == read("sagemaker").spec

    training["staticHyperParameters"] *= 2
    with pytest.raises(ForeignError, match="must have each name once"):
        read("sagemaker", yaml.safe_dump(data).encode())


def test_the_only_training_job_of_a_list_has_ranges_and_an_objective_of_its_own() -> None:
    data = yaml.safe_load(SEEDS["sagemaker"])
    job = data["spec"]
    config, training = job["hyperParameterTuningJobConfig"], job.pop("trainingJobDefinition")
    training["hyperParameterRanges"] = config.pop("parameterRanges")
    training["tuningObjective"] = config.pop("hyperParameterTuningJobObjective")
    job["trainingJobDefinitions"] = [training | {"definitionName": "only"}]

    listed = read("sagemaker", yaml.safe_dump(data).encode())

    assert listed.spec == read("sagemaker").spec
    assert whats(listed.losses) == [
        what.replace("trainingJobDefinition.", "trainingJobDefinitions[0].").replace(
            "hyperParameterTuningJobConfig.parameterRanges", "trainingJobDefinitions[0].hyperParameterRanges"
        )
        for what in whats(read("sagemaker").losses)
    ]


def test_the_configuration_of_a_tuning_job_may_be_a_file_of_its_own() -> None:
    config = yaml.safe_load(SEEDS["sagemaker"])["spec"]["hyperParameterTuningJobConfig"]

    alone = read("sagemaker", yaml.safe_dump(config).encode())

    whole = read("sagemaker").spec
    assert alone.spec["metric"] == whole["metric"]
    assert alone.spec["parameters"].items() < whole["parameters"].items()
    assert not [what for what in whats(alone.losses) if "arameterRanges:" in what]


def test_a_trial_of_azure_may_be_in_another_file_or_of_an_older_version() -> None:
    data = yaml.safe_load(SEEDS["azureml"])
    data["trial"]["code"] = {"local_path": data["trial"]["code"]}
    older = read("azureml", yaml.safe_dump(data).encode())
    elsewhere = read("azureml", yaml.safe_dump(data | {"trial": "./train.yml"}).encode())

    assert older.spec == read("azureml").spec
    assert elsewhere.spec["parameters"] == older.spec["parameters"]
    assert "trial: ./train.yml" in whats(elsewhere.losses)


@pytest.mark.parametrize(
    ("code", "path"), [(".", "."), ("./", "."), ("./src", "src"), ("/src", "code"), ("../a", "code")]
)
def test_the_folder_of_a_trial_of_azure_may_be_that_of_the_file(code: str, path: str) -> None:
    imported = read("azureml", SEEDS["azureml"].replace(b"code: src", f"code: {code}".encode()))

    assert imported.spec["run"]["code"] == {"path": path}
    assert (f"trial.code: {code}" in whats(imported.losses)) == (path != "src")


def test_a_command_of_azure_writes_its_outputs_to_the_artifacts() -> None:
    command = b"--model ${{outputs.model}} --test ${{inputs.test}} --data ${{inputs.train}}"
    imported = read("azureml", SEEDS["azureml"].replace(b"--data ${{inputs.train}}", command))

    assert imported.spec["command"][-5:] == [
        "${envvar:SWEEP_ARTIFACTS}/model", "--test", "${envvar:SWEEP_DATA}", "--data", "${envvar:SWEEP_DATA}",
    ]  # fmt: skip
    assert {"outputs.model", "inputs: test, train"} <= set(whats(imported.losses))


def test_a_command_that_needs_a_shell_is_shown_as_it_is_in_the_file() -> None:
    imported = read(
        "azureml", SEEDS["azureml"].replace(b"python train.py", b"cat ${{inputs.train}} | python train.py")
    )

    assert [
        what for what in whats(imported.losses) if what.startswith("command: cat ${{inputs.train}} | python")
    ]


NESTED = [{"a": {"b": 1}}, {"a": {"b": "}} ${x}"}}]
NESTED_FILES = {
    "wandb": {"method": "grid", "program": "a/b.py", "parameters": {"x": {"values": NESTED}}},
    "dvc": {"stages": {"t": {"matrix": {"x": [[item] for item in NESTED]}, "cmd": "python t.py"}}},
    "azureml": yaml.safe_load(SEEDS["azureml"])
    | {"search_space": {"x": {"type": "choice", "values": NESTED}}, "trial": {"command": "python a.py"}},
}


@pytest.mark.parametrize("name", NESTED_FILES)
def test_a_value_that_is_nested_is_json_that_a_spec_may_contain(name: str) -> None:
    imported = read(name, yaml.safe_dump(NESTED_FILES[name]).encode())

    rows = {row["x"] for row in assignments_of(sweep_of(imported))} if name != "azureml" else None
    (domain,) = sweep_of(imported).blocks[0].space.parameters
    assert rows is None or rows == set(imported.spec["parameters"]["x"]["values"])
    values = [json.loads(text) for text in imported.spec["parameters"][domain.name]["values"]]
    assert values in (NESTED, [[item] for item in NESTED])


def test_a_nested_value_of_ray_and_an_item_of_argo_are_json_that_a_spec_may_contain() -> None:
    ray = read("ray", f"tune.run(f, config={{'x': tune.grid_search({NESTED!r})}})".encode())
    argo = SEEDS["argo"].replace(b"{{item.lr}}", b"{{item}}").replace(b"{{item.opt}}", b"{{item.a}}")
    data = yaml.safe_load(argo)
    step = data["spec"]["templates"][0]["steps"][0][0]
    step["withItems"] = [{"a": 1, "c": {"d": 2}}, {"a": 2, "c": {"d": 3}}]

    assert [json.loads(str(row["x"])) for row in assignments_of(sweep_of(ray))] == NESTED
    rows = assignments_of(sweep_of(read("argo", yaml.safe_dump(data).encode())))
    assert [json.loads(str(row["lr"])) for row in rows] == step["withItems"]


def test_a_nested_choice_of_a_study_is_json_that_a_spec_may_contain() -> None:
    choices = json.dumps({"name": "CategoricalDistribution", "attributes": {"choices": NESTED}})
    lines = [
        {"op_code": 0, "study_name": "tune", "directions": [2]},
        {"op_code": 4, "study_id": 0},
        {"op_code": 5, "trial_id": 0, "param_name": "x", "distribution": choices},
    ]

    imported = read("optuna", "\n".join(map(json.dumps, lines)).encode())

    assert [json.loads(text) for text in imported.spec["parameters"]["x"]["values"]] == NESTED
    assert sweep_of(imported)


def test_a_nested_value_of_hydra_is_read_by_hydra_as_before() -> None:
    content = b"hydra: {mode: MULTIRUN, sweeper: {params: {x: '{a:{b:1}},{a:{b:{c:2}}}'}}}"

    imported = read("hydra", content)

    texts = imported.spec["parameters"]["x"]["values"]
    assert [parse_value(text) for text in texts] == [{"a": {"b": 1}}, {"a": {"b": {"c": 2}}}]
    assert sweep_of(imported)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"), ("on", True), ("y", True), ("N", False), ("010", 8), ("0o17", 15), ("08", 8), ("0b11", 3),
        ("1_000", 1000), ("1e3", 1000), ("-.5", -0.5), (".5_0", 0.5), (".5_", ".5_"), ("1.0", 1), ("1e400", "1e400"),
        ("2020-01-01", "2020-01-01"), ("~x", "~x"), ("99999999999999999999", 1e20), ("'010'", "010"), ("!!str 1", "1"),
    ],
)  # fmt: skip
def test_argo_reads_yaml_as_go_does(text: str, value: Any) -> None:
    """Compared with sigs.k8s.io/yaml, which differs from YAML 1.1 and 1.2."""
    content = SEEDS["argo"].replace(b"lr: 0.1,", f"lr: {text},".encode())

    first = read("argo", content).spec["assignments"][0]["lr"]

    assert (type(first), first) == (type(value), value)


def test_bounds_in_files_of_kubernetes_may_be_numbers_of_go_and_names_letters() -> None:
    content = SEEDS["sagemaker"].replace(b'minValue: "1", maxValue: "9"', b"minValue: 010, maxValue: 1e3")

    parameters = read("sagemaker", content).spec["parameters"]

    assert parameters["n"] == {"distribution": "int_uniform", "min": 8, "max": 1000}
    with pytest.raises(ForeignError, match="must be a number, got '12:30'"):
        read("sagemaker", content.replace(b"010", b"12:30"))


AI_PLATFORM = b"""
jobId: census
trainingInput:
  scaleTier: CUSTOM
  pythonModule: trainer.task
  hyperparameters:
    goal: MINIMIZE
    hyperparameterMetricTag: loss
    maxTrials: 8
    maxParallelTrials: 2
    maxFailedTrials: 3
    enableTrialEarlyStopping: TRUE
    params:
      - {parameterName: lr, type: DOUBLE, minValue: 0.001, maxValue: 1, scaleType: UNIT_LOG_SCALE}
      - {parameterName: n, type: INTEGER, minValue: 1, maxValue: 9, scaleType: UNIT_LINEAR_SCALE}
      - {parameterName: opt, type: CATEGORICAL, categoricalValues: [sgd, adam]}
      - {parameterName: size, type: DISCRETE, discreteValues: [16, 32.5], scaleType: NONE}
"""


def test_a_job_of_ai_platform_becomes_the_search_that_it_means() -> None:
    imported = read("vertex", AI_PLATFORM)

    sweep = sweep_of(imported)
    assert (sweep.name, str(sweep.blocks[0].method)) == ("census", "bayes")
    assert imported.spec["parameters"] == {
        "lr": {"distribution": "log_uniform_values", "min": 0.001, "max": 1},
        "n": {"distribution": "int_uniform", "min": 1, "max": 9},
        "opt": {"values": ["sgd", "adam"]},
        "size": {"values": [16, 32.5]},
    }
    assert imported.spec["metric"] == {"name": "loss", "goal": "minimize", "source": "stdout"}
    assert (imported.spec["run_cap"], imported.spec["run"]["max_failed"]) == (8, 3)
    assert {
        "trainingInput.pythonModule: trainer.task",
        "trainingInput.hyperparameters.enableTrialEarlyStopping: true",
    } <= set(whats(imported.losses))


def test_a_request_to_create_a_tuning_job_has_the_job_and_counts_as_text() -> None:
    data = yaml.safe_load(SEEDS["vertex"])
    data["trialJobSpec"] = {"workerPoolSpecs": [{"replicaCount": "1", "containerSpec": {"command": ["./x"]}}]}
    request = {"parent": "projects/1", "hyperparameterTuningJob": data}

    imported = read("vertex", json.dumps(request).encode())

    assert imported.spec == read("vertex", json.dumps(data).encode()).spec
    assert not [what for what in whats(imported.losses) if "replicaCount" in what]


def test_a_tuning_job_may_have_the_keys_of_the_client_for_python() -> None:
    data = {
        "display_name": "tune",
        "study_spec": {
            "metrics": [{"metric_id": "a_b", "goal": "MINIMIZE"}],
            "parameters": [{"parameter_id": "l_r", "double_value_spec": {"min_value": 1e-6, "max_value": 1}}],
            "algorithm": "RANDOM_SEARCH",
        },
        "max_trial_count": 6,
    }

    spec = read("vertex", json.dumps(data).encode()).spec

    assert spec["parameters"] == {"l_r": {"distribution": "uniform", "min": 1e-6, "max": 1}}
    assert (spec["metric"]["name"], spec["method"], spec["run_cap"]) == ("a_b", "random", 6)


def test_variables_of_the_shell_that_writes_a_tuning_job_are_reported() -> None:
    data = yaml.safe_load(SEEDS["vertex"])
    pool = {"replicaCount": "$COUNT", "containerSpec": {"command": ["./x"], "args": ["--dir=$JOB_DIR"]}}
    data["trialJobSpec"] = {"workerPoolSpecs": [pool]}

    found = whats(read("vertex", yaml.safe_dump(data).encode()).losses)

    assert {"command: --dir=$JOB_DIR", "trialJobSpec.workerPoolSpecs[0].replicaCount: $COUNT"} <= set(found)


@pytest.mark.parametrize("key", ["algorithm", "trialConfig"])
def test_an_optimization_job_of_a_draft_is_refused(key: str) -> None:
    data = yaml.safe_load(SEEDS["optimization-job"])
    data["spec"][key] = {"numTrials": 20}

    with pytest.raises(ForeignError, match=f"spec.{key} is no key of an OptimizationJob"):
        read("optimization-job", yaml.safe_dump(data).encode())


def test_a_command_of_an_mlproject_may_continue_on_further_lines() -> None:
    data = yaml.safe_load(SEEDS["mlproject"])
    main = data["entry_points"]["main"]
    main["command"] = "python code/train.py \\\n  --alpha {alpha} \\\n  --l1 {l1}\n"
    main["parameters"]["alpha"]["type"] = "int"

    imported = read("mlproject", yaml.safe_dump(data).encode())

    assert imported.spec["command"][2:] == [
        "--alpha", "${envvar:SWEEP_PARAM_ALPHA}", "--l1", "${envvar:SWEEP_PARAM_L1}",
    ]  # fmt: skip
    assert not [what for what in whats(imported.losses) if what.endswith(".type: int")]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(b"type: DOUBLE", b"type: FLOAT", "type must be one of DOUBLE"), (b"params:", b"other:", "with params")],
)
def test_a_job_of_ai_platform_that_has_no_space_is_refused(old: bytes, new: bytes, words: str) -> None:
    with pytest.raises(ForeignError, match=words):
        read("vertex", AI_PLATFORM.replace(old, new))


def test_a_metric_and_a_direction_that_are_variables_are_named_once() -> None:
    run = b"tune.run(f, config={'a': tune.choice([1, 2])}, metric=NAME, mode=args.mode, num_samples=2)"

    losses = [loss for loss in read("ray", run).losses if loss.what.startswith(("metric", "mode"))]

    assert whats(losses) == ["metric: NAME", "mode: args.mode"]
    assert all(loss.why.startswith("is code, which is not executed; w") for loss in losses)


def test_options_of_several_runs_and_counts_in_variables_are_named() -> None:
    space = b"s = {'a': tune.uniform(0, 1)}\n"
    runs = b"tune.run(f, config=s, num_samples=2)\ntune.run(f, num_samples=3)\n"

    several, variable = read("ray", space + runs), read("ray", space + b"tune.run(f, num_samples=n)\n")

    assert several.spec["run_cap"] == 2
    assert "num_samples: 3" in whats(several.losses)
    assert "num_samples: n" in whats(variable.losses)


@pytest.mark.parametrize(
    "code", [b"s = dict(a=tune.uniform(0, 1), b=dict(c=2))", b"f({'a': tune.uniform(0, 1), 'b': dict(c=2)})"]
)
def test_a_dict_may_be_written_as_a_call(code: bytes) -> None:
    imported = read("ray", code)

    assert imported.spec["parameters"] == {
        "a": {"distribution": "uniform", "min": 0, "max": 1},
        "b.c": {"value": 2},
    }
    assert not [what for what in whats(imported.losses) if "calls of tune" in what]


@pytest.mark.parametrize(
    "code",
    [
        b"from ray.tune import choice\nspace = {'a': choice([1, 2])}",
        b"from ray.tune.search.sample import choice as one_of\nspace = {'a': one_of([1, 2])}",
        b"from ray.tune import choice\ndraw = choice\nspace = {'a': draw([1, 2])}",
        b"import ray.tune as rt\nspace = {'a': rt.choice([1, 2])}",
        b"from ray import tune as t\nspace = {'a': t.choice([1, 2])}",
    ],
    ids=["function", "other name", "variable", "module", "module of another name"],
)
def test_functions_may_be_imported_under_any_name(code: bytes) -> None:
    assert read("ray", code).spec["parameters"] == {"a": {"values": [1, 2]}}


def test_a_function_of_another_library_is_no_search_space() -> None:
    with pytest.raises(ForeignError, match="must have one search space"):
        read("ray", b"from random import choice\nspace = {'a': choice([1, 2])}")


@pytest.mark.parametrize(
    ("run", "cap", "reported"),
    [
        (b"", 50, "run_cap"),
        (b"tune.run(f, config=space)", 1, "num_samples"),
        (b"tune.Tuner(f, param_space=space).fit()", 1, "num_samples"),
        (b"from ray.tune import Tuner\nTuner(f, param_space=space).fit()", 1, "num_samples"),
        (b"asyncio.run(f, num_samples=3)", 50, "run_cap"),
    ],
    ids=["space alone", "run", "tuner", "imported tuner", "run of another library"],
)
def test_a_file_without_a_number_of_trials_is_told_what_was_written(
    run: bytes, cap: int, reported: str
) -> None:
    imported = read("ray", b"space = {'a': tune.uniform(0, 1)}\n" + run)

    assert imported.spec["run_cap"] == cap
    assert reported in whats(imported.losses)


@pytest.mark.parametrize("owner", ["ASHAScheduler", "schedulers.PB2", "HyperOptSearch"])
def test_metric_and_direction_may_be_those_of_a_scheduler(owner: str) -> None:
    code = f"rule = {owner}(metric='loss', mode='min')\ntune.run(f, config={{'a': tune.choice([1, 2])}})"

    imported = read("ray", code.encode())

    assert imported.spec["metric"] == {"name": "loss", "goal": "minimize", "source": "stdout"}
    assert "metric.goal" not in whats(imported.losses)

    given = read("ray", code.replace("tune.run(f,", "tune.run(f, metric='accuracy', mode='max',").encode())
    assert given.spec["metric"]["name"] == "accuracy"
    assert given.spec["metric"]["goal"] == "maximize"


def test_what_is_added_to_a_search_space_later_is_named() -> None:
    code = b"s = {'a': tune.uniform(0, 1)}\ns['b'] = tune.choice([1, 2])\ns.update(c=tune.randn(0, 1))\n"

    assert "calls of tune in lines 2, 3" in whats(read("ray", code).losses)


def test_names_that_differ_in_case_only_become_two_parameters() -> None:
    """A program gets its values by variables of its environment, in which both would have one name."""
    seasonal = SEEDS["optuna"].replace(b'"param_name": "lr"', b'"param_name": "N"')

    imported = read("optuna", seasonal)

    assert {"N", "n_2"} <= set(sweep_of(imported).blocks[0].space.names)
    assert "parameter n" in whats(imported.losses)


def test_a_journal_that_several_processes_opened_has_one_study() -> None:
    opened, rest = SEEDS["optuna"].split(b"\n", 1)
    deleted = (
        b'{"op_code": 0, "study_name": "old"}\n{"op_code": 1, "study_id": 0}\n{"op_code": 4, "study_id": 0}\n'
    )

    assert read("optuna", b"\n".join([opened, opened, rest])).spec == read("optuna").spec
    moved = rest.replace(b'"study_id": 0', b'"study_id": 1')
    assert read("optuna", deleted + opened + b"\n" + moved).spec == read("optuna").spec


def test_a_line_that_a_journals_writer_did_not_end_is_left_out() -> None:
    whole = SEEDS["optuna"] + b"\n"

    cut = read("optuna", whole + b'{"op_code": 4, "stud')

    assert cut.spec == read("optuna").spec
    assert f"line {len(whole.splitlines()) + 1}" in whats(cut.losses)
    with pytest.raises(ForeignError, match="must be a line of JSON"):
        read("optuna", whole + b'{"op_code": 4, "stud\n')


def a_storage(study: str) -> sqlite3.Connection:
    """Make a database with one study of one trial, as Optuna does, from the statements that make the study."""
    database = sqlite3.connect(":memory:")
    database.executescript(study)
    database.executescript(
        "CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, study_id INTEGER); INSERT INTO trials VALUES (1, 1);"
        "CREATE TABLE trial_params (param_id INTEGER, trial_id INTEGER, param_name TEXT, distribution_json TEXT);"
    )
    distribution = {"name": "UniformDistribution", "attributes": {"low": 0.0, "high": 1.0}}
    database.execute("INSERT INTO trial_params VALUES (1, 1, 'lr', ?)", (json.dumps(distribution),))
    database.commit()
    return database


def test_a_storage_of_optuna_1_has_its_direction_in_the_study() -> None:
    study = (
        "CREATE TABLE studies (study_id INTEGER, study_name TEXT, direction TEXT);"
        "INSERT INTO studies VALUES (1, 's', 'MINIMIZE');"
    )

    imported = read("optuna", a_storage(study).serialize())

    assert imported.spec["metric"]["goal"] == "minimize"
    assert "metric.goal" not in whats(imported.losses)


def test_a_storage_whose_last_writes_may_be_in_another_file_is_read() -> None:
    study = (
        "CREATE TABLE studies (study_id INTEGER, study_name TEXT); INSERT INTO studies VALUES (1, 's');"
        "CREATE TABLE study_directions (study_id INTEGER, direction TEXT, objective INTEGER);"
        "INSERT INTO study_directions VALUES (1, 'MAXIMIZE', 0);"
    )
    content = bytearray(a_storage(study).serialize())
    content[18:20] = b"\2\2"

    imported = read("optuna", bytes(content))

    assert imported.spec["parameters"] == {"lr": {"distribution": "uniform", "min": 0, "max": 1}}
    assert "write-ahead log" in whats(imported.losses)


def test_optunas_own_storages_are_read(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    journal, database = tmp_path / "journal.log", tmp_path / "study.db"
    program = (
        "import optuna, sys\n"
        "from optuna.storages import JournalStorage\n"
        "from optuna.storages.journal import JournalFileBackend\n"
        "def objective(trial):\n"
        "    return trial.suggest_float('lr', 1e-5, 0.1, log=True) * trial.suggest_int('n', 1, 9, step=2)\n"
        f"for storage in (JournalStorage(JournalFileBackend({str(journal)!r})), 'sqlite:///' + {str(database)!r}):\n"
        "    optuna.create_study(study_name='s', storage=storage, direction='maximize').optimize(objective, 2)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    for file in (journal, database):
        imported = read("optuna", file.read_bytes())
        assert imported.spec["parameters"] == {
            "lr": {"distribution": "log_uniform_values", "min": 1e-05, "max": 0.1},
            "n": {"min": 1, "max": 9, "step": 2},
        }
        assert imported.spec["metric"]["goal"] == "maximize"


def written(sweep: Sweep) -> tuple[bytes, dict[str, Any], Exported]:
    """Return a sweep as an OptimizationJob: its bytes, its data, and the whole export."""
    assignments = () if sweep.search else assignments_of(sweep)
    exported = WRITERS["optimization-job"](sweep, assignments)
    return exported.text.encode(), yaml.safe_load(exported.text), exported


def test_an_optimization_job_comes_back_as_the_same_space() -> None:
    sweep = sweep_of(read("optimization-job"))

    content, data, exported = written(sweep)

    again = sweep_of(read("optimization-job", content))
    assert again.blocks == sweep.blocks
    assert (again.metric, again.run.parallelism) == (sweep.metric, sweep.run.parallelism)
    assert data["spec"]["trainJobTemplate"]["spec"]["trainer"]["image"] == sweep.run.image
    assert data["spec"]["searchAlgorithm"] == {"random": {"seed": 3}}
    assert "command" in whats(exported.losses)


def test_a_grid_becomes_choices_since_an_optimization_job_has_no_other_grid() -> None:
    sweep = good(method="grid", parameters={"a": {"min": 1, "max": 3}, "b": {"values": ["x", True]}})

    _, data, _ = written(sweep)

    assert data["spec"]["searchAlgorithm"] == {"grid": {}}
    assert [parameter["searchSpace"] for parameter in data["spec"]["parameters"]] == [
        {"categorical": {"choices": ["1", "2", "3"]}}, {"categorical": {"choices": ["x", "True"]}},
    ]  # fmt: skip
    assert (data["spec"]["numTrials"], data["spec"]["parallelTrials"]) == (6, 1)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"method": "random", "seed": 1, "run_cap": 200, "parameters": {"a": {"min": 0.5, "max": 1}}}, "200 trials"),
        ({"method": "tpe", "seed": 1, "rounds": {"size": 2, "max": 3}, "parameters": {"a": {"min": 0.5, "max": 1}}},
         "method: tpe"),
        ({"method": "random", "seed": 1, "run_cap": 3, "parameters": {
            "a": {"distribution": "q_uniform", "min": 0, "max": 9, "q": 2}}}, "parameters.a"),
    ],
)  # fmt: skip
def test_what_an_optimization_job_cannot_have_is_reported(changes: dict[str, Any], what: str) -> None:
    _, data, exported = written(good(**changes))

    assert what in whats(exported.losses)
    assert data["spec"]["numTrials"] <= 100


def test_a_distribution_that_an_optimization_job_cannot_have_is_refused() -> None:
    sweep = good(method="random", seed=1, run_cap=3, parameters={"a": {"distribution": "normal"}})

    with pytest.raises(UsageError, match="only uniform, logUniform and categorical"):
        written(sweep)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"a": {"values": list(range(101))}}, "at most 100 choices, and a has 101"),
        ({"a": {"values": ["x" * 65, "y"]}}, "at most 64 characters, got xxx"),
    ],
    ids=["choices", "text"],
)
def test_what_the_api_server_would_not_take_of_an_optimization_job_is_refused(
    parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        written(good(method="grid", parameters=parameters))
