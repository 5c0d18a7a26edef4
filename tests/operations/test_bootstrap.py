"""`sweep cluster bootstrap`: the platform's files, once; and the git server's rule for the collector."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepledger.errors import RepositoryError, StorageError, UsageError
from sweepledger.operations.scaffold.bootstrap import Bootstrapped, BootstrapRequest, bootstrap
from sweepledger.render.platform import readme
from sweepledger.render.platform.manual_setup import (
    NO_OWNER,
    codeowners,
    key_pair_commands,
    results_folder_commands,
)
from sweepledger.repo import kustomize
from sweepledger.repo.git import Change, publish
from sweepledger.structs.platform import RequiredSecret
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Controller, ResultsMode
from tests.command_line import install_sweep, run_program
from tests.repository import Sandbox, replace_in

URL = "https://git.example.org/team/sweeps.git"
SETTINGS = """# Owned by the platform team.
version: 1
results: {claim: kept} # the volume
"""


def run_bootstrap(sandbox: Sandbox, controller: Controller = Controller.FLUX, **changes: Any) -> Bootstrapped:
    return bootstrap(
        sandbox.workspace, BootstrapRequest(controller, **{"url": URL, "branch": "main", **changes})
    )


def secrets_of(result: Bootstrapped) -> list[RequiredSecret]:
    return [secret for _, secrets in result.secrets_by_cluster for secret in secrets]


def test_it_writes_the_platform_and_says_so_in_the_settings_where_comments_stay(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", SETTINGS)

    result = run_bootstrap(sandbox)

    assert "clusters/flux/source.yaml" in result.written
    text = (sandbox.root / "sweepledger.yaml").read_text()
    assert "# Owned by the platform team." in text
    assert "# the volume" in text
    settings = sandbox.workspace.settings
    assert (settings.platform.controller, settings.results.mode) == (Controller.FLUX, ResultsMode.PUSH)
    assert settings.results.claim == "kept"


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX], ids=str)
def test_objects_that_no_file_declares_any_more_are_named(sandbox: Sandbox, controller: Controller) -> None:
    volume = "results: {nfs: nfs.example.org:/export}\n"
    sandbox.write("sweepledger.yaml", "version: 1\nresults: {store: api}\n")
    assert run_bootstrap(sandbox, controller).undeclared == ()
    sandbox.write("sweepledger.yaml", f"version: 1\ncontroller: {controller}\n{volume}")

    back = run_bootstrap(sandbox, controller)
    again = run_bootstrap(sandbox, controller)
    sandbox.write("sweepledger.yaml", f"version: 1\ncontroller: {controller}\nresults: {{store: api}}\n")
    forth = run_bootstrap(sandbox, controller)

    assert "kubectl delete validatingadmissionpolicy sweeps-releases" in {
        one.deletion for one in back.undeclared
    }
    assert again.undeclared == ()
    assert [one.deletion for one in forth.undeclared if "Volume" in one.kind] == [
        "kubectl delete persistentvolume sweeps-sweep-results",
        "kubectl delete persistentvolume sweeps-sweep-results-read",
        "kubectl delete persistentvolumeclaim sweep-results --namespace sweeps",
        "kubectl delete persistentvolumeclaim sweep-results --namespace sweeps-collector",
    ]


def test_monitoring_is_a_key_that_bootstrap_adds_and_removes(sandbox: Sandbox) -> None:
    with_it = run_bootstrap(sandbox, monitoring=True)
    text = (sandbox.root / "sweepledger.yaml").read_text()

    assert "\nmonitoring: {}\n" in text
    assert "clusters/monitoring/dashboard.json" in with_it.written
    assert not run_bootstrap(sandbox, monitoring=True).written
    run_bootstrap(sandbox, monitoring=False)
    assert (sandbox.root / "sweepledger.yaml").read_text() == text.replace("monitoring: {}\n", "")


def test_what_was_asked_for_before_need_not_be_said_again(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox, shapes=(Shape.JOB_SET,), is_public=True)

    again = bootstrap(sandbox.workspace, BootstrapRequest(Controller.FLUX))

    assert again.written == ()
    assert again.source.url == URL
    assert again.source.is_public
    assert again.source.shapes == (Shape.JOB_SET,)


def test_a_checklist_that_doctor_has_ticked_is_no_edit(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox)
    path = sandbox.root / "clusters/README.md"
    item = "a trial may write results"
    page, lines = readme.ticked(path.read_text(), {item: True, "server version": True})

    path.write_text(page)

    assert [line for line in lines if "[x]" in line] == [f"- [x] {item}"]
    assert len(lines) > 4
    assert (run_bootstrap(sandbox).kept, path.read_text()) == ((), page)


def test_a_file_that_was_edited_by_hand_is_kept_unless_forced(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox)
    edited = sandbox.write("clusters/platform/network.yaml", "# mine\n")
    settings = (sandbox.root / "sweepledger.yaml").read_text()
    sandbox.write("sweepledger.yaml", settings + "priority_class: low\n")

    result = run_bootstrap(sandbox)

    assert result.kept == ("clusters/platform/network.yaml",)
    assert "clusters/optional/priority-class.yaml" in result.written
    assert run_bootstrap(sandbox).kept == result.kept
    assert edited.read_text() == "# mine\n"
    forced = run_bootstrap(sandbox, force=True)
    assert (forced.kept, forced.written) == ((), ("clusters/platform/network.yaml",))


def test_shapes_in_use_are_allowed_without_being_asked_for(sandbox: Sandbox) -> None:
    distributed(sandbox)

    assert run_bootstrap(sandbox, shapes=(Shape.TF_JOB,)).source.shapes == (Shape.JOB_SET, Shape.TF_JOB)

    assert "jobsets" in (sandbox.root / "clusters/flux/access.yaml").read_text()
    sandbox.generate()
    (sandbox.root / "sweeps/wide.yaml").unlink()
    assert Shape.JOB_SET in run_bootstrap(sandbox).source.shapes, "a batch of it is active"


def distributed(sandbox: Sandbox) -> None:
    """Ask for a sweep of shape `job-set`."""
    image = f"registry.example.org/trainer@sha256:{'1' * 64}"
    text = sandbox.spec("wide").read_text()
    run = f"run:\n  image: {image}\n  shape: job-set\n  nodes: 2\n"
    sandbox.write("sweeps/wide.yaml", text.replace("run:\n", run).replace("parallelism: 2", "parallelism: 3"))


EGRESS = """egress:
  git: {cidrs: [198.51.100.7/32], ports: [443]}
  api-server: {cidrs: [192.0.2.1/32], ports: [6443]}
