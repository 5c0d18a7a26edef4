"""What `sweep plan` says: to a terminal, to a pull request, to a program."""

import json
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sweepledger import search
from sweepledger.cli.response import open_console
from sweepledger.cli.text import plan
from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.plan.coverage import coverage
from sweepledger.plan.review import (
    CodeChange,
    DesignReview,
    Difference,
    FileChange,
    Planned,
    Rejection,
    Review,
    TrialCounts,
    UnreadableSpec,
    difference,
)
from sweepledger.problems import Problem, Severity
from sweepledger.search import Expansion
from sweepledger.structs.node_pool import GpuShares, GpuSharing, NodeCapacity, Pool
from sweepledger.structs.run_config import Pack, Resources
from sweepledger.structs.run_config import RunConfig as Runs
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Parameter, SearchSpace
from sweepledger.structs.sweep import Budget, Sweep
from sweepledger.structs.trial import all_trials
from tests.repository import Sandbox
from tests.sweeps import a_program, a_sweep

TEXT = """\
peak: 3 trials: 1 new, 2 running, 0 recorded
  search grid: x 3 · goal maximize score
  time   unknown: no trial of this program is recorded; set run.expected_minutes for an estimate
  cost   at most 0.1 trial hours (1 new trial × 1m × (1 attempt + 5 disruptions)), about 0.0167 hours \
at parallelism 2; 0.3 trial hours for all 3
  disk   4112 MiB a pod · 2064 MiB for what it runs, of which 16 MiB for its copy of the code
  note   without replicates, the effect of a configuration cannot be separated from seed noise
  method  candidates  rejected  duplicates  kept  accepted
  grid    3           0         0           3     100 %
  parameter  trials  values
  x          3       2 ×1  3 ×1  4 ×1
  fixed  bias=0.5
  first  tb03186eb520  x=2  bias=0.5
         tbaddddac085  x=3  bias=0.5
         tdf1b139f3a1  x=4  bias=0.5
  spec compared with BASE: 1 added, 1 removed, 2 unchanged
    +    tdf1b139f3a1  x=4  bias=0.5
    -    t2a9f071af67  x=1  bias=0.5
unchanged: still
"""  # noqa: RUF001 - as shown


HOSTILE = "a|b`c``d\\|<script>[x](http://e.vil)@all ](#1 ![y](z) **b** \x1b[31m\u202e\n\n# heading\n|x|"


@pytest.fixture
def changed(sandbox: Sandbox) -> Sandbox:
    """Two merged sweeps; one of them is about to change."""
    sandbox.merged("still")
    sandbox.merged("peak")
    sandbox.spec("peak", xs="2, 3, 4")
    return sandbox


def settled(text: str, sandbox: Sandbox) -> str:
    """Take out what no two runs have in common, and the padding of tables."""
    base = sandbox.git("rev-parse", "--short=8", "HEAD").strip()
    return "".join(f"{line.rstrip()}\n" for line in text.replace(base, "BASE").splitlines())


def a_review(sweep: Sweep, **changes: Any) -> Review:
    expansion = search.explore(sweep)
    assert isinstance(expansion, Expansion)
    trials = all_trials(sweep, expansion.configurations, a_program(sweep).digest)
    made = Review(
        sweep,
        trials,
        TrialCounts(len(trials), 0, 0),
        DesignReview(sweep.method, 4, 2, 0, 2),
        coverage(sweep, expansion.configurations),
        difference(None, (), trials),
    )
    return replace(made, **changes)


def of_parameters(*parameters: Parameter, **changes: Any) -> Sweep:
    return a_sweep(design=GridSearch(SearchSpace(parameters)), **changes)


def comment(*reviews: Review) -> str:
    return plan.plan_comment(Planned("c0ffee" * 7, reviews, ()))


def shown(capsys: pytest.CaptureFixture[str], *reviews: Review) -> str:
    for part in plan.plan_text(Planned("c0ffee" * 7, reviews, ())):
        open_console().print(part)
    return capsys.readouterr().out


