"""What a platform team does once for a repository: bootstrap."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.cli import answer
from generator.cli.answer import Answer, Format, FormatOption
from generator.cli.panels import PLATFORM

if TYPE_CHECKING:
    from generator.commands.bootstrap import Bootstrapped


class Controller(StrEnum):
    """Who applies the active overlays."""

    ARGOCD = "argocd"
    FLUX = "flux"


class Mode(StrEnum):
    """How results commits reach the branch."""

    PUSH = "push"
    BRANCH = "branch"


class DistributedShape(StrEnum):
    """Trials of several pods, each with a controller of its own in the cluster."""

    TRAIN_JOB = "train-job"
    MPI_JOB = "mpi-job"
    JOB_SET = "job-set"
    PYTORCH_JOB = "pytorch-job"
    TF_JOB = "tf-job"


RepoOption = Annotated[
    str | None, typer.Option("--repo", metavar="URL", help="Where the cluster reads the repository.")
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="B", help="The branch that the cluster follows.")
]
ShapeOption = Annotated[
    list[DistributedShape] | None,
    typer.Option("--shape", help="A distributed shape to allow before a spec uses it; may be repeated."),
]
PublicOption = Annotated[
    bool | None,
    typer.Option("--public/--private", help="Whether anyone may read the repository; default: private."),
]
ModeOption = Annotated[
    Mode | None, typer.Option("--results-mode", help="How results commits reach the branch.")
]


def register(app: typer.Typer) -> None:
    """Add the platform team's commands."""
    app.command("bootstrap", rich_help_panel=PLATFORM)(bootstrap)


def bootstrap(
    controller: Annotated[Controller, typer.Argument(help="Who applies the active overlays.")],
    repo: RepoOption = None,
    branch: BranchOption = None,
    shape: ShapeOption = None,
    public: PublicOption = None,
    results_mode: ModeOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that were edited by hand.")] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write what a cluster needs to clusters/, and say what no file can do: Secrets, folders, rules."""

    def work() -> Answer:
        from generator.commands import bootstrap as command
        from generator.commands.workspace import Workspace
        from generator.structs.settings import Controller as Chosen
        from generator.structs.settings import ResultsMode
        from generator.structs.sweep import Shape

        asked = command.Asked(
            controller=Chosen(controller.value),
            url=repo,
            branch=branch,
            shapes=tuple(Shape(one.value) for one in shape) if shape else None,
            is_public=public,
            mode=ResultsMode(results_mode.value) if results_mode else None,
            force=force,
        )
        found = command.bootstrap(Workspace.find(answer.here()), asked)
        return Answer(_as_data(found), ("\n".join(_shown(found)),))

    answer.answer("bootstrap", form, work)


def _as_data(found: "Bootstrapped") -> dict[str, Any]:
    return {
        "written": list(found.written),
        "removed": list(found.removed),
        "kept": list(found.kept),
        "settings": list(found.changed_settings),
        "secrets": [
            {
                "purpose": needed.purpose,
                "namespace": needed.namespace,
                "name": needed.name,
                "keys": list(needed.keys),
                "commands": list(needed.commands),
            }
            for needed in found.secrets
        ],
        "key_pair": list(found.key_pair),
        "results_folder": list(found.results_folder),
        "ruleset": found.ruleset,
        "owners": list(found.owners),
        "gaps": list(found.gaps),
    }


def _shown(found: "Bootstrapped") -> list[str]:
    done = [f"wrote {path}" for path in found.written]
    done += [f"removed {path}" for path in found.removed]
    done += [f"set {change} in sweepledger.yaml" for change in found.changed_settings]
    kept = [f"kept {path}: edited by hand, so the settings do not reach it" for path in found.kept]
    kept += ["--force overwrites what was edited"] if kept else []
    lines = [*(done or ["nothing to write: all is as it was"]), *kept]
    lines += _by_hand(found) if done else _again(found)
    if found.gaps:
        lines += ["", "Not decided yet in sweepledger.yaml:"]
        lines += [f"  {gap}" for gap in found.gaps]
    onward = ["", "next: commit and push, then apply in the order that clusters/README.md gives"]
    return [*lines, *onward] if done else lines


def _by_hand(found: "Bootstrapped") -> list[str]:
    lines = ["", "Files of keys and passwords belong in a folder outside of this clone; type there:"]
    lines += ["", "The key pair that signs results, and its line for `signers` of sweepledger.yaml:"]
    lines += [f"  {command}" for command in found.key_pair]
    lines += ["", "Secrets, made by hand and never in git; each key is read from a file of its name, which"]
    lines += ["for a user name, a password or a token ends without a newline (printf %s, not echo):"]
    for needed in found.secrets:
        lines.append(f"  {needed.purpose}: {needed.namespace}/{needed.name}")
        lines += [f"    {command}" for command in needed.commands]
    lines += ["", "The root of the results export, on a machine where it is a plain folder:"]
    lines += [f"  {command}" for command in found.results_folder]
    lines += ["", "What keeps the collector's credential to results, on the git server:"]
    lines += ["  install clusters/pre-receive.sh as a pre-receive hook", f"  {found.ruleset}"]
    lines += ["", "Who reviews what decides where and how code runs, as lines of CODEOWNERS:"]
    return [*lines, *(f"  {line}" for line in found.owners)]


def _again(found: "Bootstrapped") -> list[str]:
    secrets = ", ".join(f"{needed.namespace}/{needed.name}" for needed in found.secrets)
    return [
        f"Secrets that it needs: {secrets} (--format json gives the commands; `sweep doctor` looks for them)"
    ]
