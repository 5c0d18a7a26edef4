"""What holds for objects that start pods, beside their pods, and for what Flux is asked to apply."""

from generator.render.platform.admission_pods import CLONE, owners
from generator.render.platform.admission_rules import Rule, owned_by, text, texts
from generator.render.platform.flux import ACTIVE, SOURCE_NAME
from generator.render.platform.names import APPLIER_ACCOUNT, ROOT_ACCOUNT
from generator.render.platform.source import Source
from generator.structs.kinds import Kind
from generator.structs.labels import QUEUE_LABEL
from generator.structs.settings import Settings

TTL = "ttlSecondsAfterFinished"

ASKED = (
    *("deletionPolicy", "force", "interval", "path", "prune", "retryInterval"),
    *("serviceAccountName", "sourceRef", "suspend", "timeout", "wait"),
)
"""What a Kustomization may say: whatever else Flux knows or will know changes what is applied, or where."""


def of_jobs(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Say what holds for Jobs beside their pods."""
    unqueued = owned_by(owners(source)) if source.shapes else "false"
    return (
        Rule(
            "a Job that git asks for has no TTL: deleted, it would run again",
            f"!has(object.spec.{TTL})",
        ),
        _name("Job"),
        *_queue("Job", f"{unqueued} || variables.proves", settings),
    )


def of_kind(kind: Kind, settings: Settings) -> tuple[Rule, ...]:
    """Say what holds for a custom kind; its Jobs and pods are judged when they are made."""
    rules = [_name(kind.kind)]
    says = f"a {kind.kind} that git asks for has no TTL: deleted, it would run again"
    if kind.kind == "JobSet":
        rules.append(Rule(says, f"!has(object.spec.{TTL})"))
    if kind.replicas is not None:
        rules.append(Rule(says, f"!has(object.spec.runPolicy) || !has(object.spec.runPolicy.{TTL})"))
        pods = f"object.spec.{kind.replicas}"
        spec = f"{pods}[r].template.spec"
        rules.append(
            Rule(
                f"an init container is called {CLONE}: any other is an operator's",
                f"{pods}.all(r, !has({spec}.initContainers)"
                f" || {spec}.initContainers.all(c, c.name == {text(CLONE)}))",
            )
        )
    if kind.kind == "TrainJob":
        runtime = "object.spec.runtimeRef.kind"
        rules.append(
            Rule(
                "a TrainJob uses a runtime of its batch", f"has({runtime}) && {runtime} == 'TrainingRuntime'"
            )
        )
    if kind.kind != "TrainingRuntime":
        rules += _queue(kind.kind, owned_by(["TrainJob"]), settings)
    return tuple(rules)


def of_kustomizations() -> tuple[Rule, ...]:
    """Say what holds for what Flux applies: the rights, the source and the folder that were agreed on."""
    account, path = "object.spec.serviceAccountName", "object.spec.path"
    root = f"{account} == {text(ROOT_ACCOUNT)} && {path} == {text(f'./{ACTIVE}')}"
    batch = f"{account} == {text(APPLIER_ACCOUNT)} && {path} == './overlays/active/' + object.metadata.name"
    # Of the two, that of the name's own: a batch called like the root could not be told from it.
    is_root = f"object.metadata.name == {text(SOURCE_NAME)}"
    deleted = "object.spec.deletionPolicy"
    return (
        Rule(
            "a Kustomization here applies clusters/flux/active, or one batch, with the account for it",
            f"has({account}) && has({path}) && ({is_root} ? {root} : {batch})",
        ),
        Rule(
            "a Kustomization here reads this repository",
            "object.spec.sourceRef.kind == 'GitRepository'"
            f" && object.spec.sourceRef.name == {text(SOURCE_NAME)}"
            " && !has(object.spec.sourceRef.namespace)",
        ),
        Rule(
            f"a Kustomization here says nothing but {', '.join(ASKED)}: git is applied as it is, here",
            f"object.spec.all(k, k in {texts(ASKED)})",
        ),
        Rule(
            "a Kustomization here never forces, and prunes",
            "(!has(object.spec.force) || object.spec.force == false)"
            " && has(object.spec.prune) && object.spec.prune == true"
            f" && (!has({deleted}) || {deleted} == 'Delete')",
        ),
    )


def _name(kind: str) -> Rule:
    return Rule(
        f"a {kind} has the name that git gives it, not a generated one",
        "!has(object.metadata.generateName) || object.metadata.generateName == ''",
    )


def _queue(kind: str, unqueued: str, settings: Settings) -> tuple[Rule, ...]:
    """Where every pool has a queue nothing may go past them; no other queue may be named in any case.

    `unqueued`: what Kueue holds back by its owner, and the tool's own.
    """
    queues = sorted({pool.queue for pool in settings.pools.values() if pool.queue is not None})
    if not queues:
        return ()
    label = text(QUEUE_LABEL)
    has_label = f"has(object.metadata.labels) && {label} in object.metadata.labels"
    named = f"object.metadata.labels[{label}] in {texts(queues)}"
    if any(pool.queue is None for pool in settings.pools.values()):
        expression = f"!({has_label}) || {named}"
    else:
        expression = f"{has_label} ? {named} : ({unqueued})"
    return (Rule(f"a {kind} goes through one of the queues {', '.join(queues)}", expression),)
