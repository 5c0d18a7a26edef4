"""The repository's settings."""

from types import MappingProxyType

from generator.reader import Document
from generator.structs.settings import Dataset, Defaults, Results, Settings


def settings(document: Document) -> Settings:
    """Build the settings of a document without problems."""
    data, default = document.data or {}, Settings()
    return Settings(
        namespace=data.get("namespace", default.namespace),
        defaults=Defaults(image=data.get("image", default.defaults.image)),
        results=Results(claim=data.get("results", {}).get("claim", default.results.claim)),
        branch=data.get("branch", default.branch),
        remote=data.get("remote", default.remote),
        datasets=MappingProxyType(
            {
                name: Dataset(
                    name, dataset["claim"], dataset["digest"], prepare=tuple(dataset.get("prepare", ()))
                )
                for name, dataset in data.get("datasets", {}).items()
            }
        ),
    )
