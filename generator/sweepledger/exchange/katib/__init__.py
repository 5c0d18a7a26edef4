"""Katib's Experiment: v1alpha3 and v1beta1 are read, v1beta1 is written."""

from sweepledger.exchange.katib.reader import read
from sweepledger.exchange.katib.writer import write
