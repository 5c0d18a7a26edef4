"""Results in object storage: the keys of a trial's objects, the pod's sidecar that moves them, and their readers."""
