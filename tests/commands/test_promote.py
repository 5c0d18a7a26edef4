"""`sweep promote`, end to end on a plain git server: branch, pull request, merge, tag, and a check from a clone."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.commands.promote import (
    ModelForm,
    Publication,
    check_promotions,
    promote_model,
    promote_values,
)
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError, UsageError
from tests.commands.test_compare import recorded as recorded_scores
from tests.commands.test_fetch import FILES, record, recorded
from tests.repo.test_signatures import key, line
from tests.repository import Sandbox

Done = subprocess.CompletedProcess[str]
CONFIG = "# production\nmodel:\n  x: 7  # tuned by hand\n  depth: 3\n"


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="skipped: ssh-keygen not found")
def test_a_winner_reaches_production_by_a_pull_request(sandbox: Sandbox, tmp_path: Path) -> None:
    recorded(sandbox, tmp_path / "state", [])
    sandbox.write("configs/model.yaml", CONFIG)
    sandbox.commit("Add the configuration of production")
    sandbox.push()
    signer = key(tmp_path, "person")
    for name, value in (
        ("commit.gpgsign", "true"),
        ("gpg.format", "ssh"),
        ("user.signingkey", f"{signer}.pub"),
    ):
        sandbox.git("config", name, value)
    before = sandbox.git("status", "--porcelain"), sandbox.git("rev-parse", "HEAD")

    promotion = promote_values(
        sandbox.workspace, "peak", "configs/model.yaml", publication=Publication(tag="models/peak-1")
    )

    assert (sandbox.git("status", "--porcelain"), sandbox.git("rev-parse", "HEAD")) == before
    assert (promotion.is_signed, promotion.pushed, promotion.missing) == (True, True, ("bias",))
    assert [(setting.path, setting.before, setting.after) for setting in promotion.set] == [("model.x", 7, 3)]
    assert promotion.warnings == ("without replicates, its value cannot be separated from seed noise",)
    # The pull request is merged on the server, and somebody else checks it from a clone.
    clone = Sandbox(sandbox.remote, tmp_path / "clone")
    subprocess.run(["git", "clone", "-q", str(sandbox.remote), str(clone.root)], check=True)
    clone.git("merge", "-q", "--no-ff", "-m", "Merge the promotion", f"origin/{promotion.branch}")
    clone.git("push", "-q", "origin", "HEAD:main")
    assert (clone.root / "configs/model.yaml").read_text() == CONFIG.replace("x: 7", "x: 3")
    signers = clone.write("../signers", f"{line(signer)}\n")
    clone.git("-c", f"gpg.ssh.allowedSignersFile={signers}", "verify-tag", "models/peak-1")
    (promoted,) = check_promotions(Workspace.find(clone.root))
    assert (promoted.file, promoted.trial, promoted.differences) == (
        "configs/model.yaml",
        promotion.trial.trial,
        (),
    )
    # Edits of the file and of its statement are found.
    clone.write("configs/model.yaml", CONFIG.replace("x: 7", "x: 4"))
    statement = clone.root / "configs/model.yaml.intoto.json"
    data = json.loads(statement.read_text())
    data["predicate"]["buildDefinition"]["externalParameters"]["values"]["x"] = 4
    statement.write_text(json.dumps(data))
    clone.commit("Edit")
    (promoted,) = check_promotions(Workspace.find(clone.root))
    assert [text.partition(": ")[0] for text in promoted.differences] == [
        "configs/model.yaml has changed since it was promoted",
        f"its statement has other values than trial {promotion.trial.trial}",
    ]


def test_what_cannot_be_promoted_is_refused_and_leaves_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    batch = recorded(sandbox, tmp_path / "state", [])
    sandbox.write("model.json", '{"x": 1, "other": {"y": 2}}\n')
    sandbox.write("two.toml", "[a]\nx = 1\n[b]\nx = 2\n")
    sandbox.commit("Add configurations")
    sandbox.push()

    def refuses(error: type[Exception], match: str, file: str = "model.json", **options: object) -> None:
        with pytest.raises(error, match=match):
            promote_values(sandbox.workspace, "peak", file, **options)  # type: ignore[arg-type]

    refuses(UsageError, "none.json does not exist", "none.json")
    refuses(UsageError, "is outside of the repository", "../model.json")
    refuses(UsageError, r"two.toml: x could be each of a.x, b.x", "two.toml")
    refuses(UsageError, "has no key 'y'", keys={"x": "y"})
    refuses(UsageError, "has no parameter 'z'", keys={"z": "x"})
    refuses(UsageError, "is no recorded trial of peak", trial="t999")
    refuses(UsageError, "is no name of a branch", publication=Publication(branch="-x"))
    first = promote_values(
        sandbox.workspace, "peak", "model.json", trial=batch.rows[0].trial, publication=Publication("first")
    )
    assert f"trial {batch.rows[0].trial} is not the best: that is {batch.rows[2].trial}" in first.warnings
    # The server has the branch, and this clone does not know it: nothing remains of the second, its tag neither.
    refuses(
        RepositoryError,
        "did not accept branch first and tag second",
        publication=Publication("first", tag="second"),
    )
    assert sandbox.git("tag").split() == []
    local = promote_values(
        sandbox.workspace, "peak", "two.toml", keys={"x": "b.x"}, publication=Publication("local", push=False)
    )
    assert sandbox.git("show", "local:two.toml") == "[a]\nx = 1\n[b]\nx = 3\n"
    assert not local.pushed
    refuses(RepositoryError, "branch local exists", publication=Publication("local", push=False))
    # Somebody improves the results: they do not follow from the records any more.
    summary = sandbox.root / "results/peak/summary.csv"
    summary.write_text(summary.read_text().replace(",1,1.5,", ",2,1.5,"))
    sandbox.commit("Improve it")
    sandbox.push()
    refuses(RepositoryError, "must be verified, got differs")


def test_a_trial_becomes_a_model_with_its_attestation(
    sandbox: Sandbox, tmp_path: Path, run_sweep: Callable[..., Done]
) -> None:
    state = tmp_path / "state"
    batch = recorded(sandbox, state, [record(*item) for item in FILES.items()])
    trial = batch.rows[1].trial

    model = promote_model(
        sandbox.workspace, "peak", tmp_path / "model", form=ModelForm.MLFLOW, trial=trial, state=state
    )
    done = run_sweep(
        *("promote", "peak", "--trial", trial, "--as=oci", "--to", str(tmp_path / "layout")),
        f"--state={state}",
        cwd=sandbox.root,
    )

    assert model.files == 4
    assert (tmp_path / "model/artifacts/model.bin").read_bytes() == FILES["model.bin"]
    assert "warning: trial" in done.stdout
    blobs = {path.read_bytes() for path in (tmp_path / "layout/blobs/sha256").iterdir()}
    assert set(FILES.values()) < blobs
    with pytest.raises(UsageError, match="exists"):
        promote_model(
            sandbox.workspace, "peak", tmp_path / "model", form=ModelForm.OCI, trial=trial, state=state
        )
    (state / "results" / batch.name / "1/artifacts/uid-1/model.bin").write_bytes(b"\x00weighty")
    with pytest.raises(Exception, match=r"model\.bin"):
        promote_model(
            sandbox.workspace, "peak", tmp_path / "forged", form=ModelForm.OCI, trial=trial, state=state
        )
    assert not (tmp_path / "forged").exists()


def test_a_tie_has_no_winner_to_promote(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("model.json", '{"x": 1}\n')
    sandbox.commit("Add a configuration")
    old, new = "command:", "replicates: 2\ncommand:"
    recorded_scores(sandbox, tmp_path / "v", "even", {1: 0.5, 2: 0.5}, old=old, new=new)

    with pytest.raises(RepositoryError, match="even has no best trial: the 95 % intervals"):
        promote_values(sandbox.workspace, "even", "model.json")
