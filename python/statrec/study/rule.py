"""The rule for claims about a final metric: which verdict paired runs carry.

The difference of two runs with the same seed is followed over their evaluations. A verdict needs

* two pairs or more: intervals are Student's over the pairs (95 %);
* two evaluations or more in the last third of each run;
* evaluations of both runs in the last third of each: one that ended earlier is not compared with the middle of the other;
* a settled difference: the interval of its change over the last third lies within plus or minus half of the
  difference, or within plus or minus `within` where the interval of the difference contains zero;
* a learning rate at its end (evaluations.py);
* for "no difference seen" an interval of the difference within plus or minus twice `within`.

Everything else is "too short to tell", with the direction seen so far. The difference is the mean over the last third
of the evaluations, and its change the rise of a least-squares line over them, from the first of them to the last.
"""
from __future__ import annotations

import dataclasses
import math
import statistics

STUDENT = {2: 12.7062, 3: 4.30265, 4: 3.18245, 5: 2.77645, 6: 2.57058, 7: 2.44691, 8: 2.36462, 9: 2.30600, 10: 2.26216}
NORMAL = 1.959964 # the 97.5 % quantile of the normal distribution
NEAR = 0.05 # of the updates of a run: its last third may lack this part at each end
NATS = 0.01 # a change that counts as none where no difference is claimed

MISSING, DIVERGED, SHORT, NOTHING = "runs missing", "diverged", "too short to tell", "nothing to compare"
AS_CLAIMED, OPPOSITE, NONE, SEEN = "as claimed", "the opposite", "no difference seen", "difference seen"
CLAIMS = ("higher", "lower", "none") # a paper's claim about the difference


def student(count):
    """The 97.5 % quantile of Student's t for the mean of N values; from 11 on an expansion in the degrees of freedom,
    good to 0.001 (Abramowitz and Stegun 26.7.5)."""
    if count in STUDENT:
        return STUDENT[count]
    z, freedom = NORMAL, count - 1
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2) +
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def half_width(values):
    """Half the width of Student's 95 % interval of their mean; infinite for one value."""
    if len(values) < 2:
        return math.inf
    return student(len(values)) * statistics.stdev(values) / len(values) ** 0.5


def last_third(series):
    """[(update, value)] of the last third of {update: value}, rounded up as `stat-gap --split last-third` does."""
    points = sorted(series.items())
    return points[len(points) - (len(points) + 2) // 3:]


def ends(updates):
    """First and last update of the last third."""
    third = last_third(dict.fromkeys(updates, 0.0))
    return third[0][0], third[-1][0]


def apart(common, runs):
    """Why the last third of the common updates is not the last third of each run, {update: value}; empty: it is."""
    first, last = ends(common)
    theirs = [ends(run) for run in runs]
    end = max(its_last for _, its_last in theirs)
    if min(its_last for _, its_last in theirs) < (1 - NEAR) * end:
        return "runs end at different steps"
    if any(first < its_first - NEAR * end or last < its_last - NEAR * end for its_first, its_last in theirs):
        return "runs are evaluated at different steps"
    return ""


def rise(points):
    """Rise of the least-squares line through [(update, value)], from the first update to the last."""
    middle, mean = (statistics.fmean(column) for column in zip(*points))
    spread = sum((update - middle) ** 2 for update, _ in points)
    slope = sum((update - middle) * (value - mean) for update, value in points) / spread
    return slope * (points[-1][0] - points[0][0])


@dataclasses.dataclass
class Judgement:
    """difference, half and change, change_half: means over pairs with half of their intervals, NaN: not known.
    reason: why there is no verdict, else empty."""
    pairs: int
    verdict: str
    reason: str = ""
    difference: float = math.nan
    half: float = math.nan
    change: float = math.nan
    change_half: float = math.nan
    higher: bool | None = None # direction of the difference; None: its interval contains zero

    def direction(self):
        return {True: "higher", False: "lower", None: "no direction"}[self.higher]

    def brief(self):
        """The verdict in words."""
        if self.verdict == SHORT:
            return SHORT if self.higher is None else f"{SHORT}, {self.direction()} so far"
        return self.verdict if self.higher is None else f"{self.verdict}: {self.direction()}"

    def short(self):
        """The same for a claim, which has the direction."""
        return self.verdict if self.verdict in (AS_CLAIMED, OPPOSITE) else self.brief()

    def text(self):
        """With its reason."""
        if self.verdict in (DIVERGED, NOTHING):
            return f"{self.verdict}: {self.reason}"
        return self.brief().replace(SHORT, f"{SHORT} ({self.reason})")


def settled(found, within):
    """The interval of the change lies within the bound that the difference allows."""
    bound = within if found.higher is None else abs(found.difference) / 2
    return abs(found.change) + found.change_half <= bound


def judge(pairs, at_end, claim=None, within=NATS, lack="", gone=""):
    """pairs: [{update: difference}], one per seed; None: a run of the pair diverged. at_end: the schedules of all runs
    are at their end. claim: one of CLAIMS; None: no paper says anything. lack: why there is no verdict in any case. gone: the runs
    that diverged, as text."""
    if any(pair is None for pair in pairs):
        return Judgement(len(pairs), DIVERGED, f"{sum(pair is None for pair in pairs)} of {len(pairs)} pairs{gone and f' ({gone})'}")
    if len(pairs) < 2:
        return Judgement(len(pairs), MISSING, "fewer than two pairs",
                         *([statistics.fmean(value for _, value in last_third(pairs[0]))] if pairs else []))
    if lack:
        return Judgement(len(pairs), SHORT, lack)
    thirds = [last_third(pair) for pair in pairs]
    means = [statistics.fmean(value for _, value in third) for third in thirds]
    found = Judgement(len(pairs), SHORT, "", statistics.fmean(means), half_width(means))
    if abs(found.difference) > found.half:
        found.higher = found.difference > 0
    if min(map(len, thirds)) < 2:
        found.reason = "one evaluation in the last third"
        return found
    changes = [rise(third) for third in thirds]
    found.change, found.change_half = statistics.fmean(changes), half_width(changes)
    if not settled(found, within):
        found.reason = "still changes, or may"
    elif not at_end:
        found.reason = "learning rate not at its end"
    elif found.higher is None and abs(found.difference) + found.half > 2 * within:
        found.reason = "the interval is too wide"
    elif found.higher is None:
        found.verdict = NONE
    else:
        found.verdict = SEEN if claim is None else AS_CLAIMED if claim == found.direction() else OPPOSITE
    return found
