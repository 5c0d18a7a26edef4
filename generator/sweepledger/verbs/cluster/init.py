"""Create a repository for the sweeps of a team.

It has settings, base files, an example, and a first commit.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

from sweepledger.cli.options import argument, flag, one_of, option
from sweepledger.cli.response import SHORT_COMMIT, Response, current_folder
from sweepledger.controllers import GITOPS
from sweepledger.operations.scaffold.init import EXAMPLE
from sweepledger.operations.scaffold.init import init as init_repository
from sweepledger.structs.platform import DEFAULT_HOST, WITH_WORKFLOWS
from sweepledger.structs.settings import Controller, GenerateMode, NextRoundMode

GIT_HOSTS = sorted(WITH_WORKFLOWS)


def init(
    folder: Path = argument("DIR", "Folder to create, or an empty folder."),
    name: str | None = option("--name", "Name the repository; default: the name of the folder."),
    controller: Controller = option(
        "--controller",
        "Choose what applies the overlays; `none`: `sweep cluster local`.",
        default=Controller.NONE,
    ),
    generate: GenerateMode = option(
        "--generate",
        "Choose when overlays are written; `on-merge`: by a workflow on main.",
        default=GenerateMode.IN_PULL_REQUEST,
    ),
    next_: NextRoundMode = option(
        "--next",
        "Choose what requests the next round of a search; `review`: the author.",
        default=NextRoundMode.REVIEW,
    ),
    pages: bool = flag(
        "--pages", "Add workflows that publish `sweep site` on the host's pages, which may be public."
    ),
    host: str = option(
        f"--host {'|'.join(GIT_HOSTS)}",
        "Choose the server of git whose workflows are added.",
        default=DEFAULT_HOST.name,
        **one_of(GIT_HOSTS),
    ),
    runner: str | None = option(
        "--runner", "Label of the machines that run workflows; default on GitHub: ubuntu-24.04."
    ),
    checks_app: int | None = option(
        "--checks-app",
        "Id of the Actions app of your GitHub Enterprise Server, whose check counts; default: GitHub.com's.",
        min=1,
    ),
) -> Response:
    created = init_repository(
        folder,
        name=name,
        controller=controller,
        generate=generate,
        next_=next_,
        pages=pages,
        host=host,
        runner=runner,
        checks_app=checks_app,
    )
    first = f"created {folder}: {len(created.files)} files, commit {created.commit[:SHORT_COMMIT]} on main"
    return Response(created, (first, *_next_steps(folder, controller)))


def _next_steps(folder: Path, controller: Controller) -> Iterator[str]:
    cd = "" if folder.resolve() == current_folder() else f"cd {shlex.quote(str(folder))} && "
    yield f"next: {cd}sweep try {EXAMPLE}"
    if controller is not Controller.NONE:
        yield "before `sweep generate`: `sweep cluster pin trainer --repository REPO --tag TAG`, and defaults.image"
    if controller in GITOPS:
        bootstrap = f"`sweep cluster bootstrap {controller} --repo URL --branch main`"
        yield f"before the cluster runs it: {bootstrap}"
    yield f"then: `sweep generate {EXAMPLE}`, and commit the files that it writes; README.md describes the rest"
