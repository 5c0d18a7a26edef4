"""Every importer reads what its tool means, reports what it loses, and survives any input."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

from sweepledger.errors import UsageError
from sweepledger.exchange.conversion import Exported
from sweepledger.exchange.hydra.values import parse_value
from sweepledger.exchange.registry import formats
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.sweep import Sweep
from tests.exchange.conformance import (
    EXAMPLES,
    OPTUNA_PARAMETERS,
    SEEDS,
    TRIALS,
    a_journal,
    conforms,
    mutations,
    read,
    survive,
    survive_trials,
)
from tests.exchange.imported import READERS, WRITERS, assignments_of, sweep_of, whats
from tests.written_specs import good

pytest.importorskip("hydra")


def test_every_format_has_an_example() -> None:
    assert {name.partition(":")[0] for name in SEEDS} == set(READERS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_becomes_the_sweep_that_it_means(name: str) -> None:
    example, imported = EXAMPLES[name], read(name)

    sweep = sweep_of(imported)

    block = sweep.design
    assert str(block.method) == example.method
    assert {parameter.name: parameter.domain for parameter in block.space.parameters} == example.domains
    expected = (example.goal, example.metric, example.command)
    assert (str(sweep.metric.goal), sweep.metric.name, sweep.command) == expected
    assert example.reported <= set(whats(imported.losses))
    if sweep.search is None:
        assert assignments_of(sweep)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("optuna", b"not json\n{}\n", "Optuna cannot read it"),
        ("optuna", a_journal(a=[], b=[]), "one study, got a, b"),
        ("optuna", SEEDS["optuna"].replace(b"null, 1", b"1e999, 1"), "choices: a value must be finite"),
        ("optuna", SEEDS["optuna"].replace(b'low\\": 0.001', b'low\\": -Infinity'), "Optuna cannot read it"),
        ("optuna", b"SQLite format 3\0" + b"x" * 200, "Optuna cannot read it"),
        ("ray", b"import os; os.system('true')", "must have one search space"),
        ("ray", b"s = {'a': tune.choice([open('/etc/passwd')])}", "is code"),
        ("ray", b"s = {'a': tune.uniform(0, 9**9**9)}", "simple arithmetic"),
        ("ray", b"s = {'a': tune.randint(" + b"9" * 400 + b", 10)}", "must have finite numbers"),
        ("ray", b"s = {'a': tune.uniform(0)}", "must have lower, upper"),
        ("ray", b"def (", "must be a Python file"),
        ("optimization-job", b"kind: Experiment", "must be an OptimizationJob"),
        ("optimization-job", SEEDS["optimization-job"].replace(b'max: "0.1"', b'max: "x"'), "must be a number"),
        ("wandb", b"[1, 2]", "mapping"),
        ("wandb", b"method: grid", "no parameters"),
        ("wandb", b"{method: grid, parameters: {x: 3}}", "parameters.x must be a mapping"),
        ("wandb", b"{method: grid, parameters: {x: {values: [1]}}, command: python}", "command must be a list"),
        ("wandb", b"method: grid\nmethod: random", "must not repeat"),
        ("wandb", b"method: random\nparameters: {a: {min: 0x" + b"f" * 2000 + b", max: 1.0}}\n", "smaller number"),
        ("nvidia", b"lr: 1\n", "must be a list of `hyperparam_set:` items, got a mapping"),
        ("nvidia", b"- {lr: 1}\n", "item 1: must be a mapping with the one key 'hyperparam_set', got the keys 'lr'"),
        ("nvidia", b"- hyperparam_set: {a: {b: 1}}\n", "item 1: a: must be a number, text, true, false"),
        ("nvidia", b"- hyperparam_set: {1: 2}\n", "item 1: a parameter must begin with a letter"),
        ("csv", b"lr\n", "1: must have a header"),
        ("csv", b"a;b\n1;2\n", "1: cells must be separated by commas"),
        ("csv", b"a,a\n1,2\n", "1: must not repeat the column 'a'"),
        ("csv", b"a,b c\n1,2\n", "header: a parameter must begin with a letter"),
        ("csv", b"a,b\n1\n", "2: must have 2 cells, as the header has, got 1"),
        ("csv", b'a,b\n1,x"y"\n', "2: a quote is in the wrong position"),
        ("jsonl", b"", "must contain at least one object"),
        ("jsonl", b'{"a": 1}\n[1]\n', "2: must be a JSON object, got [1]"),
        ("jsonl", b'{"a": NaN}\n', "1: must be a finite number, got 'NaN'"),
        ("jsonl", b'{"a": 1, "a": 2}\n', "1: must not repeat the key 'a'"),
        ("jsonl", b'{"a": "\\ud800"}\n', "half of a surrogate pair"),
        ("jsonl", b'{"a b": 1}\n', "line 1: a parameter must begin with a letter"),
        ("jsonl", b'{"a": {"b": 1}, "a.b": 2}\n', "two values are called 'a.b'"),
        ("jsonl", b'{"a": ' + b"[" * 100_000, "1: nests too deep"),
        ("jsonl", b'{"a": 1}\n{"a": "' + b"x" * 262_144 + b'"}', "2: must have at most 262144 bytes a line"),
        ("jsonl", b'{"a": ' + b"1" * 5_000 + b"}", "limit"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(name: str, content: bytes, words: str) -> None:
    with pytest.raises(ForeignError) as refused:
        read(name, content)

    assert words in f"{refused.value.line}: {refused.value}"


def test_a_storage_with_a_view_which_may_never_end_is_refused() -> None:
    database = sqlite3.connect(":memory:")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS study_id FROM n"
    database.executescript(f"CREATE VIEW studies AS {endless};")

    with pytest.raises(ForeignError, match="got a view"):
        read("optuna", database.serialize())


RELATED = good(
    method="grid",
    metric={"name": "score", "goal": "maximize", "source": "stdout"},
    parameters={"a": {"values": [1, 2]}, "b": {"values": [3, 4]}, "c": {"values": [5], "when": {"a": 1}}},
    zip=[["a", "b"]],
    derived={"d": "a * 2"},
    constraints=["a < 9"],
)


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"csv", "jsonl", "nvidia", "optuna"}))
def test_relations_of_parameters_that_a_tool_lacks_are_named_in_report_and_file(name: str) -> None:
    """The others list configurations."""
    exported = WRITERS[name](RELATED, assignments_of(RELATED))

    assert {"zip: a, b", "when of c", "constraint: a < 9", "derived: d"} <= set(whats(exported.losses))


def test_no_macro_stays_in_the_command_of_another_tool() -> None:
    macros = [
        "${env}",
        "D=${envvar:HOME}",
        "python",
        "t.py",
        "${seed}",
        "--a=${envvar:SWEEP_PARAM_A}",
        "${args}",
    ]
    sweep = good(method="grid", parameters={"a": {"values": ["x", "y"]}}, command=macros)

    for name in WRITERS.keys() - {"wandb"}:  # which has the same macros
        assert not re.search(
            r"\$\{(env|seed|args|interpreter)", WRITERS[name](sweep, assignments_of(sweep)).text
        ), name


def test_no_code_of_a_search_space_is_executed(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'made')!r}, 'w')\nspace = {{'a': tune.choice([1, 2])}}\n"

    assert read("ray", code.encode()).spec["parameters"] == {"a": {"values": [1, 2]}}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", SEEDS)
def test_a_format_keeps_to_what_all_do(name: str) -> None:
    form = formats()[name.partition(":")[0]]

    # Optuna's script is read by Optuna alone: see test_optuna_writing.py.
    conforms(form, SEEDS[name], count=12, reads_back=form.name != "optuna")


@pytest.mark.parametrize("form", TRIALS)
def test_a_changed_file_of_trials_is_read_or_refused(form: str) -> None:
    for content in mutations(TRIALS[form], seed=3, count=150):
        survive_trials(form, content)


@pytest.mark.full_suite("more changed files")
@pytest.mark.parametrize("name", SEEDS)
def test_two_thousand_changed_files_are_read_or_refused(name: str) -> None:
    for content in mutations(SEEDS[name], seed=2, count=2_000 // len(SEEDS) + 1):
        survive(READERS[name.partition(":")[0]], content)


def test_two_parameters_of_one_name_are_refused() -> None:
    """Entries of a list could replace each other in silence; keys of a mapping cannot."""
    data = yaml.safe_load(SEEDS["optimization-job"])
    parameters = data["spec"]["parameters"]
    parameters.append(parameters[0])

    with pytest.raises(ForeignError, match="twice"):
        read("optimization-job", yaml.safe_dump(data).encode())


NESTED = [{"a": {"b": 1}}, {"a": {"b": "}} ${x}"}}]


def test_a_nested_value_of_ray_is_json_that_a_spec_may_contain() -> None:
    imported = read("ray", f"tune.run(f, config={{'x': tune.grid_search({NESTED!r})}})".encode())

    assert [json.loads(str(row["x"])) for row in assignments_of(sweep_of(imported))] == NESTED


def test_a_nested_value_of_hydra_is_read_by_hydra_as_before() -> None:
    content = b"hydra: {mode: MULTIRUN, sweeper: {params: {x: '{a:{b:1}},{a:{b:{c:2}}}'}}}"

    imported = read("hydra", content)

    texts = imported.spec["parameters"]["x"]["values"]
    assert [parse_value(text) for text in texts] == [{"a": {"b": 1}}, {"a": {"b": {"c": 2}}}]
    assert sweep_of(imported)


def test_bounds_in_files_of_kubernetes_may_be_numbers_of_go_and_names_letters() -> None:
    content = SEEDS["optimization-job"].replace(
        b'{name: n, searchSpace: {uniform: {min: "1", max: "9",',
        b"{name: y, searchSpace: {uniform: {min: 010, max: 1e3,",
    )

    parameters = read("optimization-job", content).spec["parameters"]

    assert parameters["y"] == {"distribution": "int_uniform", "min": 8, "max": 1000}
    with pytest.raises(ForeignError, match="must be a number, got '12:30'"):
        read("optimization-job", content.replace(b"010", b"12:30"))


@pytest.mark.parametrize("key", ["algorithm", "trialConfig"])
def test_an_optimization_job_of_a_draft_is_refused(key: str) -> None:
    data = yaml.safe_load(SEEDS["optimization-job"])
    data["spec"][key] = {"numTrials": 20}

    with pytest.raises(ForeignError, match=f"spec.{key} is no key of an OptimizationJob"):
        read("optimization-job", yaml.safe_dump(data).encode())


RANGE = b"s = {'a': tune.uniform(0, 1)}\n"


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (RANGE + b"tune.run(f, config=s, metric=NAME, mode=args.mode)", ["metric: NAME", "mode: args.mode"]),
        (RANGE + b"tune.run(f, config=s, num_samples=2)\ntune.run(f, num_samples=3)", ["num_samples: 3"]),
        (RANGE + b"tune.run(f, num_samples=n)", ["num_samples: n"]),
    ],
    ids=["variables", "several runs", "a count in a variable"],
)
def test_options_that_only_running_the_code_would_give_are_named(code: bytes, named: list[str]) -> None:
    assert set(named) <= set(whats(read("ray", code).losses))


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
def test_a_file_without_a_number_of_trials_gets_that_of_the_spec(run: bytes, cap: int, reported: str) -> None:
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
    lr, n = OPTUNA_PARAMETERS["lr"], OPTUNA_PARAMETERS["n"]

    imported = read("optuna", a_journal(tune=[{"N": lr, "n": n}]))

    assert {"N", "n_2"} <= set(sweep_of(imported).design.space.names)
    assert "parameter n" in whats(imported.losses)


@pytest.mark.full_suite("loads SQLAlchemy")
def test_databases_of_optuna_are_read_also_those_that_are_changed(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    database = tmp_path / "study.db"
    study = optuna.create_study(study_name="s", storage=f"sqlite:///{database}", direction="maximize")
    study.optimize(
        lambda trial: trial.suggest_float("lr", 1e-5, 0.1, log=True) * trial.suggest_int("n", 1, 9, step=2), 2
    )
    content = database.read_bytes()

    imported = read("optuna", content)

    assert imported.spec["parameters"] == {
        "lr": {"distribution": "log_uniform_values", "min": 1e-05, "max": 0.1},
        "n": {"min": 1, "max": 9, "step": 2},
    }
    assert imported.spec["metric"]["goal"] == "maximize"
    whole = bytearray(content)
    whole[18:20] = b"\2\2"
    assert "write-ahead log" in whats(read("optuna", bytes(whole)).losses)
    for changed in mutations(content, seed=1, count=40):
        survive(READERS["optuna"], changed)


def written(sweep: Sweep) -> tuple[bytes, dict[str, Any], Exported]:
    assignments = () if sweep.search else assignments_of(sweep)
    exported = WRITERS["optimization-job"](sweep, assignments)
    return exported.text.encode(), yaml.safe_load(exported.text), exported


def test_an_optimization_job_comes_back_as_the_same_space() -> None:
    sweep = sweep_of(read("optimization-job"))

    content, data, exported = written(sweep)

    again = sweep_of(read("optimization-job", content))
    assert again.design == sweep.design
    assert (again.metric, again.run.parallelism) == (sweep.metric, sweep.run.parallelism)
    assert data["spec"]["trainJobTemplate"]["spec"]["trainer"]["image"] == sweep.run.image
    assert data["spec"]["searchAlgorithm"] == {"random": {"seed": 3}}
    assert "command" in whats(exported.losses)


def test_a_command_of_an_optimization_job_may_name_the_variables_of_its_parameters() -> None:
    content = SEEDS["optimization-job"].replace(b"train.py]", b"train.py, --rate=$(KUBEFLOW_TRAINER_OPT_LR)]")

    assert sweep_of(read("optimization-job", content)).command[-1] == "--rate=${envvar:SWEEP_PARAM_LR}"


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
def test_an_optimization_job_with_wrong_values_is_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        written(good(method="grid", parameters=parameters))
