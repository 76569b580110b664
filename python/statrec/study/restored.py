"""Run files of evaluations alone, for figures of runs whose own files were too large to keep.

`after LABEL = stat-curve RUN.h5 --evals` was kept. The file has these evaluations, the settings of the run, and one
site that shows whether the method has statistics over the batch: without them there is no discrepancy.
"""
import os

from .evaluations import BESIDE, COLUMN, number
from .experiment import after_of, stop
from .printed import lines_in


def metrics_in(meaning):
    """{name: (unit, definition, direction)} of the columns of `stat-curve --evals`."""
    found = {}
    for name, text in meaning.items():
        told = COLUMN.fullmatch(text)
        if name not in BESIDE and told:
            found[name] = (told["unit"], told["definition"], told["better"] or "")
    return found


def over_batch(rows):
    """True: validation with the statistics of each batch differs from validation."""
    return any(row[name] != row[name + "_batch"] for row in rows for name in row if name + "_batch" in row)


def write(path, text, options, words):
    """words: the origin of the text, for an error."""
    from .. import Recorder, __version__ as version # need the library, which tables do not
    rows, meaning = lines_in(text)
    metrics = metrics_in(meaning)
    if not rows or not metrics or "step" not in rows[0]:
        stop(f"{words}: no table of stat-curve --evals")
    if not options.get("seed", "0").isdigit():
        stop(f"{words}: seed: a whole number is wanted, got {options['seed']!r}")
    norm, batch = options.get("norm", ""), over_batch(rows)
    with Recorder(path, force=True, config="".join(f"{key} = {value}\n" for key, value in options.items()),
                  model=options.get("model", ""), data=options.get("data", ""), seed=int(options.get("seed", 0)),
                  program="statrec study", version=version) as made:
        made.add_site("evaluations", norm=norm, family="sigma" if batch else "row", width=1, eps=0.0)
        for name, (unit, definition, better) in metrics.items():
            made.add_metric(name, unit, definition, better)
        for row in rows:
            step = int(row["step"])
            made.begin_step(step)
            made.end_step(step, 0, epoch=number(row["epoch"]))
            made.evaluate(step, epoch=number(row["epoch"]), **{name: number(row[name]) for name in metrics})


def restored(args, experiment, name, label):
    """The path of the run's file: its own, or one of its evaluations."""
    own = os.path.join(args.out, f"{name}.h5")
    if os.path.exists(own):
        return own
    source, folder = after_of(args, name, label), os.path.join(args.out, "evaluations")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(source, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        stop(f"{source}: {error.strerror}")
    settings = next(settings for run, settings, _ in experiment.runs() if run == name)
    options = {**experiment.common, **settings}
    path = os.path.join(folder, f"{name}.h5")
    write(path, text, options, source)
    return path
