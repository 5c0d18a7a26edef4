"""The source map of a draft without problems: positions for the checks of the sweep that is built from it."""

from collections.abc import Iterable, Iterator

from sweepledger.problems import SourceMap, SourcePath, SourcePosition
from sweepledger.reader import DocumentPath
from sweepledger.spec.draft import Draft
from sweepledger.spec.sections import Section, sections


def build_source_map(draft: Draft, scripts: Iterable[DocumentPath]) -> SourceMap:
    """Return the positions of what is checked after the spec was read; `scripts` are the paths of its scripts."""
    positions = dict(_run_positions(draft))
    positions |= {("scripts", index): draft.place(path) for index, path in enumerate(scripts)}
    if "method" in draft.names():
        positions[("method",)] = draft.place(("method",))
    for number, section in enumerate(sections(draft)):
        positions |= {("blocks", number, *part): place for part, place in _block_positions(draft, section)}
    return SourceMap(draft.document.file, positions)


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
    if draft.get("run", "code", "path", kind=str) is not None:
        return draft.place(("run", "code", "path"))
    return draft.place(("program" if "program" in draft.names() else "command",), at_key=True)


def _block_positions(draft: Draft, section: Section) -> Iterator[tuple[SourcePath, SourcePosition]]:
    yield (), _block_position(draft, section.path)
    for leaf in section.leaves.values():
        yield ("parameters", leaf.name), draft.place(leaf.path, at_key=True)
    for name in section.derived:
        yield ("derived", name), draft.place((*section.path, "derived", name))
    for number, (path, _) in enumerate(draft.items(*section.path, "constraints")):
        yield ("constraints", number), draft.place(path)


def _block_position(draft: Draft, path: DocumentPath) -> SourcePosition:
    """Return the position of a block; without blocks, that of the parameters."""
    if path:
        return draft.place(path)
    keys = [key for key in ("parameters", "assignments", "file") if key in draft.names()]
    return draft.place((keys[0],), at_key=True)