def rendered(text: str) -> list[Token]:
    """Parse as GitHub would: tables, and HTML let through."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)


def inline(text: str, kind: str) -> list[str]:
    return [item.content for token in rendered(text) for item in token.children or () if item.type == kind]


def links(text: str) -> list[str]:
    return [item.type for token in rendered(text) for item in token.children or () if "link" in item.type]


def test_a_terminal_sees_counts_coverage_cost_and_the_difference(changed: Sandbox) -> None:
    done = changed.sweep("plan")

    assert (done.returncode, done.stderr) == (0, "")
    assert settled(done.stdout, changed) == TEXT


def test_a_changed_list_of_drawn_values_shows_histograms(sandbox: Sandbox) -> None:
    spec = sandbox.spec()
    text = spec.read_text().replace("method: grid", "method: sobol\nrun_cap: 64\nseed: 1")
    spec.write_text(text.replace("values: [1, 2, 3]", "min: 0.0, max: 1.0"))

    done = sandbox.sweep("plan")

    assert done.returncode == 0, done.stderr
    assert "discrepancy of 64 points in 1 continuous dimension" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  x ")]
    assert set(line.split()[2]) <= set(plan.BLOCKS)


def a_hostile_review() -> Review:
    sweep = of_parameters(
        Parameter(HOSTILE, Choice((HOSTILE, "plain"))), Parameter("x", Constant(HOSTILE)), description=HOSTILE
    )
    warning = Problem(sweep.path, 1, 1, "", HOSTILE, "some-code", severity=Severity.WARNING)
    made = a_review(sweep, problems=(warning,), unlocked=HOSTILE)
    design = replace(made.design, constraints=(Rejection(HOSTILE, 1),))
    return replace(made, design=design, difference=difference(sweep.path, (), made.trials))


def test_untrusted_text_is_not_interpreted_as_markup() -> None:
    text = comment(a_hostile_review())

    assert links(text) == []
    assert set(inline(text, "html_inline")) <= {"<code>", "</code>"}
    kinds = {token.type for token in rendered(text)}
    assert "html_block" not in kinds
    headings = [
        after.content
        for token, after in zip(rendered(text), rendered(text)[1:], strict=False)
        if token.type == "heading_open"
    ]
    assert headings == ["lr: 2 trials", "Candidates", "Coverage", "Trials", "Difference", "Warnings"]


def test_names_of_changed_files_notify_nobody() -> None:
    files = (FileChange("code/@octocat #1.py", 1, 0),)
    text = comment(replace(a_hostile_review(), code=(CodeChange("peak-b1-00000000", files),)))

    quoted = [code for code in inline(text, "code_inline") if "differs from" in code]
    assert len(quoted) == 1
    assert "@octocat #1.py" in quoted[0]
    assert "@octocat" not in "".join(inline(text, "text"))


@pytest.mark.parametrize(
    "quoted",
    [
        "a\\|b", "``a```b", "trailing\\", "</code>", "&lt;b&gt;|",
        "see [x](http://e.vil)", "**b** _c_ ~~d~~|", "@all|", "a --- | ---",
    ],
)  # fmt: skip
def test_every_cell_shows_the_text_of_the_spec_without_markup(quoted: str) -> None:
    name, fixed = Parameter("x", Choice((quoted, "plain"))), Parameter("y", Constant(quoted))
    made = a_review(of_parameters(name, fixed, description=quoted))
    review = replace(made, difference=difference(made.sweep.path, (), made.trials))
    text = comment(review)

    trials = [f"x={value} y={quoted}" for value in (quoted, "plain")]
    expected = ["values", *trials, "values", *trials]
    assert [row[2] for row in cells(text) if row[1].startswith("t") and len(row) == 3] == expected
    (values,) = [row[2] for row in cells(text) if row[0] == "x"]
    assert values == f"{quoted} ×1, plain ×1"  # noqa: RUF001 - as shown
    assert quoted in plain(rendered(text)[4])
    assert {item.type for token in rendered(text) for item in token.children or ()} <= PLAIN
    assert set(inline(text, "html_inline")) <= {"<code>", "</code>"}


PLAIN = {"text", "text_special", "code_inline", "html_inline", "softbreak"}


def plain(token: Token) -> str:
    return "".join(item.content for item in token.children or () if item.type != "html_inline")


def cells(text: str) -> list[list[str]]:
    """Give the text of every cell of every table, as a reader sees it."""
    rows: list[list[str]] = []
    is_cell = False
    for token in rendered(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and is_cell:
            rows[-1].append(plain(token))
        is_cell = token.type in {"th_open", "td_open"}
    return rows


def test_a_terminal_interprets_no_text_of_a_spec(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = of_parameters(Parameter("x", Choice((HOSTILE, "[bold]no markup[/bold]"))))

    output = shown(capsys, a_review(sweep, unlocked=HOSTILE))

    assert not any(letter in output for letter in "\x1b\u202e")
    assert "[bold]no markup[/bold]" in output


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.1", '"0.1"'), (0.1, "0.1"), (None, "null"), ("{a}", '"{a}"'),
        ("x" * 50, "x" * 39 + "…"),
    ],
    ids=str,
)  # fmt: skip
def test_text_that_looks_like_another_type_is_quoted(value: Any, text: str) -> None:
    assert plan.short_value(value) == text


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_wrong_spec_hides_no_other(form: str, changed: Sandbox) -> None:
    changed.write("sweeps/wrong.yaml", "name: wrong\n")

    done = changed.sweep("plan", "--format", form)

    assert done.returncode == 1
    assert "tdf1b139f3a1" in done.stdout
    assert "sweeps/wrong.yaml" in (done.stderr if form == "text" else done.stdout)
    assert "no sweep" not in done.stdout


def test_wrong_specs_alone_are_no_empty_repository(sandbox: Sandbox) -> None:
    assert sandbox.sweep("plan").stdout == "there is no sweep yet\n"
    assert "no sweep" in sandbox.sweep("plan", "--format", "markdown").stdout

    sandbox.write("sweeps/wrong.yaml", "name: wrong\n")

    assert sandbox.sweep("plan").stdout == ""
    assert sandbox.sweep("plan", "--format", "markdown").stdout.startswith("## Problems\n")


def test_code_that_changed_since_the_lock_is_reported(changed: Sandbox) -> None:
    before = changed.git("rev-parse", "--short=8", "HEAD:code").strip()
    changed.commit("Rewrite", {"code/train.py": "print('rewritten')\n"})
    after = changed.git("rev-parse", "--short=8", "HEAD:code").strip()
    output = f"code changed since the lock (code/ {before} → {after}): "

    text = changed.sweep("plan", "peak").stdout

    assert f"  {output}`sweep generate peak --update` runs all trials with the new version\n" in text
    removed = before_lines(changed)
    assert (
        f"  code   changed since the lock, and this does not run: 1 file: code/train.py +1 -{removed}\n"
        in text
    )


def before_lines(changed: Sandbox) -> int:
    return changed.git("show", "HEAD~1:code/train.py").count("\n")


def test_a_plan_shows_how_the_code_differs_from_what_the_sweep_ran(sandbox: Sandbox) -> None:
    batch = sandbox.merged()
    (sandbox.root / "code/data.bin").write_bytes(b"\0\1")
    for number in range(7):
        sandbox.write(f"code/more {number}.py", "pass\n")
    sandbox.commit("Add files")
    assert sandbox.sweep("generate", "peak", "--update").returncode == 0

    text = sandbox.sweep("plan", "peak").stdout
    data = json.loads(sandbox.sweep("plan", "peak", "--format", "json").stdout)

    listed = ", ".join(f"code/more {number}.py +1 -0" for number in range(4))
    assert f"differs from {batch}: 8 files: code/data.bin (not text), {listed} and 3 more\n" in text
    (code,) = data["data"]["sweeps"][0]["code"]
    assert (code["since"], code["count"], len(code["files"])) == (batch, 8, 8)
    assert code["files"][0] == {"path": "code/data.bin", "added": None, "removed": None}


def test_the_cost_shows_its_factors_and_the_wall_time(capsys: pytest.CaptureFixture[str]) -> None:
    run = Runs(timeout_seconds=5400, retries=1, parallelism=2, resources=Resources(gpu=4))
    sweep = of_parameters(Parameter("x", Choice((1, 2, 3))), run=run)

    output = shown(capsys, a_review(sweep))

    assert (
        "cost   at most 31.5 trial hours, 126 GPU hours (3 new trials × 90m × (2 attempts + 5 disruptions)), "  # noqa: RUF001 - as shown
        "about 6 hours at parallelism 2\n"
    ) in output


def test_a_plan_without_new_trials_has_no_new_cost(capsys: pytest.CaptureFixture[str]) -> None:
    review = a_review(a_sweep(run=Runs(timeout_seconds=3600)), counts=TrialCounts(0, 2, 0))

    assert "cost   nothing new; at most 12 trial hours for all 2\n" in shown(capsys, review)


def test_a_comment_fits_a_pull_request() -> None:
    values = tuple(f"{number}" + "|`ü" * 1000 for number in range(20))
    parameters = [Parameter(f"p{number}" + "_" * 300, Constant(values[0])) for number in range(30)]
    review = a_review(of_parameters(*parameters, Parameter("x", Choice(values)), description="ü|" * 9999))

    text = comment(*[review] * 8)

    assert len(text.encode()) <= plan.COMMENT_BYTES
    assert "more lines were cut" in text.splitlines()[-1]


def test_long_lists_show_how_many_items_are_omitted(capsys: pytest.CaptureFixture[str]) -> None:
    parameters = [Parameter(f"p{number}", Choice((0, 1))) for number in range(3)]
    review = a_review(of_parameters(*parameters, Parameter("x", Choice(tuple("abcdefghijklmnop")))))
    result = replace(review, difference=difference("sweeps/lr.yaml", (), review.trials))

    assert "… 4 more values" in comment(result)
    assert "| added | … | 123 more |" in comment(result)
    assert "+ … 123 more" in " ".join(shown(capsys, result).split())


def test_a_budget_is_shown_beside_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    review = a_review(a_sweep(budget=Budget(max_trials=1000, max_gpu_hours=2.5)))

    assert "limit  1,000 trials, 2.5 GPU hours" in shown(capsys, review)


@pytest.mark.parametrize(
    ("pool", "run", "trials", "shown"),
    [
        (
            Pool("gpu", NodeCapacity("8", "64Gi", 1), price=8, max_nodes=4),
            {"resources": Resources("1", "4Gi", 1), "parallelism": 8, "pack": Pack(20, 4)},
            40,
            (
                "40 × gpu (4 CPU, 16 GiB, 1 GPU for 4 of 20 trials at once) · 8 at once · 2 nodes of at most 4 "  # noqa: RUF001 - as shown
                "· at most 160 at 8 per node and hour"
            ),
        ),
        (
            Pool("gpu", NodeCapacity("8", "64Gi", 4), price=8, gpu_shares=GpuShares(GpuSharing.MPS, 4)),
            {"resources": Resources("1", "4Gi", 1), "parallelism": 2},
            32,
            "32 × gpu (1 CPU, 4 GiB, 1/4 GPU by mps) · 2 at once · 1 node · at most 128 at 8 per node and hour",  # noqa: RUF001 - as shown
        ),
        (
            Pool("gpu", NodeCapacity("96", "800Gi", 8), queue="gpu", price=20),
            {"resources": Resources("8", "80Gi", 4), "parallelism": 2, "nodes": 2},
            4,
            (
                "4 × 2 pods × gpu (8 CPU, 80 GiB, 4 GPUs) · 2 at once · 2 nodes "  # noqa: RUF001 - as shown
                "· at most 80 at 20 per node and hour"
            ),
        ),
    ],
    ids=["packs", "shares of GPUs", "several pods"],
)
def test_the_pool_shows_pods_gpus_and_price(pool: Pool, run: dict[str, Any], trials: int, shown: str) -> None:
    runs = Runs(**{"max_disruptions": 0, "retries": 0, **run})
    review = a_review(a_sweep(run=runs, pool=pool), counts=TrialCounts(trials, 0, 0))

    assert plan.pool_usage(review.pool_usage) == shown
    assert ("(1 attempt + 1 beside others)" in plan.cost_bound(review)) is (runs.pack is not None)
    assert pool.gpu_shares is None or review.new_cost.gpu_hours == review.new_cost.trial_hours / 4
    assert plan.pool_usage(a_review(a_sweep()).pool_usage) == ""


def test_a_missing_or_renamed_sweep_at_the_base_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    review = a_review(a_sweep())
    problem = Problem(review.sweep.path, 1, 1, "", "wrong", "some-code")
    unreadable = replace(review, difference=UnreadableSpec(review.sweep.path, (problem,)))
    renamed = replace(review, difference=Difference("sweeps/old.yaml", (), (), 2))

    output = shown(capsys, review, unreadable, renamed)

    assert "spec compared with c0ffeec0: new sweep: all 2 trials added" in output
    assert (
        "spec compared with c0ffeec0: cannot be compared: sweeps/lr.yaml has 1 problem at that commit"
        in output
    )
    assert (
        "spec compared with c0ffeec0: 0 added, 0 removed, 2 unchanged; renamed from sweeps/old.yaml" in output
    )


def test_replicates_are_numbered(capsys: pytest.CaptureFixture[str]) -> None:
    output = shown(capsys, a_review(a_sweep(replicates=2)))

    assert "4 trials (2 configurations × 2 replicates)" in output  # noqa: RUF001 - as shown
    assert "(replicate 1)" in output
