"""Plan: what a merge would add, its coverage, forecast and upper bounds. Pure: trials in, a review out."""

from sweepledger.plan.budgets import (
    Balance,
    BudgetUnit,
    Charge,
    Cost,
    PodDisk,
    PoolUsage,
    RoundBounds,
    balances,
    charge,
    cost,
    counts_towards,
    pool_usage,
    reservation,
)
from sweepledger.plan.coverage import (
    Coverage,
    Discrepancy,
    Histogram,
    ParameterCoverage,
    Scale,
    ValueCounts,
    coverage,
)
from sweepledger.plan.durations import TimingHistory, timing_history
from sweepledger.plan.forecast import (
    DurationSource,
    Forecast,
    PlannedTrials,
    Quantiles,
    estimate_durations,
    forecast,
    hourly_price,
)
from sweepledger.plan.review import (
    BestTrial,
    CodeChange,
    DesignReview,
    Difference,
    FileChange,
    Note,
    OutdatedPart,
    Planned,
    Rejection,
    Review,
    TrialCounts,
    UnreadableSpec,
    count_trials,
    difference,
    notes,
    outdated_parts,
    pool_usage_as_data,
    review_as_data,
)
