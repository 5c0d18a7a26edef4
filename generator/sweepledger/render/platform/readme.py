"""`clusters/README.md`: what each file is for, and what to apply first."""

from collections.abc import Mapping, Sequence

from sweepledger.controllers import GITOPS
from sweepledger.controllers.controller import Installed
from sweepledger.render.platform import manual_setup
from sweepledger.render.platform.manual_setup import SIGNERS_FILE, key_pair_commands
from sweepledger.render.platform.objects import BANNER, FILES
from sweepledger.render.platform.team import SIGNING_KEY
from sweepledger.structs.kubernetes import GIT_SIGNING_SECRET
from sweepledger.structs.platform import CLUSTERS, REMOTE, GitSource, Names, platform_folder
from sweepledger.structs.settings import (
    FleetSettings,
    PlatformSettings,
    ResultsMode,
    ResultsSettings,
    TrialSettings,
)
from sweepledger.structs.settings.network import Authorities

OPEN, DONE = "- [ ]", "- [x]"


def ticked(page: str, checks: Mapping[str, bool]) -> tuple[str, tuple[str, ...]]:
    """Return a page with the state of each check in its checklist, and the lines of the checklist."""
    lines = [
        f"{DONE if checks.get(line[len(OPEN) + 1 :]) else OPEN}{line[len(OPEN) :]}"
        if line.startswith((OPEN, DONE))
        else line
        for line in page.splitlines()
    ]
    return "\n".join(lines) + "\n", tuple(line for line in lines if line.startswith((OPEN, DONE)))


def text(
    names: Names,
    trials: TrialSettings,
    authorities: Authorities | None,
    results: ResultsSettings,
    platform: PlatformSettings,
    controller: Installed,
    source: GitSource,
    paths: list[str],
    checks: Sequence[str],
) -> str:
    """Return clusters/README.md, or the README of one of several clusters."""
    rows = [
        f"| `{path}` | {FILES[path.removeprefix('../')]} |"
        for path in (_below(full, names.cluster) for full in paths)
        if path.removeprefix("../") in FILES
    ]
    listed = "\n".join(["| file | what it is for |", "|---|---|", *rows])
    todo = _steps(names, trials, authorities, results, platform, controller, source)
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(todo, 1))
    items = "\n".join(f"{OPEN} {item}" for item in checks)
    cluster = "" if names.cluster is None else f" in cluster `{names.cluster}`"
    return (
        f"<!-- {BANNER} -->\n\n# The platform of namespace `{names.trials}`{cluster}\n\n"
        f"What a cluster needs to run the sweeps of `{source.url}`, branch `{source.branch}`.\n\n"
        f"{listed}\n\n## What to apply first\n\n"
        f"Once all of this is on `{source.branch}`: the cluster reads the branch, not this clone.\n\n"
        f"{steps}\n\n## Checklist\n\nEach item is a check of `sweep cluster doctor`, whose option `--write` ticks "
        f"here what is in place.\n\n{items}\n\n{_signed(names)}{_proposed(results.mode, source.branch)}"
    )


def _below(path: str, cluster: str | None) -> str:
    own = f"{platform_folder(cluster)}/"
    if path.startswith(own):
        return path.removeprefix(own)
    return f"../{path.removeprefix(f'{CLUSTERS}/')}"


def list_of_clusters(namespace: str, fleet: FleetSettings, source: GitSource) -> str:
    """Return the page that links to the pages of the clusters."""
    rows = [
        f"| [{name}]({name}/README.md) | {cluster.weight} | {', '.join(cluster.pools or ('all',))} |"
        for name, cluster in sorted(fleet.clusters.items())
        if not cluster.is_lost
    ]
    lost = fleet.lost_clusters
    listed = "\n".join(["| cluster | weight | pools |", "|---|---|---|", *rows])
    given_up = f"\nGiven up: {', '.join(lost)}.\n" if lost else ""
    return (
        f"<!-- {BANNER} -->\n\n# The clusters of namespace `{namespace}`\n\n"
        f"Each runs the batches of `{source.url}`, branch `{source.branch}`, whose lock names it.\n\n"
        f"{listed}\n{given_up}"
    )


