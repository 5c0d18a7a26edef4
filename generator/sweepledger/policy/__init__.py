"""Checks rendered manifests and returns problems that schemas and admission controllers miss or report too late."""

from sweepledger.policy.batch_check import check_batch
from sweepledger.policy.kustomization import base_folders, check_kustomization, may_build_on
