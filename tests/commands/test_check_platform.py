"""`sweep check` and `clusters/`: what the settings give otherwise, what was edited, what is not allowed."""

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.generate import generate
from sweepledger.commands.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.problems import Problem, Severity
from sweepledger.structs.settings import Controller
from sweepledger.structs.values import bytes_digest
from tests.commands.test_bootstrap import URL, distributed
from tests.repository import Sandbox

SETTINGS = f"defaults: {{image: registry.example.org/trainer@sha256:{'1' * 64}}}\n"
NETWORK = "clusters/platform/network.yaml"


@pytest.fixture(scope="module", params=[Controller.ARGOCD, Controller.FLUX])
def pristine(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Sandbox:
    """A repository with a merged batch and a platform, and nothing wrong in it."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("pristine"))
    sandbox.write("sweepledger.yaml", SETTINGS)
    sandbox.merged()
    bootstrap(sandbox.workspace, BootstrapRequest(request.param, URL, "main"))
    sandbox.commit("Bootstrap")
    sandbox.push()
    assert problems(sandbox) == []
    return sandbox


@pytest.fixture
def standing(sandbox: Sandbox, pristine: Sandbox) -> Sandbox:
    """A copy of that repository to change."""
    sandbox.copy_from(pristine)
    return sandbox


def problems(sandbox: Sandbox) -> list[Problem]:
    sandbox.git("add", "--all")
    return list(check(sandbox.workspace).problems)


def settings(sandbox: Sandbox, more: str) -> None:
    sandbox.write("sweepledger.yaml", (sandbox.root / "sweepledger.yaml").read_text() + more)


def test_other_settings_want_another_bootstrap(standing: Sandbox) -> None:
    settings(standing, "egress:\n  hub: {cidrs: [192.0.2.0/24], ports: [443]}\n")

    found = problems(standing)

    assert {one.code for one in found} == {"drift"}
    assert {"clusters/bootstrap.yaml", NETWORK} <= {one.file for one in found}
    assert "sweep bootstrap" in str(found[0].hint)
    bootstrap(standing.workspace, BootstrapRequest(standing.workspace.settings.controller))
    assert problems(standing) == []


def test_a_file_that_vanished_is_drift(standing: Sandbox) -> None:
    (standing.root / NETWORK).unlink()

    (found,) = problems(standing)

    assert (found.file, found.message, found.code) == (NETWORK, "is missing", "drift")


def test_an_edit_is_refused_where_the_platform_changes_and_shown_elsewhere(standing: Sandbox) -> None:
    standing.write(NETWORK, "# mine\n")

    (found,) = problems(standing)

    assert (found.file, found.code, found.severity) == (NETWORK, "platform-edited", Severity.ERROR)
    bootstrap(standing.workspace, BootstrapRequest(standing.workspace.settings.controller))
    assert [one.code for one in problems(standing)] == ["platform-edited"]
    standing.commit("Past the check")
    standing.push()
    standing.spec(xs="1, 2, 3, 4")
    generate(standing.workspace)
    assert [(one.code, one.severity) for one in problems(standing)] == [("platform-edited", Severity.WARNING)]
    settings(standing, "budgets: {everybody: {gpu_hours: 100000}}\n")
    assert ("platform-edited", Severity.ERROR) in {(one.code, one.severity) for one in problems(standing)}


def test_an_edit_that_is_entered_into_the_record_is_drift_all_the_same(standing: Sandbox) -> None:
    old = bytes_digest((standing.root / NETWORK).read_bytes())
    standing.write(NETWORK, "# mine\n")
    record = standing.root / "clusters/bootstrap.yaml"
    record.write_text(record.read_text().replace(old, bytes_digest(b"# mine\n")))

    assert {(one.file, one.code) for one in problems(standing)} == {
        (NETWORK, "drift"),
        ("clusters/bootstrap.yaml", "drift"),
    }


def test_a_record_that_is_gone_or_cannot_be_read_is_drift(standing: Sandbox) -> None:
    record = standing.root / "clusters/bootstrap.yaml"

    record.write_text("version: 7\n")
    (unreadable,) = problems(standing)
    record.unlink()
    (missing,) = problems(standing)

    assert (unreadable.code, missing.code) == ("drift", "drift")
    assert "version 1" in unreadable.message
    assert missing.message == "is missing"


@pytest.mark.parametrize(
    ("key", "says"),
    [("controller: submit", "controller: submit"), ("branch: other", "follows branch 'main'")],
)
def test_settings_that_the_record_contradicts_are_drift(key: str, says: str, standing: Sandbox) -> None:
    text = (standing.root / "sweepledger.yaml").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(key.partition(" ")[0])]
    standing.write("sweepledger.yaml", "\n".join([*kept, key, ""]))

    found = check(standing.workspace, base="HEAD").problems

    assert [one.code for one in found if says in one.message] == ["drift"]


def test_a_shape_that_the_platform_does_not_allow_is_refused_until_bootstrap_saw_it(
    standing: Sandbox,
) -> None:
    distributed(standing)
    generate(standing.workspace)

    refused = [one for one in problems(standing) if one.code == "shape-not-allowed"]

    assert [one.file.partition("-b1")[0] for one in refused] == ["overlays/active/wide", "sweeps/wide.yaml"]
    bootstrap(standing.workspace, BootstrapRequest(standing.workspace.settings.controller))
    assert not [one for one in problems(standing) if one.severity is Severity.ERROR]


def test_without_a_platform_there_is_nothing_to_hold_against_the_settings(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", SETTINGS + "controller: argocd\n")
    sandbox.commit("Argo CD")
    sandbox.merged()

    assert problems(sandbox) == []


def test_a_warning_of_the_settings_is_shown(sandbox: Sandbox) -> None:
    settings(sandbox, 'egress: {all: {cidrs: ["::/0"], ports: [443]}}\n')

    (found,) = problems(sandbox)

    assert (found.code, found.severity) == ("egress-everywhere", Severity.WARNING)


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "", "kind: Namespace\n", "metadata: 1\n", "a: *b\n"])
def test_a_base_of_the_platform_that_is_none_is_a_problem_and_no_crash(standing: Sandbox, text: str) -> None:
    (path,) = (standing.root / "base/namespace/v1").glob("*.yaml")
    path.write_text(text)

    assert "base-changed" in {one.code for one in problems(standing)}
