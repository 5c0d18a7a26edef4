"""What a trial may mount: its batch's folder of the results, data to read, Secrets that settings list."""

from generator.render.platform.admission_rules import Rule, text, texts
from generator.render.platform.source import Source
from generator.structs.labels import CHECKPOINTS, PARENT_PATH, SWEEP_LABEL
from generator.structs.settings import Settings
from generator.structs.sweep import Shape

SOURCES = ("configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret")

READ_ONLY = "(has(v.persistentVolumeClaim.readOnly) && v.persistentVolumeClaim.readOnly)"


def rules(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Say what holds for the volumes of every pod of a trial."""
    sources = " || ".join(f"has(v.{kind})" for kind in SOURCES)
    return (
        Rule(
            f"volumes are {', '.join(SOURCES[:-1])} or {SOURCES[-1]}; never hostPath, gitRepo or inline nfs",
            f"variables.volumes.all(v, {sources})",
        ),
        *_claims(settings),
        *_secrets(settings, source),
    )


def _claims(settings: Settings) -> tuple[Rule, ...]:
    results = settings.results
    written = {results.claim, results.checkpoints, results.artifacts} - {None}
    read = {dataset.claim for dataset in settings.datasets.values()}
    owned = texts(sorted(map(str, written)))
    # A claim may hold both: then a volume that can only be read is data.
    data = texts(sorted(read))
    shared = (
        "variables.volumes.filter(v, has(v.persistentVolumeClaim)"
        f" && v.persistentVolumeClaim.claimName in {owned}"
        f" && !(v.persistentVolumeClaim.claimName in {data} && {READ_ONLY})).map(v, v.name)"
    )
    own = " || ".join(f"(has(m.{key}) && m.{key}.startsWith(variables.folder + '/'))" for key in _SUB_PATHS)
    batch = "'^' + variables.labels['sweepledger.dev/sweep'] + '-b[0-9]+-[0-9a-f]{8}"
    parent = (
        f"({text(SWEEP_LABEL)} in variables.labels && variables.folder.matches({batch}$')"
        f" && m.mountPath == {text(PARENT_PATH)} && has(m.readOnly) && m.readOnly && has(m.subPath)"
        f" && m.subPath.matches({batch}/[0-9]+/{CHECKPOINTS}$'))"
    )
    return (
        Rule(
            "volumes are of no claim that sweepledger.yaml does not name",
            "variables.volumes.all(v, !has(v.persistentVolumeClaim)"
            f" || v.persistentVolumeClaim.claimName in {texts(sorted({*map(str, written), *read}))})",
        ),
        Rule(
            "data is mounted to be read only",
            "variables.volumes.all(v, !has(v.persistentVolumeClaim)"
            f" || !(v.persistentVolumeClaim.claimName in {texts(sorted(read - written))}) || {READ_ONLY})",
        ),
        Rule(
            "of the results a trial mounts its batch's folder: subPath or subPathExpr begins with the label"
            f" sweepledger.dev/batch; or to read, at {PARENT_PATH}, checkpoints of its sweep",
            "variables.reads || variables.containers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m,"
            f" !{shared}.exists(n, n == m.name) || {own} || {parent}))",
        ),
    )


_SUB_PATHS = ("subPath", "subPathExpr")


def _secrets(settings: Settings, source: Source) -> tuple[Rule, ...]:
    """Keep every Secret away from trials but those that the platform team listed."""
    listed = {secret.secret for secret in settings.secrets.values()}
    if settings.code is not None and settings.code.secret is not None:
        listed.add(settings.code.secret)
    known = texts(sorted(listed))
    pull = [settings.image_pull_secret] if settings.image_pull_secret else []
    # The MPI operator gives launcher and workers a key pair of its own making, called like the MPIJob.
    keys = f"v.secret.secretName.matches('^' + variables.folder + {text('-[0-9]+-ssh$')})"
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
            " (!has(c.env) || c.env.all(e, !has(e.valueFrom) || !has(e.valueFrom.secretKeyRef)))"
            " && (!has(c.envFrom) || c.envFrom.all(e, !has(e.secretRef))))",
        ),
        Rule(
            "image pull secrets are the one that sweepledger.yaml names",
            "!has(variables.pod.imagePullSecrets)"
            f" || variables.pod.imagePullSecrets.all(s, s.name in {texts(pull)})",
        ),
    )
