import json
import re
from pathlib import Path
from typing import Any

import pytest

from sweepledger import __version__
from sweepledger.errors import GeneratorError, RepositoryError, UsageError
from sweepledger.formats import yaml
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold import init as scaffold
from sweepledger.operations.scaffold.init import init
from sweepledger.structs.platform import WITH_WORKFLOWS
from sweepledger.structs.settings import Controller, GenerateMode, NextRoundMode
from sweepledger.verbs.cluster.upgrade import upgrade_files
from tests.command_line import git, run_sweep
from tests.repository import IMAGE, append_to, replace_in


@pytest.mark.parametrize("controller", ["argocd", "flux", "submit", "none"])
def test_a_new_repository_is_whole_and_clean(tmp_path: Path, controller: str) -> None:
    made = init(tmp_path / "lab", controller=controller)

    root = tmp_path / "lab"
    assert git(root, "rev-parse", "main").strip() == made.commit
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "ls-files").split() == list(made.files)
    assert {"overlays/active/.gitkeep", "overlays/archive/.gitkeep", "sweeps/.schema.json"} <= set(made.files)
    assert any(path.startswith("base/launcher/v1/") for path in made.files)
    bases = {path.split("/")[1] for path in made.files if path.startswith("base/")}
    assert bases == {"components", "jobs", "launcher", "trial"}, "the rest comes with what needs it"
    assert not any(path.startswith(("generator/", "clusters/", "tests/")) for path in made.files)
    assert Workspace.find(root).settings.platform.controller is Controller(controller)
    page = (root / "README.md").read_text()
    assert f"needs sweepledger {__version__}" in page
    assert (f"sweep cluster bootstrap {controller}" in page) is (controller in {"argocd", "flux"})
    assert ("## First: an image" in page) is (controller != "none")
    if controller == "none":
        assert Workspace.find(root).sweeps()[0].name == scaffold.EXAMPLE


def test_nothing_is_pinned_linked_or_promised_that_does_not_exist(tmp_path: Path) -> None:
    made = init(tmp_path / "lab")

    assert "requirements.txt" not in made.files
    page = (tmp_path / "lab/README.md").read_text()
    assert "http" not in page
    assert ".github/sweep.lock" in page


@pytest.mark.sampled(1)
@pytest.mark.parametrize("controller", ["argocd", "flux", "submit"])
def test_the_first_step_for_a_cluster_is_told_and_enough(tmp_path: Path, controller: str) -> None:
    done = run_sweep("cluster", "init", "lab", "--controller", controller, cwd=tmp_path)
    root = tmp_path / "lab"
    refused = run_sweep("generate", cwd=root)
    tried = run_sweep("try", "peak", cwd=root)
    settings = (root / "sweepledger.yaml").read_text()
    (root / "sweepledger.yaml").write_text(f"{settings}defaults: {{image: '{IMAGE}'}}\n")

    assert "sweep cluster pin trainer --repository REPO --tag TAG" in done.stdout
    assert (f"sweep cluster bootstrap {controller} --repo URL" in done.stdout) is (controller != "submit")
    assert (refused.returncode, "[image-missing]" in refused.stderr) == (1, True)
    assert tried.returncode == 0, tried.stderr
    assert run_sweep("validate", cwd=root).returncode == 0


def commit(root: Path, message: str) -> None:
    git(root, "add", "--all")
    git(root, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "-m", message)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("generate", ["in-pull-request", "on-merge"])
def test_a_new_example_stops_no_other_change(tmp_path: Path, needs_kustomize: None, generate: str) -> None:
    run_sweep("cluster", "init", "lab", "--generate", generate, cwd=tmp_path)
    root = tmp_path / "lab"

    fresh = run_sweep("check", cwd=root)
    (root / "README.md").write_text("Ours.\n")
    commit(root, "Say whose it is")
    other = run_sweep("check", "--base", "HEAD^", cwd=root)
    replace_in(root / "sweeps/peak.yaml", "[1, 2, 3]", "[1, 2, 3, 4]")
    edited = run_sweep("check", cwd=root)

    assert (fresh.returncode, other.returncode) == (0, 0), fresh.stderr + other.stderr
    assert all("warning: 6 trial(s) that no batch lists" in one.stderr for one in (fresh, other))
    assert all(
        ("run `sweep generate peak`" in one.stderr) is (generate != "on-merge") for one in (fresh, other)
    )
    assert edited.returncode == (0 if generate == "on-merge" else 5), edited.stderr
    assert "8 trial(s) that no batch lists" in edited.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize("controller", ["argocd", "flux", "submit"])
