"""Argo Workflows: a Workflow with a loop is read as a sweep, and a batch is written as a Workflow."""

from sweepledger.exchange.argo.reader import read

__all__ = ["read"]
