"""Access to disk, git and kustomize. The packages above take and return values."""