def test_image_and_first_batch_pass_check(tmp_path: Path, needs_kustomize: None, controller: str) -> None:
    run_sweep("cluster", "init", "lab", "--controller", controller, cwd=tmp_path)
    root = tmp_path / "lab"
    append_to(root / "sweepledger.yaml", f"defaults: {{image: '{IMAGE}'}}\n")
    commit(root, "Name the image")
    image = run_sweep("check", "--base", "HEAD^", cwd=root)

    run_sweep("generate", "peak", cwd=root)
    commit(root, "Ask for the first batch")
    batch = run_sweep("check", "--base", "HEAD^", cwd=root)

    assert (image.returncode, batch.returncode) == (0, 0), image.stderr + batch.stderr


def test_the_next_command_can_be_typed_as_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = run_sweep("cluster", "init", ".", cwd=tmp_path / "here")
    there = run_sweep("cluster", "init", "our lab", "--name", "lab", cwd=tmp_path)

    assert "next: sweep try peak\n" in here.stdout
    assert "next: cd 'our lab' && sweep try peak\n" in there.stdout
    assert all(
        "then: `sweep generate peak`, and commit the files that it writes" in one.stdout
        for one in (here, there)
    )


def test_every_commented_setting_is_one_that_can_be_set(tmp_path: Path) -> None:
    init(tmp_path / "lab")
    path = tmp_path / "lab/sweepledger.yaml"
    keys = re.compile(r"^# (?=( {2}[a-z]+:|[a-z]+:))", re.MULTILINE)
    text = keys.sub("", path.read_text()).replace("sha256:…", f"sha256:{'0' * 64}")
    text = text.replace("trainer:v1", f"trainer:v1@sha256:{'0' * 64}")
    path.write_text(text)

    settings = Workspace.find(tmp_path / "lab").settings

    expected = (["trainer"], ["digits"], ["cpu"])
    assert (
        list(settings.trials.images),
        list(settings.trials.datasets),
        list(settings.trials.pools),
    ) == expected


def test_the_first_commit_has_an_author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "nobody")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ada@example.org")
    init(tmp_path / "hers")

    assert git(tmp_path / "nobody", "log", "-1", "--format=%an").strip() == "sweepledger"
    assert git(tmp_path / "hers", "log", "-1", "--format=%an %ce").strip() == "Ada ada@example.org"


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    before = (tmp_path / "lab").stat().st_ino

    init(tmp_path / "lab")

    assert (tmp_path / "lab").stat().st_ino == before
    assert git(tmp_path / "lab", "status", "--porcelain") == ""


def test_a_folder_that_holds_anything_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")

    with pytest.raises(UsageError, match="is not an empty folder"):
        init(tmp_path, name="lab")

    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_repository_is_not_put_into_another_one(tmp_path: Path) -> None:
    init(tmp_path / "lab")

    with pytest.raises(RepositoryError, match="would be inside"):
        init(tmp_path / "lab/code/inner")

    assert not (tmp_path / "lab/code/inner").exists()


@pytest.mark.parametrize("existed", [False, True], ids=["new", "empty"])
def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, existed: bool) -> None:
    if existed:
        (tmp_path / "lab").mkdir()
    monkeypatch.setenv("PATH", "")  # no git

    with pytest.raises(GeneratorError):
        init(tmp_path / "lab")

    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["lab"] * existed


