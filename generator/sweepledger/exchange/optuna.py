"""Optuna: the storage of a study is read by Optuna, and a script that searches the same space is written."""

import logging
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from sweepledger.errors import ToolError, UsageError
from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.fields import exact_number, show_value, spec_number
from sweepledger.exchange.spec_parts import (
    CODE_DIR,
    DEFAULT_RUN_CAP,
    PROGRAM,
    ForeignSearch,
    listed_keys,
    parameter_names,
    range_keys,
    run_keys,
    search_spec,
)
from sweepledger.exchange.trials import configuration_of
from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs import domain as domains
from sweepledger.structs.metric import MetricFormat, Reduce
from sweepledger.structs.names import environment_name, suggest_sweep_name
from sweepledger.structs.program import Macro, parse_element
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch, Method
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical, canonical_json, is_number

TOOL = "Optuna"
SQLITE = b"SQLite format 3\0"
WAL = slice(18, 20), b"\2\2"
"""Bytes of an SQLite file whose last writes may be in the file beside it."""
NOT_TABLES = "SELECT count(*) FROM sqlite_master WHERE coalesce(rootpage, 0) = 0"
"""Views, triggers and virtual tables, which can be programs that never end."""
MAX_BYTES = 64 * 1024 * 1024
MOST_SHOWN = 5
"""Studies that a refusal names."""
STATES = {"COMPLETE": Status.OK, "PRUNED": Status.PRUNED, "FAIL": Status.FAILED}


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study of a storage."""

    name: str
    directions: tuple[str, ...]
    """`minimize` or `maximize` for each objective."""
    trials: Sequence[Any]
    """Trials as Optuna has them."""


def _load(content: bytes, choose: Callable[[list[str]], str]) -> StoredStudy:
    """Return the study that is chosen of a storage's. Raises ForeignError, ToolError without Optuna."""
    if len(content) > MAX_BYTES:
        raise ForeignError(f"must be at most {MAX_BYTES} bytes, got {len(content)}")
    try:
        optuna: Any = import_module("optuna")
    except ImportError as error:
        raise ToolError.missing_library("a study is read by Optuna", extra="adaptive") from error
    try:
        with _quiet(), tempfile.TemporaryDirectory(prefix="sweep-study-") as folder:
            copy = Path(folder, "study")  # which Optuna may change
            copy.write_bytes(content)
            storage = _database(optuna, copy) if content.startswith(SQLITE) else _journal(optuna, copy)
            name = choose(optuna.get_all_study_names(storage))
            study = optuna.load_study(study_name=name, storage=storage)
            directions = tuple(direction.name.lower() for direction in study.directions)
            return StoredStudy(name, directions, study.get_trials(deepcopy=False))
    except ForeignError:
        raise
    except Exception as error:  # the storage's libraries raise what they want
        reason = " ".join(str(error).split())[:200]
        hint = "other programs have SQLite files and journals, too: name the one of your study's storage"
        raise ForeignError(f"Optuna cannot read it: {reason}", hint=hint) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what libraries log of old storages, for a block."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _database(optuna: Any, file: Path) -> Any:
    with closing(sqlite3.connect(file)) as database:
        if database.execute(NOT_TABLES).fetchone() != (0,):
            raise ForeignError(
                "must be Optuna's SQLite storage, which has tables alone, got a view or a trigger"
            )
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}", skip_compatibility_check=True)
    if storage.get_current_version() != storage.get_head_version():
        storage.upgrade()
    return storage


