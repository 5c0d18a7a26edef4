"""The Sweep of a draft without problems, with its source map: design, metrics, early stopping, command and run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import normpath
from types import MappingProxyType
from typing import Any

from sweepledger.problems import Problem, Severity, SourceMap, SourcePath, SourcePosition
from sweepledger.reader import DocumentPath
from sweepledger.spec.draft import Draft, RawMapping
from sweepledger.spec.sections import search_section
from sweepledger.spec.space_builder import build_space, frozen_value
from sweepledger.structs import quantities
from sweepledger.structs.early_stopping import (
    DEFAULT_ETA,
    EarlyStop,
    HyperbandStop,
    PatienceStop,
    PercentileStop,
    TargetStop,
)
from sweepledger.structs.metric import (
    Goal,
    Impute,
    Metric,
    MetricFormat,
    MetricSource,
    Reduce,
)
from sweepledger.structs.program import (
    DEFAULT_COMMAND,
    PROGRAM_MACRO,
    REPOSITORY,
    CodeSelection,
    DataPlaces,
    data_name,
)
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import (
    CodeMode,
    Infrastructure,
    Pack,
    Resources,
    RunConfig,
    RunningState,
    Shape,
)
from sweepledger.structs.search_block import (
    ADAPTIVE_METHODS,
    DEFAULT_STARTUP,
    AdaptiveSearch,
    ConfigurationList,
    Design,
    GridSearch,
    Method,
    RandomSearch,
    Resource,
    Rounds,
    Sampler,
    StartMapping,
)
from sweepledger.structs.settings import Settings
from sweepledger.structs.space import SearchSpace
from sweepledger.structs.sweep import Budget, Retry, Script, Sweep
from sweepledger.structs.values import Value, bytes_digest


def build_run(data: Mapping[str, Any], settings: Settings) -> RunConfig:
    """Build the section `run` of a spec without problems."""
    default, usual, code = RunConfig(), settings.defaults, data.get("code", {})
    failed, expected = data.get("max_failed"), data.get("expected_minutes")
    shape = Shape(data["shape"]) if "shape" in data else None
    pack = build_pack(data.get("pack"))
    # Kinds of several pods count a disruption as a failure, or not at all.
    disruptions = 0 if shape is not None and shape.is_distributed else default.max_disruptions
    return RunConfig(
        image=data.get("image"),
        interpreter=data.get("interpreter", default.interpreter),
        code_path=_code_folder(code),
        code_selection=build_code_selection(code),
        code_mode=CodeMode(code.get("mode", default.code_mode)),
        workdir=data["workdir"].removesuffix("/") if "workdir" in data else None,
        keep=tuple(dict.fromkeys(data.get("keep", ()))),
        data=_data(data.get("data")),
        data_places=_data_places(data.get("data")),
        pool=data.get("pool", usual.pool),
        cluster=data.get("cluster"),
        priority=data.get("priority"),
        resources=build_resources(data.get("resources", {})),
        parallelism=int(data.get("parallelism", default.parallelism if pack is None else pack.at_once)),
        retries=int(data.get("retries", usual.retries)),
        max_disruptions=int(data.get("max_disruptions", disruptions)),
        infrastructure=build_infrastructure(data.get("infrastructure")),
        timeout_seconds=quantities.seconds(data["timeout"]) if "timeout" in data else usual.timeout_seconds,
        expected_minutes=None if expected is None else float(expected),
        seed_base=int(data.get("seed_base", default.seed_base)),
        shape=shape,
        max_failed=None if failed is None else int(failed),
        nodes=int(data.get("nodes", default.nodes)),
        processes=int(data.get("processes", default.processes)),
        secrets=tuple(dict.fromkeys(data.get("secrets", ()))),
        egress=tuple(dict.fromkeys(data.get("egress", ()))),
        environment=MappingProxyType(dict(data.get("environment", {}))),
        environment_lock=data.get("environment_lock"),
        hyperparams_file=data.get("hyperparams_file", default.hyperparams_file),
        pack=pack,
    )


def _data(named: str | Iterable[str] | None) -> str | None:
    return named if named is None or isinstance(named, str) else data_name(named)


def _data_places(named: Any) -> DataPlaces:
    """Return the places of datasets in their shortest form, so that `./data` and `data` are the same program."""
    places = named.items() if isinstance(named, Mapping) else ()
    return MappingProxyType({name: normpath(place["at"]) for name, place in sorted(places) if "at" in place})


def build_infrastructure(data: Mapping[str, Any] | None) -> Infrastructure | None:
    """Build how often trials are requested again after a failure of infrastructure; None if they never are."""
    if data is None or not data["retries"]:
        return None
    return Infrastructure(
        int(data["retries"]), tuple(sorted({int(code) for code in data.get("exit_codes", ())}))
    )


def build_pack(data: Mapping[str, Any] | None) -> Pack | None:
    """Build how many trials a pod runs; None if the spec does not say it."""
    return None if data is None else Pack(int(data["trials"]), int(data.get("at_once", 1)))


def _code_folder(code: RawMapping) -> str:
    """Return the folder that the program is relative to."""
    written = code.get("path", RunConfig().code_path)
    return REPOSITORY if isinstance(written, list) else written.removesuffix("/")


def build_code_selection(code: RawMapping) -> CodeSelection | None:
    """Return the files of the code; None for a whole folder."""
    folder, patterns = _code_folder(code), ("include", "exclude")
    if folder != REPOSITORY and not any(code.get(key) for key in patterns):
        return None
    written = code.get("path")
    paths = (path.removesuffix("/") for path in (written if isinstance(written, list) else [folder]))
    # Sorted, since their order means nothing and the lock names them.
    return CodeSelection(
        tuple(sorted(set(paths))), *(tuple(sorted(set(code.get(key, ())))) for key in patterns)
    )


def build_resources(data: Mapping[str, Any]) -> Resources:
    """Build the resources of one pod."""
    default, shared = Resources(), data.get("shared_memory")
    return Resources(
        cpu=quantities.cores(data.get("cpu", default.cpu)),
        memory=quantities.memory(data.get("memory", default.memory)),
        gpu=int(data.get("gpu", default.gpu)),
        scratch=quantities.memory(data.get("scratch", default.scratch)),
        shared_memory=None if shared is None else quantities.memory(shared),
    )


MEDIAN = 50.0


def build_metrics(data: RawMapping) -> tuple[Metric, ...]:
    """Build the metrics: the objective sets how all are reported."""
    first = _metric(data["metric"])
    others = map(_metric, data.get("other_metrics", ()))
    return (first, *(replace(first, name=one.name, goal=one.goal, impute=one.impute) for one in others))


def _metric(section: RawMapping) -> Metric:
    return Metric(
        section["name"],
        Goal(section.get("goal", Goal.MINIMIZE)),
        MetricSource(section.get("source", MetricSource.RESULT)),
        MetricFormat(section["format"]) if "format" in section else None,
        Reduce(section.get("reduce", Reduce.LAST)),
        float(section["target"]) if "target" in section else None,
        Impute(section.get("impute", Impute.WORST)),
        section.get("path"),
        tuple(section.get("patterns", ())),
        section.get("capture", False),
        section.get("curve"),
    )


def build_search(data: RawMapping, space: SearchSpace, seed: int, cap: int | None = None) -> AdaptiveSearch:
    """Build an adaptive search."""
    resource = data.get("resource")
    return AdaptiveSearch(
        Method(data["method"]),
        space,
        seed,
        build_rounds(data["rounds"]),
        tuple(one if isinstance(one, str) else one["sweep"] for one in data.get("start", ())),
        None
        if resource is None
        else Resource(
            resource["parameter"],
            int(resource["min"]),
            int(resource["max"]),
            int(resource.get("eta", 3)),
            resource.get("continues", True),
        ),
        cap,
        mappings=tuple(
            StartMapping(
                one["sweep"],
                tuple(one.get("rename", {}).items()),
                tuple((name, frozen_value(value)) for name, value in one.get("values", {}).items()),
                tuple(one.get("ignore", ())),
            )
            for one in data.get("start", ())
            if len(one) > 1 and not isinstance(one, str)
        ),
    )


def build_rounds(written: RawMapping) -> Rounds:
    """Build the rounds of a sweep."""
    return Rounds(
        int(written["size"]),
        _integer_key(written, "max"),
        _integer_key(written, "patience"),
        int(written.get("ahead", 1)),
        int(written.get("startup", DEFAULT_STARTUP)),
    )


def build_early_stop(written: RawMapping | None) -> EarlyStop | None:
    """Build the rule of early stopping; None if the spec has none."""
    match written:
        case None:
            return None
        case {"type": "hyperband"}:
            first, last, count = (_integer_key(written, key) for key in ("min_iter", "max_iter", "s"))
            eta = float(written.get("eta", DEFAULT_ETA))
            return HyperbandStop(first, last, count, eta, strict=written.get("strict", False))
    first, last = _integer_key(written, "min_iter") or 1, _integer_key(written, "max_iter")
    match written:
        case {"type": "median" | "percentile"}:
            share, least = float(written.get("percentile", MEDIAN)), int(written.get("min_trials", 3))
            return PercentileStop(share, first, last, least)
        case {"type": "patience", "patience": patience}:
            return PatienceStop(int(patience), float(written.get("min_delta", 0)), first, last)
        case {"type": "target"}:
            return TargetStop(first)
        case _:
            raise AssertionError(f"the rules let through {written!r}")


def _integer_key(written: RawMapping, key: str) -> int | None:
    return int(written[key]) if key in written else None


SCRIPT_PATH = re.compile(r"(?:\w[\w.-]*/)*\w[\w.-]*\.[A-Za-z]\w*", re.ASCII)
"""Elements of a command that look like the path of a file."""
PROGRAM_SUFFIXES = frozenset({"R", "bash", "jl", "js", "lua", "pl", "py", "r", "rb", "sh"})
"""Suffixes of files that are started rather than read."""


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A sweep, where its parts are in the spec, and the warnings about the spec."""

    sweep: Sweep
    source: SourceMap
    warnings: tuple[Problem, ...] = ()


