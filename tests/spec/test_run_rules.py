"""How trials run: numbers, images, code, data at their bounds."""

from typing import Any

import pytest

from sweepledger import search
from sweepledger.problems import Problem
from sweepledger.search import Expansion
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import CodeMode, Resources, RunConfig, Shape
from sweepledger.structs.settings import Controller, Dataset, Settings
from sweepledger.structs.settings.trials import Defaults
from sweepledger.structs.sweep import Retry, Sweep
from tests.sweeps import with_keys
from tests.written_specs import (
    DIGEST,
    SETTINGS,
    a_spec,
    axis,
    bad,
    good,
    messages,
    parse_sweep,
    parsed,
    spec_bytes,
)

IMAGES = [
    "local",
    f"train@{DIGEST}",
    f"train:1.4@{DIGEST}",
    f"host.example/train@{DIGEST}",
    f"host.example:5000/a/b_c/d-e.f/g__h:v1_2.3-rc@{DIGEST}",
    f"localhost/x@{DIGEST}",
]


def unlisted(image: str) -> Sweep | tuple[Problem, ...]:
    """Parse a spec under settings that list no images."""
    return parse_sweep(
        spec_bytes(a_spec(run={"image": image})), "sweeps/lr.yaml", with_keys(SETTINGS, images={}, code=None)
    )


@pytest.mark.parametrize("image", IMAGES)
def test_images_have_a_digest_or_are_local(image: str) -> None:
    sweep = unlisted(image)

    assert isinstance(sweep, Sweep)
    assert sweep.run.image == image


def test_an_image_is_of_a_listed_repository_where_there_is_a_list() -> None:
    another = f"registry.example.org/train:1.4@{DIGEST}"

    assert good(run={"image": another}).run.image == another
    for image in (f"train@{DIGEST}", f"registry.example.org/trainer@{DIGEST}"):
        assert bad(run={"image": image}) == [("run.image", "image-not-listed")]


@pytest.mark.parametrize(
    "image",
    [
        *("", "trian", "train:latest", "Local", f"Train@{DIGEST}"),
        *(f"tr ain@{DIGEST}", f"-train@{DIGEST}", f"train@{DIGEST}0"),
        *(f"train@{DIGEST[:-1]}", f"train@{DIGEST.upper()}"),
        *(f"train:@{DIGEST}", f"a//b@{DIGEST}", f"/train@{DIGEST}"),
        *(f"user:pass@host/train@{DIGEST}", f"{'a' * 500}@{DIGEST}", f"train@{DIGEST}\n"),
    ],
)
def test_other_images_are_refused(image: str) -> None:
    assert bad(run={"image": image}) == [("run.image", "image-reference")]


def test_credentials_in_an_image_are_not_repeated() -> None:
    (message,) = messages(run={"image": "user:hunter2@host/train"})

    assert "hunter2" not in message


def test_an_image_is_taken_up_to_the_longest_length() -> None:
    rest = f"@{DIGEST}"

    assert isinstance(unlisted("a" * (512 - len(rest)) + rest), Sweep)
    assert not isinstance(unlisted("a" * (513 - len(rest)) + rest), Sweep)


def test_several_datasets_are_of_the_settings_and_have_one_name_in_any_order() -> None:
    assert good(run={"data": ["cifar", "mnist", "cifar"]}).run.data == "cifar+mnist"
    assert good(run={"data": ["mnist"]}).run.data == "mnist"
    assert bad(run={"data": ["mnist", "cifra", "x"]}) == [
        ("run.data[1]", "not-in-settings"),
        ("run.data[2]", "not-in-settings"),
    ]
    assert bad(run={"data": "cifar+mnist"}) == [("run.data", "not-in-settings")]


def test_several_datasets_are_all_mounted_or_all_copied() -> None:
    known = {
        "labels": Dataset("labels", None, "sha256:" + "a" * 64, copied_from="data/labels", size="1Gi"),
        "mnist": Dataset("mnist", "mnist", "sha256:" + "b" * 64),
    }
    spec = a_spec(run={"data": ["mnist", "labels"]})

    sweep = parse_sweep(spec_bytes(spec), "sweeps/lr.yaml", with_keys(SETTINGS, datasets=known))

    assert isinstance(sweep, tuple)
    (problem,) = sweep
    assert (problem.path, problem.code) == ("run.data", "data-source")
    assert problem.message.endswith("got 'labels' there and 'mnist' on a claim")


