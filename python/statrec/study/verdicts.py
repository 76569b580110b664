"""Blocks that judge: differences of paired runs over their evaluations by the rule of
rule.py, differences of a recorded statistic, values against a bound that a paper prints, and the order of two
statistics of each run.
"""
import math
import os
import re
import statistics

from .evaluations import diverged, kept, number, numbers_in, rate_text, unit_of
from .rule import CLAIMS, DIVERGED, MISSING, NATS, NOTHING, SHORT, Judgement, apart, half_width, judge
from .experiment import after_of, note, stop
from .tables import check_labels, experiment_of, lines_of, runs_of, sample_of, table_after
from .printed import drawn, lines_in, named, number_in, some, split_words

NATS_NAME = r"(valid|train|test)_(loss|nll)(_batch)?"
SHOWN = 3 # rows of a table against a bound
IN_NATS = re.compile(rf"{NATS_NAME}(-{NATS_NAME})?")


def plus_minus(value, half, digits):
    if math.isnan(value):
        return "–"
    text = f"{value:+.{digits}f}"
    return text if math.isinf(half) or math.isnan(half) else f"{text} ± {half:.{digits}f}"


class Cell:
    """The pairs of one row: names of runs, and of `less` if another difference is subtracted."""

    def __init__(self, labels):
        self.labels, self.pairs, self.planned = labels, [], 0