def build_spec(draft: Draft, warnings: tuple[Problem, ...]) -> ParsedSpec:
    """Build the sweep of a draft without errors, and its source map."""
    document, data = draft.document, draft.document.data
    design = _design(draft)
    run = _with_whole_rounds(build_run(data.get("run", {}), draft.settings), draft, design)
    metrics, scripts = build_metrics(data), tuple(_scripts(draft, run))
    early_stop = build_early_stop(data.get("early_terminate"))
    is_static = not isinstance(design, AdaptiveSearch)
    sweep = Sweep(
        name=data["name"],
        description=data.get("description", ""),
        metric=metrics[0],
        design=design,
        command=_command(data, run),
        run=run,
        path=document.file,
        digest=_digest(draft),
        replicates=int(data.get("replicates", 1)),
        budget=_budget(draft),
        cancel=tuple(data.get("cancel", ())),
        running=MappingProxyType({name: _running(state) for name, state in data.get("running", {}).items()}),
        retry=tuple(map(_retry, data.get("retry", ()))),
        limits=draft.settings.limits,
        pool=draft.settings.pool(run.pool),
        scripts=tuple(script for _, script in scripts),
        other_metrics=metrics[1:],
        early_stop=early_stop,
        static_rounds=build_rounds(data["rounds"]) if is_static and "rounds" in data else None,
    )
    return ParsedSpec(sweep, build_source_map(draft, [path for path, _ in scripts]), warnings)


