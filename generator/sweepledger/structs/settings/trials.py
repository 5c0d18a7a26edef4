"""What pods of trials consist of: images, datasets, secrets, node pools, and what the cluster adds."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from sweepledger.model import text_forms
from sweepledger.model.keys import (
    EMPTY,
    MANY,
    NAME,
    Absent,
    EntryName,
    EntryOf,
    Key,
    OneOf,
    TextForm,
    like,
    some,
)
from sweepledger.structs import quantities
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.pod_fields import PodField, PodPriority
from sweepledger.structs.program import AND, LOCAL_IMAGE, Data, data_name
from sweepledger.structs.quantities import Memory, Seconds
from sweepledger.structs.settings.results import Export
from sweepledger.structs.values import listing_digest

COLLECTOR_IMAGE = "collector"
"""The name among `images` of the image with this command and git; the sidecar of a bucket runs in it, too."""


class Image(Struct, frozen=True):
    """A container image that specs name."""

    name: Annotated[str, NAME]
    repository: str
    digest: str
    """Empty only for `sweep cluster pin`, which adds it."""
    tag: str | None = None
    """For information, because the digest decides."""

    @property
    def reference(self) -> str:
        """The image reference in a pod."""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{f':{self.tag}' if self.tag else ''}{digest}"


def _image(text: str) -> Image:
    """Return the image of a reference, still without a name. Raises ValueError."""
    match = text_forms.IMAGE.fullmatch(text)
    if match is not None and len(text) <= text_forms.LONGEST_IMAGE:
        return Image("", match["repository"], match["digest"] or "", match["tag"])
    reference, _, digest = text.partition("@")
    if digest and not text_forms.DIGEST.fullmatch(digest):
        raise ValueError("must end in @sha256: and 64 lower-case hex digits")
    if re.fullmatch(text_forms.IMAGE_REPOSITORY, reference.rpartition(":")[0], re.ASCII):
        raise ValueError("must have a tag such as 1.4 after its repository, or none")
    raise ValueError("must begin with a repository such as registry.example.org/team/train")


NamedImage = Annotated[
    Image,
    TextForm(_image, "image-reference", note="for example registry.example.org/team/train:1.4@sha256:…"),
    Meta(examples=[text_forms.IMAGE_EXAMPLE]),
]


class Dataset(Struct, frozen=True):
    """Data that specs name."""

    name: Annotated[str, NAME]
    claim: Annotated[text_forms.Name | None, Absent(None), Meta(examples=["mnist"])]
    """PersistentVolumeClaim with the data."""
    identity: Annotated[str, OneOf((("digest", text_forms.DataDigest), ("version", text_forms.DataVersion)))]
    """Content of the folder: `sha256:` over its sorted `<sha256> <name>` lines, or `version:` and a word."""
    path: Annotated[str, text_forms.VOLUME_FOLDER] = ""
    """Folder inside the volume. Default: the whole volume."""
    prepare: Annotated[tuple[str, ...], some(256), Meta(examples=[["trainer", "prepare", "mnist"]])] = ()
    """A command that fills the folder $SWEEP_DATA on a machine without the volume."""
    nfs: Export | None = None
    examples: Annotated[int | None, Meta(ge=1, examples=[60000])] = None
    """Number of training examples: `sweep plan` warns of larger batch sizes."""
    copied_from: Annotated[str, text_forms.BUCKET_FOLDER, Key("bucket")] = ""
    """Instead of a claim, with results.store bucket: the folder of the bucket from which the sidecar of each pod
    copies the data."""
    size: Annotated[Memory | None, Meta(examples=["2Gi"])] = None
    """The most that a copy from the bucket needs: pods request it as local disk."""


class SeveralDatasets(Struct, frozen=True):
    """Datasets that one sweep reads, each in the folder of its name: all on claims, or all in the bucket."""

    parts: tuple[Dataset, ...]
    """Sorted by name."""
    examples: ClassVar[None] = None
    """Unknown: which of them are training examples is the program's to know."""

    @property
    def name(self) -> str:
        """The names of the datasets, joined."""
        return data_name(part.name for part in self.parts)

    @property
    def identity(self) -> str:
        """`sha256:` over the lines `<identity>  <name>`; `version:` instead if one of them has no digest."""
        combined = listing_digest({part.name: part.identity for part in self.parts})
        if all(part.identity.startswith("sha256:") for part in self.parts):
            return combined
        return combined.replace("sha256:", "version:")

    @property
    def claims(self) -> tuple[str, ...]:
        """The claims that contain them, each once: a node may refuse a pod that names one twice."""
        return tuple(dict.fromkeys(part.claim for part in self.parts if part.claim is not None))

    @property
    def copied_from(self) -> str:
        """What the sidecar of a bucket copies; empty if they are on claims."""
        return " ".join(f"{part.name}={part.copied_from}" for part in self.parts if part.copied_from)

    @property
    def size(self) -> str | None:
        """The most bytes of all copies in a pod; None: they are on claims."""
        sizes = [quantities.whole_quantity(part.size) for part in self.parts if part.size is not None]
        return quantities.format_bytes(sum(sizes)) if sizes else None


