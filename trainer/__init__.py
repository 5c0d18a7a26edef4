"""Hyperparameters in, metrics out: one training, told what to do by arguments and environment alone.

Read hyperparameters, data, batches, model, schedule, optimizer, train, evaluate, result, in that order;
`trial` puts them together. Knows no Kubernetes, no git and no sweep. Third-party: torch, nothing else.
"""

import warnings

# torch works without NumPy but says so at import. This package is imported before any of its modules
# imports torch, so the one place is here.
warnings.filterwarnings("ignore", message="Failed to initialize NumPy", category=UserWarning)
