"""Job fields that must fit together, and deadlines."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.objects import Finding, Job, Object
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.kubernetes import RUN_POLICY_PATH, WORKLOAD_KINDS

CODE, DEADLINE = "job-invalid", "deadline-missing"

MANY = 100_000
"""Above this number of completions, Kubernetes allows only `AT_A_TIME` at the same time."""
AT_A_TIME = 10_000
RULES = 20
EXIT_CODES = 255
COUNTS = ("backoffLimit", "backoffLimitPerIndex", "completions", "maxFailedIndexes", "parallelism")

RUN_POLICIES = frozenset(kind.kind for kind in WORKLOAD_KINDS.values() if kind.policy == RUN_POLICY_PATH)
"""Kinds whose deadline may be in `runPolicy`."""


def check(obj: Object) -> Iterator[Finding]:
    """Yield the findings in every Job that an object is or would start, and in the deadlines of other workloads."""
    for job in obj.jobs:
        yield from _counts(job)
        yield from _indexed(job)
        yield from _pod(job)
        yield from _policy(job)
        yield from _deadline(job)
    if obj.kind in RUN_POLICIES:
        yield from _run_policy(obj)


def _counts(job: Job) -> Iterator[Finding]:
    for key in COUNTS:
        value = job.spec.get(key)
        if value is not None and value < 0:
            yield Finding((*job.path, key), f"must not be negative, got {value}", CODE)
    if job.spec.get("manualSelector") or "selector" in job.spec:
        key = "selector" if "selector" in job.spec else "manualSelector"
        yield Finding((*job.path, key), "must be absent: it could adopt the pods of others", CODE)
    parallelism = job.spec.get("parallelism")
    if parallelism == 0:
        yield Finding((*job.path, "parallelism"), "must be at least 1: nothing would ever run", CODE)


def _indexed(job: Job) -> Iterator[Finding]:
    spec = job.spec
    if spec.get("completionMode", "NonIndexed") not in {"Indexed", "NonIndexed"}:
        mode = safe_repr(spec["completionMode"])
        yield Finding((*job.path, "completionMode"), f"must be 'Indexed' or 'NonIndexed', got {mode}", CODE)
    if spec.get("completionMode") != "Indexed":
        for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if key in spec:
                yield Finding((*job.path, key), "must be absent without completionMode: Indexed", CODE)
        return
    completions = spec.get("completions")
    if completions is None:
        yield Finding(job.path, "must have completions: an Indexed Job counts them", CODE)
        return
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield Finding((*job.path, "maxFailedIndexes"), "must be absent without backoffLimitPerIndex", CODE)
    yield from _bounds(job, completions)


def _bounds(job: Job, completions: int) -> Iterator[Finding]:
    bound = MANY if completions <= MANY else AT_A_TIME
    for key in ("parallelism", "maxFailedIndexes"):
        if job.spec.get(key, 0) > bound:
            message = f"must be at most {bound} with {completions} completions, got {job.spec[key]}"
            yield Finding((*job.path, key), message, CODE)
    failed = job.spec.get("maxFailedIndexes")
    if failed is not None and failed > completions:
        message = f"must be at most the {completions} completions, got {failed}"
        yield Finding((*job.path, "maxFailedIndexes"), message, CODE)
    if completions > MANY and "backoffLimitPerIndex" in job.spec and "maxFailedIndexes" not in job.spec:
        yield Finding(job.path, f"must have maxFailedIndexes with more than {MANY} completions", CODE)


def _pod(job: Job) -> Iterator[Finding]:
    at = (*job.path, "template", "spec", "restartPolicy")
    policy = None if job.pod is None else job.pod.spec.get("restartPolicy")
    if policy not in {"Never", "OnFailure"}:
        yield Finding(at, f"must be 'Never' or 'OnFailure', got {safe_repr(policy)}", CODE)
    elif "podFailurePolicy" in job.spec and policy != "Never":
        yield Finding(at, f"must be 'Never' beside a podFailurePolicy, got {safe_repr(policy)}", CODE)
    elif job.spec.get("backoffLimitPerIndex") is not None and policy != "Never":
        yield Finding(at, f"must be 'Never' beside backoffLimitPerIndex, got {safe_repr(policy)}", CODE)


def _policy(job: Job) -> Iterator[Finding]:
    if "podFailurePolicy" not in job.spec:
        return
    at = (*job.path, "podFailurePolicy", "rules")
    replaced = job.spec.get("podReplacementPolicy", "Failed")
    if replaced != "Failed":
        message = f"must be 'Failed' beside a podFailurePolicy, got {safe_repr(replaced)}"
        yield Finding((*job.path, "podReplacementPolicy"), message, CODE)
    rules = job.spec["podFailurePolicy"].get("rules") or []
    if len(rules) > RULES:
        yield Finding(at, f"must be at most {RULES}, got {len(rules)}", CODE)
    for index, rule in enumerate(rules):
        yield from _rule(job, rule, index)
        if index and rule.get("action") == "Ignore" and "onPodConditions" in rule:
            message = "must come first: a lost node is nobody's fault, whatever the exit code"
            yield Finding((*at, index), message, CODE)


def _rule(job: Job, rule: Mapping[str, Any], index: int) -> Iterator[Finding]:
    at = (*job.path, "podFailurePolicy", "rules", index)
    actions = {"Count", "FailIndex", "FailJob", "Ignore"}
    if rule.get("action") not in actions:
        message = f"must be one of {', '.join(sorted(actions))}, got {safe_repr(rule.get('action'))}"
        yield Finding((*at, "action"), message, CODE)
    if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in job.spec:
        yield Finding((*at, "action"), "must not be 'FailIndex' without backoffLimitPerIndex", CODE)
    if ("onExitCodes" in rule) == ("onPodConditions" in rule):
        yield Finding(at, "must have one of onExitCodes and onPodConditions", CODE)
    for number, condition in enumerate(rule.get("onPodConditions") or ()):
        if "status" not in condition:
            message = "must have its status written out: a default in this list is a difference for ever"
            yield Finding((*at, "onPodConditions", number), message, CODE, 'write status: "True"')
    if "onExitCodes" in rule:
        yield from _exit_codes(job, rule["onExitCodes"], (*at, "onExitCodes"))


def _exit_codes(job: Job, wanted: Mapping[str, Any], at: tuple[str | int, ...]) -> Iterator[Finding]:
    values = wanted.get("values") or []
    if not values or values != sorted(set(values)) or values[0] < 0 or values[-1] > EXIT_CODES:
        message = f"must be different exit codes up to {EXIT_CODES} in rising order, got {values!r}"
        yield Finding((*at, "values"), message, CODE)
    if wanted.get("operator") == "In" and 0 in values:
        yield Finding((*at, "values"), "must not hold 0: a success is no failure", CODE)
    if wanted.get("operator") not in {"In", "NotIn"}:
        message = f"must be 'In' or 'NotIn', got {safe_repr(wanted.get('operator'))}"
        yield Finding((*at, "operator"), message, CODE)
    known = {container.data.get("name") for container in job.pod.containers} if job.pod else set()
    name = wanted.get("containerName")
    if name is not None and name not in known:
        message = (
            f"must be a container of the pod ({', '.join(sorted(map(str, known)))}), got {safe_repr(name)}"
        )
        yield Finding((*at, "containerName"), message, CODE)


def _deadline(job: Job) -> Iterator[Finding]:
    pod = {} if job.pod is None else job.pod.spec
    places = (((*job.path,), job.spec), ((*job.path, "template", "spec"), pod))
    for at, spec in places:
        seconds = spec.get("activeDeadlineSeconds")
        if seconds is not None and seconds < 1:
            message = f"must be at least 1, got {seconds}: it would end before it began"
            yield Finding((*at, "activeDeadlineSeconds"), message, DEADLINE)
    if all(spec.get("activeDeadlineSeconds") is None for _, spec in places):
        hint = "activeDeadlineSeconds of the Job bounds all attempts, the pod template's each one"
        yield Finding(job.path, "must have activeDeadlineSeconds: what hangs is paid for", DEADLINE, hint)


def _run_policy(obj: Object) -> Iterator[Finding]:
    spec = obj.data.get("spec") or {}
    own = (spec.get("runPolicy") or {}).get("activeDeadlineSeconds")
    for pod in obj.pods:
        seconds = pod.spec.get("activeDeadlineSeconds", own)
        if seconds is None or seconds < 1:
            message = f"must have activeDeadlineSeconds of at least 1, got {safe_repr(seconds)}"
            yield Finding(pod.at, message, DEADLINE, "in the pod's template or in runPolicy")