def _journal(optuna: Any, file: Path) -> Any:
    backend = import_module("optuna.storages.journal").JournalFileBackend(str(file))
    return optuna.storages.JournalStorage(backend)


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for the only study of a storage, or the one of that name. Raises ForeignError."""
    study = _load(content, lambda names: _chosen(names, name))
    losses = LossList()
    if content.startswith(SQLITE) and content[WAL[0]] == WAL[1]:
        losses.add("write-ahead log", "trials that are still in the file beside it, NAME-wal, are not read")
    found: dict[str, list[Any]] = {}
    for trial in study.trials:
        for foreign, distribution in trial.distributions.items():
            found.setdefault(foreign, []).append(distribution)
    names = parameter_names(found, losses)
    parameters = {
        names[foreign]: _domain(foreign, used, len(study.trials), losses) for foreign, used in found.items()
    }
    if not parameters:
        raise ForeignError(
            f"the study {study.name!r} has no trials with parameters, and Optuna stores spaces only there",
            hint="run one trial first",
        )
    losses.add("sampler", "is not in a storage; written as tpe, Optuna's default")
    losses += [
        Loss(f"direction {place}: {goal}", "one objective is written; add `other_metrics` for several")
        for place, goal in enumerate(study.directions[1:], start=2)
    ]
    search = ForeignSearch(TOOL, "tpe", parameters, goal=study.directions[0], cap=len(study.trials))
    spec, more = search_spec(search, suggest_sweep_name(study.name) or name)
    losses += [
        Loss(f"{len(study.trials)} trials", "their results stay in the storage"),
        Loss("program", f"is not in a storage; written as {CODE_DIR}/{PROGRAM}: write your program"),
    ]
    spec |= {"program": PROGRAM} | run_keys(search, {"code": {"path": CODE_DIR}})
    return Imported(spec, (*losses, *more))


def _chosen(studies: list[str], name: str) -> str:
    """Return the study of a name, which may be as a sweep's is. Raises ForeignError."""
    chosen = [each for each in studies if name in {each, suggest_sweep_name(each)}] or studies
    if not chosen:
        raise ForeignError("must have one study, got none", hint="a storage has one when a trial has run")
    if len(chosen) > 1 and name not in chosen:
        shown = ", ".join(map(show_value, studies[:MOST_SHOWN])) + (
            " and more" if studies[MOST_SHOWN:] else ""
        )
        first = suggest_sweep_name(studies[0]) or "NAME"
        raise ForeignError(
            f"must have one study, got {shown}",
            hint=f"choose one by its name in the form of a sweep's, for example `--name {first}`",
        )
    return name if name in chosen else chosen[0]


def _domain(parameter: str, used: list[Any], trials: int, losses: LossList) -> dict[str, Any]:
    """Return the keys of a parameter for the last of its distributions. Raises ForeignError."""
    count = len({repr(distribution) for distribution in used})
    if count > 1:
        why = f"has {count} distributions in the trials; the last is written"
        losses.add(f"parameter {parameter}", why)
    if len(used) < trials:
        why = f"only {len(used)} of {trials} trials have it; write `when` if it is conditional"
        losses.add(f"parameter {parameter}", why)
    distribution, where = used[-1], f"distribution of {parameter}"
    if hasattr(distribution, "choices"):
        return listed_keys(distribution.choices, f"{where}.choices", losses)
    low, high = (
        spec_number(exact_number(getattr(distribution, key), f"{where}.{key}")) for key in ("low", "high")
    )
    step = (
        None if distribution.step is None else spec_number(exact_number(distribution.step, f"{where}.step"))
    )
    is_whole = isinstance(distribution.low, int)
    return range_keys(low, high, is_log=distribution.log, is_whole=is_whole, step=step)


def read_trials(content: bytes, sweep: Sweep, study: str | None) -> tuple[str, Iterator[ForeignTrial]]:
    """Return the name of a study, and its finished trials.

    Raises ForeignError for a file that Optuna cannot read, or several studies without a name; ToolError without Optuna.
    """

    def choose(names: list[str]) -> str:
        if study is None and len(names) != 1:
            raise ForeignError(f"has {len(names)} studies, so --study must name one: {', '.join(names)}")
        if study is not None and study not in names:
            raise ForeignError(f"has no study {study!r}; it has {', '.join(names)}")
        return study or names[0]

    stored = _load(content, choose)
    if len(stored.directions) != len(sweep.metrics):
        raise ForeignError(
            f"the study has {len(stored.directions)} objective(s), but the sweep has {len(sweep.metrics)} metric(s)"
        )
    for direction, metric in zip(stored.directions, sweep.metrics, strict=True):
        if direction != str(metric.goal):
            raise ForeignError(f"the study's goal is {direction}, but that of {metric.name} is {metric.goal}")
    return stored.name, _trials(stored, sweep)


def _trials(study: StoredStudy, sweep: Sweep) -> Iterator[ForeignTrial]:
    assert sweep.search is not None
    parameters = sweep.search.space.parameters
    names = [metric.name for metric in sweep.metrics]
    for trial in study.trials:
        status = STATES.get(trial.state.name)
        if status is None:
            continue
        values = trial.values or ()
        if not values and status is Status.PRUNED and trial.intermediate_values:
            values = (trial.intermediate_values[max(trial.intermediate_values)],)
        finite = [value for value in values if value is not None and abs(value) < float("inf")]
        metrics = dict(zip(names, values, strict=True)) if len(finite) == len(names) else {}
        if status is Status.OK and not metrics:
            status = Status.DIVERGED
        yield ForeignTrial(configuration_of(parameters, trial.params.__getitem__), metrics, status)


