"""The CronJob that records what trials left: the frozen base, with this repository's values filled in."""

from collections.abc import Iterable, Mapping
from copy import deepcopy

from generator.formats import yaml
from generator.render.platform.names import COLLECTOR_ACCOUNT, GIT_WRITE_SECRET, Manifest, Names, labels
from generator.render.platform.source import Source
from generator.structs.settings import Settings

BASE = "collector/v1/cronjob.yaml"
IMAGE = "collector"
"""The name among `images` under which settings name the image with this command and git."""

WORK = "/sweep/work"
REPOSITORY = f"{WORK}/repository"
CREDENTIAL = "/sweep/git"

MINUTES = 60
"""Of an hour: cron's steps begin anew with each."""

CREDENTIAL_HELPER = (
    "!f() { "
    f"read -r name <{CREDENTIAL}/username || :; "
    f"read -r word <{CREDENTIAL}/password || :; "
    'printf "username=%s\\npassword=%s\\n" "$name" "$word"; }; f'
)
"""Asked by git when the server asks: neither an argument nor a variable ever holds the password."""

SIGNING_KEY = "signing"
"""Of the credential's Secret: results are signed with it, and come unsigned without it."""
SIGNER = "sweepledger@localhost"
"""Who the commits are by, where git knows nobody."""

SSH_COMMAND = (
    f"ssh -i {CREDENTIAL}/identity -o IdentitiesOnly=yes -o BatchMode=yes "
    f"-o StrictHostKeyChecking=yes -o UserKnownHostsFile={CREDENTIAL}/known_hosts"
)


def cron_job(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> Manifest:
    """Fill in the frozen base. While settings name no image `collector` it is suspended."""
    made: Manifest = deepcopy(yaml.load(bases[BASE]))
    made["metadata"] |= {"namespace": Names.of(settings).collector, "labels": _labels(settings)}
    spec = made["spec"]
    spec["schedule"] = _schedule(settings.results.every_minutes)
    spec["suspend"] = IMAGE not in settings.images
    job = spec["jobTemplate"]
    template = job["spec"]["template"]
    job["metadata"] = {"labels": _labels(settings)}
    template["metadata"] = {"labels": _labels(settings)}
    _fill_pod(template["spec"], settings, source)
    return made


def let_clone(pod: Manifest, settings: Settings, source: Source, configuration: Iterable[str]) -> None:
    """Give a pod that works on a clone its image, and its first container what to clone."""
    clone, work = pod["initContainers"][0], pod["containers"][0]
    for container in (clone, work):
        if IMAGE in settings.images:
            container["image"] = settings.images[IMAGE].reference
        container["env"] = _environment(source)
    kept = [f"--config={line}" for line in configuration]
    clone["command"] += [f"--branch={source.branch}", *kept, "--", source.url, REPOSITORY]
    if settings.image_pull_secret is not None:
        pod["imagePullSecrets"] = [{"name": settings.image_pull_secret}]


def _fill_pod(pod: Manifest, settings: Settings, source: Source) -> None:
    let_clone(pod, settings, source, _configuration(source))
    for volume in pod["volumes"]:
        if volume["name"] == "git":
            volume["secret"]["secretName"] = GIT_WRITE_SECRET
        if volume["name"] == "results":
            volume["persistentVolumeClaim"]["claimName"] = settings.results.claim


def _labels(settings: Settings) -> dict[str, str]:
    return labels(settings, **{"app.kubernetes.io/component": COLLECTOR_ACCOUNT})


def _schedule(minutes: int) -> str:
    """Every so many minutes, as evenly as cron can say it; from an hour on, every so many hours."""
    if minutes < MINUTES:
        return f"*/{minutes} * * * *"
    return f"0 */{min(minutes // MINUTES, 23)} * * *"


def _configuration(source: Source) -> list[str]:
    """Tell git where the credential lies, for this server and no other; it stands in the clone from then on.

    Beware of GIT_CONFIG_COUNT in the environment: the command forgets it, as it forgets all redirections.
    """
    key = f"{CREDENTIAL}/{SIGNING_KEY}"
    return [*credential(source), "gpg.format=ssh", f"user.signingKey={key}", "commit.gpgSign=true"]


def credential(source: Source) -> list[str]:
    """Give git's configuration for a password; a key is in the environment."""
    if source.scheme not in {"https", "http"}:
        return []
    return [f"credential.{source.origin}.helper={CREDENTIAL_HELPER}"]


def _environment(source: Source) -> list[Manifest]:
    """Keep what is written on the one volume for it: the root is read-only."""
    variables = {"HOME": WORK, "TMPDIR": WORK, "GIT_TERMINAL_PROMPT": "0"}
    if source.scheme == "ssh":
        variables["GIT_SSH_COMMAND"] = SSH_COMMAND
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]