class Verdict:
    """verdict=EXPERIMENT,... of=OPTION against=LABEL value=METRIC[-METRIC][,...] [less=OPTION:LABEL] [claim=CLAIM]
    [within=X] [digits=N] [OPTION=LABEL,...]: a row for each combination of labels but the seed"""
    kind = "verdict"

    def __init__(self, words, where):
        _, given = split_words(words)
        self.where, self.experiments = where, given.pop(self.kind).split(",")
        self.of, self.against = given.pop("of", ""), given.pop("against", "")
        self.values, self.digits = given.pop("value", "").split(","), given.pop("digits", "3")
        self.less, self.claim = given.pop("less", ""), given.pop("claim", None)
        self.by, self.pick = given.pop("by", "").split(), given.pop("pick", None)
        within, self.in_nats = given.pop("within", None), False
        self.only, self.done = {key: value.split(",") for key, value in given.items()}, 0
        if not (self.of and self.against and all(self.values) and self.digits.isdigit()):
            self._usage()
        if self.by[:1] == ["after"] and len(self.by) != 2 or self.claim not in (None, *CLAIMS) or self.pick not in (None, "last") or ":" not in (self.less or ":"):
            self._usage()
        self.within, self.own_bound = self._bound(within), within is not None

    def _bound(self, text):
        bound = NATS if text is None else number(text)
        if not 0 < bound < math.inf:
            stop(f"{self.where}: within: a number above 0 is wanted, got {text!r}")
        return bound

    def _usage(self):
        stop(f"{self.where}: {self.kind}=EXPERIMENT,... of=OPTION against=LABEL value=METRIC [less=OPTION:LABEL] "
             f"[claim={'|'.join(CLAIMS)}] [within=X] [digits=N] is wanted")

    def cells(self, args):
        """[Cell] in the order of the experiments, and the experiments of the runs, {name: Experiment}."""
        names = self.experiments + [self.against] * (self.of == "experiment" and self.against not in self.experiments)
        only = {**self.only}
        if self.of in only:
            only[self.of] = [*only[self.of], self.against]
        runs, done = runs_of(args, _Block(names, only, self.where), [self.of], without_file=self.by[:1] in ([], ["after"]))
        self.done = len(done)
        unpaired = [name for name in names if not any("seed" in labels for _, labels in runs if labels["experiment"] == name)]
        if unpaired:
            note(f"{self.where}: {', '.join(unpaired)}: no line '#: seed = ...', so no pairs of runs with the same seed")
        label_of = {name: labels for name, labels in runs}
        name_of = {_key(labels): name for name, labels in runs}
        experiment = {name: experiment_of(args, labels["experiment"], self.where) for name, labels in runs}
        if self.against not in (labels[self.of] for labels in label_of.values()):
            stop(f"{self.where}: {self.of} is never {self.against!r}")
        option, _, label = self.less.partition(":")
        found = {}
        for name, labels in runs:
            if labels[self.of] == self.against or option and labels.get(option) == label:
                continue
            pair = [name, name_of.get(_key({**labels, self.of: self.against}))]
            if option:
                pair += [name_of.get(_key({**labels, option: label})),
                         name_of.get(_key({**labels, option: label, self.of: self.against}))]
            kept = {key: text for key, text in labels.items() if key != "seed"}
            cell = found.setdefault(_key(kept), Cell(kept))
            cell.planned += 1
            if None not in pair and set(pair) <= set(done):
                cell.pairs.append(pair)
        return list(found.values()), experiment

    def _take_units(self, args, cells, experiment):
        """Stops where the bound that counts as no change is of another unit than the metrics."""
        used = {(value, unit_of(args, experiment[name], name, value)) for value in self.values for cell in cells
                for pair in cell.pairs for name in pair}
        other = sorted((value, unit) for value, unit in used
                       if not (re.match(r"nats\b", unit) if unit else IN_NATS.fullmatch(value)))
        if other and not self.own_bound:
            value, unit = other[0]
            stop(f"{self.where}: within=X is wanted, the change of {value} that counts as none: "
                 f"{f'its unit is {unit!r}, ' if unit else 'it is '}not in nats, where {NATS} does")
        self.in_nats = not other

    def _series(self, args, experiment, name, metric):
        """{step: value} of a run, None: it diverged."""
        gone = diverged(args, experiment[name], name, metric)
        return None if gone else numbers_in(kept(args, experiment[name], name, metric))

    def _metric(self, args, cell, experiment):
        """The first of the metrics that all runs of a row have, and some run a number of, else the first of all: metrics are not
        mixed."""
        names = {name for pair in cell.pairs for name in pair}
        for metric in self.values:
            series = [kept(args, experiment[name], name, metric) for name in names]
            if all(series) and any(map(numbers_in, series)):
                return metric
        return self.values[0]

    def lacking(self, args, cell, experiment):
        """Why no pair of a row can be compared."""
        without = [name for pair in cell.pairs for name in pair
                   if all(self._series(args, experiment, name, metric) == {} for metric in self.values)]
        if without:
            return f"no {' or '.join(self.values)} in {without[0]}"
        return "no evaluation in common" if len(self.values) == 1 else f"no one of {', '.join(self.values)} in all runs"

    def differences(self, args, cell, experiment):
        """[{step: difference}] of all pairs, {}: no evaluation in common, None: a run diverged; and why their last third is
        not that of each run, or empty."""
        found, lack, metric = [], "", self._metric(args, cell, experiment)
        for pair in cell.pairs:
            series = [self._series(args, experiment, name, metric) for name in pair]
            if None in series:
                found.append(None)
                continue
            if self.less: # steps of micro-batches differ: evaluations are compared in their order
                series = [dict(enumerate(value for _, value in sorted(each.items()))) for each in series]
            common = set.intersection(*map(set, series))
            signs = (1, -1, -1, 1)[:len(pair)]
            lack = lack or bool(common) and apart(common, series)
            found.append({step: sum(sign * each[step] for sign, each in zip(signs, series)) for step in common})
        return found, lack

    def gone(self, args, cell, experiment):
        """The runs of a row that diverged."""
        metric = self.values[0] if self.by else self._metric(args, cell, experiment)
        names = dict.fromkeys(name for pair in cell.pairs for name in pair)
        return [name for name in names if diverged(args, experiment[name], name, metric)]

    def judged(self, args):
        """[(Cell, Judgement, text about the learning rate)]."""
        cells, experiment = self.cells(args)
        found = []
        if not self.by:
            self._take_units(args, cells, experiment)
        for cell in cells:
            if self.by:
                found.append((cell, self._judged_statistic(args, cell, experiment), None))
                continue
            rates = dict(rate_text(args, experiment[name], name)[::-1] for pair in cell.pairs for name in pair)
            ended = bool(rates) and all(rates.values())
            pairs, lack = self.differences(args, cell, experiment)
            there = [pair for pair in pairs if pair != {}]
            judgement = judge(there, ended, self.claim, self.within, lack, some(self.gone(args, cell, experiment)))
            if pairs and not there:
                judgement = Judgement(0, NOTHING, self.lacking(args, cell, experiment))
            found.append((cell, judgement, "; ".join(sorted(rates))))
        return found

    def _judged_statistic(self, args, cell, experiment):
        """Judges by the interval alone: the statistic covers the training, or its end."""
        gone = self.gone(args, cell, experiment)
        if gone:
            return judge([None if set(pair) & set(gone) else {} for pair in cell.pairs], False, gone=some(gone))
        pairs = [pair for pair in cell.pairs if all(os.path.exists(self._source(args, name)) for name in pair)]
        numbers = [self._statistic(args, pair[0]) - self._statistic(args, pair[1]) for pair in pairs]
        gone = sum(not math.isfinite(value) for value in numbers)
        if gone:
            return Judgement(len(numbers), NOTHING, f"{self.values[0]} is no number in {gone} of {len(numbers)} pairs")
        if len(numbers) < 2:
            return Judgement(len(numbers), MISSING, "fewer than two pairs", *numbers)
        found = Judgement(len(numbers), "no difference seen", "", statistics.fmean(numbers), half_width(numbers))
        if abs(found.difference) > found.half:
            found.higher = found.difference > 0
            found.verdict = ("difference seen" if self.claim is None else
                             "as claimed" if self.claim == found.direction() else "the opposite")
        return found

    def _source(self, args, name):
        return after_of(args, name, self.by[1]) if self.by[0] == "after" else _file(args, name)

    def _statistic(self, args, name):
        if self.by[0] == "after":
            found, meaning = table_after(args, [(name, self.by[1])], self.where)
            if self.values[0] not in meaning:
                stop(f"{self.where}: {' '.join(self.by)} has no column {self.values[0]!r}")
            return number_in(found[(name, self.by[1])], self.values[0])
        rows, meaning = lines_of(args, self.by, [_file(args, name)], self.where)
        if self.values[0] not in meaning:
            stop(f"{self.where}: {self.by[0]} has no column {self.values[0]!r}")
        if len(rows) != 1 and self.pick != "last":
            stop(f"{self.where}: {' '.join(self.by)} prints {len(rows)} lines of a run, or pick=last is wanted")
        return number_in(rows[-1], self.values[0])

    def names(self, cells):
        """The options that distinguish the rows, the compared one first."""
        keys = list(dict.fromkeys(key for cell in cells for key in cell.labels))
        return [self.of] + [key for key in keys if key != self.of and len(
            {cell.labels.get(key) for cell in cells}) > 1]

    def lines(self, args):
        judged = self.judged(args)
        if not any(cell.pairs for cell, _, _ in judged):
            return None
        names, digits = self.names([cell for cell, _, _ in judged]), int(self.digits)
        head = [*names, "pairs", f"difference from {self.against}", *(
            [] if self.by else ["its change", "learning rate"]), "verdict"]
        rows = [[*(cell.labels.get(name, "–") for name in names), f"{found.pairs} of {cell.planned}",
                 plus_minus(found.difference, found.half, digits), *(
                     [] if self.by else [plus_minus(found.change, found.change_half, digits), rate or "–"]),
                 found.text()] for cell, found, rate in judged]
        return [*drawn(head, rows), "", self._below(), ""]

    def _below(self):
        less = f", less that difference where {self.less.replace(':', ' is ')}" if self.less else ""
        unit = " in nats" if self.in_nats else ""
        what = " or ".join(f"`{value}`" for value in self.values) + unit
        by, within = (f" by `{' '.join(self.by)}`", "") if self.by else ("", f" A change within ± {self.within:g} counts as none.")
        return f"{what}{by}, minus {self.against} with the same seed{less}.{within} {named(self.experiments)}."

    def summary(self, args):
        """{label: (pairs, planned, figure, verdict)} for the table of claims."""
        judged = self.judged(args)
        names = self.names([cell for cell, _, _ in judged])
        return {" ".join(cell.labels.get(name, "–") for name in names): (
            found.pairs, cell.planned, plus_minus(found.difference, found.half, int(self.digits)), found.short())
            for cell, found, _ in judged}


