"""What a trial runs: its image, interpreter, code and data."""

import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from posixpath import join, normpath

from sweepledger.formats.environment_lock import FORMATS, is_lock_name
from sweepledger.model.forms import DNS_LABEL, IMAGE, INNER_PATH, LONGEST_IMAGE
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import names
from sweepledger.structs.kubernetes import CODE_PATH
from sweepledger.structs.program import LOCAL_IMAGE, REPOSITORY, SWEEP_NAMES, PathPattern
from sweepledger.structs.run_config import INTERPRETER_FORM, CodeMode, RunConfig
from sweepledger.structs.settings import Controller

ENVIRONMENT_LOCK = "environment-lock"
WORKDIR, DATA_PLACE, CONFIG_BASE = "workdir", "data-place", "config-base"
"""Codes of problems that are also found in the code that is locked."""


GENERATED_FOLDERS = frozenset({".git", "overlays", "results"})
"""Folders that change with every batch: as code, they would make every trial new."""


def interpreter(draft: Draft) -> Iterator[Problem]:
    """In a cluster, the interpreter is where no trial can write."""
    place = ("run", "interpreter")
    text = draft.get(*place, kind=str)
    if text is None or not INTERPRETER_FORM.fullmatch(text):
        return
    if draft.settings.platform.controller is not Controller.NONE:
        clones = draft.get("run", "code", "mode", kind=str) == CodeMode.CLONE
        if not names.is_interpreter(text, (f"{CODE_PATH}/",) if clones else ()):
            message = (
                "must be a name or an absolute path inside the image, where no trial can write,"
                f" got {safe_repr(text)}"
            )
            hint = "for example python3 or /opt/conda/bin/python"
            yield draft.problem(place, message, code="interpreter", hint=hint)


def code_path(draft: Draft) -> Iterator[Problem]:
    """The code is a folder inside the repository, or the repository."""
    text = draft.get("run", "code", "path", kind=str)
    if text is None or text.removesuffix("/") == REPOSITORY:
        return
    path = text.removesuffix("/")
    if not is_inside(path):
        message = f"must be a folder inside the repository, relative to it, got {safe_repr(text)}"
        hint = (
            "for example trainer, or . for the repository; without .. and with letters, digits and _ . - only"
        )
        yield draft.problem(("run", "code", "path"), message, code="code-path", hint=hint)
    elif path.split("/")[0] in GENERATED_FOLDERS:
        message = (
            f"must not be in {path.split('/')[0]}, which changes with every batch, got {safe_repr(text)}"
        )
        yield draft.problem(("run", "code", "path"), message, code="code-path")
    elif path.split("/")[0] in SWEEP_NAMES and _is_selection(draft):
        yield _sweep_folder(draft, ("run", "code", "path"), text)


def code_selection(draft: Draft) -> Iterator[Problem]:
    """Selected code has paths in the repository, and patterns that mean the same everywhere."""
    place: DocumentPath = ("run", "code")
    for path, written in draft.items(*place, "path"):
        yield from _selected_path(draft, path, written)
    for key in ("include", "exclude"):
        for path, pattern in draft.items(*place, key):
            try:
                PathPattern.parse(pattern)
            except ValueError as error:
                hint = "as in .gitignore, for example data/, *.csv, /docs or src/**/tests/"
                yield draft.problem(
                    path, f"{error}, got {safe_repr(pattern)}", code="code-pattern", hint=hint
                )


def _is_selection(draft: Draft) -> bool:
    """Return whether the code is anything but a whole folder."""
    is_chosen = not {"include", "exclude"}.isdisjoint(draft.names("run", "code"))
    return is_chosen or _code_folder(draft) == REPOSITORY


def _selected_path(draft: Draft, place: DocumentPath, text: str) -> Iterator[Problem]:
    path = text.removesuffix("/")
    if path == REPOSITORY or not is_inside(path):
        message = f"must be a file or folder inside the repository, relative to it, got {safe_repr(text)}"
        hint = "the whole repository is `path: .`" if path == REPOSITORY else "for example src or train.py"
        yield draft.problem(place, message, code="code-path", hint=hint)
    elif path.split("/")[0] in SWEEP_NAMES:
        yield _sweep_folder(draft, place, text)


