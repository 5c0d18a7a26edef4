"""Rendered manifests in, problems out: what no schema and no admission controller would tell in time."""

from generator.policy.anybodys import Manifests, lint
from generator.policy.manifests import check
from generator.policy.sources import closure, vet

__all__ = ["Manifests", "check", "closure", "lint", "vet"]