class _Block:
    """A block as runs_of needs it."""

    def __init__(self, experiments, only, where):
        self.experiments, self.only, self.where = experiments, only, where


def _key(labels):
    return tuple(sorted(labels.items()))


def _file(args, name):
    return os.path.join(args.out, f"{name}.h5")


class Paired(Verdict):
    """paired=EXPERIMENT,... as a verdict, [since=UPDATE]: differences at each evaluation. Evaluations of several experiments
    are joined, if their labels are the same: runs of one configuration and seed."""
    kind = "paired"

    def __init__(self, words, where):
        self.since = next((word[6:] for word in words if word.startswith("since=")), None)
        if self.since and not self.since.isdigit():
            stop(f"{where}: since: an update is wanted, got {self.since!r}")
        super().__init__([word for word in words if not word.startswith("since=")], where)

    def joined(self, args):
        """{labels of a row: [{step: difference}]} of the pairs, evaluations of one seed joined; the runs that diverged, whose
        pairs are not among them."""
        cells, experiment = self.cells(args)
        gone = [name for cell in cells for name in self.gone(args, cell, experiment)]
        names, found = [name for name in self.names(cells) if self.of == name or name != "experiment"], {}
        for cell in cells:
            for pair, series in zip(cell.pairs, self.differences(args, cell, experiment)[0]):
                seed = next((labels["seed"] for run, _, labels in experiment[pair[0]].runs()
                             if run == pair[0] and "seed" in labels), "")
                row = found.setdefault(" ".join(cell.labels.get(name, "–") for name in names), {})
                row.setdefault(seed, {}).update(series or {})
        return {label: list(pairs.values()) for label, pairs in found.items()}, gone

    def lines(self, args):
        (found, gone), digits = self.joined(args), int(self.digits)
        if not found:
            return None
        updates = sorted({update for pairs in found.values() for pair in pairs for update in pair})
        rows = []
        for update in updates:
            row = [str(update)]
            for pairs in found.values():
                values = [pair[update] for pair in pairs if update in pair]
                row.append(plus_minus(statistics.fmean(values), half_width(values), digits) if values else "–")
                if self.since:
                    start = int(self.since)
                    values = [pair[update] - pair[start] for pair in pairs if update in pair and start in pair]
                    row.append(plus_minus(statistics.fmean(values), half_width(values), digits)
                               if values and update > start else "–")
            rows.append(row)
        head = ["update"] + [text for label in found for text in [label, *(
            [f"{label}, change since {self.since}"] if self.since else [])]]
        return [*drawn(head, rows), "", f"`{self.values[0]}`, minus {self.against} with the same seed, at each evaluation that was "
                f"kept. {named(self.experiments)}.{f' Without the pairs of {some(gone)}: diverged.' if gone else ''}", ""]


