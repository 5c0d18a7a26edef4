"""Admission policies: what the API server refuses to run as a trial or to apply with Flux, and why."""

from collections.abc import Mapping, Sequence

from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import admission_pods, cel, cron_jobs, objects
from sweepledger.render.platform.admission_pods import owner_kinds
from sweepledger.render.platform.cel import Rule, list_literal, literal, owned_by
from sweepledger.render.platform.flux import SOURCE_NAME, active_folder
from sweepledger.render.platform.objects import NAMESPACE_LABEL, PART_OF, PLATFORM, Names, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.combinations import MAX_TRIALS
from sweepledger.structs.kubernetes import (
    APPLIER_ACCOUNT,
    CODE_CONTAINER,
    COLLECTOR_ACCOUNT,
    JOB,
    OWNER_ANNOTATION,
    QUEUE_LABEL,
    RECORD_FINALIZER,
    ROOT_ACCOUNT,
    STORE_CONTAINER,
    Kind,
)
from sweepledger.structs.settings import Settings

REGISTRATION = "admissionregistration.k8s.io/v1"
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
POD = Kind("", "v1", "Pod", "pods")

LABELS = "(has({0}.metadata.labels) ? {0}.metadata.labels : {{}})"
CHANGES_SPEC = (
    "request.operation == 'CREATE' || object.spec != oldObject.spec"
    f" || {LABELS.format('object')} != {LABELS.format('oldObject')}"
)
"""Updates that change neither spec nor labels are allowed: objects created under earlier settings must be able to
finish, and removing a finalizer is an update."""


def trial_policies(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policies for Jobs, which people create and see refused, and for pods, whatever creates them.

    A policy for a custom kind checks only the object itself; the Jobs and pods that it creates have their own policies.
    """
    names = Names.of(settings)
    jobs = (
        *admission_pods.job_template_rules(settings, source, bases),
        *job_rules(settings, source),
    )
    pods = admission_pods.pod_rules(settings, source, bases)
    made = [
        _policy(f"{names.trials}-trial-jobs", JOB, jobs, settings, "object.spec.template"),
        _policy(f"{names.trials}-trial-pods", POD, pods, settings, "object"),
    ]
    if settings.results.keep_days is not None:
        for policy, is_pod in zip(made, (False, True), strict=True):
            own = cron_jobs.expiry_expression(settings, source, bases, is_pod=is_pod)
            policy["spec"]["matchConditions"].append({"name": "is-a-trials", "expression": f"!({own})"})
    for kind in objects.custom_kinds(source):
        rules = custom_kind_rules(kind, settings)
        made.append(_policy(f"{names.trials}-{kind.plural}", kind, rules, settings))
    return [one for policy in made for one in (policy, _binding(policy, names.trials, settings))]


def release_policies(settings: Settings) -> list[Manifest]:
    """Return the policy for what the collector changes of pods, where it may change any: our finalizer alone."""
    if not settings.results.store.holds_pods:
        return []
    names = Names.of(settings)
    user = f"system:serviceaccount:{names.collector}:{COLLECTOR_ACCOUNT}"
    finalizers = "(has({0}.metadata.finalizers) ? {0}.metadata.finalizers : [])"
    before, after = finalizers.format("oldObject"), finalizers.format("object")
    annotations = "(has({0}.metadata.annotations) ? {0}.metadata.annotations : {{}})"
    name = f"{names.trials}-releases"
    policy = manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicy",
        name,
        settings,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["UPDATE"],
                        "resources": ["pods", "pods/*"],
                    }
                ],
            },
            "matchConditions": [
                {"name": "is-the-collector", "expression": f"request.userInfo.username == {literal(user)}"}
            ],
            "validations": [
                {
                    "expression": "object.spec == oldObject.spec && object.status == oldObject.status"
                    f" && {LABELS.format('object')} == {LABELS.format('oldObject')}"
                    f" && {annotations.format('object')} == {annotations.format('oldObject')}"
                    # Without its owner, the garbage collector would delete a pod that runs.
                    " && has(object.metadata.ownerReferences) == has(oldObject.metadata.ownerReferences)"
                    " && (!has(object.metadata.ownerReferences)"
                    " || object.metadata.ownerReferences == oldObject.metadata.ownerReferences)"
                    f" && {before}.all(f, f == {literal(RECORD_FINALIZER)} || f in {after})"
                    f" && {after}.all(f, f in {before})",
                    "message": f"of a pod the collector changes nothing but the finalizer {RECORD_FINALIZER}",
                    "reason": "Forbidden",
                }
            ],
        },
    )
    return [policy, _binding(policy, names.trials, settings)]


def kustomization_policies(settings: Settings) -> list[Manifest]:
    """Return the policies for Kustomizations: one without a service account is applied with Flux's own rights."""
    names = Names.of(settings)
    rules = kustomization_rules(active_folder(settings.cluster))
    policy = _policy(f"{names.trials}-flux-batches", KUSTOMIZATION, rules, settings)
    return [policy, _binding(policy, names.flux, settings)]


def owner_policy_name(settings: Settings) -> str:
    """Return the name of the policy, and of its binding, by which objects keep their owner."""
    return f"{Names.of(settings).trials}-owner"


def owner_policy(settings: Settings, objects: Sequence[Manifest]) -> list[Manifest]:
    """Return the policy that no object of a platform changes its owner, with its binding.

    It holds for these objects, whichever repository applied the policy: two with the same namespace have the same
    objects. Of other platforms in the cluster it says nothing: each has a policy of its own. The API server asks no
    policy about policies: `sweep cluster doctor` compares their owners.
    """
    kinds: dict[str, set[str]] = {}
    for made in objects:
        group = made["apiVersion"].rpartition("/")[0]
        if made["apiVersion"] != REGISTRATION:
            kinds.setdefault(group, set()).add(_plural(made["kind"]))
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": sorted(plurals)}
        for group, plurals in sorted(kinds.items())
    ]
    key = literal(OWNER_ANNOTATION)
    has_owner = "has({0}.metadata.annotations) && " + key + " in {0}.metadata.annotations"
    same = f"object.metadata.annotations[{key}] == oldObject.metadata.annotations[{key}]"
    policy = manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicy",
        owner_policy_name(settings),
        settings,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "objectSelector": {"matchLabels": {PART_OF: PLATFORM}},
                "resourceRules": rules,
            },
            "matchConditions": [
                {"name": "is-of-this-platform", "expression": _is_one_of(objects, settings)},
                {"name": "has-an-owner", "expression": has_owner.format("oldObject")},
            ],
            "validations": [
                {
                    "expression": f"{has_owner.format('object')} && {same}",
                    "messageExpression": f"'belongs to the repository ' + oldObject.metadata.annotations[{key}]"
                    " + '; a platform of another one needs another namespace in sweepledger.yaml'",
                    "message": "belongs to another repository",
                    "reason": "Forbidden",
                }
            ],
        },
    )
    name = policy["metadata"]["name"]
    binding = manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicyBinding",
        name,
        settings,
        spec={"policyName": name, "validationActions": ["Deny"]},
    )
    return [policy, binding]