SAMPLERS: Mapping[str, str] = {
    Method.TPE: "TPESampler",
    Method.BAYES: "GPSampler",
    Method.CMA_ES: "CmaEsSampler",
    Method.NSGA2: "NSGAIISampler",
}
"""Optuna's class for each method that it has."""
STATIC_SAMPLER = "RandomSampler"
"""For methods whose configurations are all known: it draws none."""
READABLE = frozenset({None, MetricFormat.JSON, MetricFormat.TEXT})
"""Formats of metrics that the script reads."""

ARGUMENTS = {
    "args": '*(f"--{name}={value}" for name, value in values.items())',
    "args_no_hyphens": '*(f"{name}={value}" for name, value in values.items())',
    "args_no_boolean_flags": (
        '*(f"--{name}" if value is True else f"--{name}={value}" for name, value in values.items()'
        " if value is not False)"
    ),
}
WORDS = {
    "args_json": "json.dumps(values)",
    "args_json_file": "str(values_file)",
    "env": '"/usr/bin/env"',
    "interpreter": "sys.executable",
    "seed": "str(SEED)",
}
"""Macros of a command as expressions of the script."""

SCRIPT = r"""
STORAGE = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///optuna.db"


def suggest(trial, name):
    distribution = SPACE[name]
    if isinstance(distribution, CategoricalDistribution):
        value = trial.suggest_categorical(name, distribution.choices)
        return json.loads(value) if name in AS_JSON else value
    step = {} if distribution.step is None else {"step": distribution.step}
    kind = trial.suggest_int if isinstance(distribution, IntDistribution) else trial.suggest_float
    value = kind(name, distribution.low, distribution.high, log=distribution.log, **step)
    return int(value) if float(value).is_integer() else value


def objective(trial):
    names = trial.user_attrs.get("parameters", SPACE)
    known = CONSTANTS | {name: suggest(trial, name) for name in SPACE if name in names}
    values = {name: known[name] for name in VARIABLES if name in known}
    with tempfile.TemporaryDirectory() as folder:
        result_file, values_file = Path(folder, "result.json"), Path(folder, "values.json")
        values_file.write_text(json.dumps(values))
        variables = {"SWEEP_RESULT": str(result_file), "SWEEP_SEED": str(SEED)}
        for name, value in values.items():
            variables[VARIABLES[name]] = str(value) if name not in AS_JSON else json.dumps(value)
        command = [@COMMAND@]
        environment = os.environ | variables
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        metrics = json.loads(result_file.read_text()) if result_file.exists() else {}
    for name, number in re.findall(r"([^\s=]+)=(\S+)", done.stdout):
        if name in METRICS:
            metrics[name] = float(number)
    trial.set_user_attr("metrics", metrics)
    return [metrics[name] for name in METRICS]


def create_study():
    study = optuna.create_study(
        study_name=NAME,
        storage=STORAGE,
        directions=list(METRICS.values()),
        sampler=SAMPLER,
        load_if_exists=True,
    )
    for configuration in CONFIGURATIONS[len(study.trials) :]:
        study.enqueue_trial(configuration, user_attrs={"parameters": list(configuration)})
    return study


if __name__ == "__main__":
    study = create_study()
    ended = sum(trial.state.is_finished() for trial in study.trials)
    study.optimize(objective, n_trials=max(0, TRIALS - ended), catch=Exception)
"""
"""The part that is the same for every sweep, but for its command."""


