"""The page of an audit: text, and HTML for notebooks."""
from html import escape

from .. import _html
from .._watching import _sites
from ._audit_numbers import Interval, number
from ._audit_score import LIMITS, NOTHING, OUTPUTS, UNKNOWN
from ._audit_sites import BATCH, RECOMPUTED, RUNNING

_SITES = 30  # that the text shows
_NAMED = 6  # sites that a line names
_LOAD = "model.load_state_dict(audit.repair(), strict=False)"


def aligned(rows):
    """Lines of a table; rows: lists of texts, the first one the head."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip()
            for row in rows]


def counted(number, word):
    """"1 site", "2 batches" """
    ending = "" if number == 1 else "es" if word.endswith("ch") else "s"
    return f"{number} {word}{ending}"


# -- parts ------------------------------------------------------------------------------------

def verdict(audit):
    """The line that matters."""
    measure = audit.main
    if measure.broken():
        weights = "; all weights are finite" if audit.weights_finite else ""
        return (f"{audit.verdict}: the {_named(measure)} is not finite with running statistics, "
                f"and finite with batch statistics{weights}")
    if audit.verdict == UNKNOWN:
        return ("no verdict: one batch has no interval" if measure.kept else
                f"no verdict: the {_named(measure)} is not finite with batch statistics")
    if audit.verdict == NOTHING:
        return _nothing(audit, measure)
    if measure.name == OUTPUTS:
        return (f"{audit.verdict}: the outputs with running statistics are by {audit.cost} of "
                "their size further from those with batch statistics than those with recomputed "
                "statistics")
    return (f"{audit.verdict}: running statistics cost {_cost(measure, audit.cost)} against "
            f"{audit.against} statistics")


def _nothing(audit, measure):
    if measure.name == OUTPUTS:
        return ("nothing found: the outputs with running statistics are no further from those with "
                f"batch statistics than those with recomputed statistics ({audit.cost})")
    cost, limit = audit.cost, LIMITS[measure.unit][0]
    if cost.high < 0:
        return (f"running statistics cost nothing here: they are better than {audit.against} statistics by "
                f"{_cost(measure, Interval(-cost.value, -cost.high, -cost.low))}")
    if cost.low > 0:
        bound = f"{limit} nats" if measure.unit == "nats" else f"{100 * limit:.2g} %"
        return f"running statistics cost little here, less than {bound}: {_cost(measure, cost)}"
    return f"running statistics cost nothing measurable here: {_cost(measure, cost)}"


def _named(measure):
    return "output" if measure.name == OUTPUTS else measure.name


def _cost(measure, cost):
    if measure.unit == "nats":
        return f"{cost} nats of {measure.name}"
    return f"{cost} of {measure.name} ({100 * measure.size(cost):.2g} % of its value)"


def explanation(audit):
    """Lines: omitted parts, the culprit, and whether recomputed statistics help."""
    lines = []
    if audit.left_out:
        lines.append(f"not recognized: {_sites.counted(audit.left_out)} (statrec.register)")
    if audit.unaudited:
        lines.append(unaudited(audit.unaudited))
    lines += [_left_out(one, audit.batches) for one in audit.measures.values() if one.lost]
    if audit.verdict in (NOTHING, UNKNOWN):
        return lines
    site = next((site for site in audit.sites if site.name == audit.culprit), None)
    if site is not None:
        lines.append(f"culprit: {site.name}{_why(site, audit.against)}")
    elif audit.tried:
        lines.append(f"culprit: none of the {counted(audit.tried, 'site')} tried closes a fifth of "
                     "the gap alone")
    lines.append(_recomputed(audit.main, any(site.overflows for site in audit.sites)))
    return lines


def unaudited(sites):
    """What the page has of sites that evaluate by running statistics, but not as batch norms do."""
    names = ", ".join(f"{name} ({kind})" for name, kind in sites[:_NAMED])
    more = f" and {len(sites) - _NAMED} more" if len(sites) > _NAMED else ""
    return (f"not audited: {names}{more}: evaluation uses running statistics there, alike in all "
            "regimes, but not running_mean and running_var as a BatchNorm does")


def _left_out(measure, batches):
    """The batches that a measure does without."""
    numbers = ", ".join(str(place + 1) for place in measure.lost[:_NAMED])
    more = ", ..." if len(measure.lost) > _NAMED else ""
    return (f"{len(measure.lost)} of {counted(batches, 'batch')} left out ({numbers}{more}): the "
            f"{_named(measure)} is not finite there with batch statistics")


def _percent(fraction):
    """"7 %", "104 %" """
    return f"{100 * fraction:.0f} %"


def _why(site, against):
    parts = []
    if site.share is not None and site.finite:
        parts.append(f"{against} statistics at this site alone close {_percent(site.share)} of the gap")
    if site.finite and site.drifts:
        parts.append(f"mean of the data {site.shift} deviations from its running mean, standard "
                     f"deviations {site.spread} apart")
    return ": " + "; ".join([*parts, *site.notes]) if parts or site.notes else ""


def _recomputed(measure, overflow):
    if measure.broken() and not overflow:
        return f"recomputed statistics: the values below; {_LOAD}"
    gap, returned = measure.cost(RUNNING, BATCH), measure.cost(RUNNING, RECOMPUTED)
    if gap.value > 0 and returned.value > 0:
        text = (f"recomputed statistics return {_percent(returned.value / gap.value)} of the cost against batch "
                f"statistics, {returned} of {number(gap.value)}")
    elif returned.value > 0:
        text = f"recomputed statistics are better by {_cost(measure, returned)}"
    else:
        text = f"recomputed statistics return nothing, {returned} of {number(gap.value)}"
    if returned.low > 0 and returned.value >= 0.5 * gap.value:
        return f"{text}: {_LOAD}"
    if overflow:
        return text + ", since the buffers of a site cannot hold them"
    return text + (": batches differ from each other (few rows, or rows of one kind in a batch), "
                   "and no fixed statistics are right for all of them")


def measure_rows(audit):
    """dicts of a measure: its means, and the cost of running statistics."""
    return [{"measure": f"{one.name} ({one.unit})" if one.unit else one.name,
             **{regime: str(one.mean(regime)) for regime in (RUNNING, BATCH, RECOMPUTED)},
             "cost of running": str(one.cost(RUNNING, BATCH))} for one in audit.measures.values()]


def site_rows(audit):
    """dicts of a site; without columns that no site has."""
    rows = [{"site": site.name, "rows": f"{site.rows:.6g}", "tid_mean": str(site.tid_mean),
             "tid_var": str(site.tid_var), "shift": str(site.shift), "spread": str(site.spread),
             "largest": "" if site.feature is None else f"{site.largest} at {site.feature}",
             "alone": "" if site.value is None else str(site.value),
             "share": "" if site.share is None else number(site.share),
             "note": "; ".join(site.notes)} for site in audit.sites]
    used = [name for name in rows[0] if any(row[name] for row in rows)]
    return [{name: row[name] for name in used} for row in rows]


def title(audit):
    """The model and the data of the audit."""
    sites = counted(len(audit.sites), "site")
    others = f", {len(audit.unaudited)} not audited" if audit.unaudited else ""
    return (f"audit of {audit.model}: {counted(audit.batches, 'batch')} "
            f"({audit.memory / 1e6:.3g} MB), {audit.forwards} forward passes, {sites} with running "
            f"statistics{others}")


# -- forms ------------------------------------------------------------------------------------

def table_lines(rows):
    """Lines of a table of dicts; shows the first ones."""
    shown = rows[:_SITES]
    lines = aligned([list(shown[0]), *(list(row.values()) for row in shown)]) if shown else []
    more = [f"and {len(rows) - _SITES} more"] if len(rows) > _SITES else []
    return lines + more


def text(audit):
    """The page."""
    return "\n".join([title(audit), verdict(audit), *explanation(audit), "",
                      *table_lines(measure_rows(audit)), "", *table_lines(site_rows(audit))])


def html(audit):
    """The page for a notebook."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in (verdict(audit), *explanation(audit)))
    return (lines + _html.table(title(audit), {}, measure_rows(audit))
            + _html.table("", {}, site_rows(audit)))