def _sweep_folder(draft: Draft, place: DocumentPath, text: str) -> Problem:
    name = text.partition("/")[0]
    message = f"must not be in {name}, which belongs to sweeps and is never selected, got {safe_repr(text)}"
    return draft.problem(place, message, code="code-path")


def environment_lock(draft: Draft) -> Iterator[Problem]:
    """The lock file of the environment is a file of the code, where trials can read it."""
    place: DocumentPath = ("run", "environment_lock")
    path = draft.get(*place, kind=str)
    if path is None:
        return
    if not is_inside(path) or not is_lock_name(path):
        message = f"must be the path of a lock file in the repository, got {safe_repr(path)}"
        yield draft.problem(place, message, code=ENVIRONMENT_LOCK, hint=f"known are {FORMATS}")
    elif not _is_selection(draft):
        folder = _code_folder(draft)
        if not path.startswith(f"{folder}/"):
            message = (
                f"must be a file of the code, {folder}/, so that trials can read it, got {safe_repr(path)}"
            )
            hint = f"add it to the code: `run: {{code: {{path: [{folder}, {path}]}}}}`"
            yield draft.problem(place, message, code=ENVIRONMENT_LOCK, hint=hint)


def config_base(draft: Draft) -> Iterator[Problem]:
    """The base of the configuration file is a file of the code, in a format that the launcher writes."""
    place: DocumentPath = ("run", "config", "base")
    path = draft.get(*place, kind=str)
    if path is None:
        return
    folder = REPOSITORY if _is_selection(draft) else _code_folder(draft)
    if not is_inside(path) or not (folder == REPOSITORY or path.startswith(f"{folder}/")):
        message = f"must be a file of the code, relative to the repository, got {safe_repr(path)}"
        hint = f"for example {'' if folder == REPOSITORY else f'{folder}/'}config/train.yaml"
        yield draft.problem(place, message, code=CONFIG_BASE, hint=hint)
    elif "format" not in draft.names("run", "config") and not path.endswith(
        (".yaml", ".yml", ".toml", ".json")
    ):
        message = f"must end with .yaml, .yml, .toml or .json without format, got {safe_repr(path)}"
        yield draft.problem(place, message, code=CONFIG_BASE, hint="add format: yaml, toml or json")


def _code_folder(draft: Draft) -> str:
    """Return the folder of the code; that of selected paths is the repository."""
    default = RunConfig().code_path if draft.get("run", "code", "path", kind=list) is None else REPOSITORY
    return (draft.get("run", "code", "path", kind=str) or default).removesuffix("/")


def workdir(draft: Draft) -> Iterator[Problem]:
    """A trial starts in a folder of the code."""
    place: DocumentPath = ("run", "workdir")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    path, folder = text.removesuffix("/"), _code_folder(draft)
    if not is_inside(path):
        message = f"must be a folder of the code, relative to the repository, got {safe_repr(text)}"
        hint = "for example mnist; without .. and with letters, digits and _ . - only. Without the key, a trial starts"
        yield draft.problem(place, message, code=WORKDIR, hint=f"{hint} where the repository begins")
    elif folder != REPOSITORY and not f"{path}/".startswith(f"{folder}/"):
        message = f"must be in the folder of the code, {folder}/, got {safe_repr(text)}"
        yield draft.problem(place, message, code=WORKDIR, hint=f"for example {folder}/{path}")


def kept_files(draft: Draft) -> Iterator[Problem]:
    """What a trial has written is kept by patterns of paths below the folder that it starts in."""
    for place, pattern in draft.items("run", "keep"):
        parts = pattern.removesuffix("/").split("/")
        is_plain = all(part not in {"", ".", ".."} and ("**" not in part or part == "**") for part in parts)
        if not (is_plain and "\\" not in pattern and pattern.isprintable()):
            message = (
                "must be a pattern of files below the folder that trials start in, with names between slashes,"
                f" without '.', '..' and '\\', and '**' alone, got {safe_repr(pattern)}"
            )
            is_outside = pattern.startswith("/") or ".." in parts
            hint = (
                "let the program write it to $SWEEP_ARTIFACTS" if is_outside else "for example *.pt or out/**"
            )
            yield draft.problem(place, message, code="keep-path", hint=hint)


