"""The policies of early stopping: one module for each, and the table of their names in a spec."""

from sweepledger.stopping import hyperband, patience, percentile, target
from sweepledger.structs.early_stopping import StopType

MODULES = (hyperband, percentile, patience, target)
TYPES: dict[str, StopType] = {name: kind for module in MODULES for name, kind in module.TYPES.items()}
"""What each type of `early_terminate` is."""
