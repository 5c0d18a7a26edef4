"""The Sweep of a draft without problems, with its source map: design, metrics, early stopping, command and run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import normpath
from types import MappingProxyType
from typing import Any

from msgspec.structs import asdict, replace

from sweepledger.distributions import build_domain
from sweepledger.expressions.parser import parse_expression
from sweepledger.model.keys import decode
from sweepledger.problems import DocumentPath, Problem, Severity, SourceMap, SourcePath, SourcePosition
from sweepledger.spec.draft import Draft, Leaf, RawMapping
from sweepledger.spec.keys import SEARCH_KEYS, Spec
from sweepledger.structs import methods, search_block
from sweepledger.structs.expression import names_in
from sweepledger.structs.program import PROGRAM_MACRO, REPOSITORY, CodeSelection, ConfigFormat, data_name
from sweepledger.structs.run_config import CodeKeys, RunConfig
from sweepledger.structs.settings.trials import Defaults
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.sweep import Script, Sweep
from sweepledger.structs.values import Value, bytes_digest, frozen_value


def build_run(data: RawMapping, usual: Defaults) -> RunConfig:
    """Build the section `run` of a spec without problems."""
    code: CodeKeys = decode(CodeKeys, data.get("code", {}))
    run: RunConfig = decode(RunConfig, {key: data[key] for key in data.keys() - {"code", "data"}})
    infrastructure, named = run.infrastructure, data.get("data")
    is_distributed = run.shape is not None and run.shape.is_distributed
    absent: dict[str, Any] = {
        "pool": usual.pool,
        "parallelism": run.parallelism if run.pack is None else run.pack.at_once,
        "retries": usual.retries,
        # Kinds of several pods count a disruption as a failure, or not at all.
        "max_disruptions": 0 if is_distributed else run.max_disruptions,
    }
    if infrastructure is not None:
        codes = tuple(sorted(set(infrastructure.exit_codes)))
        infrastructure = replace(infrastructure, exit_codes=codes) if infrastructure.retries else None
    places = named.items() if isinstance(named, Mapping) else ()
    folder = REPOSITORY if isinstance(code.path, list) else str(code.path).removesuffix("/")
    selection = None
    if folder == REPOSITORY or code.include or code.exclude:
        paths = (path.removesuffix("/") for path in (code.path if isinstance(code.path, list) else [folder]))
        # Sorted, since their order means nothing and the lock names them.
        selection = CodeSelection(*(tuple(sorted(set(each))) for each in (paths, code.include, code.exclude)))
    return replace(
        run,
        code_path=folder,
        code_selection=selection,
        code_mode=code.mode,
        workdir=None if run.workdir is None else run.workdir.removesuffix("/"),
        config=run.config
        and replace(
            run.config, format=run.config.format or CONFIG_FORMATS[run.config.base.rpartition(".")[2]]
        ),
        data=named if named is None or isinstance(named, str) else data_name(named),
        # In their shortest form, so that `./data` and `data` are the same program.
        data_places=MappingProxyType(
            {name: normpath(place) for name, place in sorted(places) if place is not None}
        ),
        infrastructure=infrastructure,
        timeout_seconds=run.timeout_seconds if "timeout" in data else usual.timeout_seconds,
        **{name: tuple(dict.fromkeys(getattr(run, name))) for name in ("keep", "secrets", "egress")},
        **{key: value for key, value in absent.items() if key not in data},
    )


CONFIG_FORMATS = {"yml": ConfigFormat.YAML, **{str(form): form for form in ConfigFormat}}
"""By the end of a file's name."""
SCRIPT_PATH = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\.[A-Za-z]\w*", re.ASCII)
"""Elements of a command that look like the path of a file."""
PROGRAM_SUFFIXES = frozenset({"R", "bash", "jl", "js", "lua", "pl", "py", "r", "rb", "sh"})
"""Suffixes of files that are started rather than read."""


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A sweep, the positions of its parts in the spec, and the warnings about the spec."""

    sweep: Sweep
    source: SourceMap
    warnings: tuple[Problem, ...] = ()


def build_spec(draft: Draft, warnings: tuple[Problem, ...]) -> ParsedSpec:
    """Build the sweep of a draft without errors, and its source map."""
    document, data = draft.document, draft.document.data
    # Defaults of the run depend on the settings.
    spec: Spec = decode(Spec, {key: data[key] for key in data.keys() - SEARCH_KEYS - {"run"}})
    design = _design(draft, spec)
    run = build_run(data.get("run", {}), draft.settings.trials.defaults)
    search = design if isinstance(design, search_block.AdaptiveSearch) else None
    if search is not None and search.continues_trials and not draft.has("run", "parallelism"):
        run = replace(run, parallelism=search.largest_round)  # each trial is a Job
    scripts = tuple(_scripts(draft, run))
    # Without `run.workdir`, a trial starts beside the folder of the code, as in the repository.
    program = f"{_code_prefix(run)}{spec.program or ''}"
    # They have LF line ends in every checkout. No text holds NUL, so nothing can move from one to the next unseen.
    texts = [document.text, *([] if draft.table is None else [draft.table.text])]
    sweep = Sweep(
        **asdict(spec.of_sweep) | {"run": run},
        name=spec.name,
        description=spec.description,
        metric=spec.metric,
        design=design,
        command=tuple(element.replace(PROGRAM_MACRO, program) for element in spec.command),
        path=document.file,
        digest=bytes_digest("\0".join(texts).encode()),
        limits=draft.settings.teams.limits,
        pool=draft.settings.trials.pool(run.pool),
        scripts=tuple(script for _, script in scripts),
        other_metrics=tuple(replace(spec.metric, **asdict(other)) for other in spec.other_metrics),
        early_stop=None if spec.early_terminate is None else spec.early_terminate.policy,
        static_rounds=spec.rounds if search is None else None,
    )
    positions = dict(_positions(draft))
    positions |= {("scripts", index): draft.place(path) for index, (path, _) in enumerate(scripts)}
    return ParsedSpec(sweep, SourceMap(document.file, positions), warnings)


def _code_prefix(run: RunConfig) -> str:
    """Return the prefix, in commands, of paths in the folder that `program` is relative to."""
    is_start = run.workdir is not None or run.code_path == REPOSITORY
    return "" if is_start else f"{run.code_path}/"


def _scripts(draft: Draft, run: RunConfig) -> Iterator[tuple[DocumentPath, Script]]:
    """Yield the files of the code that a trial starts or may read, with their paths in the spec."""
    program, folder = draft.text("program"), _code_prefix(run)
    if program is not None:
        yield ("program",), Script(program, Severity.ERROR)
    starts = program is not None
    for path, text in draft.texts("command"):
        inside = text.removeprefix(folder)
        if inside != text or (not folder and "/" in text and SCRIPT_PATH.fullmatch(text)):
            starts = True
            if SCRIPT_PATH.fullmatch(inside):
                yield path, Script(inside, Severity.WARNING)
        elif not starts and SCRIPT_PATH.fullmatch(text) and text.rpartition(".")[2] in PROGRAM_SUFFIXES:
            starts = True  # what comes after the program are its arguments
            yield path, Script(text, Severity.WARNING, is_inside=not folder)


def dependency_order(needs: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Return names, each after the names that it needs and otherwise in the given order; and the cycles among them.

    Unknown needs are ignored. A cycle is a chain of names that ends where it began; its first name
    comes last in the order.
    """
    order: dict[str, None] = {}
    cycles: list[list[str]] = []
    trail: list[str] = []
    steps = [iter(needs)]
    while steps:
        name = next(steps[-1], None)
        if name is None:
            steps.pop()
            order |= dict.fromkeys(trail[-1:])
            del trail[-1:]
        elif name in trail:
            cycles.append([*trail[trail.index(name) :], name])
        elif name in needs and name not in order:
            trail.append(name)
            steps.append(iter(needs[name]))
    return [*order], cycles


