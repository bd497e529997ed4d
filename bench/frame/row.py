"""A row: what is measured, what it is compared with, and whether the goal holds.

Samples are rates (more is better) or times and sizes (less is better). `p50` is the median, `p99`
the value that 99 % of the samples are at least as good as: a row with five rounds shows its worst
round there. `ratio` is always ours divided by the peer's, whatever is better.
"""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Callable, Optional

MORE, LESS = "more", "less"


@dataclass(frozen=True)
class Goal:
    """A bound for `of` ("ratio", "p50" or "p99"): at least or at most `bound`."""

    of: str
    comparison: str  # ">=" or "<="
    bound: float

    def holds(self, value: float) -> bool:
        return value >= self.bound if self.comparison == ">=" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.of} {self.comparison} {self.bound:g}"


@dataclass
class Comparison:
    """Samples of both sides. Paired: sample n of one was taken right beside sample n of the other,
    so the ratio is taken per pair and noise that lasts longer than a round cancels out."""

    ours: list
    peer: list = field(default_factory=list)
    paired: bool = True
    extra: dict = field(default_factory=dict)  # goes into the JSON as it is

    def ratios(self) -> list:
        pairs = zip(self.ours, self.peer)
        if self.peer and not self.paired:
            pairs = [(median(self.ours), median(self.peer))]
        return [ours / peer for ours, peer in pairs if peer]  # to 0 there is no ratio


@dataclass(frozen=True)
class Work:
    """What one round of load got out of a server, and what its clients waited where known."""

    done: float
    p50_us: Optional[float] = None
    p99_us: Optional[float] = None


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    better: str  # MORE or LESS
    peer: Optional[str]  # what stands on the other side, for people
    goal: Optional[Goal]
    measure: Callable  # takes the Context, returns a Comparison or raises RowFailed


def percentile(samples: list, percent: float, better: str) -> float:
    """The sample that `percent` % of all are at least as good as (nearest rank)."""
    from_best = sorted(samples, reverse=better == MORE)
    rank = math.ceil(len(from_best) * percent / 100)
    return from_best[max(rank, 1) - 1]


def rounded(value: Optional[float]) -> Optional[float]:
    """Four significant digits: more would be noise."""
    if value is None or value == 0:
        return value
    digits = 3 - math.floor(math.log10(abs(value)))
    return round(value, digits) if digits > 0 else float(round(value))


def _empty_result(row: Row) -> dict:
    return {
        "name": row.name, "unit": row.unit, "p50": None, "p99": None, "peer": row.peer,
        "peer_p50": None, "ratio": None, "goal": str(row.goal) if row.goal else None,
        "holds": None, "better": row.better, "ratio_low": None, "ratio_high": None,
    }


def failed_result(row: Row, reason: str) -> dict:
    return {**_empty_result(row), "failure": reason}


def result_of(row: Row, comparison: Comparison) -> dict:
    """The row as it stands in latest.json."""
    ratios = comparison.ratios()
    exact = {
        "p50": median(comparison.ours),
        "p99": percentile(comparison.ours, 99, row.better),
        "ratio": median(ratios) if ratios else None,
    }
    result = _empty_result(row)
    result.update({key: rounded(value) for key, value in exact.items()})
    if comparison.peer:
        result["peer_p50"] = rounded(median(comparison.peer))
    if ratios:
        result["ratio_low"], result["ratio_high"] = rounded(min(ratios)), rounded(max(ratios))
    if row.goal and exact[row.goal.of] is not None:
        result["holds"] = row.goal.holds(exact[row.goal.of])
    result["samples"] = [rounded(sample) for sample in comparison.ours[:100]]
    result["peer_samples"] = [rounded(sample) for sample in comparison.peer[:100]]
    result.update(comparison.extra)
    return result
