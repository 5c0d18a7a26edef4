"""The model card of a sweep's best trial."""

from dataclasses import replace
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.formats import yaml
from sweepledger.stores import model_card
from tests.stores.contents import HOSTILE, some_contents


def test_a_card_has_the_best_result_in_its_front_matter_and_changes_only_with_the_results(
    tmp_path: Path,
) -> None:
    first = model_card.write(some_contents(), str(tmp_path))
    again = model_card.write(some_contents(), str(tmp_path))

    _, front, body = (tmp_path / "README.md").read_text().split("---\n", 2)
    (model,) = yaml.load(front)["model-index"]
    (result,) = model["results"]
    assert {metric["name"]: metric["value"] for metric in result["metrics"]} == {"score": 1.0, "loss": 0.5}
    assert "| `rate` | `0.002` |" in body
    assert (first.added, again.added, again.present) == (1, 0, 1)


def test_another_readme_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine\n")

    with pytest.raises(StorageError, match="is no card of sweepledger"):
        model_card.write(some_contents(), str(tmp_path))


def test_a_value_cannot_break_out_of_the_table() -> None:
    contents = some_contents()
    best = contents.trials[1]
    hostile = type(best)(
        **{name: getattr(best, name) for name in best.__slots__} | {"parameters": {"x": HOSTILE}}
    )

    text = model_card.card(contents, hostile)

    assert "| `x` | `a\\|b'c <script>` |\n" in text


@pytest.mark.parametrize(
    "text",
    [
        *("<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![a](https://evil.example/x)"),
        *("a\n\n---\nlicense: mit\n---\n", "> quoted", "``` `code", "a\r\n# b", "a\u2028# b", "<!-- hidden"),
    ],
)
def test_a_description_is_no_markup(text: str) -> None:
    contents = replace(some_contents(), description=text)

    card = model_card.card(contents, contents.trials[1])

    (line,) = [line for line in card.splitlines() if line.startswith("`")]
    assert (line[0], line[-1], line.count("`")) == ("`", "`", 2)
    assert card.replace(line, "") == model_card.card(
        replace(contents, description="x"), contents.trials[1]
    ).replace("`x`", "", 1)


def test_without_a_ranked_trial_there_is_no_card(tmp_path: Path) -> None:
    change = model_card.write(some_contents(best=None), str(tmp_path))

    assert change.remarks
    assert not list(tmp_path.iterdir())
