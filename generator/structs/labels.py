"""What several rooms, and the cluster, know objects and pods of a batch by. Words only, no rule."""

SWEEP_LABEL = "sweepledger.dev/sweep"
BATCH_LABEL = "sweepledger.dev/batch"
TRIAL_LABEL = "sweepledger.dev/trial"
INDEX_LABEL = "sweepledger.dev/index"
"""Of an object, and of its pods, that are one trial's: its row in the table."""
EGRESS_LABEL = "sweepledger.dev/egress-"
"""With the name of a place: the platform's NetworkPolicy of that place selects the pod."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
GPU_PRODUCT = "nvidia.com/gpu.product"
"""NVIDIA's feature discovery puts this label on nodes."""

TRIAL_ACCOUNT = "sweep-trial"
"""The service account of trials: no rights, no token."""
TRIAL_USER = 65532
"""User and group of trials: above 10,000, so no user of a node."""
INDEX_VARIABLE = "SWEEP_INDEX"
"""Names the row where no completion index does."""