"""


def test_what_the_collector_may_reach_beyond_need_is_not_decided_yet(sandbox: Sandbox) -> None:
    (open_,) = [gap for gap in run_bootstrap(sandbox).gaps if gap.startswith("egress.git")]
    sandbox.write("sweepledger.yaml", EGRESS)

    closed = run_bootstrap(sandbox).gaps

    assert "every host on ports 443, 6443" in open_
    assert not [gap for gap in closed if gap.startswith("egress")]


CLONING = """version: 1
images: {collector: registry.example.org/collector@sha256:%s}
code: {url: 'https://git.example.org/team/sweeps.git', image: collector}
""" % ("1" * 64)
OPENED = "egress: {git: {cidrs: [198.51.100.7/32], ports: [443]}}\n"
PROXIED = """proxy: {address: 'http://proxy.example.org:3128', egress: proxy}
egress: {proxy: {cidrs: [203.0.113.9/32], ports: [3128]}}
"""


def test_trials_that_clone_need_a_way_to_the_git_server(sandbox: Sandbox) -> None:
    gaps = {}
    for more in ("", OPENED, PROXIED):
        sandbox.write("sweepledger.yaml", CLONING + more)
        gaps[more] = [gap for gap in run_bootstrap(sandbox).gaps if "clone code" in gap]

    assert [len(items) for items in gaps.values()] == [1, 0, 0]


def test_files_of_the_platform_team_beside_ours_are_left_alone(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox)
    own = sandbox.write("clusters/platform/own.yaml", "kind: X\n")

    run_bootstrap(sandbox, Controller.ARGOCD, force=True)

    assert own.read_text() == "kind: X\n"


@pytest.mark.parametrize("place", ["clusters", "clusters/platform", "clusters/flux/active", "base", "sweeps"])
def test_a_link_to_a_folder_elsewhere_is_refused_and_nothing_is_written(
    place: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    run_bootstrap(sandbox)
    settings = sandbox.write("sweepledger.yaml", "version: 1\n")
    elsewhere, folder = tmp_path / "elsewhere", sandbox.root / place
    folder.mkdir(exist_ok=True)  # no spec made `sweeps/` yet
    shutil.move(folder, elsewhere)
    folder.symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}

    with pytest.raises(StorageError, match="not a symbolic link"):
        run_bootstrap(sandbox, url="https://git.example.org/team/other.git")

    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before
    assert settings.read_text() == "version: 1\n"


def test_choosing_the_other_controller_takes_the_first_ones_files_away(sandbox: Sandbox) -> None:
    sandbox.merged()
    run_bootstrap(sandbox)
    (kustomization,) = (sandbox.root / "clusters/flux/active").glob("*.yaml")

    result = run_bootstrap(sandbox, Controller.ARGOCD)

    assert "clusters/flux/source.yaml" in result.removed
    assert not kustomization.exists()
    assert sandbox.workspace.settings.platform.controller is Controller.ARGOCD


def test_another_branch_is_set_in_the_settings_too(sandbox: Sandbox) -> None:
    result = run_bootstrap(sandbox, branch="stable")

    assert "branch: stable" in result.changed_settings
    assert sandbox.workspace.settings.git.branch == "stable"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"url": "https://user:hunter2@git.example.org/x"}, "no user name or password"),
        ({"url": "file:///srv/git/x.git"}, "Flux reads no file"),
        ({"url": "not-a-url"}, "'not-a-url'"),
        ({"url": "hunter2@not-a-url"}, "must begin with"),
        ({"branch": "a b"}, "branch"),
        ({"shapes": (Shape.INDEXED,)}, "distributed"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_useless_value_is_refused(changes: dict[str, Any], says: str, sandbox: Sandbox) -> None:
    with pytest.raises(UsageError, match=says) as error:
        run_bootstrap(sandbox, **changes)

    assert "hunter2" not in f"{error.value} {error.value.hint}"
    assert sandbox.git("status", "--porcelain") == ""


def test_a_bootstrap_file_that_cannot_be_read_is_said_to_be_so(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox)
    sandbox.write("clusters/bootstrap.yaml", "version: 7\n")

    with pytest.raises(RepositoryError, match="version 1"):
        run_bootstrap(sandbox)


PRIVATE = """version: 1
images:
  collector: registry.example.org/sweep@sha256:DIGEST
  git: registry.example.org/git@sha256:DIGEST
