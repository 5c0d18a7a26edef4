"""Run `sweep` as `python -m sweepledger.cli`."""

from sweepledger.cli.app import main

main()
