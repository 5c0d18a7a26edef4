"""What holds for every pod of a trial, as a Job's template and as the pod itself, whoever makes it."""

import re
from collections.abc import Mapping, Sequence

from generator.formats import yaml
from generator.formats.launch import LAUNCHER_PATH
from generator.formats.placement import placement
from generator.render.platform import admission_volumes
from generator.render.platform.admission_rules import Rule, owned_by, text, texts
from generator.render.platform.source import Source
from generator.structs.labels import EGRESS_LABEL, QUEUE_LABEL, TRIAL_ACCOUNT
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import API_SERVER, PEERS, Settings
from generator.structs.sweep import Shape

CLONE = "code"
"""The init container that gets the code."""
CLONES = re.compile(r"components/clone/v[0-9]+/patch\.yaml", re.ASCII)

WAITING = ("/usr/sbin/sshd",), ("-De", "-f", "/home/mpiuser/.sshd_config")
"""Command and arguments of an MPI worker until rank 0 starts its part in it."""
WAITS_FOR_MASTER = "init-pytorch"
"""Init container that the operator of PyTorchJobs adds to Workers, from a template of the platform team's."""

REFERENCE = "(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@|$)"
DIGEST = "@sha256:[0-9a-f]{64}$"
BATCH = "^[a-z0-9-]+$"

NOT_READY = tuple(f"node.kubernetes.io/{why}" for why in ("memory-pressure", "not-ready", "unreachable"))
"""Taints that the API server itself lets every pod bear."""

OWNERS: Mapping[Shape, str] = {
    Shape.JOB_SET: "JobSet",
    Shape.MPI_JOB: "MPIJob",
    Shape.PYTORCH_JOB: "PyTorchJob",
    Shape.TF_JOB: "TFJob",
    Shape.TRAIN_JOB: "JobSet",
}
"""What makes Jobs or pods for a distributed trial."""

TURN = (
    "(request.operation == 'UPDATE' && has(object.metadata.labels)"
    f" && {text(QUEUE_LABEL)} in object.metadata.labels)"
)
"""Kueue writes the nodes of a flavor, whatever their labels, into what it held back."""


def owners(source: Source) -> list[str]:
    """List the kinds that make Jobs or pods in this cluster, Jobs themselves apart."""
    return sorted({OWNERS[shape] for shape in source.shapes})


