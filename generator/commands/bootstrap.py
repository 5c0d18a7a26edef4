"""`sweep bootstrap`: the platform's files into the repository, and what is left for a person to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator import spec
from generator.commands import foundation, platform_files
from generator.commands.platform_files import FOLDER
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.errors import RepositoryError, SpecError, UsageError
from generator.formats.bootstrap import Bootstrap
from generator.reader.edits import with_value
from generator.render import platform
from generator.render.platform import Needed, Source, flux
from generator.render.platform.network import GIT
from generator.repo import files
from generator.structs.settings import API_SERVER, Controller, ResultsMode, Settings
from generator.structs.sweep import Shape

BASES = ("collector/v1", "expiry/v1", "namespace/v1")
"""What the platform is made from: the repository's own from then on, so that no newer version changes it."""
EMPTY_SETTINGS = "version: 1\n"


@dataclass(frozen=True)
class Asked:
    """What a person said; None: as it was asked for before, else what the repository says."""

    controller: Controller
    url: str | None = None
    branch: str | None = None
    shapes: tuple[Shape, ...] | None = None
    is_public: bool | None = None
    mode: ResultsMode | None = None
    force: bool = False


@dataclass(frozen=True)
class Bootstrapped:
    """What was written, and what no file can do."""

    settings: Settings
    source: Source
    written: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    """What a person edited: the settings no longer reach it."""
    changed_settings: tuple[str, ...]

    @property
    def secrets(self) -> tuple[Needed, ...]:
        """List the Secrets that a person makes."""
        return platform.secrets(self.settings, self.source)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Say what the settings leave open, and what the platform lacks because of it."""
        return gaps(self.settings, self.source)

    @property
    def results_folder(self) -> tuple[str, ...]:
        """Give the commands that make the root of the results export."""
        return platform.results_folder(self.settings)

    @property
    def ruleset(self) -> str:
        """Say how a server without hooks confines the collector."""
        return platform.ruleset(self.settings, self.source)

    @property
    def key_pair(self) -> tuple[str, ...]:
        """Give the commands that make the collector's key for signing, and its line of `signers`."""
        return platform.key_pair()

    @property
    def owners(self) -> tuple[str, ...]:
        """Give the lines of CODEOWNERS that have the platform team review its own files."""
        return platform.owners()


def bootstrap(workspace: Workspace, asked: Asked) -> Bootstrapped:
    """Write the platform's files and set `controller:` and `results.mode:`; twice changes nothing.

    What a person edited is overwritten with `force` only. Raises UsageError, RepositoryError, SpecError.
    """
    files.refuse_links(workspace.root, FOLDER, flux.ACTIVE, SETTINGS_FILE)
    before = platform_files.record(workspace)
    source = _source(workspace, asked, before)
    edited = _edited(workspace, _edits(workspace.settings, asked, source))
    settings = edited.settings
    compared = platform_files.compare(workspace, settings, source, before)
    kept = () if asked.force else compared.edited
    due = {*compared.missing, *compared.changed, *(compared.edited if asked.force else ())}
    written = tuple(sorted(due & compared.wanted.files.keys()))
    for path in written:
        files.write_file(workspace.root / path, compared.wanted[path])
    for path in compared.stale:
        with files.storage(workspace.root / path):
            (workspace.root / path).unlink()
    foundation.lay(workspace.root, BASES)
    if edited.changes:
        files.write_file(workspace.root / SETTINGS_FILE, edited.text.encode())
    return Bootstrapped(settings, source, written, compared.stale, kept, edited.changes)


def gaps(settings: Settings, source: Source) -> tuple[str, ...]:
    """Say what the settings leave open."""
    found = []
    names = platform.Names.of(settings)
    if "collector" not in settings.images:
        found.append(
            "images.collector: not set, so the collector is suspended; `sweep pin collector` sets it"
        )
    if not settings.signers:
        refused = settings.results.mode is ResultsMode.BRANCH
        lost = "`sweep check` refuses the collector's branches" if refused else "nobody can vouch for results"
        found.append(f"signers: not set, so {lost}; list the public half of the key {platform.SIGNING_KEY!r}")
    if settings.results.nfs is None:
        found.append(
            f"results.nfs: not set, so no volume is written; make the claim "
            f"{settings.results.claim!r} in {names.trials} (ReadWriteMany) and in {names.collector} "
            "(ReadOnlyMany) over the same data"
        )
    if not settings.pools or any(pool.max_nodes is None for pool in settings.pools.values()):
        found.append(
            "pools: without max_nodes for each, the quota bounds no cpu, memory or GPUs; nor is there a "
            "sample of such a pool's queue"
        )
    if settings.results.keep_days is not None and GIT not in settings.egress and source.port is not None:
        found.append(
            f"egress.{GIT}: not set, so what deletes old results may reach every host on port {source.port}"
        )
    ports = platform.ports_to_anywhere(settings, source)
    if ports:
        listed = ", ".join(map(str, ports))
        found.append(
            f"egress.{GIT}, egress.{API_SERVER}: not both set, so the collector may reach every host "
            f"on ports {listed}; name the addresses of the git server and of the API server"
        )
    return tuple(found)


def _source(workspace: Workspace, asked: Asked, before: Bootstrap | None) -> Source:
    """Take what was asked for, else what was asked for last time, else what the repository says.

    A shape that is in use is allowed without being asked for.
    """
    url = asked.url or (before.url if before else workspace.remote_url())
    branch = asked.branch or (before.branch if before else workspace.settings.branch)
    shapes = {*(asked.shapes if asked.shapes is not None else (before.shapes if before else ()))}
    in_use = platform_files.shapes_in_use(workspace)
    public = asked.is_public if asked.is_public is not None else bool(before and before.is_public)
    try:
        source = Source(url, branch, tuple(sorted(shapes | in_use)), is_public=public)
    except ValueError as error:
        raise UsageError(
            str(error), hint="--repo https://git.example/team/sweeps.git --branch main"
        ) from error
    if asked.controller is Controller.FLUX and source.scheme == "file":
        raise UsageError("Flux reads no file:// URL", hint="serve the repository by https or ssh")
    if not all(shape.is_distributed for shape in source.shapes):
        raise UsageError("--shape is for distributed shapes; plain Jobs are always allowed")
    return source


def _edits(settings: Settings, asked: Asked, source: Source) -> Mapping[tuple[str, ...], str]:
    """List what the settings must say, by key."""
    mode = asked.mode or settings.results.mode
    edits = {("controller",): asked.controller.value, ("results", "mode"): mode.value}
    if settings.branch != source.branch:
        edits["branch",] = source.branch
    return edits


@dataclass(frozen=True)
class _Edited:
    text: str
    settings: Settings
    changes: tuple[str, ...]


def _edited(workspace: Workspace, edits: Mapping[tuple[str, ...], str]) -> _Edited:
    """Change the settings in their text, so that comments stay, and read the result as everybody will."""
    path = workspace.root / SETTINGS_FILE
    text = files.read_input(path).decode() if path.exists() else EMPTY_SETTINGS
    changes = []
    for place, value in edits.items():
        try:
            before, text = text, with_value(text, place, value)
        except ValueError as error:
            raise RepositoryError(
                f"{SETTINGS_FILE}: {error}", hint=f"set {'.'.join(place)}: {value} by hand"
            ) from error
        if text != before:
            changes.append(f"{'.'.join(place)}: {value}")
    read = spec.parse_settings(text.encode(), SETTINGS_FILE)
    if isinstance(read, tuple):
        raise SpecError(read)
    return _Edited(text, read, tuple(changes))
