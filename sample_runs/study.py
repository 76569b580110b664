#!/usr/bin/env python3
"""study.py -- the runs of the reproduction study, and the tables that are made of them.

    study.py plan   [OPTIONS] [EXPERIMENT...]   what there is to run, and how long it takes
    study.py run    [OPTIONS] [EXPERIMENT...]   runs it, one after another; what was stopped goes on
    study.py report [OPTIONS]                   writes the tables into docs/reproduction.md

An experiment is a file NAME.conf of sample_runs/study: options as `statrec train -c` reads them, and
lines that only this program reads:

    #: minutes = 0.25                 of one run, on one core
    #: seed = 1 2 3                   one run for each combination of these values,
    #: norm = ln bn                   the first line changing most slowly
    #: max-tokens+update-freq = 256+8 2048+1    options that change together
    #: norm-at = all:*=bn first:stem=bn,*=ln    what a value is called, where it makes no name

The run with seed 1, ln and 256 is OUT/NAME-1-ln-256.h5. One that is complete, or diverged, is not
repeated; one that was stopped is resumed from its newest checkpoint.

A table in the document stands between two lines, which stay:

    <!-- study: NAME rows=norm columns=max-tokens value=best_valid_loss -->
    <!-- study: end -->

value: a column of stat-table; the mean over what is neither in rows nor in columns (seeds), with its
95 % interval by Student's t. digits=N behind the point (3). norm=ln,bn: only these. against=ln: differences
from the run whose rows= is ln and that is like it otherwise, seed too. A cell with fewer runs than others says
how many. Tables of which no run exists stay as they are, and are named.

Exit status 0; 1 when a run failed; 2 after a mistake in the arguments or files.
"""
import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
DONE = ("complete", "diverged")


def stop(text):
    print(f"study.py: {text}", file=sys.stderr)
    sys.exit(2)


