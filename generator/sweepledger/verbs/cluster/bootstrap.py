"""Write the files of a cluster to clusters/.

It lists the remaining steps: Secrets, folders, server rules.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import typer
from msgspec import structs

from sweepledger.cli.options import BranchOption, argument, flag, one_of, option
from sweepledger.cli.response import Response, current_folder
from sweepledger.controllers import GITOPS
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold.bootstrap import Bootstrapped, BootstrapRequest
from sweepledger.operations.scaffold.bootstrap import bootstrap as write_platform
from sweepledger.render.platform.admission import owner_policy_name
from sweepledger.render.platform.manual_setup import (
    codeowners,
    key_pair_commands,
    removal_steps,
    results_folder_commands,
)
from sweepledger.repo.inputs import read_bootstrap
from sweepledger.structs.platform import Names
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, ResultsMode, Settings


def bootstrap(
    controller: str = argument(
        "CONTROLLER", f"GitOps controller of the cluster: {' or '.join(GITOPS)}.", **one_of(GITOPS)
    ),
    repo: str | None = option("--repo URL", "URL from which the cluster reads the repository."),
    branch: BranchOption = None,
    shape: list[Shape] | None = option(
        "--shape", "Allow this distributed shape before a spec uses it; can be repeated."
    ),
    public: bool | None = option(
        "--public/--private",
        "State whether the repository is readable without credentials; default: private.",
    ),
    results_mode: ResultsMode | None = option(
        "--results-mode", "Choose how results commits reach the branch."
    ),
    monitoring: bool | None = option(
        "--monitoring/--no-monitoring",
        "Write alerts, a dashboard and messages to clusters/monitoring/; default: as the settings say.",
    ),
    removal: bool = flag("--removal", "Print in which order to remove the platform; change nothing."),
    yes: bool = flag("--yes", "Do not ask before the first files are written."),
    force: bool = flag("--force", "Overwrite files that were edited manually."),
) -> Response:
    shapes = tuple(shape) if shape else None
    request = BootstrapRequest(
        Controller(controller), repo, branch, shapes, public, results_mode, monitoring, force
    )
    workspace = Workspace.find(current_folder())
    if removal:
        return _removal(workspace.settings, request.controller)
    if not yes and sys.stdin.isatty() and read_bootstrap(workspace.root) is None:
        request = _asked(workspace, request)
    result = write_platform(workspace, request)
    return Response(_data(result), ("\n".join(_lines(result)),))


def _asked(workspace: Workspace, request: BootstrapRequest) -> BootstrapRequest:
    """Return the request with the address that a person chooses, which determines Secrets and egress."""
    url = request.url
    if url is None:
        typer.echo(
            "ssh://… needs a deploy key, https://… a GitHub App or a user name and a password.", err=True
        )
        address = workspace.settings.git.repository or workspace.repository.remote_url(workspace.remote)
        url = typer.prompt("Address from which the cluster reads the repository", default=address, err=True)
    typer.confirm(f"Write clusters/ for {request.controller} and {url}", default=True, abort=True, err=True)
    return replace(request, url=url)


def _removal(settings: Settings, controller: Controller) -> Response:
    data, lines = [], list[str]()
    for own in settings.in_clusters:
        names, cluster = Names.of(own.trials, own.fleet), own.fleet.cluster
        steps = removal_steps(names, structs.replace(own.platform, controller=controller))
        data.append({"cluster": cluster, "steps": steps})
        lines += [f"To remove the platform{f' of cluster {cluster}' if cluster else ''}:"]
        lines += [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
    return Response({"removal": data}, ("\n".join(lines),))


SECRET_KEYS = ("is_elsewhere", "purpose", "namespace", "name", "keys", "commands")
OBJECT_KEYS = ("kind", "namespace", "name", "purpose")


def _data(result: Bootstrapped) -> dict[str, Any]:
    def by_cluster(groups: Iterable[tuple[str | None, Iterable[object]]], keys: Sequence[str]) -> list[Any]:
        return [
            {"cluster": cluster, **{key: getattr(part, key) for key in keys}}
            for cluster, parts in groups
            for part in parts
        ]

    return {
        "written": result.written,
        "removed": result.removed,
        "kept": result.kept,
        "settings": result.changed_settings,
        "secrets": by_cluster(result.secrets_by_cluster, SECRET_KEYS),
        "objects": by_cluster(result.required_objects, OBJECT_KEYS),
        "key_pair": key_pair_commands(),
        "results_folder": results_folder_commands([own.results for own in result.settings.in_clusters]),
        "ruleset": RULESET_COMMAND,
        "owners": codeowners(result.workflows),
        "gaps": result.gaps,
        "previous_url": result.former_url,
        "undeclared": [
            {
                **{key: getattr(gone, key) or None for key in ("cluster", "kind", "name", "namespace")},
                "command": gone.deletion,
            }
            for gone in result.undeclared
        ],
    }


def _lines(result: Bootstrapped) -> list[str]:
    changes = [f"wrote {path}" for path in result.written]
    changes += [f"removed {path}" for path in result.removed]
    changes += [f"set {change} in sweepledger.yaml" for change in result.changed_settings]
    kept = [f"kept {path}: edited manually, so settings do not change it" for path in result.kept]
    kept += ["--force overwrites edited files"] if kept else []
    lines = [*(changes or ["nothing to write: all files are up to date"]), *kept]
    if result.former_url:
        lines += _former_owner(result, result.former_url)
    needed = (secret for _, secrets in result.secrets_by_cluster for secret in secrets)
    secrets = ", ".join(dict.fromkeys(f"{secret.namespace}/{secret.name}" for secret in needed))
    how = "--format json prints the commands; `sweep cluster doctor` checks them"
    lines += _manual_steps(result) if changes else [f"required Secrets: {secrets} ({how})"]
    if result.undeclared:
        lines += _undeclared(result)
    if result.gaps:
        lines += ["", "Missing in sweepledger.yaml:"]
        lines += [f"  {gap}" for gap in result.gaps]
    next_step = ["", "next: commit and push, then apply the files in the order given in clusters/README.md"]
    return [*lines, *next_step] if changes else lines


def _former_owner(result: Bootstrapped, former: str) -> list[str]:
    """Explain a changed address: the cluster does not hand over objects to another repository."""
    policy = owner_policy_name(result.settings.trials.namespace)
    return [
        "",
        f"The files belonged to {former}. The cluster does not give its objects to another repository:",
        "  if that repository still runs sweeps, set another `namespace` in sweepledger.yaml and run this again;",
        "  if it has moved, an administrator removes this before the files are applied, and applying them restores it:",
        f"    kubectl delete validatingadmissionpolicybinding {policy}",
    ]


def _undeclared(result: Bootstrapped) -> list[str]:
    """Name the objects that stay in the cluster although no file declares them."""
    lines = [
        "",
        "No file declares these objects any more, and no controller deletes objects of a platform: one that keeps it",
        "applied stays out of sync. Delete them once no batch of the former settings is active. The data of a",
        "volume stays, but back it up first:",
    ]
    for cluster, objects in groupby(result.undeclared, key=lambda one: one.cluster):
        if cluster:
            lost = cluster in result.settings.fleet.lost_clusters
            lines.append(f"  in cluster {cluster}{', if it comes back' if lost else ''}, and in no other:")
        lines += [f"  {'  ' if cluster else ''}{one.deletion}" for one in objects]
    return lines


RULESET_COMMAND = "gh api --method POST 'repos/{owner}/{repo}/rulesets' --input clusters/push-ruleset.json"


def _manual_steps(result: Bootstrapped) -> list[str]:
    lines = [
        "",
        "Keep files of keys and passwords in a folder outside this clone, and run these commands there.",
        "",
        "Create the key pair that signs results, and the line for `signers` in sweepledger.yaml:",
        *(f"  {command}" for command in key_pair_commands()),
        "",
        "Create these Secrets, which are never committed. Each key is read from a file of its name; the",
        "file of a user name, password or token must not end with a newline (printf %s, not echo):",
    ]
    groups = result.secrets_by_cluster
    for cluster, secrets in groups:
        if len(groups) > 1 or cluster is not None:
            here = "the cluster of the trials" if cluster is None else f"cluster {cluster}"
            is_elsewhere = any(secret.is_elsewhere for secret in secrets)
            title = GITOPS[result.settings.platform.controller].title
            lines.append(f"  in {f'the cluster of {title}' if is_elsewhere else here}:")
        for secret in secrets:
            lines.append(f"  {secret.purpose}: {secret.namespace}/{secret.name}")
            lines += [f"    {command}" for command in secret.commands]
    if result.required_objects:
        lines += ["", "Create these objects, which the settings name; no file declares them:"]
        for cluster, objects in result.required_objects:
            lines += [] if cluster is None else [f"  in cluster {cluster}:"]
            lines += [f"  {one.title} ({one.purpose})" for one in objects]
    if folder := results_folder_commands([own.results for own in result.settings.in_clusters]):
        lines += ["", "Prepare the root of the results export, on a machine where it is a plain folder:"]
        lines += [f"  {command}" for command in folder]
    return [
        *lines,
        "",
        "Restrict the collector's credential to results, on the git server:",
        "  install clusters/pre-receive.sh as a pre-receive hook; where the collector adds batches",
        "  (`next: collector`, `run.infrastructure`), it needs `sweep` on the server",
        "  on GitHub, whose servers run no hooks, give a GitHub App or a deploy key the right to write, and run this;",
        "  public repositories have no push rulesets: use --results-mode branch there",
        f"    {RULESET_COMMAND}",
        "",
        "Add reviewers of files that decide where and how code runs, as lines of CODEOWNERS:",
        *(f"  {line}" for line in codeowners(result.workflows)),
    ]