def _is_one_of(objects: Sequence[Manifest], settings: Settings) -> str:
    """Return the condition that an object lies in a namespace of the platform, or is one of those outside of them."""
    names = Names.of(settings)
    own = (names.trials, names.collector, names.flux)
    outside = {
        f"{made['metadata'].get('namespace', '')}/{made['metadata']['name']}"
        for made in objects
        if made["apiVersion"] != REGISTRATION and made["metadata"].get("namespace") not in own
    }
    namespace = "(has(oldObject.metadata.namespace) ? oldObject.metadata.namespace : '')"
    return (
        f"{namespace} in {list_literal(own)} || "
        f"{namespace} + '/' + oldObject.metadata.name in {list_literal(sorted(outside))}"
    )


def _plural(kind: str) -> str:
    """Return the name of a resource by its kind, as Kubernetes forms it."""
    name = kind.lower()
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def _policy(
    name: str, kind: Kind, rules: Sequence[Rule], settings: Settings, template: str | None = None
) -> Manifest:
    matched = {
        "apiGroups": [kind.group],
        # Versions of custom kinds come and go. Beware: for all versions, the server does not check types.
        "apiVersions": ["*" if template is None else "v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    named = (
        {} if template is None else {"variables": cel.variables(template, settings if kind == POD else None)}
    )
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicy",
        name,
        settings,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [matched]},
            "matchConditions": [{"name": "asks-for-something", "expression": CHANGES_SPEC}],
            **named,
            "validations": [
                {"expression": rule.expression, "message": rule.message, "reason": "Forbidden"}
                for rule in rules
            ],
        },
    )


def _binding(policy: Manifest, namespace: str, settings: Settings) -> Manifest:
    name = policy["metadata"]["name"]
    selected = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicyBinding",
        name,
        settings,
        spec={"policyName": name, "validationActions": ["Deny"], "matchResources": selected},
    )


TTL = "ttlSecondsAfterFinished"

KUSTOMIZATION_KEYS = (
    *("deletionPolicy", "force", "interval", "path", "prune", "retryInterval"),
    *("serviceAccountName", "sourceRef", "suspend", "timeout", "wait"),
)
"""Fields that a Kustomization may have; Flux's other fields change what is applied, or where."""