class Experiment:
    """factors: [(options, [(label, values)])], values as many as options."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)[:-len(".conf")]
        self.minutes, self.factors, self.data = None, [], None
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                self._read(line, f"{path}:{number}")
        if self.minutes is None:
            stop(f"{path}: no line '#: minutes = N'")

    def _read(self, line, where):
        found = re.match(r"data-dir\s*=\s*\S*?([^/\s]+)\s*$", line)
        if found:
            self.data = found[1]
        if not line.startswith("#:"):
            return
        key, equals, values = (part.strip() for part in line[2:].partition("="))
        if not equals or not values:
            stop(f"{where}: '#: OPTION = VALUE...' is wanted, got {line.strip()!r}")
        if key == "minutes":
            try:
                self.minutes = float(values)
            except ValueError:
                stop(f"{where}: minutes: a number is wanted, got {values!r}")
            return
        options = key.split("+")
        self.factors.append((options, [self._level(word, options, where) for word in values.split()]))

    @staticmethod
    def _level(word, options, where):
        label, colon, value = word.partition(":")
        parts = (value if colon else word).split("+") if len(options) > 1 else [value or word]
        if len(parts) != len(options):
            stop(f"{where}: {'+'.join(options)}: {len(options)} parts are wanted, got {word!r}")
        label = label if colon else parts[0]
        if not re.fullmatch(r"[\w.-]+", label):
            stop(f"{where}: {word!r} makes no file name: LABEL:VALUE is wanted")
        return label, parts

    def runs(self):
        """(name, {option: value}, {option: label}) of each combination."""
        for combination in itertools.product(*(levels for _, levels in self.factors)):
            settings, labels = {}, {}
            for (options, _), (label, values) in zip(self.factors, combination):
                settings.update(zip(options, values))
                labels[options[0]] = label
            yield "-".join([self.name, *labels.values()]), settings, labels


def experiments(args):
    try:
        there = sorted(name[:-5] for name in os.listdir(args.conf) if name.endswith(".conf"))
    except OSError as error:
        stop(f"{args.conf}: {error.strerror}")
    for name in args.experiment:
        if name not in there:
            stop(f"no experiment {name!r} in {args.conf}: there are {' '.join(there)}")
    return [Experiment(os.path.join(args.conf, f"{name}.conf")) for name in args.experiment or there]


def state(args, name):
    """complete, diverged, interrupted, failed, unfinished, or None: not begun."""
    for end in (".h5", ".h5.part"):
        path = os.path.join(args.out, name + end)
        if os.path.exists(path):
            told = subprocess.run([os.path.join(args.bin, "statrec"), "info", path],
                                  capture_output=True, text=True, check=False).stdout
            found = re.search(r"^status\s+(\w+)", told, re.M)
            return found[1] if found else "unreadable"
    return None


# -- plan and run ------------------------------------------------------------------------------------

def plan(args):
    """[(experiment, name, settings, state)] of what is not done; told, with the time that it takes."""
    waiting, total = [], 0.0
    for experiment in experiments(args):
        runs = [(experiment, name, settings, state(args, name))
                for name, settings, _ in experiment.runs()]
        left = [run for run in runs if run[3] not in DONE]
        total += experiment.minutes * len(left)
        waiting += left
        print(f"{experiment.name}: {len(runs) - len(left)} of {len(runs)} runs are done, the others "
              f"take {experiment.minutes * len(left):.0f} min")
    print(f"in all {len(waiting)} runs, about {total / 60:.1f} h of one core", flush=True)
    return waiting


def command(args, experiment, name, settings, was):
    statrec, output = os.path.join(args.bin, "statrec"), os.path.join(args.out, f"{name}.h5")
    if was is not None and any(entry.startswith(f"{name}-") and entry.endswith(".ckpt")
                               for entry in os.listdir(args.out)):
        return [statrec, "resume", output, "--quiet"]
    words = [statrec, "train", "-c", experiment.path, "--quiet", "--force", "-o", output]
    if experiment.data:
        words += ["--data-dir", os.path.join(args.data, experiment.data)]
    for option, value in settings.items():
        words += [f"--{option}", value]
    return words


def run(args):
    os.makedirs(args.out, exist_ok=True)
    failed, waiting = 0, plan(args)
    for number, (experiment, name, settings, was) in enumerate(waiting, 1):
        print(f"{number}/{len(waiting)} {name}", flush=True)
        with open(os.path.join(args.out, f"{name}.log"), "a", encoding="utf-8") as log:
            words = command(args, experiment, name, settings, was)
            status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    check=False).returncode
        if status != 0 and state(args, name) not in DONE:
            print(f"study.py: {name}: exit status {status}, see {log.name}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


# -- report --------------------------------------------------------------------------------------------

def table_of_runs(args, names):
    """{name: {column: text}}, {column: definition} by stat-table."""
    paths = [os.path.join(args.out, f"{name}.h5") for name in names]
    told = subprocess.run([os.path.join(args.bin, "stat-table"), *paths], capture_output=True,
                          text=True, check=False)
    if told.returncode != 0:
        stop(f"stat-table: {told.stderr.strip()}")
    lines = told.stdout.splitlines()
    meaning = dict(line[len("# column "):].split(": ", 1) for line in lines
                   if line.startswith("# column "))
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {name: dict(zip(rows[0], row)) for name, row in zip(names, rows[1:])}, meaning


def cell(values, digits, usual):
    """Mean and interval of the values of a cell; None: one diverged."""
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
    half = STUDENT.get(len(finite), 1.96) * statistics.stdev(finite) / len(finite) ** 0.5
    return f"{mean:.{digits}f} ± {half:.{digits}f}{few}"


def number_in(row, column):
    """None where the run diverged or has no such number."""
    try:
        value = float(row[column])
    except ValueError:
        value = float("nan")
    return None if row["status"] == "diverged" or value != value else value


class Table:
    """One table of the document, from the words behind `study:`."""

    def __init__(self, words, where):
        self.experiment, self.where = words[0], where
        given = dict(word.partition("=")[::2] for word in words[1:])
        self.rows, self.columns = given.pop("rows", None), given.pop("columns", None)
        self.value, self.digits = given.pop("value", None), given.pop("digits", "3")
        self.against = given.pop("against", None)
        self.only = {key: value.split(",") for key, value in given.items()}
        if not self.rows or not self.value or not self.digits.isdigit():
            stop(f"{where}: rows=OPTION value=COLUMN [columns=OPTION] [against=LABEL] [digits=N] is "
                 "wanted")

    def _runs(self, experiment):
        options = {options[0] for options, _ in experiment.factors}
        for option in [self.rows, *([self.columns] if self.columns else []), *self.only]:
            if option not in options:
                stop(f"{self.where}: {experiment.name} has no factor {option!r}")
        return [(name, labels) for name, _, labels in experiment.runs()
                if all(labels[key] in values for key, values in self.only.items())]

    def lines(self, args):
        """Of the document, or None: there is no run yet."""
        path = os.path.join(args.conf, f"{self.experiment}.conf")
        if not os.path.exists(path):
            stop(f"{self.where}: {path}: no such experiment")
        runs = self._runs(Experiment(path))
        done = [name for name, _ in runs if state(args, name) in DONE]
        if not done:
            return None
        found, meaning = table_of_runs(args, done)
        if self.value not in meaning:
            stop(f"{self.where}: stat-table has no column {self.value!r}")
        return self._drawn(runs, found, meaning[self.value])

    def _numbers(self, runs, found):
        """{name: number of its cell}, of the runs that have one."""
        numbers = {name: number_in(row, self.value) for name, row in found.items()}
        if not self.against:
            return numbers
        name_of = {tuple(labels.items()): name for name, labels in runs}
        if self.against not in (labels[self.rows] for _, labels in runs):
            stop(f"{self.where}: {self.rows} is never {self.against!r}")
        pairs = [(name, name_of[tuple({**labels, self.rows: self.against}.items())])
                 for name, labels in runs if labels[self.rows] != self.against]
        return {name: None if None in (numbers[name], numbers[other]) else numbers[name] - numbers[other]
                for name, other in pairs if name in numbers and other in numbers}

    def _drawn(self, runs, found, meaning):
        cells, rows, columns, numbers = {}, [], [], self._numbers(runs, found)
        for name, told in runs:
            place = told[self.rows], told.get(self.columns, self.value)
            rows += [place[0]] * (place[0] not in rows and place[0] != self.against)
            columns += [place[1]] * (place[1] not in columns)
            if name in numbers:
                cells.setdefault(place, []).append(numbers[name])
        usual = max(map(len, cells.values()), default=1)
        digits = int(self.digits)
        head = [self.rows if not self.columns else f"{self.rows} \\ {self.columns}", *columns]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        for row in rows:
            texts = [cell(cells.get((row, column), []), digits, usual) for column in columns]
            lines.append("| " + " | ".join([row, *texts]) + " |")
        if self.against:
            meaning += f", less that of {self.against} with the same seed"
        over = f"; mean of {usual} runs and its 95 % interval (Student)" if usual > 1 else "; one run each"
        return [*lines, "", f"`{self.value}`: {meaning}{over}. {len(found)} of {len(runs)} runs of "
                f"`sample_runs/study/{self.experiment}.conf`.", ""]


def report(args):
    try:
        with open(args.doc, encoding="utf-8") as file:
            old = file.read().split("\n")
    except OSError as error:
        stop(f"{args.doc}: {error.strerror}")
    new, at = [], 0
    while at < len(old):
        line = old[at]
        at += 1
        new.append(line)
        begun = re.fullmatch(r"<!-- study: (.*) -->", line)
        if not begun or begun[1] == "end":
            continue
        where = f"{args.doc}:{at}"
        end = next((i for i in range(at, len(old)) if old[i].startswith("<!-- study:")), len(old))
        if end == len(old) or old[end] != "<!-- study: end -->":
            stop(f"{where}: no line '<!-- study: end -->' behind this one")
        made = Table(begun[1].split(), where).lines(args)
        if made is None:
            print(f"study.py: {where}: no run of {begun[1].split()[0]} yet: left as it is",
                  file=sys.stderr)
        new += old[at:end] if made is None else ["", *made]
        at = end
    with open(args.doc + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(new))
    os.replace(args.doc + ".new", args.doc)
    return 0


def main():
    shared = os.environ.get("STATREC_SHARED", os.path.join(HERE, "..", "..", "shared"))
    told = argparse.ArgumentParser(description="The runs of the reproduction study, and their tables.")
    told.add_argument("command", choices=["plan", "run", "report"])
    told.add_argument("experiment", nargs="*", help="names of sample_runs/study; default: all of them")
    told.add_argument("--bin", default=os.path.join(HERE, "..", "build", "release", "bin"),
                      help="directory of statrec and stat-table")
    told.add_argument("--data", default=os.path.join(shared, "data"), help="directory of the data sets")
    told.add_argument("--out", default=os.path.join(HERE, "..", "study"), help="directory of the runs")
    told.add_argument("--conf", default=os.path.join(HERE, "study"), help="directory of the experiments")
    told.add_argument("--doc", default=f"{HERE}/../docs/reproduction.md")
    args = told.parse_intermixed_args()
    try:
        if args.command == "plan":
            plan(args)
            return 0
        return run(args) if args.command == "run" else report(args)
    except KeyboardInterrupt:
        print("study.py: stopped; the same command goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
