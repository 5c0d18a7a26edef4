"""Hyperparameters in, metrics out: one training, controlled by arguments and environment variables alone.

Read `hyperparameters`, `data`, `model`, `schedule`, `train`, `evaluate` and `result`, in that order. The
other modules support them: `contract`, `files`, `batches`, `compute`, `checkpoint`. Knows nothing of
Kubernetes, git or sweeps. Third-party: torch only.
"""

import warnings

# torch works without NumPy but warns at import. This package is imported before any of its modules imports
# torch, so the filter belongs here.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy", category=UserWarning)
