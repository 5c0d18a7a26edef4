"""The Sweep of a draft without problems, with its source map: design, metrics, early stopping, command and run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import normpath
from types import MappingProxyType
from typing import Any

from sweepledger.model.keys import decode
from sweepledger.problems import Problem, Severity, SourceMap, SourcePath, SourcePosition
from sweepledger.reader import DocumentPath
from sweepledger.spec.draft import Draft, RawMapping
from sweepledger.spec.keys import SEARCH_KEYS, Spec
from sweepledger.spec.sections import search_section
from sweepledger.spec.space_builder import build_space
from sweepledger.structs import methods, search_block
from sweepledger.structs.program import (
    PROGRAM_MACRO,
    REPOSITORY,
    CodeSelection,
    ConfigFormat,
    DataPlaces,
    data_name,
)
from sweepledger.structs.run_config import CodeKeys, RunConfig
from sweepledger.structs.settings import Defaults
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
    return replace(
        run,
        code_path=_code_folder(code),
        code_selection=_code_selection(code),
        code_mode=code.mode,
        workdir=None if run.workdir is None else run.workdir.removesuffix("/"),
        keep=tuple(dict.fromkeys(run.keep)),
        config=run.config
        and replace(
            run.config, format=run.config.format or CONFIG_FORMATS[run.config.base.rpartition(".")[2]]
        ),
        data=named if named is None or isinstance(named, str) else data_name(named),
        data_places=_data_places(named),
        infrastructure=infrastructure,
        timeout_seconds=run.timeout_seconds if "timeout" in data else usual.timeout_seconds,
        secrets=tuple(dict.fromkeys(run.secrets)),
        egress=tuple(dict.fromkeys(run.egress)),
        **{key: value for key, value in absent.items() if key not in data},
    )


CONFIG_FORMATS = {"yml": ConfigFormat.YAML, **{str(form): form for form in ConfigFormat}}
"""By the end of a file's name."""


def _data_places(named: Any) -> DataPlaces:
    """Return the places of datasets in their shortest form, so that `./data` and `data` are the same program."""
    places = named.items() if isinstance(named, Mapping) else ()
    return MappingProxyType({name: normpath(place) for name, place in sorted(places) if place is not None})


def _code_folder(code: CodeKeys) -> str:
    return REPOSITORY if isinstance(code.path, list) else str(code.path).removesuffix("/")


def _code_selection(code: CodeKeys) -> CodeSelection | None:
    """Return the files of the code; None for a whole folder."""
    folder = _code_folder(code)
    if folder != REPOSITORY and not code.include and not code.exclude:
        return None
    paths = (path.removesuffix("/") for path in (code.path if isinstance(code.path, list) else [folder]))
    # Sorted, since their order means nothing and the lock names them.
    return CodeSelection(*(tuple(sorted(set(part))) for part in (paths, code.include, code.exclude)))


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
    # Defaults of the run depend on the settings.
    spec: Spec = decode(Spec, {key: data[key] for key in data.keys() - SEARCH_KEYS - {"run"}})
    design = _design(draft, spec)
    run = _with_whole_rounds(build_run(data.get("run", {}), draft.settings.trials.defaults), draft, design)
    scripts = tuple(_scripts(draft, run))
    sweep = Sweep(
        name=spec.name,
        description=spec.description,
        metric=spec.metric,
        design=design,
        command=_command(spec, run),
        run=run,
        path=document.file,
        digest=_digest(draft),
        replicates=spec.replicates,
        budget=spec.budget,
        cancel=spec.cancel,
        running=spec.running,
        retry=spec.retry,
        limits=draft.settings.teams.limits,
        pool=draft.settings.trials.pool(run.pool),
        scripts=tuple(script for _, script in scripts),
        other_metrics=tuple(
            replace(spec.metric, name=one.name, goal=one.goal, impute=one.impute)
            for one in spec.other_metrics
        ),
        early_stop=None if spec.early_terminate is None else spec.early_terminate.policy,
        static_rounds=None if isinstance(design, search_block.AdaptiveSearch) else spec.rounds,
    )
    return ParsedSpec(sweep, build_source_map(draft, [path for path, _ in scripts]), warnings)


def _with_whole_rounds(run: RunConfig, draft: Draft, design: search_block.Design) -> RunConfig:
    """Return the run with the parallelism of a whole round, if each trial is a Job and the spec sets none."""
    has_parallelism = "parallelism" in draft.names("run")
    if isinstance(design, search_block.AdaptiveSearch) and design.continues_trials and not has_parallelism:
        return replace(run, parallelism=design.largest_round)
    return run


def _digest(draft: Draft) -> str:
    """Return the digest of the spec's text and its files: the same for checkouts with CRLF line ends."""
    parts = [draft.document.text, *([] if draft.table is None else [draft.table.text])]
    # No text holds NUL, so nothing can move from one part to the next unseen.
    return bytes_digest("\0".join(parts).encode())


def _command(spec: Spec, run: RunConfig) -> tuple[str, ...]:
    # Without `run.workdir`, a trial starts beside the folder of the code, as in the repository.
    program = f"{_code_prefix(run)}{spec.program or ''}"
    return tuple(element.replace(PROGRAM_MACRO, program) for element in spec.command)


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


def _design(draft: Draft, spec: Spec) -> search_block.Design:
    space = build_space(draft, search_section(draft))
    match spec.method:
        case methods.GRID:
            return search_block.GridSearch(space, spec.run_cap)
        case methods.LIST:
            rows = draft.table.rows if draft.table is not None else None
            written = (_frozen_values(row) for _, row in draft.items("assignments"))
            return search_block.ConfigurationList(space, tuple(written) if rows is None else rows)
        case str(method) if method in methods.METHODS:
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
            return search_block.RandomSearch(methods.SAMPLERS[method or ""], space, spec.seed, spec.run_cap)


def _frozen_values(written: Mapping[str, Any]) -> Mapping[str, Value]:
    return MappingProxyType({name: frozen_value(item) for name, item in written.items()})


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
    has_path = "path" in draft.names("run", "code")
    code = ("run", "code", "path") if has_path else ("program" if "program" in draft.names() else "command",)
    yield ("run", "code_path"), draft.place(code, at_key=not has_path)
    for key in ("workdir", "config"):
        if key in draft.names("run"):
            yield ("run", key), draft.place(("run", key))
    for name in draft.names("run", "data"):
        yield ("run", "data", name), draft.place(("run", "data", name), at_key=True)


def _search_positions(draft: Draft) -> Iterator[tuple[SourcePath, SourcePosition]]:
    keys = [key for key in ("parameters", "assignments") if key in draft.names()]
    yield ("search",), draft.place((keys[0],), at_key=True)
    section = search_section(draft)
    for leaf in section.leaves.values():
        yield ("search", "parameters", leaf.name), draft.place(leaf.path, at_key=True)
    for name in section.derived:
        yield ("search", "derived", name), draft.place(("derived", name))
    for number, (path, _) in enumerate(draft.items("constraints")):
        yield ("search", "constraints", number), draft.place(path)
