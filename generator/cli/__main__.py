"""`python -m generator.cli`: the command `sweep`, where it is not installed."""

from generator.cli.app import main

main()