def _space(draft: Draft) -> SearchSpace:
    derived = {
        name: DerivedValue(name, parse_expression(text), text)
        for name, text in (draft.get("derived", kind=dict) or {}).items()
    }
    needs = {name: [each.name for each in names_in(value.expression)] for name, value in derived.items()}
    return SearchSpace(
        parameters=tuple(_parameter(draft, leaf) for leaf in draft.parameters.values()),
        zips=tuple(tuple(group) for group in draft.get("zip", kind=list) or ()),
        derived=tuple(derived[name] for name in dependency_order(needs)[0]),
        constraints=tuple(Constraint(parse_expression(text), text) for _, text in draft.items("constraints")),
    )


def _parameter(draft: Draft, leaf: Leaf) -> Parameter:
    conditions = (
        Condition(name, tuple(map(frozen_value, wanted if isinstance(wanted, list) else [wanted])))
        for path in leaf.conditions
        for name, wanted in (draft.get(*path, kind=dict) or {}).items()
    )
    return Parameter(leaf.name, build_domain(leaf.keys), tuple(conditions))


def _design(draft: Draft, spec: Spec) -> search_block.Design:
    space = _space(draft)
    match spec.method:
        case methods.GRID:
            return search_block.GridSearch(space, spec.run_cap)
        case methods.LIST:
            rows = draft.table.rows if draft.table is not None else None
            written = (_frozen_values(row) for _, row in draft.items("assignments"))
            return search_block.ConfigurationList(space, tuple(written) if rows is None else rows)
        case method if method in methods.METHODS:
            assert spec.seed is not None
            assert spec.rounds is not None
            frozen = (replace(one, values=_frozen_values(one.values)) for one in spec.start)
            return search_block.AdaptiveSearch(
                methods.METHODS[method],
                space,
                spec.seed,
                spec.rounds,
                tuple(one.sweep for one in spec.start),
                spec.resource,
                spec.run_cap,
                mappings=tuple(one for one in frozen if one.renamed or one.values or one.ignored),
            )
        case method:
            assert spec.seed is not None
            assert spec.run_cap is not None
            return search_block.RandomSearch(methods.SAMPLERS[method], space, spec.seed, spec.run_cap)