def test_a_run_may_have_keys_that_need_others() -> None:
    run = {
        "image": "train",
        "code": {"path": "code", "mode": "clone"},
        "pool": "gpu-heavy",
        "priority": "urgent",
        "resources": {"cpu": 4, "memory": "16Gi", "gpu": 2, "scratch": "20Gi", "shared_memory": "8Gi"},
        "retries": 1,
        "timeout": "90s",
        "shape": "train-job",
        "nodes": 3,
        "processes": 2,
    }

    assert good(run=run).run == RunConfig(
        image="train",
        code_path="code",
        code_mode=CodeMode.CLONE,
        pool="gpu-heavy",
        priority="urgent",
        resources=Resources("4", "16Gi", 2, "20Gi", "8Gi"),
        retries=1,
        max_disruptions=0,
        timeout_seconds=90,
        shape=Shape.TRAIN_JOB,
        nodes=3,
        processes=2,
    )
    assert good(run={"shape": "indexed", "max_failed": 0}).run.max_failed == 0


@pytest.mark.parametrize(
    ("run", "disruptions"),
    [({}, 5), ({"max_disruptions": 0}, 0), ({"shape": "job-set", "image": "train"}, 0)],
)
def test_disruptions_are_counted_where_kubernetes_counts_them(run: dict[str, Any], disruptions: int) -> None:
    assert good(run=run).run.max_disruptions == disruptions
    assert ("run.max_disruptions", "shape-key") in bad(run={"shape": "job-set", "max_disruptions": 3})


@pytest.mark.parametrize(
    ("run", "codes"),
    [
        ({"data": {"mnist": "../data/", "cifar": "../data/cifar"}}, ["data-place"]),
        ({"data": {"mnist": "data", "cifar": "./data"}}, ["data-place"]),
        ({"data": {"mnist": "."}}, ["data-place"]),
        ({"data": {"mnist": ".."}}, ["data-place"]),
        ({"data": {"mnist": "../../data"}}, ["data-place"]),
        ({"data": {"mnist": "data/../../../x"}}, ["data-place"]),
        ({"data": {"mnist": "~/data"}}, ["data-place"]),
        ({"data": {"mnist": {"at": "../data"}}}, ["wrong-type"]),
        ({"data": {}}, ["out-of-range"]),
        ({"workdir": "/code"}, ["workdir"]),
        ({"workdir": "."}, ["workdir"]),
        ({"workdir": "trainer/../other"}, ["workdir"]),
        ({"workdir": "trainers"}, ["workdir"]),
        ({"keep": ["$(x)"]}, ["template-syntax"]),
        ({"keep": ["a//b"]}, ["keep-path"]),
        ({"keep": []}, ["out-of-range"]),
    ],
)
def test_folders_outside_that_of_a_trial_are_refused(run: dict[str, Any], codes: list[str]) -> None:
    assert with_settings(SETTINGS, **run) == codes


def test_a_place_is_known_by_its_shortest_form_and_a_program_by_where_it_starts() -> None:
    data = {"mnist": "../data/./digits/", "cifar": None}
    run = {"code": {"path": "code"}, "workdir": "code/mnist/", "keep": ["*.pt", "*.pt"], "data": data}

    sweep = good(run=run, program="train.py", command=["python", "${program}", "tools/x.py", "${args}"])

    assert (sweep.run.workdir, sweep.run.keep) == ("code/mnist", ("*.pt",))
    assert (sweep.run.data, sweep.run.data_places) == ("cifar+mnist", {"mnist": "../data/digits"})
    assert sweep.command[1:3] == ("train.py", "tools/x.py")
    assert [script.path for script in sweep.scripts] == ["train.py", "tools/x.py"]


def with_settings(settings: Settings, **run: Any) -> Sweep | list[str]:
    sweep = parse_sweep(spec_bytes(a_spec(run=run)), "sweeps/lr.yaml", settings)
    return sweep if isinstance(sweep, Sweep) else [problem.code for problem in sweep]