image_pull_secret: registry
code: {url: "https://git.example.org/team/sweeps.git", image: git, secret: code-read}
secrets: {hub: {secret: hub-token, key: token, variable: HF_TOKEN}}
results: {nfs: nfs.example.org:/export/results}
""".replace("DIGEST", "1" * 64)


def test_it_lists_every_secret_that_a_private_repository_needs_and_writes_none(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", PRIVATE)

    result = run_bootstrap(sandbox)

    needed = {(secret.purpose, secret.namespace, secret.name): secret.keys for secret in secrets_of(result)}
    assert needed == {
        ("controller, read", "sweeps-flux", "sweep-git-read"): ("username", "password"),
        ("webhook of the git server", "sweeps-flux", "sweep-webhook"): ("token",),
        ("collector, write", "sweeps-collector", "sweep-git-write"): ("username", "password"),
        ("collector, signing", "sweeps-collector", "sweep-git-signing"): ("signing",),
        ("image pull", "sweeps", "registry"): (".dockerconfigjson",),
        ("image pull", "sweeps-collector", "registry"): (".dockerconfigjson",),
        ("code fetch", "sweeps", "code-read"): ("username", "password"),
        ("trials", "sweeps", "hub-token"): ("token",),
    }
    assert results_folder_commands([result.settings.results])[1:] == (
        "chown root:65532 /export/results",
        "chmod 2770 /export/results",
    )
    for path in (sandbox.root / "clusters").rglob("*.yaml"):
        assert 'kind: "Secret"' not in path.read_text()


def test_the_command_that_makes_a_secret_is_one_that_kubectl_takes(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("sweepledger.yaml", PRIVATE)
    for controller in (Controller.FLUX, Controller.ARGOCD):
        for needed in secrets_of(run_bootstrap(sandbox, controller)):
            for key in needed.keys:
                content = "{}" if key == ".dockerconfigjson" else "x"
                (tmp_path / key.lstrip(".")).write_text(content)

            search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            words = (*needed.commands[0].split(), "--dry-run=client", "--output=json")
            done = run_program(*words, cwd=tmp_path, PATH=search)

            assert done.returncode == 0, done.stderr
            assert set(json.loads(done.stdout)["data"]) >= set(needed.keys)


def test_as_a_command_it_says_what_to_do_next(sandbox: Sandbox) -> None:
    done = sandbox.sweep("cluster", "bootstrap", "argocd", "--repo", URL, "--branch", "main")
    data = sandbox.sweep("cluster", "bootstrap", "argocd", "--format=json")

    assert done.returncode == 0, done.stderr
    for words in (
        "kubectl --namespace sweeps-collector create secret",
        "chmod 2770",
        "pre-receive",
        "suspended",
    ):
        assert words in done.stdout
    for words in ("/clusters/ @", "mkdir -p <the export's folder>"):
        assert words in done.stdout
    assert json.loads(data.stdout)["data"]["written"] == []
    again = sandbox.sweep("cluster", "bootstrap", "argocd")
    assert "sweeps-collector/sweep-git-write" in again.stdout
    assert "create secret" not in again.stdout
    assert sandbox.sweep("cluster", "bootstrap", "argocd", "--repo", "x").returncode == 2


PROTECTED = (
    *(".github/workflows/check.yaml", "sweepledger.yaml", "sweeps/lr.yaml", "base/launcher/v1/launch.py"),
    *(
        "clusters/platform/admission.yaml",
        "clusters/extra/platform/kustomization.yaml",
        "clusters/bootstrap.yaml",
    ),
)
LEFT = ("results/lr/summary.csv", "overlays/archive/lr-b1-0a1b2c3d/batch.json")


@pytest.mark.parametrize("controller", ["argocd", "flux"])
def test_a_platform_is_removed_in_an_order_in_which_nothing_makes_it_anew(
    sandbox: Sandbox, controller: str
) -> None:
    sandbox.write("sweepledger.yaml", PRIVATE + "monitoring: {}\n")
    before = sandbox.git("status", "--porcelain")

    done = sandbox.sweep("cluster", "bootstrap", controller, "--removal", "--format=json")

    assert sandbox.git("status", "--porcelain") == before
    (part,) = json.loads(done.stdout)["data"]["removal"]
    steps = [step.partition("    #")[0] for step in part["steps"]]
    batches = {
        "argocd": "kubectl --namespace argocd delete applicationset sweeps",
        "flux": "kubectl --namespace sweeps-flux delete kustomizations.kustomize.toolkit.fluxcd.io --all",
    }
    assert steps[:6] == [
        "sweep cancel NAME",
        batches[controller],
        "sweep cluster doctor --release",
        f"kubectl delete -k clusters/{controller}",
        "kubectl delete -k clusters/monitoring",
        "kubectl delete -k clusters/platform",
    ]
    assert "1. sweep cancel NAME" in sandbox.sweep("cluster", "bootstrap", controller, "--removal").stdout


def on_a_terminal(sandbox: Sandbox, answers: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command on a terminal on which somebody types."""
    main, terminal = pty.openpty()
    os.write(main, answers.encode())
    command = [sys.executable, "-m", "sweepledger.cli", "cluster", "bootstrap", "argocd", *options]
    try:
        return subprocess.run(command, cwd=sandbox.root, stdin=terminal, capture_output=True, check=False)
    finally:
        os.close(terminal)
        os.close(main)


