"""Katib's Experiment: v1alpha3 and v1beta1 are read, v1beta1 is written."""

from generator.exchange.katib.reading import read
from generator.exchange.katib.writing import write

__all__ = ["read", "write"]
