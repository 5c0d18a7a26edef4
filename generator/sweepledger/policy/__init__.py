"""Rendered manifests in, problems out: what no schema and no admission controller would tell in time."""

from sweepledger.policy.batch_check import check_batch
from sweepledger.policy.kustomization import base_folders, check_kustomization
from sweepledger.policy.lint import LintReport, lint

__all__ = ["LintReport", "base_folders", "check_batch", "check_kustomization", "lint"]