def test_on_a_terminal_it_asks_before_the_first_files_and_never_again(sandbox: Sandbox) -> None:
    refused = on_a_terminal(sandbox, "ssh://git@git.example.org/a.git\nn\n")
    assert refused.returncode != 0
    assert not (sandbox.root / "clusters").exists()

    done = on_a_terminal(sandbox, "ssh://git@git.example.org/a.git\n\n")

    assert done.returncode == 0, done.stderr
    assert b"deploy key" in done.stderr
    assert "ssh://git@git.example.org/a.git" in (sandbox.root / "clusters/bootstrap.yaml").read_text()
    assert b"identity" in done.stdout  # of the Secrets for this address
    again = on_a_terminal(sandbox, "")
    assert (again.returncode, again.stderr) == (0, b"")


def test_yes_is_an_answer(sandbox: Sandbox) -> None:
    done = on_a_terminal(sandbox, "", "--yes", "--repo", URL)

    assert (done.returncode, done.stderr) == (0, b"")


def test_the_owners_of_workflows_are_those_of_the_git_host(sandbox: Sandbox) -> None:
    assert "/.github/ @YOUR-ORG/YOUR-PLATFORM-TEAM" in codeowners(run_bootstrap(sandbox).workflows)
    sandbox.write(".gitlab-ci.yml", "---\n")

    bootstrapped = run_bootstrap(sandbox)

    assert {f"/.gitlab/ {NO_OWNER}", f"/.gitlab-ci.yml {NO_OWNER}"} <= {*codeowners(bootstrapped.workflows)}


