"""W&B's `early_terminate`: hyperband, in its two forms."""

from collections.abc import Mapping
from typing import Any

from generator.exchange.loss import Loss

KEYS = frozenset({"type", "min_iter", "max_iter", "s", "eta", "strict"})


def stopping(written: object, losses: list[Loss]) -> dict[str, Any] | None:
    """Give the same rule here; None where it is none that W&B carries out."""
    if not isinstance(written, dict) or written.get("type") != "hyperband":
        return None
    rule: dict[str, Any] = {key: written[key] for key in written if key in KEYS}
    if {"max_iter", "s"} <= rule.keys():
        if rule.pop("min_iter", None) is not None:
            losses.append(Loss("early_terminate.min_iter", "W&B goes by max_iter and s where both are given"))
    elif "min_iter" in rule:
        rule = {key: rule[key] for key in rule if key not in {"max_iter", "s"}}
    if not _is_sound(rule):
        return None
    losses += [
        Loss(f"early_terminate.{key}", "is no key of W&B's rule") for key in sorted(written.keys() - KEYS)
    ]
    why = "W&B compares with runs that go on; here with curves recorded before the batch was generated"
    losses.append(Loss("early_terminate", why))
    return rule


def _is_sound(rule: Mapping[str, Any]) -> bool:
    whole = [rule[key] for key in ("min_iter", "max_iter", "s") if key in rule]
    eta, strict = rule.get("eta", 3), rule.get("strict", False)
    return (
        bool(whole)
        and ("min_iter" in rule or {"max_iter", "s"} <= rule.keys())
        and all(isinstance(number, int) and not isinstance(number, bool) and number >= 1 for number in whole)
        and isinstance(eta, int | float)
        and not isinstance(eta, bool)
        and eta > 1
        and isinstance(strict, bool)
    )