class _Lines:
    """Lines of an analysis of samples or experiments, or of what came after its runs."""

    def __init__(self, given, kind, where):
        self.where, words = where, given.pop(kind).split(",")
        self.samples = [word[8:] for word in words if word.startswith("samples/")]
        self.experiments = [word for word in words if not word.startswith("samples/")]
        self.by, self.after = given.pop("by", "").split(), given.pop("after", None)

    def found(self, args):
        """[{column: text}] of all runs."""
        paths = [sample_of(args, name, self.where) for name in self.samples]
        rows, only = [], {}
        runs, done = runs_of(args, _Block(self.experiments, only, self.where), [])
        if self.after:
            for name, _ in runs:
                path = after_of(args, name, self.after)
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        rows += lines_in(file.read())[0]
        else:
            paths += [_file(args, name) for name in done]
        return rows + (lines_of(args, self.by, paths, self.where)[0] if paths else [])


class Bound:
    """bound=EXPERIMENT|samples/NAME,... value=COLUMN limit=X claim=below|reach by=ANALYSIS|after=LABEL [COLUMN=TEXT]"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.source, self.where = _Lines(given, "bound", where), where
        self.experiments = self.source.experiments + self.source.samples
        self.value, self.claim = given.pop("value", ""), given.pop("claim", "")
        self.unit, self.rows = given.pop("unit", ""), given.pop("rows", "run").split(",")
        try:
            self.limit = float(given.pop("limit", ""))
        except ValueError:
            self.limit = math.nan
        self.only = {key: text.split(",") for key, text in given.items()}
        if not self.value or math.isnan(self.limit) or self.claim not in ("below", "reach"):
            stop(f"{where}: bound=EXPERIMENT,... value=COLUMN limit=X claim=below|reach by=ANALYSIS is wanted")

    def values(self, args):
        """[(texts of the row, value)]."""
        rows = self.source.found(args)
        for column in [self.value, *self.rows, *self.only] if rows else []:
            if column not in rows[0]:
                stop(f"{self.where}: no column {column!r}")
        if rows:
            check_labels(self.only, {item for row in rows for item in row.items()}, self.where)
        rows = [row for row in rows if all(row[key] in texts for key, texts in self.only.items())]
        found = [([os.path.basename(row[column]) for column in self.rows], number_in(row, self.value)) for row in rows]
        return [(texts, value) for texts, value in found if value == value]

    def judged(self, args):
        """(runs, figure, verdict), None: there is no value."""
        values = [value for _, value in self.values(args)]
        if not values:
            return None
        beyond = sum(value >= self.limit for value in values)
        figure = f"largest {max(values):.3g}, the limit is {self.limit:.7g}"
        if self.claim == "below":
            return len(values), figure, ("as claimed: all values are below" if not beyond else
                                         f"not as claimed: {beyond} of {len(values)} values are not below")
        return len(values), figure, (f"reached: {beyond} of {len(values)} values" if beyond else
                                     f"not reached: none of {len(values)} values")

    def lines(self, args):
        found = self.judged(args)
        if found is None:
            return None
        values = sorted(self.values(args), key=lambda row: -row[1])
        rows = [[*texts, f"{value:.3g}"] for texts, value in values[:SHOWN]]
        by = " ".join(self.source.by) or f"after {self.source.after}"
        of = f"the {SHOWN} largest of {len(values)} values" if len(values) > SHOWN else "all values"
        return [*drawn([*self.rows, self.value], rows), "", f"`{self.value}`, by `{by}`, {of} of {named(self.experiments)}: "
                f"{found[1]}; {found[2]}.", ""]

    def summary(self, args):
        found = self.judged(args)
        return {" ".join(self.experiments): (found[0], found[0], found[1], found[2].partition(":")[0])} if found else {}


class Order:
    """order=EXPERIMENT|samples/NAME,... value=COLUMN across=COLUMN of=TEXT against=TEXT claim=higher|lower by=ANALYSIS"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.source, self.where = _Lines(given, "order", where), where
        self.experiments = self.source.experiments + self.source.samples
        self.value, self.across = given.get("value", ""), given.get("across", "")
        self.of, self.against, self.claim = given.get("of", ""), given.get("against", ""), given.get("claim", "")
        if not all((self.value, self.across, self.of, self.against)) or self.claim not in CLAIMS[:2]:
            stop(f"{where}: order=EXPERIMENT,... value=COLUMN across=COLUMN of=TEXT against=TEXT claim=higher|lower "
                 "by=ANALYSIS is wanted")

    def values(self, args):
        """[(run, value of `of`, value of `against`)]."""
        found, rows = {}, self.source.found(args)
        if rows:
            if not {"run", self.across, self.value} <= set(rows[0]):
                stop(f"{self.where}: no column {self.across!r} or {self.value!r}")
            check_labels({self.across: [self.of, self.against]}, {item for row in rows for item in row.items()}, self.where)
        for row in rows:
            found.setdefault(os.path.basename(row["run"]), {})[row[self.across]] = number_in(row, self.value)
        return [(run, cells[self.of], cells[self.against]) for run, cells in found.items()
                if {self.of, self.against} <= set(cells)]

    def judged(self, args):
        values = self.values(args)
        if not values:
            return None
        higher, lower = (sum(a > b for _, a, b in values), sum(a < b for _, a, b in values))
        ratio = sorted(a / b for _, a, b in values)
        figure = f"{self.of} / {self.against} from {ratio[0]:.2f} to {ratio[-1]:.2f}"
        as_claimed = higher if self.claim == "higher" else lower
        verdict = ("as claimed" if as_claimed == len(values) else "the opposite" if not as_claimed else "either way")
        return len(values), figure, f"{verdict}: {self.of} is {self.claim} in {as_claimed} of {len(values)} runs"

    def lines(self, args):
        found = self.judged(args)
        if found is None:
            return None
        rows = [[run, f"{a:.3g}", f"{b:.3g}"] for run, a, b in self.values(args)]
        return [*drawn(["run", self.of, self.against], rows), "",
                f"`{self.value}`, by `{' '.join(self.source.by)}`: {found[2]}.", ""]

    def summary(self, args):
        found = self.judged(args)
        return {" ".join(self.experiments): (found[0], found[0], found[1], found[2].partition(":")[0])} if found else {}


__all__ = ["Verdict", "Paired", "Bound", "Order", "DIVERGED", "SHORT"]
