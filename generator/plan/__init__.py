"""What a sweep would cost, cover and change, before anybody pays for it. Pure: trials in, a review out."""

from generator.plan.ahead import Ahead, ahead
from generator.plan.asked import Asked, Source
from generator.plan.budgets import Balance, Charge, Unit, balances, charge, counts, promise
from generator.plan.coverage import Binned, Counted, Coverage, Covered, Scale, coverage
from generator.plan.data import as_data, balance_as_data, room_as_data
from generator.plan.difference import Difference, Unreadable, difference
from generator.plan.evenness import Discrepancy
from generator.plan.forecast import Forecast, forecast, price_an_hour, rounds
from generator.plan.intervals import Interval
from generator.plan.notes import Best, notes
from generator.plan.outdated import Outdated, outdated
from generator.plan.past import Past, past
from generator.plan.review import BlockReview, Cost, Note, Rejection, Review, Standing, cost, standing
from generator.plan.room import Room, room

__all__ = [
    "Ahead",
    "Asked",
    "Balance",
    "Best",
    "Binned",
    "BlockReview",
    "Charge",
    "Cost",
    "Counted",
    "Coverage",
    "Covered",
    "Difference",
    "Discrepancy",
    "Forecast",
    "Interval",
    "Note",
    "Outdated",
    "Past",
    "Rejection",
    "Review",
    "Room",
    "Scale",
    "Source",
    "Standing",
    "Unit",
    "Unreadable",
    "ahead",
    "as_data",
    "balance_as_data",
    "balances",
    "charge",
    "cost",
    "counts",
    "coverage",
    "difference",
    "forecast",
    "notes",
    "outdated",
    "past",
    "price_an_hour",
    "promise",
    "room",
    "room_as_data",
    "rounds",
    "standing",
]
