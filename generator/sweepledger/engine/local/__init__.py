"""Controller and node on one machine: the rendered Jobs of the active batches, run as processes.

The decision is pure (`reconcile`: manifests and observed state in, actions out); `engine` carries it out.
It is no sandbox: a trial has the rights of the person who started it.
"""
