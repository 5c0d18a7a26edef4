"""Every importer reads what its tool means, reports what it loses, and survives any input."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.errors import UsageError
from sweepledger.exchange.conversion import Exported
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


def test_the_configurations_of_a_loop_are_its_items() -> None:
    assert assignments_of(sweep_of(read("argo"))) == ({"lr": 0.1, "opt": "sgd"}, {"lr": 0.2, "opt": "adam"})


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
        ("dvc", b"dvc exp run -S a=1,2\ndvc exp run -S a=3,4\n", "must have one dvc exp run with -S, got 2"),
        ("dvc", b"dvc exp run -S a=1 && dvc exp run -S a=2\n", "must have one dvc exp run with -S, got 2"),
        ("dvc", b"for m in x y; do\n dvc exp run -S a=$m\ndone\n", "a=$m is completed by the shell"),
        ("dvc", b"dvc exp run -S a=`date`\n", "is completed by the shell"),
        ("dvc", b"dvc exp run -S a=1 -S a=2\n", "-S a must be set once"),
        ("dvc", b"dvc exp run -S a=1,1e999", "must be finite"),
        ("dvc", b"dvc exp run -S 'a=range(1'", "must be a value that Hydra reads"),
        ("mlproject", b"entry_points: {main: {parameters: {a: float}, command: x}}", "with a default, got none"),
        ("mlproject", b"name: x", "with entry_points, got none"),
        ("sagemaker", b"kind: Job", "must be a HyperParameterTuningJob"),
        ("azureml", b"type: command", "must be a sweep job"),
        ("azureml", b"{type: sweep, search_space: {a: {type: odd}}}", "must be one of choice, lognormal"),
        ("vertex", b"studySpec: {metrics: []}", "with parameters, got none"),
        ("vertex", SEEDS["vertex"].replace(b"parameterId", b"id"), "a name of its own, got one without"),
        ("vertex", b"studySpec: {parameters: [{parameterId: a}]}", "must have one of doubleValueSpec"),
        ("argo", b"kind: Workflow\nspec: {templates: []}", "must have one step with withItems"),
        ("argo", SEEDS["argo"].replace(b"withItems", b"withParam"), "must be text"),
        ("argo", SEEDS["argo"].replace(b"{{item.lr}}", b"{{item.lr}}{{inputs.parameters.n}}"), "lr must depend on"),
        ("sagemaker", SEEDS["sagemaker"].replace(b"  trainingJobDefinition:", b"  trainingJobDefinitions:"),
         "has several training jobs"),
        ("optimization-job", b"kind: Experiment", "must be an OptimizationJob"),
        ("optimization-job", SEEDS["optimization-job"].replace(b'max: "0.1"', b'max: "x"'), "must be a number"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(name: str, content: bytes, words: str) -> None:
    with pytest.raises(ForeignError) as refused:
        read(name, content)

    assert words in str(refused.value)


def test_a_storage_that_never_ends_is_refused() -> None:
    import sqlite3  # noqa: PLC0415 - used here alone

    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE VIEW studies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS study_id, 'a' AS study_name FROM n WHERE i < 0;"
    )
    with pytest.raises(ForeignError, match="must be Optuna's SQLite storage"):
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


def test_options_of_several_runs_and_counts_in_variables_are_named() -> None:
    space = b"s = {'a': tune.uniform(0, 1)}\n"
    runs = b"tune.run(f, config=s, num_samples=2)\ntune.run(f, num_samples=3)\n"

    several, variable = read("ray", space + runs), read("ray", space + b"tune.run(f, num_samples=n)\n")

    assert several.spec["run_cap"] == 2
    assert "num_samples: 3" in whats(several.losses)
    assert "num_samples: n" in whats(variable.losses)


def test_a_journal_that_several_processes_opened_has_one_study() -> None:
    opened, rest = SEEDS["optuna"].split(b"\n", 1)
    deleted = (
        b'{"op_code": 0, "study_name": "old"}\n{"op_code": 1, "study_id": 0}\n{"op_code": 4, "study_id": 0}\n'
    )

    assert read("optuna", b"\n".join([opened, opened, rest])).spec == read("optuna").spec
    moved = rest.replace(b'"study_id": 0', b'"study_id": 1')
    assert read("optuna", deleted + opened + b"\n" + moved).spec == read("optuna").spec


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
