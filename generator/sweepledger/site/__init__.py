"""A static site of the experiment history: pages as pure functions of what a commit contains. No I/O."""

from sweepledger.site.fragment import sweep_pages
from sweepledger.site.history import CodeRevision, Event, MonthlyCost, SpecVersion, SweepHistory
from sweepledger.site.pages import (
    RUNNING_DATA,
    RUNNING_PAGE,
    assets_digest,
    compare_page,
    home_page,
    running_page,
    to_json,
    with_running_link,
)