def program_path(draft: Draft) -> Iterator[Problem]:
    """The program is a file of the code."""
    text = draft.get("program", kind=str)
    if text is None or is_inside(text):
        return
    message = f"must be a file inside the code's folder, relative to it, got {safe_repr(text)}"
    mended = text.removeprefix("./").lstrip("/")
    hint = f"for example {mended if is_inside(mended) else 'train.py'}"
    hint += "; arguments belong in command" if " " in text else ""
    yield draft.problem(("program",), message, code="program-path", hint=hint)


def is_inside(path: str) -> bool:
    """Return whether a relative path stays inside its folder and has only plain characters."""
    return re.fullmatch(INNER_PATH, path, re.ASCII) is not None


def dataset(draft: Draft) -> Iterator[Problem]:
    """`run.data` names datasets of the settings, all on claims or all in the bucket."""
    known = draft.settings.trials.datasets
    has_places = bool(draft.names("run", "data"))
    named = (
        [(("run", "data", name), name) for name in draft.names("run", "data")]
        if has_places
        else [*draft.texts("run", "data")]
    )
    for place, _ in named:
        yield from entry_name(draft, place, "datasets", at_key=has_places)
    copied = [name for _, name in named if name in known and known[name].bucket]
    mounted = [name for _, name in named if name in known and not known[name].bucket]
    if copied and mounted:
        message = f"must be all on claims or all in the bucket, got {copied[0]!r} there and {mounted[0]!r} on a claim"
        hint = "the digest of all is verified where all are copied"
        yield draft.problem(("run", "data"), message, code="data-source", hint=hint)


def data_places(draft: Draft) -> Iterator[Problem]:
    """Datasets are linked where a trial has a private folder: in its code, and one level above it."""
    start = draft.get("run", "workdir", kind=str) or REPOSITORY
    links: dict[str, str] = {}
    for name in draft.names("run", "data"):
        place: DocumentPath = ("run", "data", name)
        text = draft.get(*place, kind=str)
        if text is None:
            continue
        path = normpath(join(start, text))
        names_above = [*takewhile(lambda part: part == "..", path.split("/"))]
        rest = path.split("/")[len(names_above) :]
        if text.startswith("/") or len(names_above) > 1 or not rest or not is_inside("/".join(rest)):
            message = f"must be a path in the code or one level above it, got {safe_repr(text)}"
            hint = (
                "for example ../data; a program that takes its folder as an argument needs no place:"
                ' "--data=${envvar:SWEEP_DATA}" in command'
            )
            yield draft.problem(place, message, code=DATA_PLACE, hint=hint)
            continue
        for other, taken in links.items():
            if f"{path}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{path}/"):
                message = f"must not be in the place of {other}, nor contain it, got {safe_repr(text)}"
                yield draft.problem(
                    place, message, code=DATA_PLACE, hint="give each dataset a folder of its own"
                )
        links[name] = path


def code_mode(draft: Draft) -> Iterator[Problem]:
    """Cloning needs `code` in the settings, and an image."""
    place = ("run", "code", "mode")
    if draft.get(*place, kind=str) != CodeMode.CLONE:
        return
    if draft.settings.git.code is None:
        message = "must be 'image' if the settings have no code to clone, got 'clone'"
        hint = "add code, with url and image, to sweepledger.yaml"
        yield draft.problem(place, message, code="code-mode", hint=hint)
    if effective_image(draft) == LOCAL_IMAGE:
        message = "must be left out if image is 'local', which runs the locked code directly, got 'clone'"
        yield draft.problem(place, message, code="code-mode", hint="name an image by run.image")
    if _is_selection(draft):
        message = (
            "must be 'image' unless the code is a whole folder, because a pod clones one folder, got 'clone'"
        )
        hint = (
            "name one folder by run.code.path without include and exclude, or build the code into the image"
        )
        yield draft.problem(place, message, code="code-mode", hint=hint)


