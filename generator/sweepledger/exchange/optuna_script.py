"""A sweep as a Python script with Optuna: its distributions, its sampler, its configurations and its command."""

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sweepledger.errors import UsageError
from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Assignments, Exported, Loss, LossList
from sweepledger.exchange.spec_parts import DEFAULT_RUN_CAP
from sweepledger.reader import launcher_parts
from sweepledger.structs.domain import Domain, NumberRange
from sweepledger.structs.methods import methods_with
from sweepledger.structs.metric import MetricFormat, Reduce
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import LIST_MACROS, Macro, parse_element, spread_names
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical, canonical_json, is_number

TOOL = "Optuna"
STATIC_SAMPLER = "RandomSampler"
"""For methods whose configurations are all known: it draws none."""
READABLE = frozenset({None, MetricFormat.JSON, MetricFormat.TEXT})
"""Formats of metrics that the script reads."""

LAUNCHERS = frozenset({"SPREAD", "spread", "switch", "words_of"})
"""What the script has of the launcher, so that both pass the same arguments."""
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


_Distribution = tuple[str, bool]
"""The call that makes it, and whether its categories are JSON: Optuna has no lists, and takes 1 and True for equal."""


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return a script that runs the sweep by Optuna. Raises UsageError for features that need rounds."""
    design = sweep.design
    is_search = isinstance(design, AdaptiveSearch)
    trials = (
        conversion.most_trials(design) or DEFAULT_RUN_CAP
        if isinstance(design, AdaptiveSearch)
        else len(assignments)
    )
    losses = LossList(conversion.design_losses(design, TOOL) if is_search else ())
    constants, space = _space(sweep, assignments, losses)
    as_json = {name for name, (_, is_json) in space.items() if is_json}
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
    kinds = {code.partition("(")[0] for code, _ in space.values()}
    imported = sorted(kinds | {"CategoricalDistribution", "IntDistribution"})
    lines = [
        *(f"# {line}" for line in conversion.export_banner(sweep, TOOL, losses).splitlines()),
        "# Start it in the root of the repository: python THIS_FILE [STORAGE]. It continues where it ended.",
        "",
        *(f"import {name}" for name in ("json", "os", "re", "subprocess", "sys", "tempfile")),
        "from pathlib import Path",
        "from typing import Any, Callable, Mapping",
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
        *_lines("SPACE", "{}", (f"{name!r}: {code}" for name, (code, _) in space.items())),
        f"AS_JSON = {sorted(as_json | lists)!r}",
        *_lines("VARIABLES", "{}", (f"{name!r}: {environment_name(name)!r}" for name in sweep.columns)),
        *_lines("CONFIGURATIONS", "[]", map(repr, configurations)),
        *_launchers_code(),
    ]
    command = ", ".join(_word(element, sweep.command) for element in sweep.command)
    return Exported("\n".join(lines) + f"\n{SCRIPT.replace('@COMMAND@', command)}", tuple(losses))


def _lines(name: str, brackets: str, items: Iterable[str]) -> Iterator[str]:
    yield f"{name} = {brackets[0]}"
    yield from (f"    {item}," for item in items)
    yield brackets[1]


def _space(
    sweep: Sweep, assignments: Assignments, losses: LossList
) -> tuple[Mapping[str, Any], Mapping[str, _Distribution]]:
    """Return the values that all trials share, and a distribution for every other name. Raises UsageError for a search.

    A search uses Optuna's distributions; those of known configurations contain at least their values.
    """
    declared = {parameter.name: parameter.domain for parameter in sweep.design.space.parameters}
    columns = conversion.distinct_columns(assignments)
    constants: dict[str, Any] = {}
    space: dict[str, _Distribution] = {}
    for name in declared if sweep.search else columns:
        domain, values = declared.get(name), [canonical(value) for value in columns.get(name, ())]
        if domain is not None and domain.is_constant:
            values, domain = values or [canonical(domain.listed[0])], None
        if len(values) == 1 and domain is None and all(name in row for row in assignments):
            constants[name] = values[0]
            continue
        space[name] = _listed(values) if domain is None else _declared(name, domain, values, losses)
    return constants, space


def _declared(name: str, domain: Domain, values: Sequence[Any], losses: LossList) -> _Distribution:
    """Return a distribution with the values of a domain, or with those of the trials. Raises UsageError."""
    distribution = _distribution(domain)
    if distribution is not None:
        if domain.chances is not None:
            why = "Optuna's categories are equally likely at first"
            losses.add(f"parameters.{name}.probabilities", why)
        elif domain.shape is not None and domain.shape.step is not None:
            losses.add(f"parameters.{name}", "the ends are as likely as the other steps in Optuna")
        return distribution
    if not values:
        raise UsageError(
            f"parameters.{name} has a distribution that Optuna lacks",
            hint="Optuna has uniform and log-uniform numbers, steps that divide their range, and values",
        )
    why = "Optuna lacks this distribution; the values of the trials are in the script, between these bounds"
    losses.add(f"parameters.{name}", why)
    return _listed(values)


def _distribution(domain: Domain) -> _Distribution | None:
    """Return Optuna's distribution with the same values; None if it has none."""
    if domain.listed:
        return _categories([canonical(value) for value in domain.listed])
    match domain.shape:
        case NumberRange(low, high, is_integer=True):
            code = f"IntDistribution({low}, {high})"
        case NumberRange(low, high, is_log, step=None):
            code = f"FloatDistribution({low!r}, {high!r}{', log=True' if is_log else ''})"
        case NumberRange(low, high, False, step=float(q)) if all(
            (end / q).is_integer() for end in (low, high)
        ):
            is_whole = all(float(number).is_integer() for number in (low, high, q))
            whole = f"IntDistribution({int(low)}, {int(high)}, step={int(q)})"
            code = whole if is_whole else f"FloatDistribution({low!r}, {high!r}, step={q!r})"
        case NumberRange(low, high, True, step=1) if float(low).is_integer() and float(high).is_integer():
            code = f"IntDistribution({int(low)}, {int(high)}, log=True)"
        case _:
            return None
    return code, False


