"""Search: from a sweep to its configurations and trials, deterministic and in the order of the table."""

from sweepledger.search.configurations import Configuration
from sweepledger.search.expansion import Expansion, expand, explore
