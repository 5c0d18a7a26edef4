"""Nothing is dropped in silence: what does not stand in the spec is named in the report."""

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.exchange import hydra, wandb
from sweepledger.exchange.conversion import Imported

KEYS = st.sampled_from(
    ["project", "entity", "controller", "mine", "a b", "kind", "early_terminate", "scheduler"]
)
EXTRA = st.dictionaries(KEYS, st.integers() | st.just({"deep": [1]}), max_size=4)
SWEEPER_KEYS = st.sampled_from(["max_batch_size", "storage", "study_name", "search_space", "mine"])


def whats(imported: Imported) -> set[str]:
    return {loss.part for loss in imported.losses}


@given(EXTRA, EXTRA, EXTRA)
def test_no_wandb_key_is_lost(top: dict[str, Any], metric: dict[str, Any], parameter: dict[str, Any]) -> None:
    data = {
        "method": "grid",
        "program": "a/b.py",
        "metric": {"name": "loss", **metric},
        "parameters": {"x": {"values": [1], **parameter}},
        **top,
    }

    imported = wandb.read(yaml.safe_dump(data).encode(), name="lr")

    assert set(top) <= whats(imported)
    assert {f"metric.{key}" for key in metric} <= whats(imported)
    assert {f"parameters.x.{key}" for key in parameter} <= whats(imported)
    assert not set(imported.spec) & set(top)


@given(st.dictionaries(SWEEPER_KEYS, st.integers(), max_size=4), EXTRA, EXTRA)
def test_no_hydra_key_is_lost(sweeper: dict[str, Any], section: dict[str, Any], top: dict[str, Any]) -> None:
    data = {"hydra": {"sweeper": {"params": {"x": "1,2"}, **sweeper}, **section}, **top}

    imported = hydra.read(yaml.safe_dump(data).encode(), name="lr")

    message = " ".join(sorted(whats(imported)))
    assert {f"hydra.sweeper.{key}" for key in sweeper} <= whats(imported)
    assert all(key in message for key in [*section, *top])
