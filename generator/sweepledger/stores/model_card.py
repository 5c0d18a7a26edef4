"""A Hugging Face model card: README.md with the best trial's result in its front matter, and its search."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sweepledger.errors import StorageError
from sweepledger.formats import yaml
from sweepledger.safe_open import read_regular
from sweepledger.storage import storage_errors, write_file
from sweepledger.stores.contents import FinishedTrial, StoreChange, StoreKind, SweepContents, plain_text

CARD = "README.md"
MARK = "sweepledger_sweep"
"""The key of the front matter by which a card is known to be ours."""
MOST_BYTES = 1 << 20
DIGITS = 6


def write(contents: SweepContents, place: str) -> StoreChange:
    """Write the card of the best trial. Raises StorageError, also if the folder has another README.md."""
    path = Path(place) / CARD
    best = next((trial for trial in contents.trials if trial.id == contents.best), None)
    if best is None:
        return StoreChange(0, 0, ("no trial may be ranked, so there is no model to describe",))
    text = card(contents, best).encode()
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        present = read_regular(path, MOST_BYTES)
    if present == text:
        return StoreChange(0, 1)
    if present is not None and f"\n{MARK}:".encode() not in present:
        raise StorageError(
            f"{path} exists and is no card of sweepledger", hint="name the model's folder by --to"
        )
    write_file(path, text)
    return StoreChange(1, 0)


def card(contents: SweepContents, best: FinishedTrial) -> str:
    """Return the text of the card; equal results give equal bytes."""
    return "".join(f"{line}\n" for line in _lines(contents, best))


def _lines(contents: SweepContents, best: FinishedTrial) -> Iterator[str]:
    yield "---"
    yield from yaml.dump(_front_matter(contents, best)).splitlines()
    yield "---"
    yield from ("", f"# {contents.sweep}", "")
    if contents.description:
        yield from (_code(contents.description), "")
    names = ", ".join(f"`{metric.name}` ({metric.goal})" for metric in contents.metrics)
    count = len(contents.trials)
    yield f"The best of {count} finished trials of the sweep `{contents.sweep}` by {names}: trial `{best.id}`,"
    yield f"with seed {best.seed}, trained from code tree `{best.code}` by `{best.ran}`."
    yield from ("", "## Hyperparameters", "", "| parameter | value |", "|---|---|")
    values = {name: _code(plain_text(value)).replace("|", "\\|") for name, value in best.parameters.items()}
    yield from (f"| `{name}` | {value} |" for name, value in values.items())
    yield from ("", "## Results", "", "| metric | value |", "|---|---|")
    yield from (f"| `{name}` | {value:.{DIGITS}g} |" for name, value in best.metrics.items())
    yield from ("", "## Provenance", "", f"Recorded in git at commit `{contents.commit}`.")


def _front_matter(contents: SweepContents, best: FinishedTrial) -> dict[str, Any]:
    data = contents.data or "unknown"
    metrics = [{"type": name, "name": name, "value": value} for name, value in best.metrics.items()]
    result = {
        "task": {"type": "other", "name": contents.sweep},
        "dataset": {"type": data, "name": data},
        "metrics": metrics,
    }
    return {
        "tags": ["hyperparameter-search", "sweepledger"],
        MARK: contents.sweep,
        "model-index": [{"name": contents.sweep, "results": [result]}],
    }


def _code(text: str) -> str:
    """Return an author's text on one line, with its markup disabled."""
    return "`" + " ".join(text.replace("`", "'").splitlines()) + "`"


STORE = StoreKind("model-card", ".", write, file=CARD)
