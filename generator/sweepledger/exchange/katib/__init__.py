"""Katib's Experiment: v1alpha3 and v1beta1 are read, v1beta1 is written."""

from sweepledger.exchange.conversion import ForeignFormat
from sweepledger.exchange.katib.reader import read
from sweepledger.exchange.katib.writer import write

FORMAT = ForeignFormat(
    "katib", "an Experiment of Katib (kubeflow.org/v1beta1)", read=read, write=write, is_search=True
)
