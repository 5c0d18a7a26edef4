"""Admission rules for the pods of trials: image, command, placement, network, volumes and Secrets.

They apply to the template of a Job and to the pod itself, whichever controller creates it. What a cluster adds to pods
or rewrites in them, and the settings list, is in no template.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sweepledger.formats import yaml
from sweepledger.formats.launch_json import LAUNCHER_PATH, LAUNCHER_PATHS
from sweepledger.render.base_files import Bases, clone_command
from sweepledger.render.platform.cel import Rule, list_literal, literal, owned_by, repository_pattern
from sweepledger.render.platform.source import GitSource
from sweepledger.structs import names
from sweepledger.structs.kubernetes import (
    ANYWHERE,
    CHECKPOINTS_FOLDER,
    CODE_CONTAINER,
    CODE_VARIABLES,
    COMPLETION_INDEX_VARIABLE,
    EGRESS_LABEL,
    GPU_PRODUCT_LABEL,
    MPI_WORKER_COMMAND,
    PARENT_FOLDER_VARIABLE,
    PARENT_PATH,
    POD_SET_ANNOTATIONS,
    QUEUE_LABEL,
    RECORD_FINALIZER,
    STORE_COMMAND,
    STORE_CONTAINER,
    STORE_READY_COMMAND,
    STORE_VARIABLES,
    SWEEP_LABEL,
    TRIAL_ACCOUNT,
)
from sweepledger.structs.node_pool import PodSettings, scheduling_fields, topology_annotations
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import (
    API_SERVER_EGRESS,
    COLLECTOR_IMAGE,
    PEERS_EGRESS,
    BucketSettings,
    Settings,
)

VOLUME_SOURCES = ("configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret")

PROJECTED_SOURCES = ("configMap", "downwardAPI", "secret")

IDENTITY_AUDIENCES = ("api://AzureADTokenExchange", "pods.eks.amazonaws.com", "sts.amazonaws.com")
"""Whom a token may be for that Azure's and Amazon's workload identity add to pods: never the API server."""

READ_ONLY = "(has(v.persistentVolumeClaim.readOnly) && v.persistentVolumeClaim.readOnly)"


def volume_rules(settings: Settings, source: GitSource) -> tuple[Rule, ...]:
    """Return the rules for the volumes of trial pods."""
    sources = " || ".join(f"has(v.{kind})" for kind in VOLUME_SOURCES)
    return (
        Rule(
            f"volumes are {', '.join(VOLUME_SOURCES[:-1])} or {VOLUME_SOURCES[-1]}; "
            "never hostPath, gitRepo or inline nfs",
            f"variables.volumes.all(v, {sources})",
        ),
        *_claims(settings),
        *_secrets(settings, source),
    )


def _claims(settings: Settings) -> tuple[Rule, ...]:
    written = frozenset(settings.results.claims.values())
    read = settings.dataset_claims
    owned = list_literal(sorted(written))
    # A claim may hold both: then a volume that can only be read is data.
    data = list_literal(sorted(read))
    shared = (
        "variables.volumes.filter(v, has(v.persistentVolumeClaim)"
        f" && v.persistentVolumeClaim.claimName in {owned}"
        f" && !(v.persistentVolumeClaim.claimName in {data} && {READ_ONLY})).map(v, v.name)"
    )
    own = " || ".join(f"(has(m.{key}) && m.{key}.startsWith(variables.folder + '/'))" for key in _SUB_PATHS)
    place = (
        "m.mountPath.startsWith('/sweep/') && !m.mountPath.contains('/..')"
        " && !m.mountPath.startsWith('/sweep/launcher')"
    )
    batch = "'^' + variables.labels['sweepledger.dev/sweep'] + '-b[0-9]+-[0-9a-f]{8}"
    parent = (
        f"({literal(SWEEP_LABEL)} in variables.labels && variables.folder.matches({batch}$')"
        f" && m.mountPath == {literal(PARENT_PATH)} && has(m.readOnly) && m.readOnly && has(m.subPath)"
        f" && m.subPath.matches({batch}/[0-9]+/{CHECKPOINTS_FOLDER}$'))"
    )
    return (
        Rule(
            "volumes are of no claim that sweepledger.yaml does not name",
            "variables.volumes.all(v, !has(v.persistentVolumeClaim)"
            f" || v.persistentVolumeClaim.claimName in {list_literal(sorted(written | read))})",
        ),
        Rule(
            "data is mounted to be read only",
            "variables.volumes.all(v, !has(v.persistentVolumeClaim)"
            f" || !(v.persistentVolumeClaim.claimName in {list_literal(sorted(read - written))}) || {READ_ONLY})",
        ),
        Rule(
            "of the results a trial mounts, below /sweep, its batch's folder: subPath or subPathExpr begins with"
            f" the label sweepledger.dev/batch; or to read, at {PARENT_PATH}, checkpoints of its sweep",
            "variables.reads || variables.containers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m,"
            f" !{shared}.exists(n, n == m.name) || (({own}) && {place}) || {parent}))",
        ),
    )


_SUB_PATHS = ("subPath", "subPathExpr")


def _secrets(settings: Settings, source: GitSource) -> tuple[Rule, ...]:
    """Return the rules that allow only listed Secrets."""
    known = list_literal(sorted(settings.mountable_secrets))
    pull = [settings.image_pull_secret] if settings.image_pull_secret else []
    # The MPI operator gives launcher and workers a key pair of its own making, called like the MPIJob.
    keys = f"v.secret.secretName.matches('^' + variables.folder + {literal('-[0-9]+-ssh$')})"
    made = f" || {keys}" if Shape.MPI_JOB in source.shapes else ""
    return (
        Rule(
            "volumes hold no Secret that sweepledger.yaml does not list",
            f"variables.volumes.all(v, (!has(v.secret) || v.secret.secretName in {known}{made})"
            " && (!has(v.projected) || !has(v.projected.sources)"
            f" || v.projected.sources.all(s, !has(s.secret) || s.secret.name in {known})))",
        ),
        Rule(
            "the environment holds no Secret: what is listed comes as a file",
            "variables.containers.all(c,"
            " !has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef)))",
        ),
        Rule(
            "image pull secrets are the one that sweepledger.yaml names",
            "!has(variables.pod.imagePullSecrets)"
            f" || variables.pod.imagePullSecrets.all(s, s.name in {list_literal(pull)})",
        ),
    )


WAITS_FOR_MASTER = "init-pytorch"
"""Init container that the operator of PyTorchJobs adds to Workers, from a template of the platform team's."""

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
"""The kinds that create Jobs or pods for a distributed trial."""

