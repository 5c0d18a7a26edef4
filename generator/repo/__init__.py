"""The rim that touches disk, git and kustomize. Everything else takes and returns values."""