def _listed(values: Sequence[Any]) -> _Distribution:
    """Return a distribution for known values: a range between their bounds if they are many numbers."""
    if len(values) > 1 and all(map(is_number, values)):
        low, high = min(values), max(values)
        if all(isinstance(value, int) for value in values):
            return f"IntDistribution({low}, {high})", False
        return f"FloatDistribution({low!r}, {high!r})", False
    return _categories(values)


def _categories(values: Sequence[Any]) -> _Distribution:
    is_json = _is_json(values)
    texts = [canonical_json(value) if is_json else value for value in values]
    return f"CategoricalDistribution({texts!r})", is_json


def _is_json(values: Iterable[Any]) -> bool:
    """Return whether a table has these values as JSON: lists, null, or values of several types."""
    kinds = {"number" if is_number(value) else type(value).__name__ for value in values}
    return len(kinds) > 1 or not kinds <= {"bool", "number", "str"}


def _sampler(sweep: Sweep) -> str:
    design = sweep.design
    if not isinstance(design, AdaptiveSearch):
        return f"optuna.samplers.{STATIC_SAMPLER}(seed=0)"
    if (sampler := design.method.elsewhere.get("optuna")) is None:
        raise UsageError(
            f"{sweep.name} has the method {design.method}, whose trials continue earlier ones",
            hint=f"export a search by one of {', '.join(methods_with(lambda method: 'optuna' in method.elsewhere))}",
        )
    return f"optuna.samplers.{sampler}(seed={design.seed})"


def _losses(sweep: Sweep) -> Iterator[Loss]:
    metric = sweep.metric
    if sweep.search is not None:
        yield from conversion.drawn_losses(sweep.search, TOOL)
    else:
        yield from (
            Loss(f"metrics: {other.name}", "is an attribute of the trial") for other in sweep.other_metrics
        )
    if metric.format not in READABLE or metric.reduce is not Reduce.LAST or metric.capture:
        why = "the script reads $SWEEP_RESULT as JSON, and the last NAME=NUMBER of the output"
        yield Loss("metric.format", why)
    if metric.target is not None or sweep.early_stop is not None:
        yield Loss("early_terminate", "every trial runs to its end")


def _launchers_code() -> Iterator[str]:
    source = inspect.getsource(launcher_parts)
    for node in ast.parse(source).body:
        name = node.target if isinstance(node, ast.AnnAssign) else node
        if {getattr(name, "id", None), getattr(name, "name", None)} & LAUNCHERS:
            yield f"\n\n{ast.get_source_segment(source, node)}"


def _word(element: str, command: Sequence[str]) -> str:
    words: list[str] = []
    for part in parse_element(element):
        match part:
            case str():
                words.append(repr(part))
            case Macro(name, names) if name in LIST_MACROS:
                words.append(f"*spread({name!r}, {names!r}, values, {spread_names(command)!r})")
            case Macro(name="envvar", argument=variable):
                words.append(f"(os.environ | variables)[{variable!r}]")
            case Macro(name="config"):
                message = "run.config has no counterpart: the script gives trials no configuration file"
                raise UsageError(message, hint='pass the values as arguments, "${args}"')
            case Macro(name=name):
                words.append(WORDS[name])
    return " + ".join(words) or "''"
