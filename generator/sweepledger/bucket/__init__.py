"""Results in object storage: where the objects of a trial are, the pod's sidecar that moves them, and their readers."""