@dataclass(frozen=True, slots=True)
class _Distribution:
    code: str
    """The call that makes it."""
    is_json: bool = False
    """Whether its categories are JSON text: Optuna has no lists, and takes 1 and True for equal."""


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return a script that runs the sweep by Optuna. Raises UsageError for what only a search with rounds has."""
    design = sweep.design
    is_search = isinstance(design, AdaptiveSearch)
    trials = (
        conversion.most_trials(design) or DEFAULT_RUN_CAP
        if isinstance(design, AdaptiveSearch)
        else len(assignments)
    )
    losses = LossList()
    constants, space = _search_space(sweep, losses) if is_search else _known_space(sweep, assignments, losses)
    names = _names(sweep, assignments)
    as_json = {name for name, distribution in space.items() if distribution.is_json}
    configurations: list[dict[str, Any]] = [
        {
            name: canonical_json(value) if name in as_json else canonical(value)
            for name, value in assignment.items()
            if name in space
        }
        for assignment in assignments
    ]
    metrics = (sweep.metric, *sweep.other_metrics) if is_search else (sweep.metric,)
    losses += [*_losses(sweep), *conversion.run_losses(sweep, TOOL)]
    lists = {name for name, value in constants.items() if _is_json([value])}
    kinds = {distribution.code.partition("(")[0] for distribution in space.values()}
    imported = sorted(kinds | {"CategoricalDistribution", "IntDistribution"})
    lines = [
        *(f"# {line}" for line in conversion.export_banner(sweep, TOOL, losses).splitlines()),
        "# Start it in the root of the repository: python THIS_FILE [STORAGE]. It continues where it ended.",
        "",
        *(f"import {name}" for name in ("json", "os", "re", "subprocess", "sys", "tempfile")),
        "from pathlib import Path",
        "",
        "import optuna",
        f"from optuna.distributions import {', '.join(imported)}",
        "",
        f"NAME = {sweep.name!r}",
        f"METRICS = { {metric.name: str(metric.goal) for metric in metrics}!r}",
        f"SAMPLER = {_sampler(sweep)}",
        f"TRIALS = {trials}",
        f"SEED = {sweep.run.seed_base}",
        f"CONSTANTS = {constants!r}",
        *_lines("SPACE", "{}", (f"{name!r}: {distribution.code}" for name, distribution in space.items())),
        f"AS_JSON = {sorted(as_json | lists)!r}",
        *_lines("VARIABLES", "{}", (f"{name!r}: {environment_name(name)!r}" for name in names)),
        *_lines("CONFIGURATIONS", "[]", map(repr, configurations)),
    ]
    command = ", ".join(map(_word, sweep.command))
    return Exported("\n".join(lines) + f"\n{SCRIPT.replace('@COMMAND@', command)}", tuple(losses))


def _lines(name: str, brackets: str, items: Iterable[str]) -> Iterator[str]:
    yield f"{name} = {brackets[0]}"
    yield from (f"    {item}," for item in items)
    yield brackets[1]


def _names(sweep: Sweep, assignments: Assignments) -> tuple[str, ...]:
    """Return all names in the order of the table, which is that of the arguments."""
    declared = [parameter.name for parameter in sweep.design.space.parameters]
    return tuple(dict.fromkeys([*declared, *(name for row in assignments for name in row)]))


def _search_space(sweep: Sweep, losses: LossList) -> tuple[Mapping[str, Any], Mapping[str, _Distribution]]:
    """Return constants and distributions of a search. Raises UsageError for others than Optuna's."""
    design = sweep.design
    losses += conversion.design_losses(design, TOOL)
    constants: dict[str, Any] = {}
    space: dict[str, _Distribution] = {}
    for parameter in design.space.parameters:
        name, domain = parameter.name, parameter.domain
        if isinstance(domain, domains.Constant):
            constants[name] = canonical(domain.value)
            continue
        distribution = _distribution(domain)
        if distribution is None:
            raise UsageError(
                f"parameters.{name} has a distribution that Optuna lacks",
                hint="Optuna has uniform and log-uniform numbers, steps that divide their range, and values",
            )
        losses += _domain_losses(name, domain)
        space[name] = distribution
    return constants, space


def _known_space(
    sweep: Sweep, assignments: Assignments, losses: LossList
) -> tuple[Mapping[str, Any], Mapping[str, _Distribution]]:
    """Return what all configurations have alike, and for every other name a distribution that has its values."""
    declared = {parameter.name: parameter.domain for parameter in sweep.design.space.parameters}
    drawn = {name: domain for name, domain in declared.items() if not isinstance(domain, domains.Constant)}
    constants: dict[str, Any] = {}
    space: dict[str, _Distribution] = {}
    for name, written_values in conversion.distinct_columns(assignments).items():
        values: list[Any] = [canonical(value) for value in written_values]
        domain = drawn.get(name)
        everywhere = all(name in assignment for assignment in assignments)
        if len(values) == 1 and everywhere and not isinstance(domain, domains.Choice):
            constants[name] = values[0]
            continue
        distribution = None if domain is None else _distribution(domain)
        if distribution is None:
            distribution = _listed(values)
            if domain is not None:
                why = "Optuna lacks this distribution; the values of the trials are in the script, between these bounds"
                losses.add(f"parameters.{name}", why)
        elif domain is not None:
            losses += _domain_losses(name, domain)
        space[name] = distribution
    return constants, space