@pytest.mark.parametrize(
    ("controller", "path", "is_protected"),
    [
        *(
            (controller, path, True)
            for controller in (Controller.ARGOCD, Controller.FLUX)
            for path in PROTECTED
        ),
        *((controller, path, False) for controller in (Controller.ARGOCD, Controller.FLUX) for path in LEFT),
        (Controller.ARGOCD, "clusters/flux/active/lr-b1-0a1b2c3d.yaml", True),
        (
            Controller.FLUX,
            "clusters/flux/active/lr-b1-0a1b2c3d.yaml",
            False,
        ),  # it goes when the batch is recorded
    ],
)
def test_the_push_ruleset_keeps_the_collector_to_its_paths(
    sandbox: Sandbox, controller: Controller, path: str, *, is_protected: bool
) -> None:
    run_bootstrap(sandbox, controller)

    rules = json.loads((sandbox.root / "clusters/push-ruleset.json").read_text())

    assert rules["target"] == "push"
    assert {actor["actor_type"] for actor in rules["bypass_actors"]} == {"RepositoryRole"}
    (rule,) = rules["rules"]
    patterns = rule["parameters"]["restricted_file_paths"]
    # GitHub's fnmatch: a star stops at a slash, and two with a slash are any folders, or none.
    expressions = [
        re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*") for pattern in patterns
    ]
    assert any(re.fullmatch(expression, path) for expression in expressions) is is_protected


NAMED = """version: 1
kubernetes: "1.34"
authorities: company-ca/ca.crt
priority_class: batch-low
collector: {priority_class: services}
pools:
  plain: {node: {cpu: 4, memory: 16Gi}}
  gpu:
    node: {cpu: 4, memory: 16Gi}
    pod: {runtime_class: gvisor, service_account: trainer, priority_class: batch-low, claims: {a: one, b: one}}
"""


