"""Datasets, volumes and stores of results in the settings."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs import quantities
from sweepledger.structs.settings import COLLECTOR_IMAGE, Cloud, ResultsSettings, ResultsStore


def identities(draft: Draft) -> Iterator[Problem]:
    """A dataset has a digest, or a version if it is too large for one."""
    for name in draft.names("datasets"):
        place: DocumentPath = ("datasets", name)
        keys = draft.names(*place)
        if draft.get(*place, kind=dict) is None:
            continue
        if not {"digest", "version"} & {*keys}:
            message, hint = "must be given unless version is", "`sweep cluster data PATH` computes it"
            yield draft.problem((*place, "digest"), message, code="missing-key", hint=hint, at_key=True)
        if {"digest", "version"} <= {*keys}:
            message, hint = "must not be given with digest", "the digest is more exact: delete the version"
            yield draft.problem((*place, "version"), message, code="data-digest", hint=hint, at_key=True)


def data_sources(draft: Draft) -> Iterator[Problem]:
    """A dataset is on a claim, or in the bucket of results."""
    for name in draft.names("datasets"):
        place: DocumentPath = ("datasets", name)
        keys = draft.names(*place)
        if draft.get(*place, kind=dict) is None:
            continue
        if "bucket" in keys:
            yield from _data_in_bucket(draft, place)
            continue
        if "claim" not in keys:
            hint = "the PersistentVolumeClaim with the data; or bucket and size, with results.store: bucket"
            message = "must be given unless bucket is"
            yield draft.problem((*place, "claim"), message, code="missing-key", hint=hint, at_key=True)
        if "size" in keys:
            message, hint = "must not be given without bucket", "a claim has its size: delete the key"
            yield draft.problem((*place, "size"), message, code="data-source", hint=hint, at_key=True)


def _data_in_bucket(draft: Draft, place: DocumentPath) -> Iterator[Problem]:
    """Each copy is verified by a digest and bounded by a size, and the sidecar of a bucket makes it."""
    for key in ("claim", "path", "nfs", "version"):
        if key in draft.names(*place):
            message = "must not be given with bucket"
            hint = "a copy has no volume, and a digest: delete the key"
            yield draft.problem((*place, key), message, code="data-source", hint=hint, at_key=True)
    if "size" not in draft.names(*place):
        message, hint = "must be given with bucket", "a little more than `du --human-readable FOLDER` says"
        yield draft.problem((*place, "size"), message, code="missing-key", hint=hint, at_key=True)
    store = draft.get("results", "store", kind=str) or ResultsStore.VOLUME
    if store != ResultsStore.BUCKET:
        message = f"must not be given with results.store: {store}"
        hint = "only the sidecar of a bucket copies data: choose that store, or a claim"
        yield draft.problem((*place, "bucket"), message, code="data-source", hint=hint, at_key=True)


STORE_SCHEMES = {"mlflow": ("https", "http"), "optuna": ("postgresql", "mysql")}
"""Schemes of addresses; Optuna's may name a driver after a plus sign."""
MAX_ADDRESS = 2000


def stores(draft: Draft) -> Iterator[Problem]:
    """A store of results has the address of a server, without credentials."""
    for name in draft.names("results", "sync"):
        place: DocumentPath = ("results", "sync", name)
        text = draft.get(*place, "to", kind=str)
        schemes = STORE_SCHEMES.get(name, ())
        if text is not None and not _is_server(text, schemes):
            listed = " or ".join(f"{scheme}://" for scheme in schemes)
            message = f"must begin with {listed} and a host without credentials, got {safe_repr(text)}"
            hint = "credentials are variables of `secret`"
            yield draft.problem((*place, "to"), message, code="store-address", hint=hint)


def _is_server(text: str, schemes: tuple[str, ...]) -> bool:
    if len(text) > MAX_ADDRESS or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return False
    # A password may also be a part of the query.
    is_bare = "@" not in text and "password" not in parts.query
    return bool(host) and is_bare and parts.scheme.partition("+")[0] in schemes


