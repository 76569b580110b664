"""The evaluations of the study's runs, and whether their learning rates are at their end.

Both come from the run file, or from the commands after the run if its file is too large to be kept: a table of
`stat-curve --evals`, one of `statrec evaluate` of a single checkpoint, a line of `stat-table`; a column `lr`.
"""
import math
import os
import re

from .experiment import after_of, state
from .printed import lines_in, printed
from .rule import last_third

OF_BATCHES = re.compile("valid_.*_batch")
STEEP = 1 / 3 # of the peak: here a learning rate without an end counts as low
LAST = 0.05 # of the peak: here one that falls to its end has ended


def number(text):
    try:
        return float(text)
    except ValueError:
        return float("nan")


def tables_after(args, experiment, name):
    """(label, text of the file) of what came after a run."""
    for label in experiment.after:
        path = after_of(args, name, label)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                yield label, file.read()


def evaluations_in(text, metric):
    """{step: value} of a table that lists evaluations, or is one; {}: it is neither."""
    rows, _ = lines_in(text)
    if rows and {"step", metric} <= set(rows[0]) and "# program: stat-curve" in text:
        return {int(row["step"]): number(row[metric]) for row in rows}
    if len(rows) == 1 and {"steps", metric} <= set(rows[0]):
        return {int(rows[0]["steps"]): number(rows[0][metric])}
    of_checkpoint = re.search(r"^# checkpoint: .*, (\d+) updates$", text, re.M)
    if of_checkpoint:
        return {int(of_checkpoint[1]): number(row["value"]) for row in rows
                if row.get("name") == metric and row["site"] == "-"}
    return {}


def kept(args, experiment, name, metric):
    """{step: value of the metric} of a run, of all its evaluations that were kept; NaN: it is no number, or was not recorded
    there. A-B: a difference of two metrics of the run."""
    if "-" in metric:
        one, other = (kept(args, experiment, name, part) for part in metric.split("-", 1))
        return {step: one[step] - other[step] for step in one if step in other}
    path, found = os.path.join(args.out, f"{name}.h5"), {}
    if os.path.exists(path):
        found = evaluations_in(printed([os.path.join(args.bin, "stat-curve"), path, "--evals"]), metric)
        if OF_BATCHES.fullmatch(metric) and not numbers_in(found) and not over_batch(path):
            return kept(args, experiment, name, metric.removesuffix("_batch"))
    for label, text in () if found else tables_after(args, experiment, name):
        if len(experiment.after[label]) == 1: # of the run itself, not of an average
            found.update(evaluations_in(text, metric))
    return found


def over_batch(path):
    """Whether a run has statistics over the batch. Without them validation by batches is validation."""
    from .. import open as opened # needs the library or h5py, which tables do not
    with opened(path) as run:
        return any(site.axis == "batch" for site in run.sites.values())


def numbers_in(series):
    """The values that are numbers."""
    return {step: value for step, value in series.items() if math.isfinite(value)}


def evaluations(args, experiment, name, metric):
    """{step: value of the metric} of a run, of all its evaluations that were kept and are numbers."""
    return numbers_in(kept(args, experiment, name, metric))


def lost(series):
    """Whether a metric is no longer a number at the end of a run. A metric that is recorded at some steps is NaN
    between them, and perhaps less often towards the end: only more than twice as many as between two numbers count."""
    if any(math.isinf(value) for _, value in last_third(series)):
        return True
    gaps = "".join("x" if math.isfinite(value) else "-" for _, value in sorted(series.items())).split("x")
    longest = max(map(len, gaps[:-1]), default=0)
    return len(gaps) > 1 and len(gaps[-1]) > 2 * longest + (longest > 0)


def options_of(args, experiment, name):
    """{option: value} of a run: of its file, else those that its experiment sets."""
    path = os.path.join(args.out, f"{name}.h5")
    if os.path.exists(path):
        lines = printed([os.path.join(args.bin, "statrec"), "info", "--options", path]).splitlines()
        return dict(line.split(" = ", 1) for line in lines if " = " in line)
    settings = next(settings for run, settings, _ in experiment.runs() if run == name)
    return {**experiment.common, **settings}


def rates(args, experiment, name):
    """(largest, last) learning rate of a run; None: they were not kept."""
    path = os.path.join(args.out, f"{name}.h5")
    words = [os.path.join(args.bin, "stat-curve"), path, "--stat", "lr", "--buckets", "50"]
    texts = [printed(words)] if os.path.exists(path) else [
        text for _, text in tables_after(args, experiment, name)]
    for text in texts:
        values = [number(row["lr"]) for row in lines_in(text)[0] if "lr" in row]
        values = [value for value in values if value == value]
        if values: # three rows of a part of training: smallest, median and largest value
            return max(values), min(values[-3:])
    return None


def at_end(options, peak, last):
    """Whether a schedule has come to its end or its last drop; without an end: is below a third of its peak."""
    kind = options.get("lr-scheduler", "")
    milestones = [word for word in options.get("lr-steps", "").split(",") if word]
    if milestones:
        return last <= peak * number(options.get("lr-factor", "0.1")) ** len(milestones) * 1.001
    if kind in ("cosine", "linear"):
        lowest = number(options.get("lr-min", "0"))
        return last - lowest <= LAST * (peak - lowest)
    return last < STEEP * peak


def rate_text(args, experiment, name):
    """(whether the learning rate is at its end; that, and its last value as a part of its peak)."""
    found = rates(args, experiment, name) if state(args, name) != "diverged" else None
    if found is None:
        return False, "not kept"
    if not found[0]:
        return False, "always 0"
    ended = at_end(options_of(args, experiment, name), *found)
    return ended, f"{'ended' if ended else 'not ended'} at {found[1] / found[0]:.2g}"