TURN = (
    "(request.operation == 'UPDATE' && has(object.metadata.labels)"
    f" && {literal(QUEUE_LABEL)} in object.metadata.labels)"
)
"""Kueue writes the nodes of a flavor, whatever their labels, into what it held back."""


def owner_kinds(source: GitSource) -> list[str]:
    """List the kinds that make Jobs or pods in this cluster, Jobs themselves apart."""
    return sorted({OWNERS[shape] for shape in source.shapes})


def job_template_rules(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> tuple[Rule, ...]:
    """Judge the template of a Job. What Kueue adds to it comes by an update, as the Job gets its turn."""
    queued = f"{TURN} || {owned_by(owner_kinds(source))}" if source.shapes else TURN
    peers = owned_by(owner_kinds(source)) if source.shapes else "false"
    return (
        *_common(settings, source, peers, is_pod=False),
        _finalizers(settings),
        *_commands(settings, bases, ()),
        *_variables(settings, bases, "false"),
        *_places(settings, queued if _has_queues(settings) else "false", "false"),
        *_topologies(settings, "object.spec.template"),
    )


def _finalizers(settings: Settings) -> Rule:
    """Return the rule for finalizers of a Job's pods; those of pods themselves are the cluster's to add."""
    names = "object.spec.template.metadata.finalizers"
    own = f"{names}.all(f, f == {literal(RECORD_FINALIZER)})"
    if not settings.results.store.holds_pods:
        return Rule(
            f"pods of a Job have no finalizer but {RECORD_FINALIZER}: nobody would remove it",
            f"!has({names}) || {own}",
        )
    return Rule(
        f"pods of a Job have the finalizer {RECORD_FINALIZER} alone: it keeps their records until they are read",
        f"variables.reads || (has({names}) && {names}.size() == 1 && {own})",
    )


def pod_rules(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> tuple[Rule, ...]:
    """Judge a pod. What the API server or Kueue added to it since its Job was judged is theirs."""
    judged = owned_by(["Job", *(owner_kinds(source) if _has_queues(settings) else [])])
    peers = "true" if source.shapes else "false"  # a plain Job that asks for it was refused
    return (
        *_common(settings, source, peers, is_pod=True),
        *_added(settings),
        *_commands(settings, bases, source.shapes),
        # What the cluster adds to pods, a Job that was judged before did not ask for.
        *_variables(settings, bases, owned_by(["Job"])),
        *_places(settings, f"{judged} || {TURN}", owned_by(["Job"])),
        *_topologies(settings, "object"),
    )


def _added(settings: Settings) -> tuple[Rule, ...]:
    """Return the rules for containers that the cluster adds: they could read what a trial writes, or Secrets."""
    if not settings.sidecars:
        return ()
    theirs = list_literal(sorted({name for one in settings.sidecars.values() for name in one.volumes}))
    return (
        Rule(
            "a sidecar that the cluster adds mounts only volumes that sweepledger.yaml lists for it",
            f"variables.added.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, m.name in {theirs}))",
        ),
        Rule(
            "a sidecar that the cluster adds has no Secret and no claim, neither in volumes nor in variables",
            "variables.added.all(c, !has(c.envFrom)"
            " && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef))))"
            f" && (!has(variables.pod.volumes) || variables.pod.volumes.all(v, !(v.name in {theirs})"
            " || (!has(v.secret) && !has(v.persistentVolumeClaim) && (!has(v.projected)"
            " || !has(v.projected.sources) || v.projected.sources.all(s, !has(s.secret))))))",
        ),
    )


def _has_queues(settings: Settings) -> bool:
    return any(pool.queue is not None for pool in settings.pools.values())


def _common(settings: Settings, source: GitSource, peers: str, *, is_pod: bool) -> tuple[Rule, ...]:
    schedulers = _pod_values(settings, lambda own: own.scheduler)
    opened = [*sorted(settings.egress.keys() - {API_SERVER_EGRESS}), PEERS_EGRESS]
    known = list_literal(f"{EGRESS_LABEL}{name}" for name in opened)
    projected = " || ".join(f"has(s.{kind})" for kind in PROJECTED_SOURCES)
    bucket = settings.results.bucket
    # An account without a Secret for the bucket has an identity of the cloud, by its name or its annotations.
    identities = settings.trial_accounts[0 if bucket is not None and bucket.secret is None else 1 :]
    if identities:  # the webhook of a cloud adds the token to pods of an account that has an identity
        projected += (
            " || (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience)"
            f" && s.serviceAccountToken.audience in {list_literal(IDENTITY_AUDIENCES)}"
            f" && variables.pod.serviceAccountName in {list_literal(identities)})"
        )
    known_tokens = _tokens_of(settings)
    if known_tokens:
        projected += (
            " || (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience)"
            " && (variables.pod.serviceAccountName + ' ' + s.serviceAccountToken.path"
            f" + ' ' + s.serviceAccountToken.audience) in {list_literal(known_tokens)})"
        )
    return (
        Rule(
            f"a trial runs as service account {TRIAL_ACCOUNT}, or as that of a pool of sweepledger.yaml",
            "variables.reads || (has(variables.pod.serviceAccountName)"
            f" && variables.pod.serviceAccountName in {list_literal(settings.trial_accounts)})",
        ),
        Rule(
            "a trial has no service account token or certificate",
            "has(variables.pod.automountServiceAccountToken)"
            " && variables.pod.automountServiceAccountToken == false"
            " && variables.volumes.all(v, !has(v.projected) || !has(v.projected.sources)"
            f" || v.projected.sources.all(s, {projected}))",
        ),
        Rule(
            "a trial has a deadline",
            "has(variables.pod.activeDeadlineSeconds) && variables.pod.activeDeadlineSeconds > 0",
        ),
        Rule(
            "a trial has the default scheduler or that of a pool of sweepledger.yaml, processes of its own,"
            " and no hosts or devices beside its resources",
            "(!has(variables.pod.schedulerName)"
            f" || variables.pod.schedulerName in {list_literal(['', 'default-scheduler', *schedulers])})"
            " && (!has(variables.pod.shareProcessNamespace) || !variables.pod.shareProcessNamespace)"
            f" && !has(variables.pod.hostAliases) && {_claims_of(settings)}",
        ),
        Rule(
            "a trial bears the name of its batch as label sweepledger.dev/batch",
            f"variables.reads || variables.folder.matches({literal(BATCH)})",
        ),
        *_images(settings, is_pod=is_pod),
        Rule(
            "every container has requests and limits of cpu and memory",
            "variables.containers.all(c, has(c.resources) && has(c.resources.requests)"
            " && has(c.resources.limits) && ['cpu', 'memory'].all(r,"
            " r in c.resources.requests && r in c.resources.limits))",
        ),
        *volume_rules(settings, source),
        *([] if bucket is None else _of_sidecar(settings, bucket, is_pod=is_pod)),
        Rule(
            "a trial reaches nothing that sweepledger.yaml does not open",
            f"variables.labels.all(k, !k.startsWith({literal(EGRESS_LABEL)}) || k in {known})",
        ),
        Rule(
            "only pods of distributed trials reach each other",
            f"!({literal(EGRESS_LABEL + PEERS_EGRESS)} in variables.labels) || {peers}",
        ),
    )


def _tokens_of(settings: Settings) -> list[str]:
    """Return account, file and audience of the tokens that pools name, sorted."""
    pods = [pool.pod for pool in settings.pools.values()]
    return sorted(
        {
            f"{pod.service_account} {name} {token.audience}"
            for pod in pods
            for name, token in pod.tokens.items()
        }
    )


def _claims_of(settings: Settings) -> str:
    """Return the condition that a pod claims only devices that a pool names; older servers know no such fields."""
    known = sorted(
        {f"{name}={of}" for pool in settings.pools.values() for name, of in pool.pod.claims.items()}
    )
    if not known:
        return "!has(variables.pod.resourceClaims)"
    return (
        "(!has(variables.pod.resourceClaims) || variables.pod.resourceClaims.all(r, !has(r.resourceClaimName)"
        " && has(r.resourceClaimTemplateName)"
        f" && (r.name + '=' + r.resourceClaimTemplateName) in {list_literal(known)}))"
    )


def _pod_values(settings: Settings, read: Callable[[PodSettings], str | None]) -> list[str]:
    """Return the different values that pools give to a field of pods, sorted."""
    return sorted({value for pool in settings.pools.values() if (value := read(pool.pod)) is not None})


def _images(settings: Settings, *, is_pod: bool) -> tuple[Rule, ...]:
    """Ask for the settings' repositories, with any digest: a batch keeps the image that it was made with.

    Settings that name no image leave the choice to specs: there only the digest can be asked for.
    """
    digest = Rule(
        "images are named by digest",
        f"variables.containers.all(c, has(c.image) && c.image.matches({literal(DIGEST)}))",
    )
    default = settings.defaults.image
    references = [image.repository for image in settings.images.values()]
    if default != LOCAL_IMAGE and default not in settings.images:
        name = default.partition("@")[0]
        head, slash, last = name.rpartition("/")
        references.append(f"{head}{slash}{last.partition(':')[0]}")
    if not references:
        return (digest,)
    pattern = repository_pattern(settings.with_mirrors(references) if is_pod else references)
    return (
        digest,
        Rule(
            "images are of the repositories that sweepledger.yaml names",
            f"variables.containers.all(c, has(c.image) && c.image.matches({literal(pattern)}))",
        ),
    )


def _commands(settings: Settings, bases: Mapping[str, bytes], shapes: Sequence[Shape]) -> tuple[Rule, ...]:
    """Return the rules that allow only the launcher and the init container that fetches the code."""
    starts = [_starts_launcher()]
    if Shape.MPI_JOB in shapes:
        command, arguments = MPI_WORKER_COMMAND
        starts.append(
            f"(c.command == {list_literal(command)} && has(c.args) && c.args == {list_literal(arguments)})"
        )
    before = []
    if settings.code is not None:
        cloning = clone_command(Bases(bases))
        before.append(
            f"(c.name == {literal(CODE_CONTAINER)} && !has(c.args) && has(c.command)"
            f" && c.command == {list_literal(cloning)})"
        )
    if Shape.PYTORCH_JOB in shapes:  # in git no PyTorchJob may have it: the operator added it
        before.append(
            f"(c.name == {literal(WAITS_FOR_MASTER)} && !has(c.volumeMounts) && {owned_by(['PyTorchJob'])})"
        )
    bucket = settings.results.bucket
    if bucket is not None:
        before.append(f"({IS_SIDECAR})")  # the rules for the sidecar say how it must be
    hooks = " && ".join(f"!has(c.{key})" for key in HOOKS)
    return (
        Rule(
            f"a container starts the launcher, {LAUNCHER_PATH}, and nothing beside it",
            "variables.proves || variables.reads || variables.main.all(c,"
            f" has(c.command) && ({' || '.join(starts)}))",
        ),
        Rule(
            f"an init container gets the code as base/components/clone says, and is called {CODE_CONTAINER}",
            f"variables.before.all(c, {' || '.join(before) or 'false'})",
        ),
        Rule(
            "a container has neither hooks nor probes",
            f"variables.containers.all(c, {hooks})"
            if bucket is None
            else f"variables.main.all(c, {hooks}) && variables.before.all(c, {IS_SIDECAR} || ({hooks}))",
        ),
    )


HOOKS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
IS_SIDECAR = f"c.name == {literal(STORE_CONTAINER)}"


def _of_sidecar(settings: Settings, bucket: BucketSettings, *, is_pod: bool) -> tuple[Rule, ...]:
    """Return the rules for the sidecar of a bucket: it alone has the credential, and runs no code of a trial."""
    image = settings.images[COLLECTOR_IMAGE].repository if COLLECTOR_IMAGE in settings.images else ""
    repository = repository_pattern(settings.with_mirrors([image]) if is_pod else [image])
    before = "variables.before"
    others = f"(variables.main + {before}.filter(c, c.name != {literal(STORE_CONTAINER)}))"
    clients = settings.client_variables(settings.egress)
    known = list_literal(sorted({*STORE_VARIABLES, *bucket.variables, COMPLETION_INDEX_VARIABLE, *clients}))
    ready = "c.lifecycle.postStart.exec.command"
    own = [
        f"has(c.command) && c.command == {list_literal(STORE_COMMAND)} && !has(c.args) && !has(c.workingDir)",
        "has(c.restartPolicy) && c.restartPolicy == 'Always'",
        f"has(c.image) && c.image.matches({literal(repository)})",
        "!has(c.livenessProbe) && !has(c.readinessProbe) && !has(c.startupProbe)",
        "has(c.lifecycle) && !has(c.lifecycle.preStop) && has(c.lifecycle.postStart)",
        f"has(c.lifecycle.postStart.exec) && {ready} == {list_literal(STORE_READY_COMMAND)}",
    ]
    batch = "'^' + variables.labels['sweepledger.dev/sweep'] + '-b[0-9]+-[0-9a-f]{8}/[0-9]+$'"
    parent = f"({literal(SWEEP_LABEL)} in variables.labels && e.value.matches({batch}))"
    values = (
        "(e.name == 'SWEEP_BATCH' ? e.value == variables.folder"
        f" : e.name == 'SWEEP_STORE_URL' ? e.value == {literal(bucket.url)}"
        f" : e.name == 'SWEEP_STORE_DATA' ? {_copies(settings)}"
        f" : e.name == {literal(PARENT_FOLDER_VARIABLE)} ? {parent} : true)"
    )
    names = ["SWEEP_BATCH", "SWEEP_STORE_URL"]
    if bucket.secret is None:  # the cloud adds variables of an identity
        known_environment = f"(e.name in {known} || e.name.startsWith('AWS_') || e.name.startsWith('AZURE_'))"
    else:
        known_environment = f"e.name in {known}"
    secrets = list_literal(bucket.secrets)
    holding = f"variables.volumes.filter(v, has(v.secret) && v.secret.secretName in {secrets}).map(v, v.name)"
    rules = [
        Rule(
            f"the init container {STORE_CONTAINER} is the sidecar that base/components/bucket-store describes",
            f"{before}.all(c, c.name != {literal(STORE_CONTAINER)} || ({' && '.join(own)}))",
        ),
        Rule(
            f"the init container {STORE_CONTAINER} moves files between this batch's folder and"
            " the bucket of sweepledger.yaml",
            f"{before}.all(c, c.name != {literal(STORE_CONTAINER)} || (has(c.env)"
            f" && c.env.all(e, {known_environment} && (!has(e.value) || {values}))"
            f" && {list_literal(names)}.all(n, c.env.exists(e, e.name == n && has(e.value)))))",
        ),
        Rule(
            f"only the init container {STORE_CONTAINER} mounts the Secrets of the bucket",
            f"{others}.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m,"
            f" !{holding}.exists(n, n == m.name)))"
            " && variables.volumes.all(v, !has(v.projected) || !has(v.projected.sources)"
            f" || v.projected.sources.all(s, !has(s.secret) || !(s.secret.name in {secrets})))",
        ),
        Rule(
            f"the init container {STORE_CONTAINER} mounts folders below /sweep, and tokens of a cloud",
            f"{before}.all(c, c.name != {literal(STORE_CONTAINER)} || !has(c.volumeMounts)"
            " || c.volumeMounts.all(m, (m.mountPath.startsWith('/sweep/')"
            " || m.mountPath.startsWith('/var/run/secrets/')) && !m.mountPath.contains('/..')))",
        ),
    ]
    if bucket.secret is None:
        source = "has(v.projected) && v.projected.sources.exists(s, has(s.serviceAccountToken))"
        tokens = f"variables.volumes.filter(v, {source}).map(v, v.name)"
        rules.append(
            Rule(
                f"only the init container {STORE_CONTAINER} has the identity of {TRIAL_ACCOUNT}",
                f"variables.pod.serviceAccountName != {literal(TRIAL_ACCOUNT)} || {others}.all(c,"
                f" !has(c.volumeMounts) || c.volumeMounts.all(m, !{tokens}.exists(n, n == m.name)))",
            )
        )
    return tuple(rules)


def _copies(settings: Settings) -> str:
    """Return the condition that a sidecar copies a dataset of the settings, or several, each by its name."""
    one = f"e.value in {list_literal(settings.dataset_folders)}"
    named = settings.named_dataset_folders
    if len(named) < 2:  # noqa: PLR2004 - several
        return one
    known = "|".join(re.escape(folder).replace(r"\-", "-") for folder in named)
    return f"({one} || e.value.matches({literal(f'^({known})( ({known}))*$')}))"


def _starts_launcher() -> str:
    """Return the condition that a container starts the launcher with a program of its image.

    Specs name the interpreter, as a word or an absolute path. One in a mounted folder may be what a trial wrote.
    """
    program = "c.command[0]"
    elsewhere = " && ".join(
        f"!({program} + '/').startsWith({literal(folder)})" for folder in names.WRITABLE_FOLDERS
    )
    return (
        f"(c.command.size() == 2 && c.command[1] in {list_literal(LAUNCHER_PATHS)}"
        f" && {program}.size() <= {names.LONGEST_INTERPRETER}"
        f" && {program}.matches({literal(f'^(?:{names.INTERPRETER})$')}) && {elsewhere}"
        " && (!has(c.volumeMounts) || c.volumeMounts.all(m,"
        f" !({program} + '/').startsWith(m.mountPath + (m.mountPath.endsWith('/') ? '' : '/')))))"
    )


def _variables(settings: Settings, bases: Mapping[str, bytes], judged: str) -> tuple[Rule, ...]:
    """Return the rules for environment variables; `judged`: when the template was checked before."""
    allowed = list_literal(settings.allowed_variables)
    # What decides what starts, by name and container: folders and files, and all of the clone's.
    fixed: dict[tuple[str, str], set[str]] = {}
    for path, content in bases.items():
        if path.endswith(".yaml"):
            for variable, container, value in _file_variables(content):
                if container == CODE_CONTAINER or value.startswith("/"):
                    fixed.setdefault((variable, container), set()).add(value)
    code = sorted({name for name, owner in fixed if owner == CODE_CONTAINER})
    clients = settings.client_variables(settings.egress)
    cloning = list_literal((*code, *CODE_VARIABLES, COMPLETION_INDEX_VARIABLE, *sorted(clients)))
    values = json.dumps({name: _values_of(fixed, name) for name in sorted({name for name, _ in fixed})})
    return (
        Rule(
            "the environment has no source but its variables",
            "variables.containers.all(c, !has(c.envFrom))",
        ),
        Rule(
            "no variable starts another program, unless allowed_variables of sweepledger.yaml has it",
            f"{judged} || variables.containers.all(c, !has(c.env) || c.env.all(e,"
            f" !e.name.matches({literal(f'^(?:{names.HOOKS})$')}) || e.name in {allowed}))",
        ),
        Rule(
            "variables of the launcher and of git have the values that base/ gives them",
            f"{judged} || variables.containers.all(c, !has(c.env) || c.env.all(e, !(e.name in {values})"
            f" || (has(e.value) && e.value in {values}[e.name])))",
        ),
        Rule(
            f"the init container {CODE_CONTAINER} has only variables of base/components/clone",
            f"{judged} || variables.before.all(c,"
            f" c.name != {literal(CODE_CONTAINER)} || !has(c.env) || c.env.all(e, e.name in {cloning}))",
        ),
    )


def _values_of(fixed: Mapping[tuple[str, str], set[str]], name: str) -> list[str]:
    return sorted(value for (other, _), values in fixed.items() if other == name for value in values)


@cache
def _file_variables(content: bytes) -> tuple[tuple[str, str, str], ...]:
    """Return name, container and value of each variable of a file; two policies ask for those of every base."""
    return tuple(
        (str(variable["name"]), str(container.get("name")), variable["value"])
        for container in _containers(yaml.load_all(content))
        for variable in container["env"]
        if variable.get("value") is not None
    )


def _containers(node: object) -> Iterator[Mapping[str, Any]]:
    """Find everything with variables in a document, whatever its kind."""
    if isinstance(node, Mapping):
        if isinstance(node.get("env"), list):
            yield node
        for value in node.values():
            yield from _containers(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _containers(item)


def _has_affinity_of(settings: Settings) -> str:
    """Return the condition that the affinity of a pod only requires the GPU type of a pool."""
    types = sorted({pool.gpu_type for pool in settings.pools.values() if pool.gpu_type is not None})
    nodes = "variables.pod.affinity.nodeAffinity"
    required = f"{nodes}.requiredDuringSchedulingIgnoredDuringExecution"
    expression = (
        f"e.key == {literal(GPU_PRODUCT_LABEL)} && e.operator == 'In'"
        f" && has(e.values) && e.values.all(v, v in {list_literal(types)})"
    )
    return (
        "(!has(variables.pod.affinity.podAffinity) && !has(variables.pod.affinity.podAntiAffinity)"
        f" && has({nodes}) && !has({nodes}.preferredDuringSchedulingIgnoredDuringExecution) && has({required})"
        f" && {required}.nodeSelectorTerms.all(t, !has(t.matchFields)"
        f" && has(t.matchExpressions) && t.matchExpressions.all(e, {expression})))"
    )


def _topologies(settings: Settings, template: str) -> tuple[Rule, ...]:
    """Return the rule for what pods ask Kueue for, if there are queues."""
    if not _has_queues(settings):
        return ()
    known = {
        f"{key}={value}"
        for pool in settings.pools.values()
        for templates in (1, 2)
        for key, value in {**pool.pod.annotations, **topology_annotations(pool, templates)}.items()
        if key.startswith(POD_SET_ANNOTATIONS)
    }
    known.add(f"{ANYWHERE}=true")
    annotations = f"{template}.metadata.annotations"
    return (
        Rule(
            "a trial asks Kueue for a place as a pool of sweepledger.yaml does",
            f"!has({template}.metadata) || !has({annotations}) || {annotations}.all(k,"
            f" !k.startsWith({literal(POD_SET_ANNOTATIONS)})"
            f" || (k + '=' + {annotations}[k]) in {list_literal(sorted(known))})",
        ),
    )


def _places(settings: Settings, placed: str, judged: str) -> tuple[Rule, ...]:
    """Return the rules for nodes and priority; `placed` and `judged`: when they were checked before."""
    pools = [scheduling_fields(pool, has_gpus=False) for _, pool in sorted(settings.pools.items())]
    selectors = {f"{key}={value}" for pool in pools for key, value in pool.get("nodeSelector", {}).items()}
    borne = {
        f"{one['key']}={one.get('value', '')}:{one['effect']}"
        for pool in pools
        for one in pool.get("tolerations", ())
    }
    # Where the cluster is set so, the API server lets pods with GPUs bear the taint called like these.
    borne |= {f"{pool.gpu_resource}=:NoSchedule" for pool in settings.pools.values() if pool.node.gpu}
    classes = [] if settings.priority_class is None else [settings.priority_class]
    classes += [name for name in _pod_values(settings, lambda own: own.priority_class) if name not in classes]
    runtimes = _pod_values(settings, lambda own: own.runtime_class)
    bears = (
        "(t.key + '=' + (has(t.value) ? t.value : '')"
        f" + ':' + (has(t.effect) ? t.effect : '')) in {list_literal(sorted(borne))}"
    )
    return (
        Rule(
            "a trial chooses no node by name",
            "!has(variables.pod.nodeName) || variables.pod.nodeName == '' || request.operation == 'UPDATE'",
        ),
        Rule(
            "a trial chooses nodes as a pool of sweepledger.yaml does",
            f"{placed} || !has(variables.pod.nodeSelector) || variables.pod.nodeSelector.all(k,"
            f" (k + '=' + variables.pod.nodeSelector[k]) in {list_literal(sorted(selectors))})",
        ),
        Rule(
            "a trial has no affinity but that of a pool of sweepledger.yaml",
            f"{placed} || !has(variables.pod.affinity) || {_has_affinity_of(settings)}",
        ),
        Rule(
            "a trial tolerates what a pool of sweepledger.yaml tolerates",
            f"{placed} || !has(variables.pod.tolerations) || variables.pod.tolerations.all(t, has(t.key)"
            f" && (t.key in {list_literal(NOT_READY)} || {bears}))",
        ),
        Rule(
            "the priority class is one that sweepledger.yaml names",
            # A class that the cluster gives to all pods stands in pods, but not in the Jobs that were judged.
            f"{judged} || !has(variables.pod.priorityClassName)"
            f" || variables.pod.priorityClassName in {list_literal(classes)}",
        ),
        Rule(
            "a trial runs in the cluster's default runtime, or in that of a pool of sweepledger.yaml",
            f"{judged} || !has(variables.pod.runtimeClassName)"
            f" || variables.pod.runtimeClassName in {list_literal(runtimes)}",
        ),
    )