def test_it_lists_the_objects_that_the_settings_name_and_no_file_declares(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", NAMED)

    done = sandbox.sweep("cluster", "bootstrap", "flux", "--repo", URL, "--branch", "main")

    assert done.returncode == 0, done.stderr
    listed = done.stdout.partition("Create these objects")[2].partition("\n\n")[0].splitlines()[1:]
    assert [line.strip() for line in listed] == [
        "ConfigMap sweeps/company-ca (authorities)",
        "ConfigMap sweeps-collector/company-ca (authorities)",
        "PriorityClass batch-low (trials)",
        "PriorityClass services (collector)",
        "RuntimeClass gvisor (pool gpu)",
        "ServiceAccount sweeps/trainer (pool gpu)",
        "ResourceClaimTemplate sweeps/one (pool gpu)",
    ]
    page = (sandbox.root / "clusters/README.md").read_text()
    for line in listed:
        assert line.strip() in page
    assert "optional/priority-class.yaml`, unless the cluster has PriorityClass `batch-low`" in page


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (
            "ssh://git@git.example.org/lab.git",
            "egress.git.ports: 443, without 22 of ssh://git@git.example.org/",
        ),
        ("https://git.example.org:8443/lab.git", "without 8443"),
        ("https://git.example.org/lab.git", None),
    ],
)
def test_egress_for_git_to_other_ports_is_a_gap(sandbox: Sandbox, url: str, words: str | None) -> None:
    sandbox.write("sweepledger.yaml", EGRESS)

    gaps = [gap for gap in run_bootstrap(sandbox, url=url).gaps if gap.startswith("egress")]

    assert len(gaps) == (words is not None)
    assert words is None or words in gaps[0]


@pytest.fixture(scope="module")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A repository with a merged batch whose server has the hook that bootstrap wrote."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("bootstrapped"))
    sandbox.merged()
    run_bootstrap(sandbox)
    sandbox.publish("Bootstrap")
    install(sandbox)
    return sandbox


@pytest.fixture
def guarded(sandbox: Sandbox, bootstrapped: Sandbox) -> Sandbox:
    """A copy of that repository to push from."""
    sandbox.copy_from(bootstrapped)
    return sandbox


def install(sandbox: Sandbox) -> None:
    hook = sandbox.remote / "hooks/pre-receive"
    hook.write_bytes((sandbox.root / "clusters/pre-receive.sh").read_bytes())
    hook.chmod(0o755)
    install_sweep(hook.parent)


def push(sandbox: Sandbox, *refs: str, pusher: str = "sweep-collector") -> str:
    """Push as somebody; give what the server says, empty where it accepts."""
    words, search = (
        ("push", "-q", "origin", *(refs or ("main",))),
        f"{sandbox.remote}/hooks:{os.environ['PATH']}",
    )
    done = run_program("git", *words, cwd=sandbox.root, REMOTE_USER=pusher, PATH=search)
    return done.stderr if done.returncode else ""


def move(sandbox: Sandbox) -> str:
    (batch,) = sandbox.active()
    sandbox.write(f"results/peak/records/{batch}.jsonl", "")
    sandbox.git("mv", f"overlays/active/{batch}", f"overlays/archive/{batch}")
    sandbox.git("rm", "-q", f"clusters/flux/active/{batch}.yaml")
    return batch


def move_light(sandbox: Sandbox) -> Path:
    """Move lock and table of the active batch, and leave the rest to history; give the folder in the archive."""
    archived = sandbox.root / "overlays/archive" / move(sandbox)
    for name in ("job.yaml", "kustomization.yaml", "launch.json"):
        (archived / name).unlink()
    return archived


@pytest.mark.parametrize("how", [move, move_light])
def test_the_collector_may_push_results_and_the_move_of_their_batch(
    guarded: Sandbox, how: Callable[[Sandbox], object]
) -> None:
    how(guarded)
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})

    assert push(guarded) == ""


def a_link(sandbox: Sandbox) -> None:
    folder = sandbox.write("results/peak/summary.csv", "trial\n").parent
    (folder / "link").symlink_to("/etc/passwd")


Fault = Callable[[Sandbox], object]