VOLUME_KEYS = ("claim", "checkpoints", "artifacts", "nfs")
FOREIGN_KEYS: Mapping[str, tuple[str, ...]] = {
    ResultsStore.API: (*VOLUME_KEYS, "keep", "progress", "bucket"),
    ResultsStore.BUCKET: (*VOLUME_KEYS, "progress"),
    ResultsStore.CLAIM: ("nfs", "progress", "bucket"),
    ResultsStore.VOLUME: ("bucket",),
}
"""Keys of `results` that mean nothing with a store."""
FOREIGN_HINTS: Mapping[str, str] = {
    ResultsStore.API: "the API server keeps records and no files; delete the key, or choose another store",
    ResultsStore.BUCKET: "all files are objects of results.bucket; delete the key, or choose store: volume",
    ResultsStore.CLAIM: "one node mounts the claim, and the collector none; delete the key, or choose store: volume",
    ResultsStore.VOLUME: "choose store: bucket, or delete the key",
}


def store_keys(draft: Draft) -> Iterator[Problem]:
    """A store has no keys of another: claims are of volumes, and without files nothing expires."""
    store = draft.get("results", "store", kind=str) or ResultsStore.VOLUME
    for key in FOREIGN_KEYS.get(store, ()):
        if key in draft.names("results"):
            message = f"must not be given with results.store: {store}, got {key}"
            hint = FOREIGN_HINTS[store]
            yield draft.problem(("results", key), message, code="store-key", hint=hint, at_key=True)


BUCKET: DocumentPath = ("results", "bucket")


def bucket_given(draft: Draft) -> Iterator[Problem]:
    """The store `bucket` has a bucket, and an image for the sidecar that moves files."""
    if draft.get("results", "store", kind=str) != ResultsStore.BUCKET:
        return
    if "bucket" not in draft.names("results"):
        message = "must be given with results.store: bucket"
        hint = "for example {url: s3://ml-sweeps/vision, …}"
        yield draft.problem(BUCKET, message, code="missing-key", hint=hint, at_key=True)
    if COLLECTOR_IMAGE not in draft.names("images"):
        message = "must be given with results.store: bucket"
        hint = "a sidecar in its image moves the files of trials; images/collector of the project builds it"
        yield draft.problem(("images", COLLECTOR_IMAGE), message, code="missing-key", hint=hint, at_key=True)


def bucket_clouds(draft: Draft) -> Iterator[Problem]:
    """A bucket has only keys that its cloud has."""
    scheme = (draft.get(*BUCKET, "url", kind=str) or "").partition("://")[0]
    clouds = {"endpoint": (Cloud.S3, Cloud.AZURE), "region": (Cloud.S3,), "account": (Cloud.AZURE,)}
    for key, having in clouds.items():
        value = draft.get(*BUCKET, key, kind=str)
        if value is not None and scheme in {*Cloud} - {*having}:
            schemes = " or ".join(f"{cloud}://" for cloud in having)
            message = f"must not be given unless the address begins with {schemes}, got {safe_repr(value)}"
            yield draft.problem((*BUCKET, key), message, code="bucket", hint="delete the key", at_key=True)


def bucket_access(draft: Draft) -> Iterator[Problem]:
    """A bucket has one kind of credential, and no Secret that trials may mount."""
    keys = draft.names(*BUCKET)
    for key in ("identity", "collector_identity", "expiry_identity"):
        if key in keys and "secret" in keys:
            message, hint = "must not be given with secret", "a client has one credential: delete one of them"
            yield draft.problem((*BUCKET, key), message, code="bucket", hint=hint, at_key=True)
    mounted = {draft.get("secrets", name, "secret", kind=str) for name in draft.names("secrets")}
    mounted.add(draft.get("code", "secret", kind=str))
    own = [(key, draft.get(*BUCKET, key, kind=str)) for key in ("secret", "seals")]
    for number, (key, name) in enumerate(own):
        if name is not None and (name in mounted or name in [other for _, other in own[:number]]):
            message = f"must be a Secret of its own, which no trial mounts, got {safe_repr(name)}"
            yield draft.problem((*BUCKET, key), message, code="bucket", hint="create another one")


def collected_in_time(draft: Draft) -> Iterator[Problem]:
    """A Job must not be deleted before the collector has read its records."""
    ttl, every = draft.get("submit", "ttl", kind=str), draft.get("results", "every", kind=str)
    try:
        lives = None if ttl is None else quantities.seconds(ttl)
        minutes = ResultsSettings().every_minutes if every is None else quantities.minutes(every)
    except ValueError:
        return
    if lives is not None and lives <= minutes * quantities.TIME_UNITS["m"]:
        message = f"must be longer than results.every ({minutes}m), got {safe_repr(ttl)}"
        yield draft.problem(("submit", "ttl"), message, code="duration", hint="for example 7d")
