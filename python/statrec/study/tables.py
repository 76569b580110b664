"""Tables, figures and quotations made of the runs that are done. The package's head describes the blocks."""
import itertools
import math
import os
import re
import shlex
import statistics

from .rule import half_width
from .archive import unpack
from .evaluations import diverged
from .experiment import DONE, Experiment, after_of, beside, finished, state, stop
from .restored import restored
from .printed import analysis, defined, drawn, lines_in, named, number_in, printed, some, split_words

NOTE, DAGGER = ".note", "†" # plots/published.tsv: a doubt about a value


def lines_of(args, by, paths, where):
    """The same by an analysis of the runs."""
    return lines_in(printed([*analysis(args, by, where), *paths]))


def table_of_runs(args, by, names, where):
    """{name: {column: text}}, {column: definition} by an analysis, which has a line for each run."""
    paths = {os.path.join(args.out, f"{name}.h5"): name for name in names}
    rows, meaning = lines_of(args, by, paths, where)
    if len({row["run"] for row in rows}) < len(rows):
        stop(f"{where}: {' '.join(by)} prints more than one line a run")
    return {paths[row["run"]]: row for row in rows}, meaning


def table_after(args, names, where):
    """The same from the commands after the runs: evaluations, or one line of an analysis. names: (run, label). A run
    that diverged has nothing."""
    found, meaning = {}, {}
    for name in names:
        path = after_of(args, *name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            rows, definitions = lines_in(file.read())
        if rows and {"name", "site", "value", "definition"} <= set(rows[0]):
            for row in rows:
                key = row["name"] if row["site"] == "-" else f"{row['name']}@{row['site']}"
                found.setdefault(name, {})[key], meaning[key] = row["value"], row["definition"]
        elif len(rows) == 1:
            found[name] = rows[0]
            meaning.update(definitions)
        else:
            stop(f"{where}: {path} is no table of `statrec evaluate`, nor one line of an analysis")
    return found, meaning


def cell(values, digits, usual):
    """Mean and interval of the values of a cell; None, infinite: one diverged; NaN: it has no such number."""
    values = [None if value is None or math.isinf(value) else value for value in values if value is None or value == value]
    if not values:
        return "–"
    finite = [value for value in values if value is not None]
    gone = len(values) - len(finite)
    few = f", {len(values)} run{'s' * (len(values) > 1)}" if len(values) < usual else ""
    if gone:
        return f"{gone} of {len(values)} diverged"
    mean = statistics.fmean(finite)
    if len(finite) == 1:
        return f"{mean:.{digits}f}{few}"
    return f"{mean:.{digits}f} ± {half_width(finite):.{digits}f}{few}"


def experiment_of(args, name, where):
    path = beside(args, f"{name}.conf")
    if not os.path.exists(path):
        stop(f"{where}: {path}: no such experiment")
    return Experiment(path)


def with_after(runs, experiment, where):
    """The runs once for each label of what comes after them, the names (run, label)."""
    if not experiment.after:
        stop(f"{where}: by=after: {experiment.name} has no line '#: after LABEL = COMMAND'")
    return [((run, label), values, {**labels, "after": label}) for run, values, labels in runs
            for label in experiment.after]


def run_of(name):
    return name[0] if isinstance(name, tuple) else name


def is_done(args, experiment, name, without_file):
    if run_of(name) == name:
        return state(args, name) in DONE or without_file and finished(args, experiment, name)
    return finished(args, experiment, name[0], name[1:])


def runs_of(args, block, factors, after=False, without_file=False):
    """[(name, labels)] of a block's runs with the labels of `only`, and the names of complete runs (without_file: also
    runs of which only results of later commands were kept). The name of the experiment is a label too, and after: the
    label of the command after the run."""
    runs, done, known = [], [], set()
    for name in block.experiments:
        experiment = experiment_of(args, name, block.where)
        options = {"experiment", *(["after"] if after else []), *(options[0] for options, _ in experiment.factors)}
        for option in [*factors, *block.only]:
            if option not in options:
                stop(f"{block.where}: {name} has no factor {option!r}")
        unpack(args, experiment)
        these = with_after(experiment.runs(), experiment, block.where) if after else experiment.runs()
        these = [(run, {**labels, "experiment": name}) for run, _, labels in these]
        known.update(*(labels.items() for _, labels in these))
        these = [(run, labels) for run, labels in these
                 if all(labels[key] in values for key, values in block.only.items())]
        done += [run for run, _ in these if is_done(args, experiment, run, without_file)]
        runs += these
    check_labels(block.only, known, block.where)
    return runs, done


def check_labels(only, known, where):
    """Stops where a label, or the text of a column, is wanted that there is not. known: {(option, label)}."""
    for option, labels in only.items():
        for label in labels:
            if (option, label) not in known:
                stop(f"{where}: {option} is never {label!r}")


class Table:
    """One table of the document, from the words after `study:`."""

    def __init__(self, words, where):
        (self.experiments, given), self.where = split_words(words), where
        self.rows, self.columns = given.pop("rows", None), given.pop("columns", None)
        self.head = given.pop("head", self.rows)
        self.values, self.digits = given.pop("value", "").split(","), given.pop("digits", "3")
        self.against, self.by = given.pop("against", None), given.pop("by", "stat-table").split()
        self.only = {key: value.split(",") for key, value in given.items()}
        if not self.experiments or not self.rows or not all(self.values) or (
                self.columns and len(self.values) > 1) or not self.digits.isdigit():
            stop(f"{where}: EXPERIMENT... rows=OPTION value=COLUMN [columns=OPTION] [by=ANALYSIS] [against=LABEL] "
                 "[digits=N] is wanted; several values where no columns= is")

    def lines(self, args):
        """Lines of the document, or None: no run yet."""
        after = self.by == ["after"]
        runs, done = runs_of(args, self, [self.rows, *([self.columns] if self.columns else [])], after)
        if not done:
            return None
        found, meaning = (table_after(args, done, self.where) if after else
                          table_of_runs(args, self.by, done, self.where))
        for value in self.values:
            if value not in meaning:
                stop(f"{self.where}: {self.by[0]} has no column {value!r}")
        experiment_of_run = {name: experiment_of(args, labels["experiment"], self.where) for name, labels in runs}
        alone = {value: {name: self._number(args, name, experiment_of_run[name], found, value) for name in done} for value in self.values}
        self.gone = list(dict.fromkeys(run_of(name) for each in alone.values() for name in each if each[name] is None))
        numbers = {value: self._numbers(runs, alone[value]) for value in self.values}
        cells, rows, columns = self._cells(runs, numbers)
        usual = max(map(len, cells.values()), default=1)
        self.pooled = self._pooled(runs)
        return [*self._drawn(cells, rows, columns, usual), "",
                *self._told(args, *(len({run_of(name) for name in names}) for names in (done, dict(runs))), usual, meaning)]

    @staticmethod
    def _number(args, name, experiment, found, value):
        """None: the run diverged, also where the metric itself is no number at the end: its best value is one."""
        number = number_in(found[name], value) if name in found else math.nan
        return None if math.isinf(number) or diverged(args, experiment, run_of(name), value) else number

    def _numbers(self, runs, numbers):
        """{name: number of its cell}, of the runs that have one."""
        if not self.against:
            return numbers
        name_of = {tuple(labels.items()): name for name, labels in runs}
        if self.against not in (labels[self.rows] for _, labels in runs):
            stop(f"{self.where}: {self.rows} is never {self.against!r}")
        pairs = [(name, name_of.get(tuple({**labels, self.rows: self.against}.items())))
                 for name, labels in runs if labels[self.rows] != self.against]
        return {name: None if None in (numbers[name], numbers[other]) else numbers[name] - numbers[other]
                for name, other in pairs if name in numbers and other in numbers}

    def _cells(self, runs, numbers):
        """{(row, column): numbers}, rows and columns in the order of the experiment."""
        cells, rows, columns = {}, [], []
        for (name, labels), value in itertools.product(runs, self.values):
            place = labels[self.rows], labels[self.columns] if self.columns else value
            rows += [place[0]] * (place[0] not in rows and place[0] != self.against)
            columns += [place[1]] * (place[1] not in columns)
            if name in numbers[value]:
                cells.setdefault(place, []).append(numbers[value][name])
        return cells, rows, columns

    def _pooled(self, runs):
        """The options whose values rows and columns do not distinguish: their runs count as seeds do."""
        found = {}
        for _, labels in runs:
            place = labels[self.rows], labels.get(self.columns)
            for option in set(labels) - {"seed", self.rows, self.columns}:
                found.setdefault(option, {}).setdefault(place, set()).add(labels[option])
        return sorted(option for option, places in found.items() if max(map(len, places.values())) > 1)

    def _drawn(self, cells, rows, columns, usual):
        head = [self.head if not self.columns else f"{self.head} \\ {self.columns}", *columns]
        return drawn(head, [[row, *(cell(cells.get((row, column), []), int(self.digits), usual)
                                    for column in columns)] for row in rows])

    def _programs(self, args):
        """Those whose tables came after the runs."""
        words = [commands[-1] for name in self.experiments
                 for label, commands in experiment_of(args, name, self.where).after.items()
                 if label in self.only.get("after", [label])]
        return list(dict.fromkeys(w[0] if w[0].startswith("stat-") else f"statrec {w[0]}" for w in words))

    def _told(self, args, done, planned, usual, meaning):
        """The notes below the table."""
        over = f"; mean ± 95 % interval of {usual} runs" if usual > 1 else "; one run each"
        over += f" (with all {' and '.join(self.pooled)})" if self.pooled else ""
        gone = f" Diverged: {some(self.gone)}." if self.gone else ""
        less = f", minus {self.against} with the same seed" if self.against else ""
        programs = self._programs(args) if self.by == ["after"] else [" ".join(self.by)]
        by = "" if programs == ["stat-table"] else f", by {' and '.join(f'`{name}`' for name in programs)}"
        return [f"{defined(self.values, meaning)}{less}{by}{over}. {done} of {planned} runs of {named(self.experiments)}.{gone}", ""]


class Figure:
    """figure=NAME.svg by="statplot FIGURE OPTIONS" EXPERIMENT|samples/NAME... [after=LABEL] [alt=TEXT] [OPTION=LABEL,...]"""

    def __init__(self, words, where):
        (names, given), self.where = split_words(words), where
        self.samples = [name[len("samples/"):] for name in names if name.startswith("samples/")]
        self.experiments = [name for name in names if not name.startswith("samples/")]
        self.file, self.by = given.pop("figure"), shlex.split(given.pop("by", ""))
        self.alt, self.after = given.pop("alt", self.file), given.pop("after", None)
        self.only = {key: value.split(",") for key, value in given.items()}
        if not re.fullmatch(r"(\w[\w.-]*/)*\w[\w.-]*\.(svg|png)", self.file) or not names:
            stop(f'{where}: figure=NAME.svg by="statplot FIGURE" EXPERIMENT... is wanted')

    def lines(self, args):
        """As a table's; the figure is drawn below the document's directory."""
        runs, done = runs_of(args, self, [], without_file=self.after)
        paths = [*(sample_of(args, name, self.where) for name in self.samples),
                 *(self._file_of(args, name, labels) for name, labels in runs if name in done)]
        if not paths:
            return None
        printed([*analysis(args, self.by, self.where), *paths, "-o", os.path.join(os.path.dirname(args.doc), self.file)])
        of = [f"{len(done)} of {len(runs)} runs of {named(self.experiments)}"] * bool(runs) + [named(self.samples)] * bool(self.samples)
        return [f"![{self.alt}]({self.file})", "", f"`{shlex.join(self.by)}` of {' and '.join(of)}.", ""]

    def _file_of(self, args, name, labels):
        if not self.after:
            return os.path.join(args.out, f"{name}.h5")
        return restored(args, experiment_of(args, labels["experiment"], self.where), name, self.after)


def sample_of(args, name, where):
    if not args.samples:
        stop(f"{where}: sample run {name} without --samples DIR")
    return os.path.join(args.samples, f"{name}.h5")


class Lines:
    """samples=NAME,... or lines=EXPERIMENT,...  rows=COLUMN,... value=COLUMN,... [columns=COLUMN] by=ANALYSIS or
    after=LABEL [digits=N] [COLUMN=TEXT,...]: the lines of an analysis, those with these texts"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.samples, self.where = "samples" in given, where
        self.experiments = given.pop("samples" if self.samples else "lines").split(",")
        self.rows, self.values = given.pop("rows", "run").split(","), given.pop("value", "").split(",")
        self.columns, self.after = given.pop("columns", None), given.pop("after", None)
        by = given.pop("by", None)
        self.digits, self.by = given.pop("digits", "3"), (by or "stat-table").split()
        self.only = {key: value.split(",") for key, value in given.items()}
        if not all(self.rows + self.values) or not self.digits.isdigit() or (self.columns and len(self.values) > 1) or (
                self.after and (self.samples or by)):
            stop(f"{where}: samples=NAME,... or lines=EXPERIMENT,... rows=COLUMN,... value=COLUMN,... by=ANALYSIS is "
                 "wanted, or after=LABEL with lines=; columns=COLUMN with one value")

    def _opened(self, args):
        """The experiments, their archives unpacked."""
        opened = [experiment_of(args, name, self.where) for name in self.experiments]
        for experiment in opened:
            unpack(args, experiment)
        return opened

    def _analysis(self, args):
        """The words of the analysis whose lines these are."""
        by = self.by
        for experiment in self._opened(args) if self.after else []:
            if self.after not in experiment.after:
                stop(f"{self.where}: {experiment.name} has no line '#: after {self.after} = COMMAND'")
            by = experiment.after[self.after][-1]
        return by

    def _paths(self, args):
        if self.samples:
            return [sample_of(args, name, self.where) for name in self.experiments]
        runs = [run for experiment in self._opened(args) for run, _, _ in experiment.runs()]
        if self.after:
            paths = [after_of(args, run, self.after) for run in runs]
            return [path for path in paths if os.path.exists(path)]
        return [os.path.join(args.out, f"{run}.h5") for run in runs if state(args, run) in DONE]

    def _found(self, args, paths):
        if not self.after:
            return lines_of(args, self.by, paths, self.where)
        rows, meaning = [], {}
        for path in paths:
            with open(path, encoding="utf-8") as file:
                these, meaning = lines_in(file.read())
            rows += these
        return rows, meaning

    def _number(self, row, column):
        return f"{number_in(row, column):.{self.digits}g}".replace("nan", "–")

    def _texts(self, rows):
        """Head and rows of the table; columns=: rows that differ only in it become one row."""
        if not self.columns:
            return [*self.rows, *self.values], [
                [*(os.path.basename(row[column]) for column in self.rows),
                 *(self._number(row, column) for column in self.values)] for row in rows]
        heads = list(dict.fromkeys(row[self.columns] for row in rows))
        cells = {}
        for row in rows:
            place = tuple(os.path.basename(row[column]) for column in self.rows)
            cells.setdefault(place, {})[row[self.columns]] = self._number(row, self.values[0])
        return [*self.rows, *heads], [[*place, *(found.get(head, "–") for head in heads)]
                                      for place, found in cells.items()]

    def lines(self, args):
        by, paths = self._analysis(args), self._paths(args)
        if not paths:
            return None
        rows, meaning = self._found(args, paths)
        for column in [*self.rows, *self.values, *self.only, *([self.columns] if self.columns else [])]:
            if column not in meaning:
                stop(f"{self.where}: {by[0]} has no column {column!r}")
        check_labels(self.only, {item for row in rows for item in row.items()}, self.where)
        rows = [row for row in rows if all(row[key] in texts for key, texts in self.only.items())]
        of = "`sample_runs/`" if self.samples else named(self.experiments)
        return [*drawn(*self._texts(rows)), "", f"{defined(self.values, meaning)}, by `{' '.join(by)}` of {of}.", ""]


class Published:
    """published=TABLE,... [metric=NAME,...] [norm=NAME,...]: a column for each metric of a table; values with a note
    have a dagger, and the notes are below"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.experiments, self.where = given["published"].split(","), where
        self.metrics, self.norms = given.get("metric", ""), given.get("norm", "")

    def lines(self, args):
        if not args.published:
            stop(f"{self.where}: published=TABLE without --published FILE")
        with open(args.published, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")][1:]
        wanted = [row for row in rows if row[0] in self.experiments
                  and (not self.metrics or row[3].removesuffix(NOTE) in self.metrics.split(","))
                  and (not self.norms or row[2] in self.norms.split(","))]
        notes = {(row[2], row[0], row[3].removesuffix(NOTE)): row[4] for row in wanted if row[3].endswith(NOTE)}
        wanted = [row for row in wanted if not row[3].endswith(NOTE)]
        columns = list(dict.fromkeys((row[0], row[3]) for row in wanted))
        values = {(row[2], row[0], row[3]): row[4].replace("nan", "diverged") + DAGGER * ((row[2], row[0], row[3]) in notes)
                  for row in wanted}
        norms = list(dict.fromkeys(row[2] for row in wanted))
        if not wanted:
            stop(f"{self.where}: {args.published} has no such value")
        sources = ", ".join(dict.fromkeys(row[1] for row in wanted))
        texts = [[norm, *(values.get((norm, *column), "–") for column in columns)] for norm in norms]
        return [*drawn(["published", *(" ".join(column) for column in columns)], texts), "",
                f"{sources}.", "", *(line for note in dict.fromkeys(notes.values()) for line in (f"{DAGGER} {note}.", ""))]