def _proposed(mode: ResultsMode, branch: str) -> str:
    if mode is not ResultsMode.BRANCH:
        return ""
    return (
        "\n## Who merges results\n\nThe collector pushes a branch `results/<sweep>/<commit>`, one a sweep, "
        "and opens no pull request: its credential can do nothing but push. A person of your team opens it, "
        "or a workflow that the server runs when a branch `results/**` comes, for example with "
        "`gh pr create --fill --head BRANCH` or `glab mr create --fill --source-branch BRANCH`, and merges "
        f"it in any way. It is replaced when `{branch}` moves, and deleted once it is merged.\n"
    )


def _signed(names: Names) -> str:
    make, say = key_pair_commands()
    look = f"git config gpg.ssh.allowedSignersFile {SIGNERS_FILE}\ngit log --show-signature -- results/"
    secret = f"{names.collector}/{GIT_SIGNING_SECRET}"
    return (
        "## Who signs results\n\nThe collector signs its commits with the key "
        f"`{SIGNING_KEY}` of its Secret `{secret}`. Make the pair where you make the Secret, outside of the "
        "clone; what the second command prints goes into `signers` of sweepledger.yaml:\n\n"
        f"```sh\n{make}\n{say}\n```\n\n"
        "Without it results are recorded all the same, unsigned, and `sweep cluster doctor` names the key. "
        f"After the next `sweep cluster bootstrap` `{SIGNERS_FILE}` lists whom git believes; `sweep verify` reads "
        f"the setting itself:\n\n```sh\n{look}\n```\n"
    )


def _steps(
    names: Names,
    trials: TrialSettings,
    authorities: Authorities | None,
    results: ResultsSettings,
    platform: PlatformSettings,
    controller: Installed,
    source: GitSource,
) -> list[str]:
    place = platform_folder(names.cluster)
    apply = manual_setup.apply_platform_command(names.cluster, platform.controller, source)
    follow = manual_setup.apply_controller_command(names.cluster, platform.controller, source)
    chosen = "" if names.cluster is None else f" --in {names.cluster}"
    steps = [
        f"`{apply}`: namespaces `{names.trials}` and `{names.collector}`.",
        "The Secrets that `sweep cluster bootstrap` lists, from files outside of the clone; they are never in git.",
        *(
            ["The folder of the results export, made and owned as `sweep cluster bootstrap` says."]
            if results.store.facts.is_shared
            else []
        ),
        f"`{follow}`: from here on the cluster follows the branch.",
        f"`sweep cluster doctor{chosen}`: says what of this is in place.",
    ]
    own = GITOPS[platform.controller]
    steps[-2] += f" {own.upkeep}"
    if "namespace.yaml" in own.files:
        space = manual_setup.apply_command(source, f"-f {place}/{own.name}/namespace.yaml")
        steps[0] += f" And `{space}`: `{controller.namespace}`."
    if controller.is_remote:
        steps[0] += " In the cluster of the trials, as the Secrets of its namespaces."
        remote = manual_setup.apply_command(source, f"-k {place}/{REMOTE}")
        steps.insert(-2, f"`{remote}`, in the cluster of the trials.")
        steps[-2] += f" In the cluster of {own.title}."
    if trials.priority_class is not None:
        sample = manual_setup.apply_command(source, f"-f {place}/optional/priority-class.yaml")
        steps.insert(1, f"`{sample}`, unless the cluster has PriorityClass `{trials.priority_class}`.")
    if needed := manual_setup.required_objects(names, trials, authorities, platform.collector):
        listed = ", ".join(f"{one.title} ({one.purpose})" for one in needed)
        steps.insert(2, f"What the settings name, and no file declares: {listed}.")
    if any(pool.queue and pool.max_nodes for pool in trials.pools.values()):
        steps.insert(
            1,
            f"`{manual_setup.apply_command(source, f'-f {place}/optional/kueue.yaml')}`, with your quotas in it.",
        )
    return steps
