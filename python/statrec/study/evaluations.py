"""The evaluations of the study's runs, and whether their learning rates are at their end.

Both come from the run file, or from the commands after the run if its file is too large to be kept: a table of
`stat-curve --evals`, one of `statrec evaluate` of a single checkpoint, a line of `stat-table`; a column `lr`.
"""
import math
import os
import re
import statistics

from .experiment import after_of, state
from .printed import lines_in, printed
from .rule import last_third

COLUMN = re.compile(r"(?P<definition>.*) \((?P<unit>[^()]*)\)(; (?P<better>less|more) is better)?")
BESIDE = ("run", "percent", "step", "epoch") # columns of stat-curve --evals that are no metrics
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


def by_step(rows):
    """{step: {metric: value}} of the rows of stat-curve --evals. What was evaluated at one step is one evaluation."""
    found = {}
    for row in rows:
        values = found.setdefault(int(row["step"]), {})
        for column in row:
            value = number(row[column])
            if column not in BESIDE and (value == value or column not in values):
                values[column] = value
    return found


def evaluations_in(text, metric):
    """{step: value} of a table that lists evaluations, or is one; {}: it is neither."""
    rows, _ = lines_in(text)
    if rows and {"step", metric} <= set(rows[0]) and "# program: stat-curve" in text:
        return {step: values[metric] for step, values in by_step(rows).items()}
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
    for text in of_file(args, name):
        found = evaluations_in(text, metric)
        if OF_BATCHES.fullmatch(metric) and not numbers_in(found) and not over_batch(path):
            return kept(args, experiment, name, metric.removesuffix("_batch"))
    for text in () if found else of_run_after(args, experiment, name):
        found.update(evaluations_in(text, metric))
    return found


def of_file(args, name):
    """[table of a run file's evaluations], []: there is no such file."""
    path = os.path.join(args.out, f"{name}.h5")
    return [printed([os.path.join(args.bin, "stat-curve"), path, "--evals"])] if os.path.exists(path) else []


def of_run_after(args, experiment, name):
    """[text] of what came after the run itself, not after an average of its checkpoints."""
    return [text for label, text in tables_after(args, experiment, name) if len(experiment.after[label]) == 1]


def silent(args, experiment, name):
    """The steps whose evaluation has no number of any metric: what it lacks was recorded, and was none."""
    for text in of_file(args, name) or of_run_after(args, experiment, name):
        rows = lines_in(text)[0]
        if rows and "step" in rows[0] and "# program: stat-curve" in text:
            return {step for step, values in by_step(rows).items() if not numbers_in(values)}
    return set()


def unit_of(args, experiment, name, metric):
    """The unit that a run declares for a metric; empty: what was kept does not say."""
    if "-" in metric:
        units = {unit_of(args, experiment, name, part) for part in metric.split("-", 1)}
        return " and ".join(sorted(units))
    for text in [*of_file(args, name), *of_run_after(args, experiment, name)]:
        rows, meaning = lines_in(text)
        told = COLUMN.fullmatch(meaning.get(metric, ""))
        units = [told["unit"]] if told else [row["unit"] for row in rows if row.get("name") == metric and "unit" in row]
        if units:
            return units[0]
    return ""


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


def diverged(args, experiment, name, metric):
    """Whether a run says so, or the metric (best_NAME: that of which it is the best) is no number at its end."""
    metric = metric.removeprefix("best_")
    return state(args, name) == "diverged" or lost(kept(args, experiment, name, metric), silent(args, experiment, name))


def lost(series, recorded=()):
    """Whether a metric that a run has is no number at the end. recorded: steps at which NaN does not mean that it was not
    recorded. A metric that is recorded at some steps, with gaps between a third of its numbers or more, is NaN between them, and
    perhaps less often towards the end: only more than twice as many as between two numbers count."""
    if any(math.isinf(value) for _, value in last_third(series)):
        return True
    gaps = [len(gap) for gap in "".join("x" if math.isfinite(series[step]) else "-" for step in sorted(series)).split("x")]
    if len(gaps) == 1 or gaps[-1] == 0 or max(series) in recorded:
        return gaps[-1] > 0
    often = 3 * sum(map(bool, gaps[:-1])) < len(gaps) - 1
    longest = 0 if often else max(gaps[:-1])
    return gaps[-1] > 2 * longest + (longest > 0)


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