def test_what_a_spec_leaves_out_the_settings_say() -> None:
    usual = with_keys(SETTINGS, defaults=Defaults("train", "cpu-small", 3, 7200))

    silent, loud = with_settings(usual), with_settings(usual, pool="gpu-light", retries=0, timeout="1m")

    assert isinstance(silent, Sweep)
    assert isinstance(loud, Sweep)
    assert (silent.run.pool, silent.run.retries, silent.run.timeout_seconds) == ("cpu-small", 3, 7200)
    assert silent.pool == SETTINGS.trials.pools["cpu-small"]
    assert (loud.run.pool, loud.run.retries, loud.run.timeout_seconds) == ("gpu-light", 0, 60)


def explored(**changes: Any) -> list[str]:
    expansion = search.explore(good(**changes))
    problems = expansion.warnings if isinstance(expansion, Expansion) else expansion
    return [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("pool", "parallelism", "trials", "results"),
    [
        *(("heavy", 32, 64, []), ("heavy", 33, 64, ["pool-nodes"]), ("heavy", 100, 32, [])),
        *(("heavy", 1, 64, []), ("light", 1000, 1000, [])),  # the light one has no end
    ],
)
def test_too_many_trials_for_the_nodes(pool: str, parallelism: int, trials: int, results: list[str]) -> None:
    run = {"pool": f"gpu-{pool}", "resources": {"gpu": 1}, "parallelism": parallelism}

    assert explored(run=run, parameters={"x": axis(trials)}) == results


def test_the_nodes_of_a_trial_count() -> None:
    run = {"pool": "gpu-heavy", "image": "train", "shape": "mpi-job", "resources": {"gpu": 8}}

    assert good(run={**run, "nodes": 4})
    assert bad(run={**run, "nodes": 5}) == [("run.nodes", "pool-fit")]
    assert explored(run={**run, "nodes": 4, "parallelism": 2}) == ["pool-nodes"]


@pytest.mark.parametrize("name", ["MASTER_ADDR", "OMPI_X", "PET_NNODES", "JOBSET_NAME"])
def test_variables_of_operators_are_refused_where_one_sets_them(name: str) -> None:
    run = {"shape": "pytorch-job", "workers": 2, "environment": {name: "x"}}

    assert ("run.environment." + name, "environment-name") in bad(run=run)
    assert good(run={"environment": {name: "x"}}).run.environment == {name: "x"}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("$(HOME)", "template-syntax"),
        ("${HOME}", "template-syntax"),
        ("{{ .Values.x }}", "template-syntax"),
        ("a\nb", "environment-value"),
        ("a\tb", "environment-value"),
        ("x" * 4097, "out-of-range"),
        (1, "wrong-type"),
        (None, "wrong-type"),
    ],
)
def test_values_of_variables_reach_the_trial_as_written_or_are_refused(value: Any, code: str) -> None:
    assert [text for _, text in bad(run={"environment": {"A": value}})] == [code]


@pytest.mark.parametrize("value", ["", " ", "$HOME", "a=b", "ä 'x' \"y\" \\", "x" * 4096])
def test_other_values_of_variables_are_taken(value: str) -> None:
    assert good(run={"environment": {"A": value}}).run.environment == {"A": value}


def test_a_variable_is_given_once() -> None:
    assert good(run={"secrets": ["wandb", "hugging-face", "wandb"]}).run.secrets == ("wandb", "hugging-face")
    assert bad(run={"secrets": ["hf-write", "hugging-face"]}) == [("run.secrets[1]", "environment-name")]
    assert bad(run={"secrets": ["wandb"], "environment": {"WANDB_API_KEY": "/x"}}) == [
        ("run.secrets[0]", "environment-name")
    ]


def test_a_variable_that_seems_a_secret_is_refused_without_its_value() -> None:
    sweep = parsed(a_spec(run={"environment": {"HF_TOKEN": "hf_0123456789"}}))

    assert isinstance(sweep, tuple)
    (problem,) = sweep
    assert (problem.path, problem.code) == ("run.environment.HF_TOKEN", "secret-exposed")
    assert "0123456789" not in str(problem)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "PYTHONPATH", "BASH_ENV"])
