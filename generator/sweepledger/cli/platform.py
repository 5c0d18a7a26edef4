"""Commands for the platform team: init, bootstrap, upgrade, doctor, pin, data."""

import shlex
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, response
from sweepledger.cli.envelopes import bootstrap_data
from sweepledger.cli.options import BranchOption, ContextOption, FormatOption, InOption, PatienceOption
from sweepledger.cli.response import EXIT_DRIFT, SHORT_COMMIT, Format, Response

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.scaffold.bootstrap import Bootstrapped
    from sweepledger.engine.cluster.health import HealthFinding


class InitControllerChoice(StrEnum):
    """Controllers of a new repository."""

    ARGOCD = "argocd"
    FLUX = "flux"
    SUBMIT = "submit"
    NONE = "none"


class HostChoice(StrEnum):
    """Servers of git for which there are workflows."""

    GITHUB = "github"
    GITLAB = "gitlab"


class GenerateChoice(StrEnum):
    """When overlays are written: in the pull request, or by a workflow after the merge."""

    IN_PULL_REQUEST = "in-pull-request"
    ON_MERGE = "on-merge"


class NextRoundChoice(StrEnum):
    """What requests the next round of a search."""

    REVIEW = "review"
    WORKFLOW = "workflow"
    COLLECTOR = "collector"


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to create, or an empty folder.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name the repository; default: the name of the folder.")
    ] = None,
    controller: Annotated[
        InitControllerChoice,
        typer.Option("--controller", help="Choose what applies the overlays; `none`: `sweep cluster local`."),
    ] = InitControllerChoice.NONE,
    generate: Annotated[
        GenerateChoice,
        typer.Option(
            "--generate", help="Choose when overlays are written; `on-merge`: by a workflow on main."
        ),
    ] = GenerateChoice.IN_PULL_REQUEST,
    next_: Annotated[
        NextRoundChoice,
        typer.Option("--next", help="Choose what requests the next round of a search; `review`: the author."),
    ] = NextRoundChoice.REVIEW,
    pages: Annotated[
        bool,
        typer.Option(
            "--pages",
            help="Add workflows that publish `sweep site` on the host's pages, which may be public.",
        ),
    ] = False,
    host: Annotated[
        HostChoice, typer.Option("--host", help="Choose the server of git whose workflows are added.")
    ] = HostChoice.GITHUB,
    runner: Annotated[
        str | None,
        typer.Option(
            "--runner", help="Label of the machines that run workflows; default on GitHub: ubuntu-24.04."
        ),
    ] = None,
    checks_app: Annotated[
        int | None,
        typer.Option(
            "--checks-app",
            min=1,
            help="Id of the Actions app of your GitHub Enterprise Server, whose check counts; default: GitHub.com's.",
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Create a repository for the sweeps of a team.

    It has settings, base files, an example, and a first commit.
    """

    def work() -> Response:
        from sweepledger.commands.scaffold import init as command

        created = command.init(
            folder,
            name=name,
            controller=str(controller),
            generate=str(generate),
            next_=str(next_),
            pages=pages,
            host=str(host),
            runner=runner,
            checks_app=checks_app,
        )
        lines = (
            f"created {folder}: {len(created.files)} files, commit {created.commit[:SHORT_COMMIT]} on main",
            *_init_next_steps(folder, created.example, controller),
        )
        data = {"folder": str(folder), "commit": created.commit, "files": list(created.files)}
        return Response(data, lines)

    response.respond("cluster init", form, work)


def _init_next_steps(folder: Path, example: str, controller: InitControllerChoice) -> tuple[str, ...]:
    cd = "" if folder.resolve() == response.current_folder() else f"cd {shlex.quote(str(folder))} && "
    return (
        f"next: {cd}sweep try {example}",
        *_init_cluster_steps(controller),
        f"then: `sweep generate {example}`, and commit the files that it writes; README.md describes the rest",
    )


def _init_cluster_steps(controller: InitControllerChoice) -> tuple[str, ...]:
    if controller is InitControllerChoice.NONE:
        return ()
    lines = (
        "before `sweep generate`: `sweep cluster pin trainer --repository REPO --tag TAG`, and defaults.image",
    )
    if controller is InitControllerChoice.SUBMIT:
        return lines
    return (
        *lines,
        f"before the cluster runs it: `sweep cluster bootstrap {controller.value} --repo URL --branch main`",
    )


class ControllerChoice(StrEnum):
    """GitOps controllers that `sweep cluster bootstrap` sets up."""

    ARGOCD = "argocd"
    FLUX = "flux"


class ResultsModeChoice(StrEnum):
    """How results commits reach the branch: pushed directly, or as a branch to merge."""

    PUSH = "push"
    BRANCH = "branch"


class DistributedShape(StrEnum):
    """Shapes whose trials have several pods, and which need another controller in the cluster."""

    TRAIN_JOB = "train-job"
    MPI_JOB = "mpi-job"
    JOB_SET = "job-set"
    PYTORCH_JOB = "pytorch-job"
    TF_JOB = "tf-job"


RepoOption = Annotated[
    str | None, typer.Option("--repo", metavar="URL", help="URL from which the cluster reads the repository.")
]
ShapeOption = Annotated[
    list[DistributedShape] | None,
    typer.Option("--shape", help="Allow this distributed shape before a spec uses it; can be repeated."),
]
PublicOption = Annotated[
    bool | None,
    typer.Option(
        "--public/--private",
        help="State whether the repository is readable without credentials; default: private.",
    ),
]
ResultsModeOption = Annotated[
    ResultsModeChoice | None,
    typer.Option("--results-mode", help="Choose how results commits reach the branch."),
]

MonitoringOption = Annotated[
    bool | None,
    typer.Option(
        "--monitoring/--no-monitoring",
        help="Write alerts, a dashboard and messages to clusters/monitoring/; default: as the settings say.",
    ),
]


def bootstrap(
    controller: Annotated[ControllerChoice, typer.Argument(help="GitOps controller of the cluster.")],
    repo: RepoOption = None,
    branch: BranchOption = None,
    shape: ShapeOption = None,
    public: PublicOption = None,
    results_mode: ResultsModeOption = None,
    monitoring: MonitoringOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that were edited manually.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the files of a cluster to clusters/.

    It lists the remaining steps: Secrets, folders, server rules.
    """

    def work() -> Response:
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.commands.scaffold import bootstrap as command
        from sweepledger.structs.run_config import Shape
        from sweepledger.structs.settings import Controller, ResultsMode

        request = command.BootstrapRequest(
            controller=Controller(controller.value),
            url=repo,
            branch=branch,
            shapes=tuple(Shape(choice.value) for choice in shape) if shape else None,
            is_public=public,
            mode=ResultsMode(results_mode.value) if results_mode else None,
            monitoring=monitoring,
            force=force,
        )
        result = command.bootstrap(Workspace.find(response.current_folder()), request)
        return Response(bootstrap_data(result), ("\n".join(_bootstrap_lines(result)),))

    response.respond("cluster bootstrap", form, work)


def _bootstrap_lines(result: "Bootstrapped") -> list[str]:
    changes = [f"wrote {path}" for path in result.written]
    changes += [f"removed {path}" for path in result.removed]
    changes += [f"set {change} in sweepledger.yaml" for change in result.changed_settings]
    kept = [f"kept {path}: edited manually, so settings do not change it" for path in result.kept]
    kept += ["--force overwrites edited files"] if kept else []
    lines = [*(changes or ["nothing to write: all files are up to date"]), *kept]
    if result.former_url:
        lines += _former_owner(result, result.former_url)
    lines += _manual_steps(result) if changes else _required_secrets(result)
    if result.undeclared:
        lines += _undeclared(result)
    if result.gaps:
        lines += ["", "Missing in sweepledger.yaml:"]
        lines += [f"  {gap}" for gap in result.gaps]
    next_step = ["", "next: commit and push, then apply the files in the order given in clusters/README.md"]
    return [*lines, *next_step] if changes else lines


def _former_owner(result: "Bootstrapped", former: str) -> list[str]:
    """Say what another address means: the cluster gives no object to another repository."""
    return [
        "",
        f"The files belonged to {former}. The cluster does not give its objects to another repository:",
        "  if that repository still runs sweeps, set another `namespace` in sweepledger.yaml and run this again;",
        "  if it has moved, an administrator removes this before the files are applied, and applying them restores it:",
        f"    kubectl delete validatingadmissionpolicybinding {result.owner_binding}",
    ]


def _undeclared(result: "Bootstrapped") -> list[str]:
    """Name the objects that stay in the cluster although no file declares them."""
    lines = [
        "",
        "No file declares these objects any more, and no controller deletes objects of a platform: with Argo CD, its",
        "Application stays out of sync. Delete them once no batch of the former settings is active. The data of a",
        "volume stays, but back it up first:",
    ]
    for cluster, objects in result.undeclared_by_cluster:
        if cluster:
            lost = cluster in result.settings.lost_clusters
            lines.append(f"  in cluster {cluster}{', if it comes back' if lost else ''}, and in no other:")
        lines += [f"  {'  ' if cluster else ''}{one.deletion}" for one in objects]
    return lines


def _manual_steps(result: "Bootstrapped") -> list[str]:
    lines = [
        "",
        "Keep files of keys and passwords in a folder outside this clone, and run these commands there.",
    ]
    lines += ["", "Create the key pair that signs results, and the line for `signers` in sweepledger.yaml:"]
    lines += [f"  {command}" for command in result.key_pair]
    lines += [
        "",
        "Create these Secrets, which are never committed. Each key is read from a file of its name; the",
    ]
    lines += ["file of a user name, password or token must not end with a newline (printf %s, not echo):"]
    groups = result.secrets_by_cluster
    for cluster, secrets in groups:
        if len(groups) > 1 or cluster is not None:
            here = "the cluster of the trials" if cluster is None else f"cluster {cluster}"
            is_elsewhere = any(secret.is_elsewhere for secret in secrets)
            lines.append(f"  in {'the cluster of Argo CD' if is_elsewhere else here}:")
        for secret in secrets:
            lines.append(f"  {secret.purpose}: {secret.namespace}/{secret.name}")
            lines += [f"    {command}" for command in secret.commands]
    if result.required_objects:
        lines += ["", "Create these objects, which the settings name; no file declares them:"]
        for cluster, objects in result.required_objects:
            lines += [] if cluster is None else [f"  in cluster {cluster}:"]
            lines += [f"  {one.title} ({one.purpose})" for one in objects]
    if result.results_folder:
        lines += ["", "Prepare the root of the results export, on a machine where it is a plain folder:"]
        lines += [f"  {command}" for command in result.results_folder]
    lines += ["", "Restrict the collector's credential to results, on the git server:"]
    lines += ["  install clusters/pre-receive.sh as a pre-receive hook; where the collector adds batches"]
    lines += [
        "  (`next: collector`, `run.infrastructure`), it needs `sweep` on the server",
        f"  {result.ruleset}",
    ]
    lines += ["", "Add reviewers of files that decide where and how code runs, as lines of CODEOWNERS:"]
    return [*lines, *(f"  {line}" for line in result.owners)]


def _required_secrets(result: "Bootstrapped") -> list[str]:
    names = (f"{secret.namespace}/{secret.name}" for secret in result.secrets)
    secrets = ", ".join(dict.fromkeys(names))
    return [
        f"required Secrets: {secrets} (--format json prints the commands; `sweep cluster doctor` checks them)"
    ]


def upgrade(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 5 if anything is due.")
    ] = False,
    push: Annotated[
        bool,
        typer.Option(
            "--push", help="Push what is due as a new branch, for a pull request; write nothing here."
        ),
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the repository's files as this version does.

    These are the pinned version and the platform; batches never change.
    """

    def work() -> Response:
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.commands.scaffold import upgrade as command
        from sweepledger.errors import UsageError

        if check and push:
            raise UsageError("--push cannot be combined with --check")
        workspace, commit = Workspace.find(response.current_folder()), None
        if push:
            result, commit = command.propose_upgrade(workspace)
        else:
            result = command.upgrade(workspace, check=check)
        verb = "due" if check else "committed" if push else "wrote"
        lines = [f"{verb}: {path}" for path in result.written]
        lines += [f"kept {path}: edited manually" for path in result.kept]
        lines += (
            [f"next: {step}" for step in result.steps] if result.written else ["everything is up to date"]
        )
        data = {
            "version": result.version,
            "written": list(result.written),
            "kept": list(result.kept),
            "steps": list(result.steps),
            "branch": command.BRANCH if commit else None,
            "commit": commit,
        }
        if commit:
            lines.append(f"pushed branch {command.BRANCH}: open a pull request from it")
        return Response(data, tuple(lines), exit_code=EXIT_DRIFT * (check and bool(result.written)))

    response.respond("cluster upgrade", form, work)


def doctor(
    context: ContextOption = None,
    cluster: InOption = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Run a temporary Job that writes results as a trial does.")
    ] = False,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="Let pods go that are kept for records which nobody will read; then check."
        ),
    ] = False,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Check that everything of the bootstrap is in the cluster.

    It prints hints, and exits with 5 if a part is not in place.
    """

    def work() -> Response:
        from rich.text import Text

        from sweepledger.commands import doctor as command
        from sweepledger.commands.repository.workspace import Workspace
        from sweepledger.engine.cluster.kubectl import Kubectl

        workspace = Workspace.find(response.current_folder()).in_cluster(cluster)
        kubectl = Kubectl(context)
        released = command.release_pods(workspace, kubectl, time.time()) if release else ()
        report = command.doctor(workspace, kubectl, prove=prove, patience=patience)
        lines = [Text(f"released: {len(held.names)} pods of {held.batch}") for held in released]
        return Response(
            {
                "findings": [finding.as_data() for finding in report.findings],
                "released": {held.batch: list(held.names) for held in released},
            },
            (*lines, *map(_finding_text, report.findings)),
            exit_code=EXIT_DRIFT * (not report.is_healthy),
        )

    response.respond("cluster doctor", form, work)


def _finding_text(finding: "HealthFinding") -> "Text":
    from rich.text import Text

    details = f": {finding.details}" if finding.details else ""
    hint = f"\n  hint: {finding.hint}" if finding.hint and finding.state != "ok" else ""
    return Text(
        response.escape_control_characters(f"{finding.state}: {finding.part}: {finding.what}{details}{hint}")
    )


def pin(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of an image in sweepledger.yaml.",
            autocompletion=completion.images,
        ),
    ],
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="TAG", help="Resolve this tag; default: the tag in the settings."),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository",
            metavar="REPO",
            help="Read from this repository; adds the image to the settings, or changes it.",
        ),
    ] = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the digest of an image's tag to sweepledger.yaml."""

    def work() -> Response:
        from sweepledger.commands import digests as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder(), unpinned=True)
        pinned = command.pin(workspace, name, repository=repository, tag=tag)
        lines = [f"{name}: {pinned.reference}" + ("" if pinned.is_new else " (unchanged)")]
        if pinned.is_new:
            lines.append(
                "next: commit sweepledger.yaml; `sweep generate NAME --update` updates a sweep to the new image"
            )
        data = {
            "image": name,
            "reference": pinned.reference,
            "digest": pinned.digest,
            "previous": pinned.before,
            "changed": pinned.is_new,
        }
        return Response(data, tuple(lines))

    response.respond("cluster pin", form, work)


def data(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder that trials will read.")],
    form: FormatOption = Format.TEXT,
) -> None:
    """Compute the digest of a folder of data.

    It is for `datasets.NAME.digest` in the settings.
    """

    def work() -> Response:
        from sweepledger.commands import digests as command

        with response.open_console(stderr=True).status("reading", spinner="line") as status:
            result = command.folder_digest(
                path,
                progress=lambda done: status.update(f"read {done.bytes / 1e9:.1f} GB in {done.files} files"),
            )
        counts = {"files": result.files, "bytes": result.bytes}
        return Response({"path": str(path), "digest": result.digest, **counts}, (result.digest,))

    response.respond("cluster data", form, work)
