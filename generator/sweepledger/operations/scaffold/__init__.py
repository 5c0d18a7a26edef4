"""Files that people keep and edit: a new repository, a new spec, the platform's manifests."""
