"""`sweep lint`: anybody's manifests, from files, folders and pipes, in a repository of ours or elsewhere."""

import json
import subprocess
from pathlib import Path

import pytest

from sweepledger.commands.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.command_line import run_sweep
from tests.repository import Sandbox

PAIRS = Path(__file__).parent.parent / "policy/manifests"
VALID, INVALID = PAIRS / "valid/fault-13-name.yaml", PAIRS / "invalid/fault-13-name.yaml"
NEVER_HEARD_OF = "apiVersion: example.com/v1\nkind: Workflow\nmetadata: {name: flow}\n"
SECRET_POD = PAIRS / "valid/mount-twice.yaml"


def lint(
    *arguments: str, cwd: Path, stdin: bytes = b"", form: str = "text"
) -> subprocess.CompletedProcess[str]:
    return run_sweep("lint", f"--format={form}", *arguments, cwd=cwd, stdin=stdin)


def test_valid_manifests_are_counted_and_exit_with_0_outside_a_repository(tmp_path: Path) -> None:
    done = lint(str(VALID), cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 object(s) checked, 0 skipped\n"


def test_a_problem_has_file_line_object_path_code_and_hint(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(INVALID.read_bytes())

    done = lint("job.yaml", cwd=tmp_path)

    assert done.returncode == 5
    assert done.stderr.startswith("job.yaml:4:12: Job/Sweep_CIFAR.metadata.name: must be a DNS-1123 name")
    assert "[name-invalid]\n  hint: lower-case letters" in done.stderr


def test_json_has_the_same_as_data(tmp_path: Path) -> None:
    done = lint("-", cwd=tmp_path, stdin=INVALID.read_bytes(), form="json")

    document = json.loads(done.stdout)
    assert (done.returncode, document["status"], document["data"]["objects"]) == (
        5,
        "problems",
        ["Job/Sweep_CIFAR"],
    )
    (problem,) = document["problems"]
    assert (problem["file"], problem["line"], problem["code"]) == ("<stdin>", 4, "name-invalid")


def test_a_folder_is_read_with_all_that_is_below_it_as_one_set(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/one.yaml").write_bytes(VALID.read_bytes())
    (tmp_path / "a/b/two.yml").write_bytes(VALID.read_bytes())
    (tmp_path / "a/notes.txt").write_text("kind: none of mine")

    done = lint("a", cwd=tmp_path)

    assert done.returncode == 5
    assert done.stderr.count("[name-duplicate]") == 2
    assert "a/b/two.yml:" in done.stderr


def test_many_documents_each_have_their_own_lines(tmp_path: Path) -> None:
    documents = [VALID.read_text(), INVALID.read_text()]
    (tmp_path / "all.yaml").write_text("---\n".join(documents))

    done = lint("all.yaml", cwd=tmp_path)

    line = documents[0].count("\n") + 1 + 4
    assert done.stderr.startswith(f"all.yaml:{line}:12: Job/Sweep_CIFAR.metadata.name")


def test_the_items_of_a_list_are_checked(tmp_path: Path) -> None:
    items = "".join(f"  {line}\n" for line in INVALID.read_text().splitlines()[1:])
    text = f"apiVersion: v1\nkind: List\nitems:\n-{items[1:]}"

    done = lint("-", cwd=tmp_path, stdin=text.encode())

    assert done.stderr.startswith("<stdin>:6:14: Job/Sweep_CIFAR.metadata.name")


def test_a_kind_without_schema_is_skipped_and_never_passed(tmp_path: Path) -> None:
    done = lint("-", cwd=tmp_path, stdin=NEVER_HEARD_OF.encode())

    assert done.returncode == 0
    assert done.stdout == "0 object(s) checked, 1 skipped\n"
    assert "warning: skipped: no schema for Workflow of example.com/v1 [kind-skipped]" in done.stderr


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"a: [", "yaml-syntax"),
        (b"a: \xff", "not-utf8"),
        (b"", "empty-file"),
        (b"kind: &a Job\nb: *a\n", "alias"),
        (b"[" * 1_000, "too-large"),
        (b"a: " + b"9" * 5_000, "number-range"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_manifests_that_readers_interpret_differently_exit_with_1(
    content: bytes, code: str, tmp_path: Path
) -> None:
    done = lint("-", cwd=tmp_path, stdin=content)

    assert done.returncode == 1
    assert f"[{code}]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX])
def test_files_of_bootstrap_pass_and_its_lock_is_skipped_by_name(
    controller: Controller, sandbox: Sandbox
) -> None:
    bootstrap(
        sandbox.workspace,
        BootstrapRequest(controller, url="https://git.example.org/sweeps.git", branch="main"),
    )

    done = lint("clusters", cwd=sandbox.root)

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" skipped; 1 document(s) are not manifests\n")
    assert (
        ": warning: skipped: not a manifest, it has neither apiVersion nor kind [kind-skipped]" in done.stderr
    )
    assert "clusters/bootstrap.yaml:" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\n",
        "kind: Job\n",
        "ApiVersion: v1\nKind: Job\n",
        "metadata: {name: x}\n",
        "- {kind: Job}\n",
        "items: [{spec: {}}]\n",
    ],
)
def test_a_manifest_with_something_missing_or_misspelt_never_passes(text: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_bytes(VALID.read_bytes())

    done = lint("job.yaml", "-", cwd=tmp_path, stdin=text.encode())

    assert done.returncode == 5
    assert "must be an object with apiVersion and kind [manifest-malformed]" in done.stderr
    assert "None" not in done.stderr
    assert done.stdout == "1 object(s) checked, 0 skipped\n"


def test_a_file_without_any_manifest_is_no_pass(tmp_path: Path) -> None:
    done = lint("-", cwd=tmp_path, stdin=b"replicas: 3\n")

    assert done.returncode == 1
    assert "<stdin>: must contain an object: nothing was checked [empty-file]" in done.stderr


def test_unreadable_paths_are_reported_and_counted(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Big}\ndata: [x]\n"

    done = lint("-", cwd=tmp_path, stdin=text.encode())
    data = json.loads(lint("-", cwd=tmp_path, stdin=text.encode(), form="json").stdout)["data"]

    assert done.returncode == 5
    assert "the other rules are applied once its fields are valid" in done.stderr
    assert done.stdout == "0 object(s) checked, 0 skipped, 1 by schema alone\n"
    assert (data["objects"], data["partly"]) == ([], ["ConfigMap/Big"])


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    assert lint("none.yaml", cwd=tmp_path).returncode == 2
    assert lint(".", cwd=tmp_path).returncode == 2


def test_in_a_repository_only_listed_secrets_are_mounted_beside_the_trials(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    text = SECRET_POD.read_text().replace("emptyDir: {sizeLimit: 1Gi}", "secret: {secretName: deploy-key}")
    assert "deploy-key" in text

    here = lint("-", cwd=sandbox.root, stdin=text.encode())
    elsewhere = lint("-", cwd=tmp_path, stdin=text.encode())

    assert here.returncode == 5
    assert "must be a Secret that sweepledger.yaml lists, got 'deploy-key' [secret-not-listed]" in here.stderr
    assert elsewhere.returncode == 0


def test_a_kustomization_among_manifests_is_no_object_of_a_cluster(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kustomization.yaml").write_text(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [job.yaml]\n"
        )

    done = lint("a", "b", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stderr.count("skipped: a source; build it") == 2