def _with_whole_rounds(run: RunConfig, draft: Draft, design: Design) -> RunConfig:
    """Return the run with the parallelism of a whole round, if each trial is a Job and the spec sets none."""
    has_parallelism = "parallelism" in draft.names("run")
    if isinstance(design, AdaptiveSearch) and design.continues_trials and not has_parallelism:
        return replace(run, parallelism=design.largest_round)
    return run


def _digest(draft: Draft) -> str:
    """Return the digest of the spec's text and its files: the same for checkouts with CRLF line ends."""
    parts = [draft.document.text, *([] if draft.table is None else [draft.table.text])]
    # No text holds NUL, so nothing can move from one part to the next unseen.
    return bytes_digest("\0".join(parts).encode())


def _command(data: Mapping[str, Any], run: RunConfig) -> tuple[str, ...]:
    # Without `run.workdir`, a trial starts beside the folder of the code, as in the repository.
    program = f"{_code_prefix(run)}{data.get('program', '')}"
    elements = data.get("command", DEFAULT_COMMAND)
    return tuple(element.replace(PROGRAM_MACRO, program) for element in elements)


def _code_prefix(run: RunConfig) -> str:
    """Return what paths in a command begin with if they are of the folder that `program` is relative to."""
    is_start = run.workdir is not None or run.code_path == REPOSITORY
    return "" if is_start else f"{run.code_path}/"


