"""Adaptive search: from recorded trials to the next round; equal evidence always gives the same round."""

from sweepledger.search.adaptive.observations import Observation, Round, SearchEnd, Suggestion
from sweepledger.search.adaptive.rounds import find_end, next_round
