"""What commands read and write of a repository of sweeps: work tree, commits, records, overlays."""