@pytest.mark.parametrize("name", ["a b", "-x", "x\ny", "é"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid name for a repository"):
        init(tmp_path / "lab", name=name)


def test_another_server_has_its_runners_and_its_app_in_the_files(tmp_path: Path) -> None:
    init(tmp_path / "ghes", runner="pool-3", checks_app=42)
    init(tmp_path / "gitlab", host="gitlab", runner="pool-3")

    workflows = [path.read_text() for path in (tmp_path / "ghes/.github/workflows").iterdir()]
    assert {line for text in workflows for line in text.splitlines() if "runs-on:" in line} == {
        "    runs-on: pool-3"
    }
    assert '"integration_id": 42}' in (tmp_path / "ghes/.github/rulesets/main.json").read_text()
    ci = yaml.load((tmp_path / "gitlab/.gitlab-ci.yml").read_bytes())
    assert ci["default"]["tags"] == ["pool-3"]


@pytest.mark.parametrize("name", WITH_WORKFLOWS)
def test_each_git_host_has_its_workflows_runners_and_pinned_version(tmp_path: Path, name: str) -> None:
    host, root = WITH_WORKFLOWS[name], tmp_path / "all"
    plain = init(tmp_path / "plain", host=name).files
    whole = init(root, host=name, runner="pool-3", generate="on-merge", next_="workflow", pages=True).files

    packaged = tuple(path for path in whole if path.startswith(host.workflows) and path != host.pin_file)
    assert {"check", "results"} <= {Path(path).stem for path in packaged if path in plain}
    assert {Path(path).stem for path in {*whole} - {*plain}} - {"preview"} == {"generate", "next", "site"}
    others = tuple(path for other in WITH_WORKFLOWS.values() if other is not host for path in other.workflows)
    assert not [path for path in whole if path.startswith(others)]
    texts = [(root / path).read_text() for path in packaged]
    assert any(host.runner[1].format("pool-3") in text for text in texts)
    assert not any(host.runner[0] in text.replace(host.runner[1].format("pool-3"), "") for text in texts)
    assert host.pin_file in (root / "README.md").read_text()

    (root / host.pin_file).write_text("sweepledger[sampling]==0.0.1\n")
    assert upgrade_files(Workspace.find(root)).written == (host.pin_file,)


@pytest.mark.parametrize(
    "options", [{}, {"runner": "pool-3"}, {"runner": "gitea", "checks_app": 42}], ids=str
)
def test_no_required_job_ends_with_an_action_that_another_server_refuses(
    options: dict[str, Any], tmp_path: Path
) -> None:
    init(tmp_path / "lab", **options)

    rules = json.loads((tmp_path / "lab/.github/rulesets/main.json").read_text())["rules"]
    (checks,) = [rule["parameters"] for rule in rules if rule["type"] == "required_status_checks"]
    required = {check["context"] for check in checks["required_status_checks"]}
    texts = [path.read_bytes() for path in (tmp_path / "lab/.github/workflows").iterdir()]
    jobs = [job for text in texts for job in yaml.load(text)["jobs"].values() if job["name"] in required]
    steps = [step for job in jobs for step in job["steps"]]
    assert len(jobs) == len(required)
    assert (
        [step for step in steps if step.get("continue-on-error")]
        == [step for step in steps if "artifact@" in step.get("uses", "")]
        != []
    )


@pytest.mark.parametrize("runner", ["a b", "", "x\ny", "${{ github.head_ref }}"])
def test_a_label_that_is_none_is_refused(tmp_path: Path, runner: str) -> None:
    with pytest.raises(UsageError, match="is not a valid label of a runner"):
        init(tmp_path / "lab", runner=runner)


def test_workflows_are_the_packaged_ones_and_write_on_merge_by_choice(tmp_path: Path) -> None:
    packaged = Path(scaffold.__file__).parents[1] / "workflows"

    plain = set(init(tmp_path / "plain").files)
    chosen = ("--generate", "on-merge", "--next", "workflow", "--pages")
    assert run_sweep("cluster", "init", "merging", *chosen, cwd=tmp_path).returncode == 0

    for name in ("generate", "next", "site", "preview"):
        workflow = f".github/workflows/{name}.yaml"
        assert (workflow in plain, (tmp_path / "merging" / workflow).is_file()) == (False, True)
    settings = Workspace.find(tmp_path / "merging").settings
    assert (settings.git.generate, settings.git.next) == (GenerateMode.ON_MERGE, NextRoundMode.WORKFLOW)
    for path in packaged.rglob("*.*"):
        inside = path.relative_to(packaged)
        if path.is_file() and inside.parts[0] == ".github":
            assert (tmp_path / "merging" / inside).read_bytes() == path.read_bytes()
    assert (tmp_path / "plain/.github/sweep.in").read_text() == f"sweepledger[sampling]=={__version__}\n"


def test_the_namespace_is_derived_once_and_a_renamed_clone_keeps_it(tmp_path: Path) -> None:
    init(tmp_path / "vision-lab")
    text = (tmp_path / "vision-lab/sweepledger.yaml").read_text()
    git(tmp_path, "clone", "-q", str(tmp_path / "vision-lab"), str(tmp_path / "other-name"))
    older = tmp_path / "other-name/sweepledger.yaml"

    namespaces = [
        Workspace.find(tmp_path / name).settings.trials.namespace for name in ("vision-lab", "other-name")
    ]
    older.write_text(re.sub(r"^namespace: .*\n", "", text, flags=re.MULTILINE))

    assert namespaces == ["vision-lab-sweeps"] * 2
    assert re.search(r"^namespace: vision-lab-sweeps\b", text, re.MULTILINE)
    # A repository from before keeps the one that all had.
    assert Workspace.find(tmp_path / "other-name").settings.trials.namespace == "sweeps"