def effective_image(draft: Draft) -> str | None:
    """Return the image of the spec, else of the settings; None if it is unknown."""
    if "image" in draft.names("run"):
        return draft.get("run", "image", kind=str)
    return draft.settings.trials.defaults.image


def run_image(draft: Draft) -> Iterator[Problem]:
    """An image has a digest, and its repository is one that the settings list, if they list any."""
    place, listed = ("run", "image"), draft.settings.trials.images
    found = list(_image(draft, place, listed))
    yield from found
    text = draft.get(*place, kind=str)
    if found or not listed or text is None or text == LOCAL_IMAGE or text in listed:
        return
    match = IMAGE.fullmatch(text)
    known = sorted({image.repository for image in listed.values()})
    if match is None or match["repository"] not in known:
        message = f"must be of a repository that images in sweepledger.yaml list, got {safe_repr(text)}"
        yield draft.problem(place, message, code="image-not-listed", hint=f"listed: {', '.join(known)}")


def image_without_manifests(draft: Draft) -> Iterator[Problem]:
    """Warn of an image in a repository whose batches have no manifests: no pod ever has it."""
    text = draft.get("run", "image", kind=str)
    if text not in {None, LOCAL_IMAGE} and not draft.settings.git.manifests:
        message = f"is for pods, which batches without manifests never have, got {safe_repr(text)}"
        hint = "delete `manifests: false` from sweepledger.yaml"
        yield draft.warning(("run", "image"), message, code="no-manifests", hint=hint)


def default_image(draft: Draft) -> Iterator[Problem]:
    """The default image has a digest or a name."""
    yield from _image(draft, ("defaults", "image"), draft.names("images"))


def code_secret(draft: Draft) -> Iterator[Problem]:
    """No secret is sent without TLS to the URL that code is cloned from."""
    text = draft.get("code", "url", kind=str)
    if text is not None and text.startswith("http:") and "secret" in draft.names("code"):
        message = f"must be an https address where a secret is sent to it, got {safe_repr(text)}"
        yield draft.problem(("code", "url"), message, code="code-url")


def named_images(draft: Draft) -> Iterator[Problem]:
    """No image is called as if there were none."""
    if LOCAL_IMAGE in draft.names("images"):
        place, message = ("images", LOCAL_IMAGE), f"must not be {LOCAL_IMAGE!r}, which means no image"
        yield draft.problem(place, message, code="image-reference", at_key=True)


def pinned_images(draft: Draft) -> Iterator[Problem]:
    """A named image has a digest; `sweep cluster pin` skips this rule."""
    for name in draft.names("images"):
        text = draft.get("images", name, kind=str)
        match = None if text is None else IMAGE.fullmatch(text)
        if match is not None and match["digest"] is None:
            hint = f"`sweep cluster pin {name}{'' if match['tag'] else ' --tag TAG'}` finds the digest of its tag"
            message = f"must have a digest, got {safe_repr(text)}"
            yield draft.problem(("images", name), message, code="missing-key", hint=hint)


def _image(draft: Draft, place: DocumentPath, known: Collection[str]) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text is None or text == LOCAL_IMAGE or text in known:
        return
    match = IMAGE.fullmatch(text)
    if len(text) <= LONGEST_IMAGE and match is not None and match["digest"] is not None:
        return
    message = f"must be 'local', a name among the images or name[:tag]@sha256:<64 hex digits>, got {safe_repr(text)}"
    yield draft.problem(place, message, code="image-reference", hint=_image_hint(text, known))


def _image_hint(text: str, known: Collection[str]) -> str | None:
    if "@sha256:" in text:
        return None
    if known and DNS_LABEL.fullmatch(text):
        return did_you_mean(text, known)
    return "a tag can be moved: add the image's digest"
