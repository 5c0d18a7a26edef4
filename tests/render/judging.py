"""Admission policies, evaluated by Google's own CEL without a server."""

from functools import cache
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]

Manifest = dict[str, Any]


def refusals(
    policy: Manifest, manifest: Manifest, operation: str = "CREATE", *, old: Manifest | None = None
) -> set[str]:
    """Return the messages of the rules that do not hold, without their codes."""
    given: dict[str, Any] = {
        "object": _with_kind(manifest),
        "request": {"operation": operation},
        "variables": {},
    }
    if old is not None:
        given["oldObject"] = old
    for variable in policy["spec"].get("variables", ()):
        given["variables"][variable["name"]] = evaluated(variable["expression"], given)
    rules = policy["spec"]["validations"]
    # All rules at once: each evaluation copies what is given to it, which takes longer than most rules.
    held = evaluated(f"[{', '.join(rule['expression'] for rule in rules)}]", given)
    if not isinstance(held, list):  # the error of one of them
        held = [evaluated(rule["expression"], given) for rule in rules]
    return {
        rule["message"].rpartition(" [")[0]
        for rule, holds in zip(rules, held, strict=True)
        if holds is not True
    }


def _with_kind(manifest: Manifest) -> Manifest:
    """Give a pod template the kind of the pods that are made of it; a Job has a template of its own."""
    return {"kind": "Job" if "template" in manifest.get("spec", {}) else "Pod", **manifest}


def evaluated(expression: str, given: dict[str, Any]) -> Any:
    return _plain(_compiled(expression).eval(data=given).value())


@cache
def _environment() -> Any:
    """Return what knows the names; making it takes longer than compiling most rules."""
    return cel.NewEnv(variables=dict.fromkeys(("object", "oldObject", "request", "variables"), cel.Type.DYN))


@cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(getattr(item, "value", lambda item=item: item)()) for item in value]
    if isinstance(value, dict):
        return {
            str(_plain(getattr(key, "value", lambda key=key: key)())): _plain(
                getattr(item, "value", lambda item=item: item)()
            )
            for key, item in value.items()
        }
    return value


def is_judged(policy: Manifest, manifest: Manifest, old: Manifest) -> bool:
    """Tell whether the rules look at an update at all."""
    given = {"object": _with_kind(manifest), "oldObject": old, "request": {"operation": "UPDATE"}}
    return all(evaluated(condition["expression"], given) for condition in policy["spec"]["matchConditions"])
