"""The rim that runs processes: what plays the cluster on one machine."""
