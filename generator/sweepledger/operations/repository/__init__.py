"""Commands' access to a repository of sweeps: work tree, commits, records, overlays."""
