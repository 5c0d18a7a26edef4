"""Katib's Experiments of both versions as specs, with every key used or named."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.log_uniform import LogUniform
from sweepledger.distributions.normal import Normal
from sweepledger.distributions.uniform import Uniform
from sweepledger.exchange import katib
from sweepledger.exchange.conversion import Imported
from sweepledger.exchange.katib.reader import DEFAULT_FILTER, pattern_of_filter
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.stopping.percentile import PercentileStop
from sweepledger.structs.methods import SAMPLERS
from sweepledger.structs.metric import Goal, MetricSource, Reduce
from sweepledger.structs.run_config import Shape
from sweepledger.structs.search_block import GridSearch, RandomSearch, Resource, Rounds
from tests.exchange.imported import assignments_of, sweep_of, whats

FILES = Path(__file__).parent / "files/katib"


def read(name: str) -> Imported:
    return katib.read((FILES / f"{name}.yaml").read_bytes(), name=name)


def an_experiment(**changes: Any) -> bytes:
    """Give a small Experiment as bytes; `changes` replace keys of its spec."""
    spec = {
        "objective": {"type": "maximize", "objectiveMetricName": "acc"},
        "algorithm": {"algorithmName": "random"},
        "maxTrialCount": 4,
        "parallelTrialCount": 1,
        "parameters": [
            {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.5"}}
        ],
    }
    return yaml.dump(
        {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "spec": spec | changes}
    ).encode()


def a_parameter(kind: str, **space: Any) -> list[dict[str, Any]]:
    return [{"name": "p", "parameterType": kind, "feasibleSpace": space}]


def a_range(**space: Any) -> list[dict[str, Any]]:
    return a_parameter("double", **space)


def domain(algorithm: str, kind: str, **space: Any) -> dict[str, Any]:
    content = an_experiment(
        algorithm={"algorithmName": algorithm}, parameters=a_parameter(kind, **space), maxTrialCount=None
    )
    document: dict[str, Any] = katib.read(content, name="one").spec["parameters"]["p"]
    return document


def a_command(*command: str, args: list[str] | None = None, **container: Any) -> Imported:
    """Import an Experiment with parameters lr and n whose trial runs this command."""
    parts = {"name": "main", "command": list(command), "args": args or [], **container}
    template = {
        "primaryContainerName": "main",
        "trialParameters": [{"name": "rate", "reference": "lr"}, {"name": "n", "reference": "n"}],
        "trialSpec": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {"template": {"spec": {"containers": [parts], "restartPolicy": "Never"}}},
        },
    }
    parameters = [
        {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.5"}},
        {"name": "n", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "3"}},
    ]
    return katib.read(an_experiment(parameters=parameters, trialTemplate=template), name="one")


def test_the_random_experiment_of_the_slides_becomes_its_space_objective_and_counts() -> None:
    imported = read("random-experiment")

    sweep = sweep_of(imported)
    block = sweep.design
    assert isinstance(block, RandomSearch)
    assert (block.method, block.cap, block.seed) == (SAMPLERS["random"], 12, 0)
    assert {parameter.name: parameter.domain for parameter in block.space.parameters} == {
        "lr": Uniform(0.01, 0.03),
        "num-layers": IntUniform(2, 5),
        "optimizer": Choice(("sgd", "adam", "ftrl")),
    }
    assert (sweep.metric.name, sweep.metric.goal) == ("Validation-accuracy", Goal.MAXIMIZE)
    assert sweep.metric.source is MetricSource.STDOUT
    assert sweep.run.parallelism == 3
    assert len(assignments_of(sweep)) == 12
    assert sweep.metric.target == 0.99
    assert sweep.static_rounds == Rounds(3), "as many as Katib runs at once"


@pytest.mark.parametrize(
    ("goal", "strategy", "reduce"),
    [
        ("maximize", "latest", Reduce.LAST),
        ("minimize", "max", Reduce.MAX),
    ],
)
def test_the_value_that_katib_takes_counts(goal: str, strategy: str | None, reduce: Reduce) -> None:
    messages = [] if strategy is None else [{"name": "loss", "value": strategy}]
    objective = {"type": goal, "objectiveMetricName": "loss", "metricStrategies": messages}

    imported = katib.read(an_experiment(objective=objective), name="one")

    assert sweep_of(imported).metric.reduce is reduce
    assert ("reduce" in imported.spec["metric"]) == (reduce is not Reduce.LAST)
    assert not [what for what in whats(imported.losses) if "metricStrategies" in what]


def test_a_strategy_for_another_metric_is_named_and_one_that_katib_has_not_is_refused() -> None:
    messages = [{"name": "loss", "value": "latest"}, {"name": "other", "value": "min"}, {"name": "third"}]
    objective = {"type": "maximize", "objectiveMetricName": "loss", "metricStrategies": messages}

    imported = katib.read(an_experiment(objective=objective), name="one")

    assert [what for what in whats(imported.losses) if "metricStrategies" in what] == [
        "spec.objective.metricStrategies[1]: other: min",
        "spec.objective.metricStrategies[2]: third: max",
    ]
    messages[0]["value"] = "mean"
    with pytest.raises(
        ForeignError, match=r"metricStrategies\[0\].value must be latest, max or min, got 'mean'"
    ):
        katib.read(an_experiment(objective=objective), name="one")


def test_a_v1beta1_experiment_becomes_a_sweep_with_every_kind_of_parameter() -> None:
    imported = read("random-v1beta1")

    sweep = sweep_of(imported)
    block = sweep.search
    assert block
    assert (sweep.method, block.rounds.size) == ("tpe", 4)
    assert (block.seed, block.cap, sweep.run.parallelism) == (7, 20, 4)
    assert sweep.early_stop == PercentileStop(min_iter=4, min_trials=3)
    domains = {parameter.name: parameter.domain for parameter in block.space.parameters}
    assert domains["lr"] == LogUniform(0.0001, 0.1)
    assert domains["momentum"] == Uniform(0, 1)
    assert domains["units"] == Choice((32, 64, 96, 128))
    assert domains["dropout"] == Choice((0, 0.25, 0.5))
    assert domains["width"] == Normal(4, 1)
    assert domains["norm"] == Choice(("on", "01"))
    assert imported.spec["parameters"]["scale"] == {
        "distribution": "q_log_normal", "mu": 0.0, "sigma": 1.53505672866, "q": 0.5,
    }  # fmt: skip
    assert sweep.metric.name == "val_loss"
    assert sweep.metric.goal is Goal.MINIMIZE


def test_a_v1beta1_trial_becomes_command_and_run() -> None:
    imported = read("random-v1beta1")

    assert imported.spec["command"] == [
        "${env}", "DATA=/data", "python3", "/src/mnist.py", "--lr=${envvar:SWEEP_PARAM_LR}", "--data=/data",
        "--units", "${envvar:SWEEP_PARAM_UNITS}", "--run=${envvar:SWEEP_TRIAL_ID}",
    ]  # fmt: skip
    assert imported.spec["run"] == {
        "parallelism": 4,
        "code": {"path": "code"},
        "retries": 2,
        "timeout": "600s",
        "resources": {"cpu": 2, "memory": "4Gi", "gpu": 1},
    }


def test_a_v1beta1_experiments_report_names_all_that_stays_behind() -> None:
    imported = read("random-v1beta1")

    container = "spec.trialTemplate.trialSpec.spec.template.spec.containers"
    assert set(whats(imported.losses)) == {
        "metadata.namespace: team",
        "metric: val loss",
        "spec.earlyStopping: medianstop",
        "rounds",
        "seed",
        "spec.algorithm.algorithmSettings.n_EI_candidates: 24",
        "spec.parameters[2].feasibleSpace.step: 32",
        "spec.parameters[2].feasibleSpace.max: 130",
        "spec.parameters[3].feasibleSpace.list",
        "spec.parameters[4].feasibleSpace.distribution: normal",
        "spec.parameters[5].feasibleSpace.distribution: logNormal",
        "spec.trialTemplate.trialParameters[2]: trialName",
        "spec.trialTemplate.trialSpec.spec.ttlSecondsAfterFinished: 60",
        f'{container}[1].env[1].valueFrom: {{"secretKeyRef": {{"name": "s", "key": "t"}}}}',
        f"{container}[1].command[6]: ${{trialSpec.Name}}",
        f"{container}[1].image: docker.io/team/mnist:1.4",
        f"{container}[1].resources.limits.rdma/hca: 1",
        f"{container}[1].resources.requests.cpu: 1",
        f"{container}[1].workingDir: /src",
        f"{container}[0].name: log",
        f"{container}[0].image: busybox",
        'spec.trialTemplate.trialSpec.spec.template.spec.nodeSelector: {"gpu": "a100"}',
        "spec.trialTemplate.retain: true",
        'spec.trialTemplate.primaryPodLabels: {"role": "worker"}',
        "parameters: momentum",
        "parameters: dropout",
        "parameters: width",
        "parameters: scale",
        "parameters: norm",
        "the code of the trial",
        "spec.metricsCollectorSpec: /var/log/metrics.log",
    }


def test_a_v1alpha3_grid_with_its_go_template_becomes_a_grid_and_a_command() -> None:
    imported = read("grid-v1alpha3")

    sweep = sweep_of(imported)
    block = sweep.design
    assert isinstance(block, GridSearch)
    assert [parameter.domain for parameter in block.space.parameters] == [
        Choice((0.1, 0.2, 0.3)),
        IntUniform(1, 4),
        Choice(("sgd", "adam")),
    ]
    assert len(assignments_of(sweep)) == 24
    assert sweep.command == ("python3", "/opt/mxnet-mnist/mnist.py", "--batch-size=64", "${args}")
    assert "spec.parameters[0].feasibleSpace.max: 0.35" in whats(imported.losses)


@pytest.mark.parametrize(
    ("algorithm", "kind", "space", "expected"),
    [
        ("random", "double", {"min": "0.1", "max": "0.5"}, {"min": 0.1, "max": 0.5, "distribution": "uniform"}),
        ("random", "int", {"min": "1", "max": "3"}, {"min": 1, "max": 3, "distribution": "int_uniform"}),
        ("grid", "double", {"min": "0", "max": "0.3", "step": "0.1"}, {"min": 0, "max": 0.3, "step": 0.1}),
        ("grid", "int", {"min": "0", "max": "5", "step": "2"}, {"min": 0, "max": 4, "step": 2}),
        ("grid", "int", {"min": "0", "max": "1", "step": "2"}, {"value": 0}),
        ("random", "int", {"min": "1", "max": "64", "distribution": "logUniform"},
         {"distribution": "q_log_uniform_values", "min": 1, "max": 64, "q": 1}),
        ("random", "double", {"min": "-3e-20", "max": "3e-20", "distribution": "normal"},
         {"distribution": "normal", "mu": 0, "sigma": 1e-20}),
        ("random", "discrete", {"list": ["1e-3", "0x1", "2.0"]}, {"values": [0.001, "0x1", 2]}),
        ("random", "categorical", {"list": ["1", "true", True, "x"]}, {"values": ["1", "true", "x"]}),
    ],
)  # fmt: skip
def test_texts_as_numbers(algorithm: str, kind: str, space: dict[str, Any], expected: dict[str, Any]) -> None:
    assert domain(algorithm, kind, **space) == expected


def test_a_shells_braces_and_kubernetes_variables_are_told_apart_from_macros() -> None:
    imported = a_command("sh", "-c", "python t.py --n=${trialParameters.n} ${HOME} $(POD) $$(date) $HOME")

    assert imported.spec["command"] == [
        "sh", "-c", "python t.py --n=${envvar:SWEEP_PARAM_N} ${envvar:HOME} ${envvar:POD} $(date) $HOME",
    ]  # fmt: skip
    messages = whats(imported.losses)
    assert [what.rpartition(": ")[2] for what in messages if "command[2]" in what] == ["${HOME}", "$("]


def test_a_variable_may_use_those_before_it_and_none_after() -> None:
    imported = a_command("x", "$(B)", env=[{"name": "A", "value": "$(B)"}, {"name": "B", "value": "$(A)/b"}])

    assert sweep_of(imported).command == ("${env}", "A=${envvar:B}", "B=${envvar:B}/b", "x", "${envvar:B}/b")


IMAGE = "registry.example/team/x@sha256:" + "0" * 64


def a_trial(kind: str, spec: dict[str, Any], **experiment: Any) -> Imported:
    """Import an Experiment with a parameter p whose trials are objects of this kind."""
    template = {
        "primaryContainerName": "main",
        "trialParameters": [{"name": "p", "reference": "p"}],
        "trialSpec": {"apiVersion": "any/v1", "kind": kind, "spec": spec},
    }
    changes = {"parameters": a_parameter("double", min="0.1", max="0.5"), **experiment}
    return katib.read(an_experiment(trialTemplate=template, **changes), name="many")


def a_pod(*command: str, **container: Any) -> dict[str, Any]:
    main = {"name": "main", "image": IMAGE, "command": list(command), **container}
    return {"spec": {"containers": [main]}}


POD = a_pod("python", "t.py", "--p=${trialParameters.p}")
TRAINER = {"image": IMAGE, "command": ["python", "t.py"], "args": ["--p=${trialParameters.p}"]}


@pytest.mark.parametrize(
    ("kind", "spec", "shape", "nodes", "processes"),
    [
        ("PyTorchJob", {"nprocPerNode": "2", "pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "template": POD}, "Worker": {"replicas": 3, "template": POD}}},
         Shape.PYTORCH_JOB, 4, 2),
        ("TFJob", {"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": POD}}}, Shape.TF_JOB, 2, 1),
        ("MPIJob", {"slotsPerWorker": 4, "mpiReplicaSpecs": {
            "Launcher": {"template": POD}, "Worker": {"replicas": 2, "template": POD}}}, Shape.MPI_JOB, 2, 4),
        ("JobSet", {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {
            "spec": {"parallelism": 3, "completions": 3, "template": POD}}}]}, Shape.JOB_SET, 6, 1),
        ("TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2, "numProcPerNode": 4, **TRAINER}},
         Shape.TRAIN_JOB, 2, 4),
    ],
    ids=["pytorch", "tf", "mpi", "jobset", "trainjob"],
)  # fmt: skip
def test_kinds_are_shapes(kind: str, spec: dict[str, Any], shape: Shape, nodes: int, processes: int) -> None:
    run = sweep_of(imported := a_trial(kind, spec)).run

    assert (run.shape, run.nodes, run.processes, run.image) == (shape, nodes, processes, IMAGE)
    assert imported.spec["command"] == ["python", "t.py", "${args}"]


@pytest.mark.parametrize(
    ("kind", "spec", "what"),
    [
        ("TrainJob", {"runtimeRef": {"name": "torch"}, "trainer": TRAINER}, "runtimeRef: torch"),
        ("TrainJob", {"trainer": TRAINER, "podTemplateOverrides": [1]}, "podTemplateOverrides: [1]"),
        ("PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {
            "template": a_pod("other")}}}, "Worker.template"),
        ("PyTorchJob", {"elasticPolicy": {"maxReplicas": 3}, "pytorchReplicaSpecs": {
            "Master": {"template": POD}}}, 'elasticPolicy: {"maxReplicas": 3}'),
        ("TFJob", {"tfReplicaSpecs": {"PS": {"replicas": 2, "template": POD}, "Worker": {"template": POD}}},
         "PS: 2 pods"),
        ("JobSet", {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": POD}}},
                                       {"name": "b", "template": {"spec": {"template": POD}}}]}, ": b, 1 pods"),
        ("XGBoostJob", {"xgbReplicaSpecs": {"Master": {"template": POD}, "Worker": {
            "replicas": 2, "template": POD}}}, "XGBoostJob"),
        ("RayJob", {"head": {"template": POD}}, "kind: RayJob"),
    ],
    ids=["runtime", "overrides", "worker", "elastic", "ps", "jobs", "xgboost", "unknown"],
)  # fmt: skip
def test_what_the_pods_of_a_kind_lose_is_reported(kind: str, spec: dict[str, Any], what: str) -> None:
    imported = a_trial(kind, spec)

    assert sum(loss.endswith(what) for loss in whats(imported.losses)) == 1
    assert imported.spec["command"] == ["python", "t.py", "${args}"]


def test_arguments_without_a_program_get_one_that_runs() -> None:
    imported = a_command(args=["--lr=${trialParameters.rate}", "--n", "${trialParameters.n}"])

    assert sweep_of(imported).command == (
        "${interpreter}", "train.py", "--lr=${envvar:SWEEP_PARAM_LR}", "--n", "${envvar:SWEEP_PARAM_N}",
    )  # fmt: skip
    assert any(what.endswith("containers[0].command") for what in whats(imported.losses))


def test_the_number_of_failed_trials_that_ends_an_experiment_ends_a_batch() -> None:
    imported = katib.read(an_experiment(maxFailedTrialCount=3), name="few")

    assert sweep_of(imported).run.max_failed == 3
    assert "maxFailedTrialCount" not in str(imported.losses)
    many = a_trial("TrainJob", {"trainer": {"numNodes": 2, **TRAINER}}, maxFailedTrialCount=3)
    assert "max_failed" not in many.spec["run"]
    assert "spec.maxFailedTrialCount: 3" in whats(many.losses)


@pytest.mark.parametrize(
    ("collector", "keys", "lost"),
    [
        ({}, {"source": "stdout"}, None),
        ({"collector": {"kind": "File"}, "source": {"fileSystemPath": {"path": "/m.log", "kind": "File"}}},
         {"source": "result", "format": "text"}, None),
        ({"collector": {"kind": "File"},
          "source": {"fileSystemPath": {"path": "/m.log", "kind": "File", "format": "JSON"}}},
         {"source": "result", "format": "jsonl"}, "fileSystemPath.format: JSON"),
        ({"collector": {"kind": "File"}, "source": {
            "filter": {"metricsFormat": ["a(.)"]}, "fileSystemPath": {"path": "/m.log", "kind": "File"}}},
         {"source": "stdout"}, 'filter.metricsFormat: ["a(.)"]'),
        ({"collector": {"kind": "StdOut"}, "source": {
            "filter": {"metricsFormat": [r"([\w|-]+): ((-?\d+)(\.\d+)?)"]}}},
         {"source": "stdout", "format": "regex",
          "patterns": [r"(?P<name>[\w|-]+): (?P<value>(?:-?\d+)(?:\.\d+)?)"]}, None),
        ({"collector": {"kind": "File"}, "source": {
            "filter": {"metricsFormat": [r"(\w+) is (\S+)"]}, "fileSystemPath": {"path": "/m.log", "kind": "File"}}},
         {"source": "result", "format": "regex", "patterns": [r"(?P<name>\w+) is (?P<value>\S+)"]}, None),
        ({"collector": {"kind": "StdOut"}, "source": {"filter": {"metricsFormat": [DEFAULT_FILTER]}}},
         {"source": "stdout"}, None),
        ({"collector": {"kind": "TensorFlowEvent"}, "source": {"fileSystemPath": {"path": "/logs"}}},
         {"source": "stdout"}, "collector.kind: TensorFlowEvent"),
        ({"collector": {"kind": "PrometheusMetric"}, "source": {"httpGet": {"port": 8080}}},
         {"source": "stdout"}, 'source.httpGet: {"port": 8080}'),
        ({"collector": {"kind": "Push"}}, {"source": "stdout"}, "collector.kind: Push"),
    ],
    ids=[
        *("none", "file", "json", "filter", "pattern", "pattern of a file"),
        *("default filter", "tensorboard", "prometheus", "push"),
    ],
)  # fmt: skip
def test_a_collector_is_a_source(collector: dict[str, Any], keys: dict[str, Any], lost: str | None) -> None:
    container = {"name": "main", "command": ["python", "t.py", "--log=/m.log", "--p=${trialParameters.p}"]}
    pod = {"spec": {"containers": [container]}}
    imported = a_trial("Job", {"template": pod}, metricsCollectorSpec=collector)

    metric = imported.spec["metric"]
    assert {key: metric[key] for key in ("source", "format", "patterns") if key in metric} == keys
    passes_file = "--log=${envvar:SWEEP_RESULT}" in imported.spec["command"]
    assert passes_file == (keys["source"] == "result")
    prefix = "spec.metricsCollectorSpec"
    assert (lost is None) == (prefix not in " ".join(whats(imported.losses)))
    assert lost is None or any(what.endswith(lost) for what in whats(imported.losses))
    assert sweep_of(imported)


@pytest.mark.parametrize(
    ("filter_", "line"),
    [
        (DEFAULT_FILTER, "epoch 3: loss=0.25, val-accuracy = .9"),
        (r"([\w|-]+)\s*=\s*((-?\d+)(\.\d+)?)", "accuracy=0.91 loss =-2"),
        (r"{metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)}", "{metricName: loss, metricValue: 0.5}"),
    ],
    ids=["default", "numbers", "objects"],
)
def test_a_pattern_matches_what_the_groups_of_a_filter_match(filter_: str, line: str) -> None:
    pattern = pattern_of_filter(filter_)

    assert pattern is not None
    found = [(match["name"], match["value"]) for match in re.finditer(pattern, line, re.ASCII)]
    assert found == [(match[1], match[2]) for match in re.finditer(filter_, line, re.ASCII)] != []


@pytest.mark.parametrize(
    "filter_",
    [
        "a(.)", r"(a+)+(b)", r"[[:alpha:]](a)(b)", r"(?i)(acc)=(\d+)", r"(\w+)=(\d++)", r"(?P<n>\w+)=(\d+)",
        r"(\pL+)=(\d+)", "(" * 2000,
    ],
    ids=["one group", "slow", "class", "flags", "possessive", "named", "letters", "long"],
)  # fmt: skip
def test_a_filter_that_python_reads_differently_has_no_pattern(filter_: str) -> None:
    assert pattern_of_filter(filter_) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kind: Job\n", "must be an Experiment of kubeflow.org/v1alpha3 or kubeflow.org/v1beta1, got 'Job'"),
        (an_experiment(parameters=[]), "must contain at least one parameter"),
        (an_experiment(objective={}), "spec.objective must have an objectiveMetricName"),
        (an_experiment(parameters=a_parameter("text")), "must be categorical, discrete, double or int"),
        (an_experiment(parameters=a_parameter("int", min="1")), "must have min and max, for p"),
        (an_experiment(parameters=a_parameter("int", min="a", max="b")), "min must be a number, got 'a'"),
        (an_experiment(parameters=a_parameter("int", min="1", max="1e999")), "must be a finite number"),
        (an_experiment(parameters=a_range(min="1", max="2", distribution="cauchy")), "must be one of"),
        (an_experiment(parameters=a_range(min="0", max="2", distribution="logNormal")), "must have 0 < min"),
    ],
    ids=["kind", "empty", "objective", "type", "bounds", "words", "huge", "distribution", "log-of-zero"],
)  # fmt: skip
def test_what_is_no_experiment_is_refused_with_its_place(content: bytes, message: str) -> None:
    with pytest.raises(ForeignError) as refused:
        katib.read(content, name="no")

    assert message in str(refused.value)


def a_learner(name: str, goal: float | None = None, **settings: str) -> Imported:
    """Import an Experiment that searches by an algorithm with these settings."""
    objective = {"type": "maximize", "objectiveMetricName": "acc", "goal": goal}
    result = [{"name": key, "value": value} for key, value in settings.items()]
    parameters = [
        *a_range(min="0.1", max="0.5"),
        {"name": "epochs", "parameterType": "int", "feasibleSpace": {"min": "1", "max": "9"}},
    ]
    changes = {"algorithm": {"algorithmName": name, "algorithmSettings": result}, "parameters": parameters}
    return katib.read(an_experiment(objective=objective, parallelTrialCount=4, **changes), name="one")


@pytest.mark.parametrize(
    ("name", "method"),
    [("tpe", "tpe"), ("multivariate-tpe", "tpe"), ("bayesianoptimization", "bayes"), ("cmaes", "cma-es")],
)
def test_an_algorithm_that_learns_is_a_search_by_rounds(name: str, method: str) -> None:
    imported = a_learner(name, goal=0.99, random_state="5", sigma="0.1")

    sweep = sweep_of(imported)
    assert sweep.search
    assert (sweep.method, sweep.search.seed, sweep.search.rounds.size) == (method, 5, 4)
    assert (sweep.search.cap, sweep.metric.target) == (4, 0.99)
    assert "spec.algorithm.algorithmSettings.sigma: 0.1" in whats(imported.losses)


def test_hyperband_takes_its_resource_from_the_settings() -> None:
    imported = a_learner("hyperband", r_l="9", eta="3", resource_name="epochs")

    search = sweep_of(imported).search
    assert search
    assert search.resource == Resource("epochs", 1, 9, 3)
    assert search.rounds.size == 9
    assert [parameter.name for parameter in search.space.parameters] == ["p"]
    assert "parameters: epochs" in whats(imported.losses)


def test_a_hyperband_without_a_resource_becomes_tpe_and_says_so() -> None:
    imported = a_learner("hyperband", eta="3")

    search = sweep_of(imported).search
    assert search
    assert search.method.name == "tpe"
    assert "spec.algorithm.algorithmName: hyperband" in whats(imported.losses)


def test_a_population_keeps_its_size() -> None:
    imported = a_learner("pbt", n_population="6", truncation_threshold="0.4")

    search = sweep_of(imported).search
    assert search
    assert (search.method.name, search.rounds.size) == ("pbt", 6)
    assert "resource" in whats(imported.losses)


@pytest.mark.parametrize("name", ["enas", "darts"])
def test_a_search_of_architectures_is_refused_by_name(name: str) -> None:
    with pytest.raises(ForeignError, match=f"{name} searches neural architectures, not hyperparameters"):
        a_learner(name)