FAULTS: dict[str, Fault] = {
    "a spec": lambda sandbox: sandbox.spec("other"),
    "the settings": lambda sandbox: sandbox.write("sweepledger.yaml", "version: 1\n"),
    "a workflow": lambda sandbox: sandbox.write(".github/workflows/x.yaml", "on: push\n"),
    "the platform": lambda sandbox: sandbox.write("clusters/platform/access.yaml", "\n"),
    "what Argo CD follows": lambda sandbox: sandbox.write("clusters/argocd/projects.yaml", "\n"),
    "what Flux follows": lambda sandbox: sandbox.write("clusters/flux/source.yaml", "\n"),
    "its own hook": lambda sandbox: sandbox.write("clusters/pre-receive.sh", "\n"),
    "a new batch": lambda sandbox: sandbox.write("overlays/active/x-b1-00000000/job.yaml", "\n"),
    "an archived batch": lambda sandbox: sandbox.write("overlays/archive/x-b1-00000000/job.yaml", "\n"),
    "a Kustomization": lambda sandbox: sandbox.write("clusters/flux/active/x.yaml", "\n"),
    "a file beside the results": lambda sandbox: sandbox.write("results/x.csv", "\n"),
    "a batch changed": lambda sandbox: sandbox.write(f"overlays/active/{sandbox.active()[0]}/job.yaml", "\n"),
    "a batch changed on the move": lambda sandbox: sandbox.write(
        f"overlays/archive/{move(sandbox)}/job.yaml", "\n"
    ),
    "a table changed on a light move": lambda sandbox: (move_light(sandbox) / "hyperparams.csv").write_text(
        "x\n"
    ),
    "a table left out of a light move": lambda sandbox: (move_light(sandbox) / "hyperparams.csv").unlink(),
    "one of three files left out": lambda sandbox: (
        sandbox.root / f"overlays/archive/{move(sandbox)}/job.yaml"
    ).unlink(),
    "a batch removed": lambda sandbox: sandbox.git("rm", "-rq", f"overlays/active/{sandbox.active()[0]}"),
    "a link in the results": a_link,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_collector_may_push_nothing_else(fault: str, guarded: Sandbox) -> None:
    FAULTS[fault](guarded)
    guarded.commit("Something else")

    assert "the collector may push nothing but" in push(guarded)


@pytest.mark.parametrize("fault", ["a spec", "the platform"])
def test_a_person_is_not_looked_at(fault: str, guarded: Sandbox) -> None:
    FAULTS[fault](guarded)
    guarded.commit("A person's change")

    assert push(guarded, pusher="ada") == ""


def test_what_a_later_commit_undoes_is_refused_all_the_same(guarded: Sandbox) -> None:
    guarded.commit("In", {"secret.txt": "x"})
    guarded.git("rm", "-q", "secret.txt")
    guarded.commit("Out")

    assert "secret.txt" in push(guarded)


def test_the_collector_may_push_and_delete_a_branch_of_partial_results(guarded: Sandbox) -> None:
    branch = "refs/heads/progress/peak"
    guarded.commit("Progress", {"results/peak/summary.csv": "trial\n"})
    assert push(guarded, f"main:{branch}") == ""
    guarded.git("commit", "-q", "--amend", "-m", "Other progress")
    assert "forced" in push(guarded, f"+main:{branch}")
    assert push(guarded, f":{branch}") == ""
    guarded.commit("Something else", {"code/train.py": "other\n"})

    assert "code/train.py" in push(guarded, f"main:{branch}")


def test_the_collector_never_forces_never_deletes_and_pushes_no_other_branch(guarded: Sandbox) -> None:
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})

    assert "refs/heads/other" in push(guarded, "main:other")
    assert "refs/tags/v1" in push(guarded, "main:refs/tags/v1")
    assert "refs/heads/main" in push(guarded, ":main")
    guarded.git("reset", "-q", "--hard", "HEAD~2")
    guarded.commit("Results, rewritten", {"results/peak/summary.csv": "other\n"})
    assert "forced" in push(guarded, "+main")


