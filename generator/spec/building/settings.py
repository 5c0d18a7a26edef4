"""The repository's settings."""

from types import MappingProxyType

from generator.reader import Document
from generator.structs.settings import Dataset, Settings


def settings(document: Document) -> Settings:
    """Build the settings of a document without problems."""
    data, default = document.data or {}, Settings()
    return Settings(
        namespace=data.get("namespace", default.namespace),
        image=data.get("image", default.image),
        results_claim=data.get("results", {}).get("claim", default.results_claim),
        branch=data.get("branch", default.branch),
        remote=data.get("remote", default.remote),
        datasets=MappingProxyType(
            {
                name: Dataset(name, dataset["claim"], dataset["digest"], tuple(dataset.get("prepare", ())))
                for name, dataset in data.get("datasets", {}).items()
            }
        ),
    )
