"""Finished trials of other tools as foreign evidence of a search."""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend

from sweepledger.errors import UnreadableError, UsageError
from sweepledger.formats import evidence_jsonl
from sweepledger.search.adaptive import Observation
from sweepledger.structs.record import Status
from sweepledger.verbs.cluster.next_ import write_next
from sweepledger.verbs.import_ import warm_start
from sweepledger.verbs.show import trial_details
from sweepledger.verbs.site import build_site
from tests.builders import present
from tests.repository import Sandbox, replace_in
from tests.searches import due, hill, leave

FORMS: Mapping[str, tuple[str, str]] = {
    "csv": (
        "old.csv",
        "x,score,state,note\n0.5,0.25,finished,a\n3,,crashed,b\n1,0.5,running,c\n99,1,finished,d\n",
    ),
    "optuna frame": (
        "old.csv",
        ",number,value,params_x,state\n0,0,0.25,0.5,COMPLETE\n1,1,,3.0,FAIL\n2,2,1,99.0,COMPLETE\n3,3,,1,RUNNING\n",
    ),
    "wandb json": (
        "old.jsonl",
        """\
{"config": {"x": {"value": 0.5}, "z": 1}, "summary": {"score": 0.25}, "state": "finished"}
{"config": {"x": 3}, "summary": {}, "state": "crashed"}
{"config": {"x": 99}, "summary": {"score": 1}, "state": "finished"}
""",
    ),
}


@pytest.fixture
def search(sandbox: Sandbox) -> Sandbox:
    replace_in(hill(sandbox), "values: [0.0, 0.5]", "value: 0.5")
    sandbox.commit("Ask for hill")
    return sandbox


def observed(sandbox: Sandbox) -> list[Observation]:
    (step,) = write_next(sandbox.workspace, ["hill"], check=True)
    return list(due(step).evidence.observations)


@pytest.mark.parametrize("form", FORMS)
def test_finished_trials_in_the_space_become_observations(search: Sandbox, tmp_path: Path, form: str) -> None:
    name, text = FORMS[form]
    (tmp_path / name).write_text(text)

    written = warm_start(search.workspace, "hill", tmp_path / name).data
    search.commit("Start from old")
    assert warm_start(search.workspace, "hill", tmp_path / name).data == written
    assert search.git("status", "--porcelain") == "", "the same file gives the same bytes"

    assert (written["path"], written["ok"], written["outside"]) == ("sweeps/old.evidence.jsonl", 1, 1)
    (sweep,) = search.workspace.sweeps(["hill"])
    assert present(sweep.search).start == ("old",)
    assert [(each.configuration["x"], each.status, each.values, each.round) for each in observed(search)] == [
        (0.5, Status.OK, (0.25,), None),
        (3, Status.FAILED, None, None),
    ]


@pytest.mark.parametrize(
    "kind", [pytest.param("sqlite", marks=pytest.mark.full_suite("loads SQLAlchemy")), "journal"]
)
def test_a_study_is_read_by_optuna_from_a_copy(search: Sandbox, tmp_path: Path, kind: str) -> None:
    file = tmp_path / ("old.db" if kind == "sqlite" else "old.journal")
    storage: Any = (
        optuna.storages.RDBStorage(f"sqlite:///{file}")
        if kind == "sqlite"
        else optuna.storages.JournalStorage(JournalFileBackend(str(file)))
    )
    study = optuna.create_study(storage=storage, direction="maximize", study_name="before")
    space: dict[str, optuna.distributions.BaseDistribution] = {
        "x": optuna.distributions.FloatDistribution(0, 4)
    }
    for x, value in ((0.5, 0.25), (1.5, float("inf"))):
        study.add_trial(optuna.create_trial(params={"x": x}, distributions=space, value=value))
    study.enqueue_trial({"x": 2.0})
    before = file.read_bytes()

    written = warm_start(search.workspace, "hill", file, study="before").data

    assert written["foreign"]["source"] == f"{file.name}: before"
    evidence = evidence_jsonl.read((search.root / written["path"]).read_bytes())
    assert [(dict(each.configuration)["x"], each.status) for each in evidence.trials] == [
        (0.5, Status.OK),
        (1.5, Status.DIVERGED),
    ]
    assert file.read_bytes() == before


