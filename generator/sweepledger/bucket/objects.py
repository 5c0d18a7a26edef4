"""The objects of a bucket by key: read, write, list, delete. The only module that uses the library.

Credentials come from the platform (workload identity, `AWS_…`, `GOOGLE_…`, `AZURE_…`) or from a folder of files,
as Kubernetes mounts a Secret. That folder is read again after a failure, because credentials expire.
"""

import builtins
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError
from obstore.store import ObjectStore, from_url

from sweepledger.errors import StorageError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    # The library has these types only in its stubs.
    from obstore.store import ClientConfig, RetryConfig

T = TypeVar("T")

AT_ONCE = 4
"""Requests at a time with large content: each has a chunk in memory."""
SMALL_AT_ONCE = 32
"""Requests at a time with small content."""
PAGE = 1000
"""Objects in one answer of a list, which is the most that S3, GCS and Azure return."""
LARGEST_SECRET = 1 << 16

CLIENT: "ClientConfig" = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=120)}
RETRY: "RetryConfig" = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}
"""Short: who can wait repeats the whole step with credentials that may be newer."""

CLIENT_VARIABLES = tuple(
    f"{cloud}_{option}"
    for cloud in ("aws", "azure", "google")
    for option in ("allow_http", "root_certificate")
)
"""Options that the library does not take from the environment if it is given others of the client."""
CAUSES = (re.compile(r"status code: ([0-9]{3}[ \w]*)"), re.compile(r"<Code>(\w+)</Code>"))


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a list."""

    key: str
    bytes: int
    changed: float
    """Seconds since 1970, by the clock of the bucket."""


class Bucket:
    """A bucket, or a prefix in one: `s3://bucket/prefix`, `gs://…`, `az://…`."""

    def __init__(
        self, url: str, *, secrets: Path | None = None, variables: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Open a bucket without a request; the environment takes precedence over `variables`.

        Raises StorageError for an invalid address.
        """
        self.url = url.rstrip("/")
        self._secrets = secrets
        self._variables = {name.lower(): value for name, value in variables.items() if name not in os.environ}
        self._config = self._read_secrets()
        self._store = self._open()

    def _read_secrets(self) -> Mapping[str, str]:
        """Return the variables and the files of the folder, which are named after the library's variables."""
        if self._secrets is None:
            return self._variables
        try:
            return self._variables | {
                path.name.lower(): path.read_bytes()[:LARGEST_SECRET].decode().strip()
                for path in sorted(self._secrets.iterdir())
                if not path.name.startswith(".") and path.is_file()
            }
        except (OSError, UnicodeDecodeError) as error:
            raise StorageError(f"{self._secrets}: the credentials cannot be read: {error}") from error

    def _open(self) -> ObjectStore:
        config, client = dict(self._config), CLIENT.copy()
        for name in CLIENT_VARIABLES:
            if (value := config.pop(name, os.environ.get(name.upper()))) is None:
                continue
            if name.endswith("allow_http"):
                client["allow_http"] = value == "true"
            else:
                client["root_certificate"] = value
        options: Any = {"config": config or None, "client_options": client, "retry_config": RETRY}
        if self.url.startswith(("file:", "memory:")):
            options = {"mkdir": True} if self.url.startswith("file:") else {}
        try:
            return from_url(self.url, **options)
        except (BaseError, ValueError, TypeError) as error:
            raise StorageError(
                f"{self.url}: {_cause(error)}", hint="see docs/decisions/0015-object-storage.md"
            ) from error

    def _try(self, key: str, action: Callable[[ObjectStore], T]) -> T:
        """Perform a request; repeat it once if it failed and the credentials have changed."""
        is_renewed = False
        while True:
            try:
                return action(self._store)
            except FileNotFoundError:
                raise
            except (BaseError, OSError) as error:
                config = self._config if is_renewed else self._read_secrets()
                if config == self._config:
                    raise StorageError(f"{self.url}/{key}: {_cause(error)}") from error
                self._config, is_renewed = config, True
                self._store = self._open()

    def get(self, key: str) -> bytes | None:
        """Return the content of an object; None if there is none. Raises StorageError."""
        try:
            return self._try(key, lambda store: bytes(obstore.get(store, key).bytes()))
        except FileNotFoundError:
            return None

    def put(self, key: str, content: bytes) -> None:
        """Write an object atomically; an equal object that cannot be replaced stays. Raises StorageError."""
        try:
            self._try(key, lambda store: obstore.put(store, key, content, use_multipart=False))
        except StorageError as error:
            # A bucket with a retention policy refuses to replace an object, even by what it is already.
            is_refused = isinstance(error.__cause__, (AlreadyExistsError, PermissionDeniedError))
            if not is_refused or self.get(key) != content:
                raise

    def list(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix, page by page, in any order. Raises StorageError."""
        pages = self._try(prefix, lambda store: obstore.list(store, prefix, chunk_size=PAGE))
        while page := self._try(prefix, lambda _: next(pages, None)):
            for found in page:
                yield ListedObject(found["path"], found["size"], found["last_modified"].timestamp())

    def folders(self, prefix: str = "") -> tuple[str, ...]:
        """Return the names directly below a prefix that have objects below them. Raises StorageError."""
        found = self._try(prefix, lambda store: obstore.list_with_delimiter(store, prefix or None))
        return tuple(sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"]))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones do not matter. Raises StorageError, as for a locked bucket."""
        wanted = list(keys)
        for start in range(0, len(wanted), PAGE):
            self._delete_page(wanted[start : start + PAGE])

    def _delete_page(self, keys: builtins.list[str]) -> None:
        try:
            self._try(keys[0], lambda store: obstore.delete(store, keys))
        except FileNotFoundError:  # only stores that delete one object per request say so
            for key in keys if len(keys) > 1 else ():
                self._delete_page([key])

    def get_part(self, key: str, start: int, end: int) -> bytes:
        """Return some bytes of an object. Raises StorageError."""
        try:
            return self._try(key, lambda store: bytes(obstore.get_range(store, key, start=start, end=end)))
        except FileNotFoundError as error:
            raise StorageError(f"{self.url}/{key}: is missing") from error

    def get_all(self, keys: Iterable[str]) -> builtins.list[bytes | None]:
        """Return the contents of small objects in order. Raises StorageError.

        Each thread gets a share of the keys: to hand over requests one by one takes a fifth of their time.
        """
        wanted = [*keys]
        shares = [wanted[start::SMALL_AT_ONCE] for start in range(min(SMALL_AT_ONCE, len(wanted)))]
        contents: builtins.list[bytes | None] = [None] * len(wanted)
        with threads(SMALL_AT_ONCE) as pool:
            for start, share in enumerate(pool.map(lambda share: [*map(self.get, share)], shares)):
                contents[start::SMALL_AT_ONCE] = share
        return contents


def ahead(get: Callable[..., T], wanted: Iterable[tuple[Any, ...]]) -> Iterator[T]:
    """Yield the answers to requests in order, with a few of them ahead. Raises as `get` does."""
    with threads(AT_ONCE) as pool:
        waiting: list[Future[T]] = []
        for arguments in wanted:
            waiting.append(pool.submit(get, *arguments))
            if len(waiting) >= AT_ONCE:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def threads(at_once: int) -> "ThreadPoolExecutor":
    """Return a pool of threads for requests."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the start of a sidecar needs none

    return ThreadPoolExecutor(at_once)


def _cause(error: Exception) -> str:
    """Return a library's error in one line: the status and code of the answer, if there was an answer."""
    text = str(error)
    found = [match[1].strip() for match in (cause.search(text) for cause in CAUSES) if match]
    return ": ".join(found) or (text.strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:300]