def _frozen_values(written: Mapping[str, Any]) -> Mapping[str, Value]:
    return MappingProxyType({name: frozen_value(item) for name, item in written.items()})


def _positions(draft: Draft) -> Iterator[tuple[SourcePath, SourcePosition]]:
    """Yield the positions of parts that are checked after the spec was read."""
    budget = [("budget", key) for key in ("max_trials", "max_gpu_hours")]
    for path in (*budget, ("method",), ("run", "shape"), ("run", "workdir"), ("run", "config")):
        if draft.has(*path):
            yield path, draft.place(path, at_key=path in budget)
    # Each of these decides how many nodes are needed at once.
    for key in [key for key in ("parallelism", "nodes", "pool") if draft.has("run", key)][:1]:
        yield ("run", "parallelism"), draft.place(("run", key))
    has_path = draft.has("run", "code", "path")
    code = ("run", "code", "path") if has_path else ("program" if draft.has("program") else "command",)
    yield ("run", "code_path"), draft.place(code, at_key=not has_path)
    for name in draft.names("run", "data"):
        yield ("run", "data", name), draft.place(("run", "data", name), at_key=True)
    yield ("search",), draft.place(("parameters" if draft.has("parameters") else "assignments",), at_key=True)
    for leaf in draft.leaves:
        yield ("search", "parameters", leaf.name), draft.place(leaf.path, at_key=True)
    for name in draft.names("derived"):
        yield ("search", "derived", name), draft.place(("derived", name))
    for number, (place, _) in enumerate(draft.items("constraints")):
        yield ("search", "constraints", number), draft.place(place)
