"""Controller and node on one machine: the active batches, whose trials run as processes.

`job_controller` decides, as a pure function of batches and observed state; `engine` executes its actions.
It is not a sandbox: a trial has the rights of the user who started it.
"""