def test_foreign_trials_are_labelled_and_never_results(search: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("x,score\n0.5,0.25\n")

    done = search.sweep(*("import", "trials", str(tmp_path / "old.csv"), "--name", "hill", "--as", "mine"))
    (early,) = search.generate()
    search.commit("Start from old")
    text = search.sweep("cluster", "next", "hill", "--check")
    data = search.data("cluster", "next", "hill", "--check")

    assert "1 foreign trials of old.csv, 1 of them ok" in done.stdout
    assert "nobody can verify them" in done.stdout
    assert [problem.code for problem in early.warnings] == ["evidence-uncommitted"]
    label = "1 foreign trial of mine (csv: old.csv), never verified"
    assert label in " ".join(text.stdout.split())
    assert label in search.sweep("plan", "hill").stdout
    header = json.loads((search.root / "sweeps/mine.evidence.jsonl").read_text().splitlines()[0])
    (named,) = data["searches"][0]["foreign"]
    known = {key: header[key] for key in ("format", "source", "digest")}
    assert named == {"name": "mine", "trials": 1, **known}
    assert header["foreign"] is True
    assert search.verify().sweeps == ()


def test_recorded_rounds_name_their_foreign_trials(search: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("x,score\n0.5,0.25\n1,0.5\n")
    warm_start(search.workspace, "hill", tmp_path / "old.csv", evidence="mine")
    replace_in(search.root / "sweeps/mine.evidence.jsonl", '"source":"old.csv"', '"source":"<b>old</b>.csv"')
    search.commit("Start from old")
    search.commit_batches("Ask for a round")
    (batch,) = search.batches()
    leave(tmp_path / "results", batch)
    search.collect(tmp_path / "results", {batch.name}, push=False)

    build_site(search.workspace, tmp_path / "site")

    label = "2 foreign trials of mine (csv: {}), never verified"
    assert trial_details(search.workspace, batch.rows[0].trial).foreign == (label.format("<b>old</b>.csv"),)
    readme = (search.root / "results/hill/README.md").read_text()
    assert "The search also started from the trials of `mine`, which are not among these results." in readme
    page = (tmp_path / "site/sweeps/hill/index.html").read_text()
    assert (
        f'<p class="label">The search starts from {label.format(html.escape("<b>old</b>.csv"))}.</p>' in page
    )


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("old.csv", "x,score\n0.5\n", "old.csv:2: must have as many cells as the header"),
        ("old.csv", "x,score,state\n0.5,1,lost\n", "old.csv:2: has an unknown state 'lost'"),
        ("old.csv", "y,score\n0.5,1\n", "no finished trial has values in the space of hill"),
        ("old.csv", "x,score\nnan,1\n[1],2\nfar,3\n", "no finished trial has values in the space"),
        ("old.jsonl", '{"x": 1}\n[]\n', "old.jsonl:2: must be a JSON object"),
        ("old.jsonl", '{"x": 1e999, "score": 1}\n{"x": [{}], "score": 1}\n', "no finished trial has values"),
        ("old.jsonl", "[" * 100_000, "old.jsonl:1: nests too deep"),
        ("old.db", "SQLite format 3\0 and no more", "Optuna cannot read it"),
        ("old.journal", "no journal\n", "Optuna cannot read it|has 0 studies"),
        ("old.xlsx", "", "unknown kind of file"),
        ("hill.csv", "x,score\n0.5,1\n", "hill is a sweep of this repository"),
    ],
)
def test_unreadable_trials(search: Sandbox, tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(UsageError, match=says):
        warm_start(search.workspace, "hill", tmp_path / name)

    assert search.git("status", "--porcelain") == ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "line",
    [
        b'{"configuration": {"x": 1}, "metrics": {"score": "1"}, "status": "ok"}',
        b'{"configuration": {"x": 1}, "metrics": {}, "status": "foreign"}',
        b"\xff",
    ],
)
def test_unreadable_evidence_blocks_a_round(search: Sandbox, tmp_path: Path, line: bytes) -> None:
    (tmp_path / "old.csv").write_text("x,score\n0.5,0.25\n")
    path = search.root / warm_start(search.workspace, "hill", tmp_path / "old.csv").data["path"]
    path.write_bytes(path.read_bytes() + line + b"\n")
    search.commit("Start from old")

    with pytest.raises(UnreadableError, match=r"old.evidence.jsonl: line 3: ") as caught:
        write_next(search.workspace, ["hill"], check=True)

    assert [problem.code for problem in caught.value.problems] == ["evidence-unreadable"]


def test_a_sweep_without_a_model_is_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.spec("peak")
    (tmp_path / "old.csv").write_text("x,score\n1,1\n")

    with pytest.raises(UsageError, match="peak has no model that learns from other trials"):
        warm_start(sandbox.workspace, "peak", tmp_path / "old.csv")
