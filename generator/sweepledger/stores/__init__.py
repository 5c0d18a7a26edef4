"""Recorded results in the stores of other tools: one module per store, which writes each finished trial once."""
