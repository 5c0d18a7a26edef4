"""Kubernetes workloads of other tools, as the command and the run configuration of a trial."""