def in_jobs(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> tuple[Rule, ...]:
    """Judge the template of a Job. What Kueue adds to it comes by an update, as the Job gets its turn."""
    queued = f"{TURN} || {owned_by(owners(source))}" if source.shapes else TURN
    peers = owned_by(owners(source)) if source.shapes else "false"
    return (
        *_common(settings, source, peers),
        *_commands(settings, bases, ()),
        *_places(settings, queued if _has_queues(settings) else "false", "false"),
    )


def in_pods(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> tuple[Rule, ...]:
    """Judge a pod. What the API server or Kueue added to it since its Job was judged is theirs."""
    judged = owned_by(["Job", *(owners(source) if _has_queues(settings) else [])])
    peers = "true" if source.shapes else "false"  # a plain Job that asks for it was refused
    return (
        *_common(settings, source, peers),
        *_commands(settings, bases, source.shapes),
        *_places(settings, f"{judged} || {TURN}", owned_by(["Job"])),
    )


def _has_queues(settings: Settings) -> bool:
    return any(pool.queue is not None for pool in settings.pools.values())


def _common(settings: Settings, source: Source, peers: str) -> tuple[Rule, ...]:
    opened = [*sorted(settings.egress.keys() - {API_SERVER}), PEERS]
    known = texts(f"{EGRESS_LABEL}{name}" for name in opened)
    return (
        Rule(
            f"a trial runs as service account {TRIAL_ACCOUNT}",
            "variables.reads || (has(variables.pod.serviceAccountName)"
            f" && variables.pod.serviceAccountName == {text(TRIAL_ACCOUNT)})",
        ),
        Rule(
            "a trial has no service account token",
            "has(variables.pod.automountServiceAccountToken)"
            " && variables.pod.automountServiceAccountToken == false"
            " && variables.volumes.all(v, !has(v.projected) || !has(v.projected.sources)"
            " || v.projected.sources.all(s, !has(s.serviceAccountToken)))",
        ),
        Rule(
            "a trial bears the name of its batch as label sweepledger.dev/batch",
            f"variables.reads || variables.folder.matches({text(BATCH)})",
        ),
        *_images(settings),
        Rule(
            "every container has requests and limits of cpu and memory",
            "variables.containers.all(c, has(c.resources) && has(c.resources.requests)"
            " && has(c.resources.limits) && ['cpu', 'memory'].all(r,"
            " r in c.resources.requests && r in c.resources.limits))",
        ),
        *admission_volumes.rules(settings, source),
        Rule(
            "a trial reaches nothing that sweepledger.yaml does not open",
            f"variables.labels.all(k, !k.startsWith({text(EGRESS_LABEL)}) || k in {known})",
        ),
        Rule(
            "only pods of distributed trials reach each other",
            f"!({text(EGRESS_LABEL + PEERS)} in variables.labels) || {peers}",
        ),
    )


def _images(settings: Settings) -> tuple[Rule, ...]:
    """Ask for the settings' repositories, with any digest: a batch keeps the image that it was made with.

    Settings that name no image leave the choice to specs: there only the digest can be asked for.
    """
    digest = Rule(
        "images are named by digest",
        f"variables.containers.all(c, has(c.image) && c.image.matches({text(DIGEST)}))",
    )
    default = settings.defaults.image
    references = [image.repository for image in settings.images.values()]
    if default != LOCAL_IMAGE and default not in settings.images:
        name = default.partition("@")[0]
        head, slash, last = name.rpartition("/")
        references.append(f"{head}{slash}{last.partition(':')[0]}")
    if not references:
        return (digest,)
    known = "|".join(re.escape(one).replace(r"\-", "-") for one in sorted(set(references)))
    return (
        digest,
        Rule(
            "images are of the repositories that sweepledger.yaml names",
            f"variables.containers.all(c, has(c.image) && c.image.matches({text(f'^({known}){REFERENCE}')}))",
        ),
    )


def _commands(settings: Settings, bases: Mapping[str, bytes], shapes: Sequence[Shape]) -> tuple[Rule, ...]:
    """Let nothing run but the launcher and, before it, what gets the code: no hook, and no probe."""
    starts = [f"(c.command.size() == 2 && c.command[1] == {text(LAUNCHER_PATH)})"]
    if Shape.MPI_JOB in shapes:
        command, arguments = WAITING
        starts.append(f"(c.command == {texts(command)} && has(c.args) && c.args == {texts(arguments)})")
    before = []
    if settings.code is not None:
        known = " || ".join(f"c.command == {texts(command)}" for command in _clones(bases))
        before.append(f"(c.name == {text(CLONE)} && !has(c.args) && has(c.command) && ({known or 'false'}))")
    if Shape.PYTORCH_JOB in shapes:  # in git no PyTorchJob may have it: the operator added it
        before.append(
            f"(c.name == {text(WAITS_FOR_MASTER)} && !has(c.volumeMounts) && {owned_by(['PyTorchJob'])})"
        )
    return (
        Rule(
            f"a container starts the launcher, {LAUNCHER_PATH}, and nothing beside it",
            "variables.proves || variables.reads || variables.pod.containers.all(c,"
            f" has(c.command) && ({' || '.join(starts)}))",
        ),
        Rule(
            f"an init container gets the code as base/components/clone says, and is called {CLONE}",
            "!has(variables.pod.initContainers) || variables.pod.initContainers.all(c,"
            f" {' || '.join(before) or 'false'})",
        ),
        Rule(
            "a container has neither hooks nor probes",
            "variables.containers.all(c, !has(c.lifecycle) && !has(c.livenessProbe)"
            " && !has(c.readinessProbe) && !has(c.startupProbe))",
        ),
    )


def _clones(bases: Mapping[str, bytes]) -> list[list[str]]:
    """Find the command in every frozen version: batches that stand use an old one."""
    patches = [yaml.load(content) for path, content in sorted(bases.items()) if CLONES.fullmatch(path)]
    containers = [one for patch in patches for one in patch["spec"]["template"]["spec"]["initContainers"]]
    return [one["command"] for one in containers if one["name"] == CLONE]


def _places(settings: Settings, placed: str, judged: str) -> tuple[Rule, ...]:
    """Say where a pod runs; `placed` and `judged`: where that was decided, and its class, before."""
    pools = [placement(pool, has_gpus=False) for _, pool in sorted(settings.pools.items())]
    selectors = {f"{key}={value}" for pool in pools for key, value in pool.get("nodeSelector", {}).items()}
    borne = {
        f"{one['key']}={one.get('value', '')}:{one['effect']}"
        for pool in pools
        for one in pool.get("tolerations", ())
    }
    # Where the cluster is set so, the API server lets pods with GPUs bear the taint called like these.
    borne |= {f"{pool.gpu_resource}=:NoSchedule" for pool in settings.pools.values() if pool.node.gpu}
    classes = [] if settings.priority_class is None else [settings.priority_class]
    bears = (
        "(t.key + '=' + (has(t.value) ? t.value : '')"
        f" + ':' + (has(t.effect) ? t.effect : '')) in {texts(sorted(borne))}"
    )
    return (
        Rule(
            "a trial chooses no node by name",
            "!has(variables.pod.nodeName) || variables.pod.nodeName == '' || request.operation == 'UPDATE'",
        ),
        Rule(
            "a trial chooses nodes as a pool of sweepledger.yaml does",
            f"{placed} || !has(variables.pod.nodeSelector) || variables.pod.nodeSelector.all(k,"
            f" (k + '=' + variables.pod.nodeSelector[k]) in {texts(sorted(selectors))})",
        ),
        Rule(
            "a trial tolerates what a pool of sweepledger.yaml tolerates",
            f"{placed} || !has(variables.pod.tolerations) || variables.pod.tolerations.all(t, has(t.key)"
            f" && (t.key in {texts(NOT_READY)} || {bears}))",
        ),
        Rule(
            "the priority class is the one that sweepledger.yaml names",
            # A class that the cluster gives to all pods stands in pods, but not in the Jobs that were judged.
            f"{judged} || !has(variables.pod.priorityClassName)"
            f" || variables.pod.priorityClassName in {texts(classes)}",
        ),
    )