def _distribution(domain: domains.Domain) -> _Distribution | None:
    """Return Optuna's distribution with the same values; None if it has none."""
    match domain:
        case domains.Choice(values):
            return _categories([canonical(value) for value in values])
        case domains.IntUniform(low, high):
            return _Distribution(f"IntDistribution({low}, {high})")
        case domains.Uniform(low, high):
            return _Distribution(f"FloatDistribution({low!r}, {high!r})")
        case domains.LogUniform(low, high):
            return _Distribution(f"FloatDistribution({low!r}, {high!r}, log=True)")
        case domains.Quantized(of, q):
            return _steps(of, q)
        case _:
            return None


def _steps(of: domains.Continuous, q: float) -> _Distribution | None:
    """Return Optuna's distribution of rounded values; None if it has none."""
    match of:
        case domains.Uniform(low, high) if (low / q).is_integer() and (high / q).is_integer():
            if all(float(number).is_integer() for number in (low, high, q)):
                return _Distribution(f"IntDistribution({int(low)}, {int(high)}, step={int(q)})")
            return _Distribution(f"FloatDistribution({low!r}, {high!r}, step={q!r})")
        case domains.LogUniform(low, high) if q == 1 and float(low).is_integer() and float(high).is_integer():
            return _Distribution(f"IntDistribution({int(low)}, {int(high)}, log=True)")
        case _:
            return None


def _listed(values: Sequence[Any]) -> _Distribution:
    """Return a distribution for values that are known: between their bounds if there are many numbers."""
    if len(values) > 1 and all(map(is_number, values)):
        low, high = min(values), max(values)
        if all(isinstance(value, int) for value in values):
            return _Distribution(f"IntDistribution({low}, {high})")
        return _Distribution(f"FloatDistribution({low!r}, {high!r})")
    return _categories(values)


def _categories(values: Sequence[Any]) -> _Distribution:
    is_json = _is_json(values)
    texts = [canonical_json(value) if is_json else value for value in values]
    return _Distribution(f"CategoricalDistribution({texts!r})", is_json)


def _is_json(values: Iterable[Any]) -> bool:
    """Return whether a table has these values as JSON: lists, null, or values of several types."""
    kinds = {"number" if is_number(value) else type(value).__name__ for value in values}
    return len(kinds) > 1 or not kinds <= {"bool", "number", "str"}


def _domain_losses(name: str, domain: domains.Domain) -> Iterator[Loss]:
    match domain:
        case domains.Choice(_, probabilities) if probabilities is not None:
            yield Loss(f"parameters.{name}.probabilities", "Optuna's categories are equally likely at first")
        case domains.Quantized():
            yield Loss(f"parameters.{name}", "the ends are as likely as the other steps in Optuna")
        case _:
            pass


def _sampler(sweep: Sweep) -> str:
    design = sweep.design
    if not isinstance(design, AdaptiveSearch):
        return f"optuna.samplers.{STATIC_SAMPLER}(seed=0)"
    if design.method not in SAMPLERS:
        raise UsageError(
            f"{sweep.name} has the method {design.method}, whose trials continue earlier ones",
            hint=f"export a search by one of {', '.join(map(str, SAMPLERS))}",
        )
    return f"optuna.samplers.{SAMPLERS[design.method]}(seed={design.seed})"


def _losses(sweep: Sweep) -> Iterator[Loss]:
    metric = sweep.metric
    if sweep.search is not None:
        yield Loss("rounds", "Optuna proposes one trial at a time, from the trials that have ended")
        yield Loss("seed", "Optuna draws other values for the same seed")
    else:
        yield from (
            Loss(f"metrics: {other.name}", "is an attribute of the trial") for other in sweep.other_metrics
        )
    if metric.format not in READABLE or metric.reduce is not Reduce.LAST or metric.capture:
        why = "the script reads $SWEEP_RESULT as JSON, and the last NAME=NUMBER of the output"
        yield Loss("metric.format", why)
    if metric.target is not None or sweep.early_stop is not None:
        yield Loss("early_terminate", "every trial runs to its end")


def _word(element: str) -> str:
    """Return an element of the command as an expression of the script."""
    parts = parse_element(element)
    match parts:
        case (Macro(name=name),) if name in ARGUMENTS:
            return ARGUMENTS[name]
        case _:
            return " + ".join(_part(part) for part in parts) or "''"


def _part(part: str | Macro) -> str:
    match part:
        case str():
            return repr(part)
        case Macro(name="envvar", argument=variable):
            return f"(os.environ | variables)[{variable!r}]"
        case Macro(name=name):
            return WORDS[name]


FORMAT = ForeignFormat(
    "optuna",
    "a storage of Optuna: an SQLite file or a journal",
    read=read,
    write=write,
    is_search=True,
    trials=read_trials,
    suffixes=(".db", ".sqlite", ".sqlite3", ".log", ".journal"),
)
