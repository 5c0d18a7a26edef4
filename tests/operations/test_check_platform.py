"""`sweep check` and `clusters/`: what the settings give otherwise, what was edited, what is not allowed."""

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.problems import Problem, Severity
from sweepledger.render.platform.manual_setup import NO_OWNER
from sweepledger.structs.settings import Controller
from sweepledger.structs.values import bytes_digest
from tests.operations.test_bootstrap import URL, distributed
from tests.repository import Sandbox, replace_in

SETTINGS = f"defaults: {{image: registry.example.org/trainer@sha256:{'1' * 64}}}\n"
NETWORK = "clusters/platform/network.yaml"


@pytest.fixture(scope="module", params=[Controller.ARGOCD, Controller.FLUX])
def pristine(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Sandbox:
    """A repository with a merged batch and a platform, and nothing wrong in it."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("pristine"))
    sandbox.write("sweepledger.yaml", SETTINGS)
    sandbox.merged()
    bootstrap(sandbox.workspace, BootstrapRequest(request.param, URL, "main"))
    sandbox.publish("Bootstrap")
    assert problems(sandbox) == []
    return sandbox


@pytest.fixture
def platform_sandbox(sandbox: Sandbox, pristine: Sandbox) -> Sandbox:
    """A copy of that repository to change."""
    sandbox.copy_from(pristine)
    return sandbox


def problems(sandbox: Sandbox) -> list[Problem]:
    sandbox.git("add", "--all")
    return list(sandbox.check().problems)


def settings(sandbox: Sandbox, more: str) -> None:
    sandbox.write("sweepledger.yaml", (sandbox.root / "sweepledger.yaml").read_text() + more)


@pytest.mark.sampled(1)
def test_other_settings_want_another_bootstrap(platform_sandbox: Sandbox) -> None:
    settings(platform_sandbox, "egress:\n  hub: {cidrs: [192.0.2.0/24], ports: [443]}\n")

    errors = problems(platform_sandbox)

    assert {problem.code for problem in errors} == {"drift"}
    assert {"clusters/bootstrap.yaml", NETWORK} <= {problem.file for problem in errors}
    assert "sweep cluster bootstrap" in str(errors[0].hint)
    bootstrap(
        platform_sandbox.workspace, BootstrapRequest(platform_sandbox.workspace.settings.platform.controller)
    )
    assert problems(platform_sandbox) == []


def test_an_edit_that_is_entered_into_the_record_and_what_is_gone_are_drift(
    platform_sandbox: Sandbox,
) -> None:
    network, record = platform_sandbox.root / NETWORK, platform_sandbox.root / "clusters/bootstrap.yaml"
    old, text = network.read_bytes(), record.read_text()

    network.unlink()
    (vanished,) = problems(platform_sandbox)
    network.write_text("# mine\n")
    replace_in(record, bytes_digest(old), bytes_digest(b"# mine\n"))
    edited = problems(platform_sandbox)
    network.write_bytes(old)
    record.write_text("version: 7\n")
    (unreadable,) = problems(platform_sandbox)
    record.unlink()
    (missing,) = problems(platform_sandbox)

    assert (vanished.file, vanished.message, vanished.code) == (NETWORK, "is missing", "drift")
    expected = {(NETWORK, "drift"), ("clusters/bootstrap.yaml", "drift")}
    assert {(problem.file, problem.code) for problem in edited} == expected
    assert (unreadable.code, missing.code, missing.message) == ("drift", "drift", "is missing")
    assert "version 1" in unreadable.message
    record.write_text(text)
    assert problems(platform_sandbox) == []


@pytest.mark.sampled(1)
def test_an_edit_is_refused_where_the_platform_changes_and_shown_elsewhere(platform_sandbox: Sandbox) -> None:
    platform_sandbox.write(NETWORK, "# mine\n")

    (problem,) = problems(platform_sandbox)

    assert (problem.file, problem.code, problem.severity) == (NETWORK, "platform-edited", Severity.ERROR)
    bootstrap(
        platform_sandbox.workspace, BootstrapRequest(platform_sandbox.workspace.settings.platform.controller)
    )
    assert [item.code for item in problems(platform_sandbox)] == ["platform-edited"]
    platform_sandbox.publish("Past the check")
    platform_sandbox.propose(xs="1, 2, 3, 4")
    assert [(item.code, item.severity) for item in problems(platform_sandbox)] == [
        ("platform-edited", Severity.WARNING)
    ]
    settings(platform_sandbox, "budgets: {everybody: {gpu_hours: 100000}}\n")
    assert ("platform-edited", Severity.ERROR) in {
        (item.code, item.severity) for item in problems(platform_sandbox)
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("key", "says"),
    [("controller: submit", "controller: submit"), ("branch: other", "follows branch 'main'")],
)
def test_settings_against_the_record_are_drift(key: str, says: str, platform_sandbox: Sandbox) -> None:
    text = (platform_sandbox.root / "sweepledger.yaml").read_text()
    kept = [line for line in text.splitlines() if not line.startswith(key.partition(" ")[0])]
    platform_sandbox.write("sweepledger.yaml", "\n".join([*kept, key, ""]))

    errors = platform_sandbox.check(base="HEAD").problems

    assert [problem.code for problem in errors if says in problem.message] == ["drift"]


@pytest.mark.sampled(1)
def test_a_shape_is_refused_until_bootstrap_allows_it(platform_sandbox: Sandbox) -> None:
    distributed(platform_sandbox)
    platform_sandbox.generate()

    refused = [problem for problem in problems(platform_sandbox) if problem.code == "shape-not-allowed"]

    assert [problem.file.partition("-b1")[0] for problem in refused] == [
        "overlays/active/wide",
        "sweeps/wide.yaml",
    ]
    bootstrap(
        platform_sandbox.workspace, BootstrapRequest(platform_sandbox.workspace.settings.platform.controller)
    )
    assert not [problem for problem in problems(platform_sandbox) if problem.severity is Severity.ERROR]


def test_without_a_platform_there_is_nothing_to_hold_against_the_settings(sandbox: Sandbox) -> None:
    sandbox.commit("Argo CD", {"sweepledger.yaml": SETTINGS + "controller: argocd\n"})
    sandbox.merged()

    assert problems(sandbox) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ["a: [", "- 1\n", "", "kind: Namespace\n", "metadata: 1\n", "a: *b\n"])
def test_a_platform_base_that_is_none_is_a_problem(platform_sandbox: Sandbox, text: str) -> None:
    (platform_sandbox.root / "base/platform/team/v1/namespace.yaml").write_text(text)

    assert "base-changed" in {problem.code for problem in problems(platform_sandbox)}


def test_a_new_secret_in_the_clear_is_refused_and_a_sealed_one_is_not(platform_sandbox: Sandbox) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: hub}\nstringData: {token: %s}\n"
    sealed = "ENC[AES256_GCM,data:aa==,iv:bb==,tag:cc==,type:str]"
    path = "clusters/extra/hub.yaml"
    platform_sandbox.write(path, text % f"'{sealed}'" + f"sops: {{mac: '{sealed}'}}\n")
    assert problems(platform_sandbox) == []

    platform_sandbox.write(path, text % "hunter2")

    (problem,) = problems(platform_sandbox)
    assert (problem.file, problem.code, problem.severity) == (path, "secret-exposed", Severity.ERROR)
    platform_sandbox.publish("Past the check")
    assert problems(platform_sandbox) == []


def test_a_platform_without_owners_is_refused_until_somebody_is_named(platform_sandbox: Sandbox) -> None:
    owners = "# Replace @YOUR-ORG/YOUR-PLATFORM-TEAM\n/base/  %s\n"
    platform_sandbox.write(".github/CODEOWNERS", owners % NO_OWNER)
    platform_sandbox.publish("As init writes it")
    assert problems(platform_sandbox) == []  # a change of sweeps is not about owners

    settings(platform_sandbox, "egress:\n  hub: {cidrs: [192.0.2.0/24], ports: [443]}\n")
    controller = platform_sandbox.workspace.settings.platform.controller
    bootstrap(platform_sandbox.workspace, BootstrapRequest(controller))

    (problem,) = problems(platform_sandbox)
    assert (problem.file, problem.line, problem.code) == (".github/CODEOWNERS", 2, "owners-unset")
    platform_sandbox.write(".github/CODEOWNERS", owners % "@lab/platform")
    assert problems(platform_sandbox) == []