def job_rules(settings: Settings, source: GitSource) -> tuple[Rule, ...]:
    """Return the rules for Jobs, without their pods."""
    unqueued = owned_by(owner_kinds(source)) if source.shapes else "false"
    most = settings.limits.max_trials or MAX_TRIALS
    return (
        Rule(
            "a Job in git must not have a TTL: once deleted, it would run again",
            f"!has(object.spec.{TTL})",
        ),
        Rule(
            f"a Job has at most {most} completions, and at most as many pods at once",
            f"(has(object.spec.completions) ? object.spec.completions : 1) <= {most}"
            " && (has(object.spec.parallelism) ? object.spec.parallelism : 1)"
            " <= (has(object.spec.completions) ? object.spec.completions : 1)",
        ),
        _name_rule("Job"),
        *_queue_rules("Job", f"{unqueued} || variables.proves", settings),
    )


def custom_kind_rules(kind: Kind, settings: Settings) -> tuple[Rule, ...]:
    """Return the rules for a custom kind; its Jobs and pods are checked when they are created."""
    rules = [_name_rule(kind.kind)]
    message = f"a {kind.kind} in git must not have a TTL: once deleted, it would run again"
    if kind.kind == "JobSet":
        rules.append(Rule(message, f"!has(object.spec.{TTL})"))
    if kind.replicas is not None:
        rules.append(Rule(message, f"!has(object.spec.runPolicy) || !has(object.spec.runPolicy.{TTL})"))
        pods = f"object.spec.{kind.replicas}"
        spec = f"{pods}[r].template.spec"
        own = [CODE_CONTAINER, *([STORE_CONTAINER] if settings.results.bucket is not None else [])]
        rules.append(
            Rule(
                f"an init container must be named {' or '.join(own)}: any other belongs to an operator",
                f"{pods}.all(r, !has({spec}.initContainers)"
                f" || {spec}.initContainers.all(c, {' || '.join(f'c.name == {literal(name)}' for name in own)}))",
            )
        )
    if kind.kind == "TrainJob":
        runtime = "object.spec.runtimeRef.kind"
        rules.append(
            Rule(
                "a TrainJob must use a runtime of its batch",
                f"has({runtime}) && {runtime} == 'TrainingRuntime'",
            )
        )
    if kind.kind != "TrainingRuntime":
        rules += _queue_rules(kind.kind, owned_by(["TrainJob"]), settings)
    return tuple(rules)


def kustomization_rules(active: str) -> tuple[Rule, ...]:
    """Return the rules for Kustomizations: account, source and folder."""
    account, path = "object.spec.serviceAccountName", "object.spec.path"
    root = f"{account} == {literal(ROOT_ACCOUNT)} && {path} == {literal(f'./{active}')}"
    batch = (
        f"{account} == {literal(APPLIER_ACCOUNT)} && {path} == './overlays/active/' + object.metadata.name"
    )
    # The name decides which of the two applies: a batch with the name of the root could pass for it.
    is_root = f"object.metadata.name == {literal(SOURCE_NAME)}"
    deleted = "object.spec.deletionPolicy"
    return (
        Rule(
            f"a Kustomization here applies {active}, or one batch, with the account for it",
            f"has({account}) && has({path}) && ({is_root} ? {root} : {batch})",
        ),
        Rule(
            "a Kustomization here reads this repository",
            "object.spec.sourceRef.kind == 'GitRepository'"
            f" && object.spec.sourceRef.name == {literal(SOURCE_NAME)}"
            " && !has(object.spec.sourceRef.namespace)",
        ),
        Rule(
            f"a Kustomization here may only set {', '.join(KUSTOMIZATION_KEYS)}: git is applied unchanged",
            f"object.spec.all(k, k in {list_literal(KUSTOMIZATION_KEYS)})",
        ),
        Rule(
            "a Kustomization here must prune and must not force",
            "(!has(object.spec.force) || object.spec.force == false)"
            " && has(object.spec.prune) && object.spec.prune == true"
            f" && (!has({deleted}) || {deleted} == 'Delete')",
        ),
    )


def _name_rule(kind: str) -> Rule:
    return Rule(
        f"every {kind} must have the name that is in git, not a generated one",
        "!has(object.metadata.generateName) || object.metadata.generateName == ''",
    )


def _queue_rules(kind: str, unqueued: str, settings: Settings) -> tuple[Rule, ...]:
    """Return the rule for queues: only configured ones, and one is required if every pool has one.

    `unqueued` is an expression for objects that need no queue: Kueue holds back their owner, or sweepledger owns them.
    """
    queues = sorted({pool.queue for pool in settings.pools.values() if pool.queue is not None})
    if not queues:
        return ()
    label = literal(QUEUE_LABEL)
    has_label = f"has(object.metadata.labels) && {label} in object.metadata.labels"
    named = f"object.metadata.labels[{label}] in {list_literal(queues)}"
    if any(pool.queue is None for pool in settings.pools.values()):
        expression = f"!({has_label}) || {named}"
    else:
        expression = f"{has_label} ? {named} : ({unqueued})"
    return (Rule(f"every {kind} goes through one of the queues {', '.join(queues)}", expression),)