SECRET_KEY = like(
    r"(?!\.\.?$)[A-Za-z0-9_.-]{1,253}",
    "must be a key of a Kubernetes Secret: letters, digits and - _ .",
    "token",
    "name-form",
)


class SecretReference(Struct, frozen=True):
    """A secret value of the cluster, which reaches a trial as a file and is never in git."""

    name: Annotated[str, NAME]
    secret: Annotated[text_forms.Name, Meta(examples=["hugging-face"])]
    """Kubernetes Secret in the trials' namespace."""
    key: Annotated[str, SECRET_KEY]
    """Its key."""
    variable: Annotated[str, Meta(examples=["HF_TOKEN"])]
    """Environment variable in which the trial's command receives the value."""


class Defaults(Struct, frozen=True):
    """Defaults for specs that do not set these keys."""

    image: text_forms.ImageName = LOCAL_IMAGE
    """Container image: a name among `images`, a reference with its digest, or `local`."""
    pool: Annotated[text_forms.Reference | None, EntryOf("pools")] = None
    """Name among `pools`. Default: any node with free capacity."""
    retries: Annotated[int, Meta(ge=0, le=10, examples=[1])] = 0
    """Number of times a trial is started again after a failure that its hyperparameters did not cause."""
    timeout_seconds: Annotated[Seconds, Meta(examples=["30m"])] = 3600
    """Longest time of one attempt: a whole number and s, m, h or d."""


class TrialSettings(Struct, frozen=True):
    """What pods of trials consist of, by names that specs use."""

    namespace: Annotated[text_forms.Name, Meta(examples=["sweeps"])] = "sweeps"
    """Kubernetes namespace of the trials, at most 53 characters; the collector's is this one and `-collector`."""
    defaults: Defaults = Defaults()
    images: Annotated[Mapping[text_forms.Name, NamedImage], MANY, EntryName("train")] = EMPTY
    """Container images by name: references with digests, which `sweep cluster pin NAME` writes."""
    datasets: Annotated[Mapping[text_forms.Name, Dataset], MANY, EntryName("mnist")] = EMPTY
    """Datasets by name, for specs to refer to."""
    secrets: Annotated[Mapping[text_forms.Name, SecretReference], MANY, EntryName("hugging-face")] = EMPTY
    """Secret values for trials, by name. They are only in the cluster, never in git."""
    pools: Annotated[Mapping[text_forms.Name, Pool], MANY, EntryName("cpu-small")] = EMPTY
    """Node pools by name, for specs to refer to."""
    labels: Annotated[text_forms.Labels, Meta(max_length=50, examples=[{"example.org/team": "vision"}])] = (
        EMPTY
    )
    """Additional labels of every object and pod."""
    image_pull_secret: Annotated[
        text_forms.Name | None,
        PodField("imagePullSecrets", lambda name: [{"name": name}]),
        Meta(examples=["registry-read"]),
    ] = None
    """Kubernetes Secret for pulling images."""
    priority_class: Annotated[PodPriority | None, Meta(examples=["batch"])] = None
    """PriorityClass of the trials' pods."""

    @property
    def dataset_claims(self) -> frozenset[str]:
        """The claims that contain datasets."""
        return frozenset(dataset.claim for dataset in self.datasets.values() if dataset.claim is not None)

    def pool(self, name: str | None) -> Pool | None:
        """Return a pool by its name; None without a name, or if there is none of this name."""
        return None if name is None else self.pools.get(name)

    def dataset(self, data: Data | None) -> Dataset | SeveralDatasets | None:
        """Return the dataset, or the several, of a program's data; None without. Raises KeyError."""
        if data is None:
            return None
        known = self.dataset_named(data.name)
        if known is None:
            raise KeyError(data.name)
        return known

    def dataset_named(self, name: str | None) -> Dataset | SeveralDatasets | None:
        """Return the dataset, or the several, of a name as `data_name` makes it; None if one is not here."""
        names = [] if name is None else name.split(AND)
        parts = tuple(self.datasets[part] for part in names if part in self.datasets)
        if not parts or len(parts) < len(names):
            return None
        return parts[0] if len(parts) == 1 else SeveralDatasets(parts)

    def image_of(self, name: str | None) -> str:
        """Return the reference of a named image, by default of the default image; other text is returned unchanged."""
        name = name or self.defaults.image
        return self.images[name].reference if name in self.images else name
