"""Admission policies, evaluated as `sweep check` does, and the check of a batch's manifests."""

from collections.abc import Mapping, Sequence
from typing import Any

from sweepledger import contract
from sweepledger.contract import Policy
from sweepledger.operations.repository.rendered_manifests import team_policies
from sweepledger.problems import Problem
from sweepledger.structs.program import NO_IMAGE
from sweepledger.structs.settings import Settings
from tests.render.platforms import TRAINER
from tests.sweeps import real_bases, with_keys

Manifest = dict[str, Any]


def check_batch(
    batch: str, settings: Settings, manifests: Sequence[Mapping[str, Any]], **options: Any
) -> tuple[Problem, ...]:
    """Check manifests by the policies of the settings; those that run no image as a batch without one."""
    if settings.trials.images:  # of tests, which name an image of their own
        settings = with_keys(settings, images={**settings.trials.images, "trainer": TRAINER})
    if options.get("image") is None and NO_IMAGE in str(manifests):
        options["image"] = NO_IMAGE
    policies = team_policies(settings, real_bases())
    return contract.check_batch(batch, settings, manifests, policies, **{"file": "x", **options})


def refusals(
    policy: Manifest,
    manifest: Manifest,
    operation: str = "CREATE",
    *,
    old: Manifest | None = None,
    user: str = "",
) -> set[str]:
    """Return the messages of the rules that do not hold, without their codes."""
    judge = Policy(policy)
    broken = judge.broken(_with_kind(manifest), operation, old, user=user)
    return {judge.rules[number] for number in broken}


def _with_kind(manifest: Manifest) -> Manifest:
    """Give a pod template the kind of the pods that are made of it; a Job has a template of its own."""
    return {"kind": "Job" if "template" in manifest.get("spec", {}) else "Pod", **manifest}


def is_judged(policy: Manifest, manifest: Manifest, old: Manifest) -> bool:
    """Tell whether the rules look at an update at all."""
    conditions = [{"message": "", **condition} for condition in policy["spec"]["matchConditions"]]
    judge = Policy({"spec": {**policy["spec"], "variables": [], "validations": conditions}})
    return not judge.broken(_with_kind(manifest), "UPDATE", old)