def test_in_a_cluster_the_settings_allow_variables_that_start_other_programs(name: str) -> None:
    followed = with_keys(SETTINGS, controller=Controller.FLUX)
    allowed = with_keys(followed, allowed_variables=(name,))

    assert isinstance(with_settings(SETTINGS, image="train", environment={name: "x"}), Sweep)
    assert with_settings(followed, image="train", environment={name: "x"}) == ["environment-name"]
    assert isinstance(with_settings(allowed, image="train", environment={name: "x"}), Sweep)
    assert isinstance(with_settings(followed, image="train", environment={"NCCL_DEBUG": "x"}), Sweep)


def test_shared_memory_may_be_all_of_the_memory() -> None:
    assert good(run={"resources": {"shared_memory": "1Gi"}}).run.resources.shared_memory == "1Gi"
    assert bad(run={"resources": {"shared_memory": "1025Mi"}}) == [
        ("run.resources.shared_memory", "shared-memory")
    ]


def test_batches_are_named_by_the_spec_of_their_sweep() -> None:
    sweep = good(
        cancel=["lr-b1-3f9a1c2e"],
        retry=["lr-b1-3f9a1c2e", {"batch": "lr-b2-00000000", "only": ["failed", "missing"]}],
    )

    assert sweep.cancel == ("lr-b1-3f9a1c2e",)
    assert sweep.retry == (
        Retry("lr-b1-3f9a1c2e"),
        Retry("lr-b2-00000000", frozenset({Status.FAILED, Status.MISSING})),
    )


@pytest.mark.parametrize(
    ("changes", "results"),
    [
        ({"cancel": ["x-b1-3f9a1c2e"]}, ("cancel[0]", "batch-name")),
        ({"cancel": ["lr"]}, ("cancel[0]", "batch-name")),
        ({"cancel": "lr-b1-3f9a1c2e"}, ("cancel", "wrong-type")),
        ({"retry": ["lr-b1-3f9a1c2e", {"batch": "lr-b1-3f9a1c2e"}]}, ("retry[1].batch", "batch-name")),
        ({"retry": [{"only": ["failed"]}]}, ("retry[0].batch", "missing-key")),
        ({"retry": [{"batch": "lr-b1-3f9a1c2e", "only": ["ok"]}]}, ("retry[0].only[0]", "wrong-value")),
        ({"retry": [{"batch": "lr-b1-3f9a1c2e", "why": 1}]}, ("retry[0].why", "unknown-key")),
        ({"retry": [1]}, ("retry[0]", "wrong-type")),
    ],
)
def test_other_batches_are_refused(changes: dict[str, Any], results: tuple[str, str]) -> None:
    assert bad(**changes) == [results]


@pytest.mark.parametrize(("method", "at_once"), [("halving", 9), ("pbt", 9), ("hyperband", 17), ("tpe", 1)])
def test_a_round_of_jobs_starts_as_a_whole(method: str, at_once: int) -> None:
    resource = {"resource": {"parameter": "epochs", "min": 1, "max": 9}} if method != "tpe" else {}

    sweep = good(method=method, seed=1, rounds={"size": 9, "max": 4}, **resource)

    assert sweep.run.parallelism == at_once


def test_folders_of_a_pod_are_private_where_it_has_one_trial() -> None:
    run = {"environment": {"HF_HOME": "/sweep/scratch/hub"}}

    assert dict(good(run=run).run.environment) == run["environment"]
    assert bad(run={**run, "pack": {"trials": 2}}) == [("run.environment.HF_HOME", "path-shared")]
    assert good(run={"environment": {"HF_HOME": "hub"}, "pack": {"trials": 2}}).run.pack is not None


@pytest.mark.parametrize(
    ("run", "problem"),
    [
        ({"pack": {"at_once": 2}}, ("run.pack.trials", "missing-key")),
        (
            {"infrastructure": {"exit_codes": [[1]], "retries": 1}},
            ("run.infrastructure.exit_codes[0]", "wrong-type"),
        ),
    ],
    ids=["pack", "exit codes"],
)
def test_what_is_reported_of_the_structure_ends_no_other_rule(
    run: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert bad(run={**run, "pool": "cpu-small"}) == [problem]
