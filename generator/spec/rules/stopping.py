"""Early stopping: which keys each rule has, and that there is a curve to look at."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.spec.draft import Draft
from generator.spec.rules.reporting import format_of
from generator.structs.reporting import STREAMS

KEYS = {
    "hyperband": frozenset({"min_iter", "max_iter", "s", "eta", "strict"}),
    "median": frozenset({"min_iter", "max_iter", "min_trials"}),
    "percentile": frozenset({"min_iter", "max_iter", "min_trials", "percentile"}),
    "patience": frozenset({"min_iter", "max_iter", "patience", "min_delta"}),
    "target": frozenset({"min_iter"}),
}
CODE = "early-stop"


def keys(draft: Draft) -> Iterator[Problem]:
    """A key that the rule does not use would promise something that does not happen."""
    kind = draft.get("early_terminate", "type", kind=str)
    if kind not in KEYS:
        return
    for key in draft.names("early_terminate"):
        if key != "type" and key not in KEYS[kind]:
            message = f"must not be given with type: {kind}, got {key}"
            hint = f"it has {', '.join(sorted(KEYS[kind]))}"
            yield draft.problem(("early_terminate", key), message, code=CODE, hint=hint, at_key=True)
    if kind == "patience" and "patience" not in draft.names("early_terminate"):
        message, hint = "must be given with type: patience", "for example patience: 5"
        place = ("early_terminate", "patience")
        yield draft.problem(place, message, code="missing-key", hint=hint, at_key=True)
    if kind == "target" and "target" not in draft.names("metric"):
        message, hint = "must be given with early_terminate: {type: target}", "for example target: 0.99"
        yield draft.problem(("metric", "target"), message, code="missing-key", hint=hint, at_key=True)


def hyperband_steps(draft: Draft) -> Iterator[Problem]:
    """Steps are counted from the first on, or so many back from the last."""
    given = {*draft.names("early_terminate")}
    if draft.get("early_terminate", "type", kind=str) != "hyperband":
        return
    if ("s" in given) is ("min_iter" in given) or ("s" in given and "max_iter" not in given):
        message = "must have either min_iter, or max_iter and s"
        hint = "min_iter: 3 compares at 3, 9, 27 …; max_iter: 27 and s: 2 at 3 and 9"
        yield draft.problem(("early_terminate",), message, code=CODE, hint=hint, at_key=True)


def order(draft: Draft) -> Iterator[Problem]:
    """Nothing can end before it may."""
    low, high = (draft.number("early_terminate", key) for key in ("min_iter", "max_iter"))
    if low is not None and high is not None and low > high:
        message = f"must be at least min_iter ({low}), got {high}"
        yield draft.problem(("early_terminate", "max_iter"), message, code="range-inverted", hint="swap them")


def has_a_curve(draft: Draft) -> Iterator[Problem]:
    """What comes at the end only can end nothing before it."""
    place = ("metrics",) if "metrics" in draft.names() else ("metric",)
    if "early_terminate" not in draft.names() or place[0] not in draft.names():
        return
    if place == ("metrics",):
        message, hint = "must not be given with several metrics", "a curve is judged by one metric"
        yield draft.problem(("early_terminate",), message, code=CODE, hint=hint, at_key=True)
    elif (found := format_of(draft)) is not None and found not in STREAMS:
        message = f"must be reported by step where trials are ended early, got format: {found}"
        hint = "source: stdout with lines name=value, or format: jsonl"
        yield draft.problem(place, message, code=CODE, hint=hint, at_key=True)
