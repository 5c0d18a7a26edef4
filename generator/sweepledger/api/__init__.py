"""The Python API, for notebooks and scripts. `sweepledger` exports its public names."""