def test_with_reviews_the_collector_pushes_branches_of_results_only(guarded: Sandbox) -> None:
    run_bootstrap(guarded, mode=ResultsMode.BRANCH)
    guarded.commit("Results by branches")
    assert push(guarded, pusher="ada") == ""
    install(guarded)
    move(guarded)
    guarded.commit("Results", {"results/peak/summary.csv": "trial\n"})

    assert "refs/heads/main" in push(guarded)
    assert "refs/heads/results/peak" in push(guarded, "main:refs/heads/results/peak")
    proposal = "refs/heads/results/peak/0123456789ab"
    assert push(guarded, f"main:{proposal}") == ""
    assert push(guarded, f":{proposal}") == ""
    assert push(guarded, f"main:{proposal}") == ""
    guarded.git("commit", "-q", "--amend", "-m", "Other results")
    assert "forced" in push(guarded, f"+main:{proposal}")
    assert "refs/heads/main" in push(guarded, ":main")


def test_what_the_platform_is_made_from_is_the_repositorys_own_from_then_on(sandbox: Sandbox) -> None:
    run_bootstrap(sandbox)
    base = sandbox.root / "base/platform/team/v1/collector.yaml"
    before = (sandbox.root / "clusters/platform/collector.yaml").read_text()

    replace_in(base, "activeDeadlineSeconds: 1800", "activeDeadlineSeconds: 900")
    run_bootstrap(sandbox)

    after = (sandbox.root / "clusters/platform/collector.yaml").read_text()
    assert after == before.replace("activeDeadlineSeconds: 1800", "activeDeadlineSeconds: 900")
    assert (sandbox.root / "base/platform/team/v1/namespace.yaml").is_file()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="skipped: ssh-keygen not found")
def test_by_the_printed_commands_git_itself_says_who_signed(sandbox: Sandbox, tmp_path: Path) -> None:
    make, say = key_pair_commands()
    done = run_program("sh", "-euc", f"{make}\n{say}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sandbox.write("sweepledger.yaml", f"version: 1\nsigners:\n- '{done.stdout.strip()}'\n")
    run_bootstrap(sandbox)
    key = tmp_path / "signing"
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "true")):
        sandbox.git("config", name, value)
    publish(sandbox.workspace.repository, "origin", "main", lambda _: Change("Results", {"results/x/y": b""}))

    sandbox.git("config", "gpg.ssh.allowedSignersFile", "clusters/allowed_signers")

    assert sandbox.git("log", "-1", "--format=%G? %GS", "origin/main") == "G sweepledger@localhost\n"


def test_where_results_expire_it_says_what_that_needs_and_what_it_may_reach(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\nresults: {keep: 30d}\n")

    result = run_bootstrap(sandbox)

    assert (sandbox.root / "clusters/platform/expiry.yaml").is_file()
    assert (sandbox.root / "base/platform/team/v1/expiry.yaml").is_file()
    assert ("sweeps", "sweep-git-read") in {(secret.namespace, secret.name) for secret in secrets_of(result)}
    assert [gap for gap in result.gaps if "what deletes old results may reach every host" in gap]


COMPONENT = """apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {kind: ResourceQuota, name: sweep-trials}
    patch: |
      - {op: replace, path: /spec/hard/count~1jobs.batch, value: "70"}
"""


@pytest.mark.parametrize(
    ("clusters", "place"), [("", "clusters"), ("clusters: {eu: {}}\ncontroller: flux", "clusters/eu")]
)
def test_a_component_of_the_team_changes_what_is_applied(
    clusters: str, place: str, sandbox: Sandbox, needs_kustomize: None
) -> None:
    sandbox.write("sweepledger.yaml", f"version: 1\n{clusters}\n")
    run_bootstrap(sandbox)
    sandbox.write(f"{place.replace('clusters', 'clusters/extra', 1)}/platform/kustomization.yaml", COMPONENT)

    result = run_bootstrap(sandbox)

    assert result.written == ("clusters/bootstrap.yaml", f"{place}/platform/kustomization.yaml")
    built = kustomize.build(sandbox.root / place / "platform")
    quota = next(made for made in built if made["metadata"]["name"] == "sweep-trials")
    assert quota["spec"]["hard"]["count/jobs.batch"] == "70"
    assert run_bootstrap(sandbox).written == ()