def _scripts(draft: Draft, run: RunConfig) -> Iterator[tuple[DocumentPath, Script]]:
    """Yield the files of the code that a trial starts or may read, and where the spec names them."""
    program, folder = draft.get("program", kind=str), _code_prefix(run)
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


def _design(draft: Draft) -> Design:
    space = build_space(draft, search_section(draft))
    seed, cap = _integer_at(draft, ("seed",)), _integer_at(draft, ("run_cap",))
    match draft.get("method", kind=str):
        case "grid":
            return GridSearch(space, cap)
        case "list":
            return ConfigurationList(space, _assignments(draft))
        case method if method in ADAPTIVE_METHODS:
            assert seed is not None
            return build_search(draft.document.data, space, seed, cap)
        case method:
            assert seed is not None
            assert cap is not None
            return RandomSearch(Sampler(method or ""), space, seed, cap)


def _integer_at(draft: Draft, path: DocumentPath) -> int | None:
    number = draft.number(*path)
    return None if number is None else int(number)


def _assignments(draft: Draft) -> tuple[Mapping[str, Value], ...]:
    if draft.table is not None:
        return draft.table.rows
    return tuple(
        MappingProxyType({name: frozen_value(item) for name, item in written.items()})
        for _, written in draft.items("assignments")
    )


def _budget(draft: Draft) -> Budget:
    most, hours = _integer_at(draft, ("budget", "max_trials")), draft.number("budget", "max_gpu_hours")
    return Budget(most, None if hours is None else float(hours))


def _running(written: Mapping[str, Any]) -> RunningState:
    parallelism = written.get("parallelism")
    return RunningState(
        written.get("paused", False),
        None if parallelism is None else int(parallelism),
        int(written.get("resumes", 0)),
    )


def _retry(written: str | Mapping[str, Any]) -> Retry:
    match written:
        case str():
            return Retry(written)
        case {"batch": batch, "only": only}:
            return Retry(batch, frozenset(map(Status, only)))
        case _:
            return Retry(written["batch"])


def build_source_map(draft: Draft, scripts: Iterable[DocumentPath]) -> SourceMap:
    """Return the positions of what is checked after the spec was read; `scripts` are the paths of its scripts."""
    positions = dict(_run_positions(draft))
    positions |= {("scripts", index): draft.place(path) for index, path in enumerate(scripts)}
    if "method" in draft.names():
        positions[("method",)] = draft.place(("method",))
    return SourceMap(draft.document.file, positions | dict(_search_positions(draft)))


def _run_positions(draft: Draft) -> Iterator[tuple[SourcePath, SourcePosition]]:
    for key in ("max_trials", "max_gpu_hours"):
        if key in draft.names("budget"):
            yield ("budget", key), draft.place(("budget", key), at_key=True)
    if "shape" in draft.names("run"):
        yield ("run", "shape"), draft.place(("run", "shape"))
    # Each of these decides how many nodes are needed at once.
    for key in [key for key in ("parallelism", "nodes", "pool") if key in draft.names("run")][:1]:
        yield ("run", "parallelism"), draft.place(("run", key))
    yield ("run", "code_path"), _code_position(draft)
    if "workdir" in draft.names("run"):
        yield ("run", "workdir"), draft.place(("run", "workdir"))
    for name in draft.names("run", "data"):
        yield ("run", "data", name), draft.place(("run", "data", name), at_key=True)


def _code_position(draft: Draft) -> SourcePosition:
    """Return the position of the code path, else of the program."""
    if "path" in draft.names("run", "code"):
        return draft.place(("run", "code", "path"))
    return draft.place(("program" if "program" in draft.names() else "command",), at_key=True)


def _search_positions(draft: Draft) -> Iterator[tuple[SourcePath, SourcePosition]]:
    keys = [key for key in ("parameters", "assignments", "file") if key in draft.names()]
    yield ("search",), draft.place((keys[0],), at_key=True)
    section = search_section(draft)
    for leaf in section.leaves.values():
        yield ("search", "parameters", leaf.name), draft.place(leaf.path, at_key=True)
    for name in section.derived:
        yield ("search", "derived", name), draft.place(("derived", name))
    for number, (path, _) in enumerate(draft.items("constraints")):
        yield ("search", "constraints", number), draft.place(path)
