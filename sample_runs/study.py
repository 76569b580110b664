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
repeated; one that was stopped is resumed from its newest checkpoint. yes and no are values of switches.

Runs that are done stay in sample_runs/study/runs/NAME.tar.xz, with the settings of NAME.conf, so that
tables can be made without running anything: what is there is unpacked into OUT first, over what OUT has,
and counts as done. To run an experiment anew, or with other settings, remove its archive and its runs.

A table in the document stands between two lines, which stay:

    <!-- study: NAME rows=norm columns=max-tokens value=best_valid_loss -->
    <!-- study: end -->

value: a column of stat-table, or of by="stat-distance --site first --stat sigma2", a table with one line
a run; several with commas where no columns= is given. The mean over what is neither in rows nor in columns
(seeds), with its 95 % interval by Student's t. digits=N behind the point (3). norm=ln,bn: only these.
against=ln: differences from the run whose rows= is ln and that is like it otherwise, seed too. A cell with
fewer runs than others says how many. head=WORD: above the labels of rows=. Tables of which no run exists
stay as they are, and are named. Several experiments make one table: rows=experiment.

Further blocks: a figure, drawn into the document's directory; lines of an analysis of sample_runs/*.h5, with
digits=N significant digits; what papers print, from plots/published.tsv, tables beside one another.

    <!-- study: figure=NAME.svg by="statplot tidgap --metric valid_accuracy" task-rt task-sst5 norm=ln,bn -->
    <!-- study: samples=nlp_bn,nlp_pnv rows=site,norm value=median,q99 by="stat-distance --site first" -->
    <!-- study: published=an-rt,an-sst5 metric=accuracy norm=ln,ln-simple,adanorm -->

Exit status 0; 1 when a run failed; 2 after a mistake in the arguments or files.
"""
import argparse
import functools
import io
import itertools
import lzma
import os
import re
import shlex
import statistics
import subprocess
import sys
import tarfile

# Run files say where their data and settings were: from the root of the checkout, without the path to it.
HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
DONE = ("complete", "diverged")


def stop(text):
    print(f"study.py: {text}", file=sys.stderr)
    sys.exit(2)


class Experiment:
    """factors: [(options, [(label, values)])], values as many as options. common: words of the lines
    that statrec obeys."""

    def __init__(self, path, text=None):
        self.path, self.name = path, os.path.basename(path)[:-len(".conf")]
        self.minutes, self.factors, self.data, self.common = None, [], None, []
        if text is None:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        for number, line in enumerate(text.splitlines(), 1):
            self._read(line, f"{path}:{number}")
        if self.minutes is None:
            stop(f"{path}: no line '#: minutes = N'")

    def _read(self, line, where):
        found = re.match(r"data-dir\s*=\s*\S*?([^/\s]+)\s*$", line)
        if found:
            self.data = found[1]
        if not line.startswith("#:"):
            self.common += [line.split()] if line.strip() and not line.startswith("#") else []
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


@functools.lru_cache(maxsize=None)
def status_in(statrec, path, _written):
    told = subprocess.run([statrec, "info", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^status\s+(\w+)", told, re.M)
    return found[1] if found else "unreadable"


def state(args, name):
    """complete, diverged, interrupted, failed, unfinished, or None: not begun."""
    for end in (".h5", ".h5.part"):
        path = os.path.join(args.out, name + end)
        if os.path.exists(path):
            return status_in(os.path.join(args.bin, "statrec"), path, os.stat(path).st_mtime_ns)
    return None


# -- archives ----------------------------------------------------------------------------------------

def archive_of(args, experiment):
    return os.path.join(args.conf, "runs", f"{experiment.name}.tar.xz")


def members_of(path):
    """{name: bytes} of an archive, {}: there is none."""
    if not os.path.exists(path):
        return {}
    try:
        with tarfile.open(path, "r:xz") as archive:
            return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        stop(f"{path}: {error}")


def check_settings(args, experiment, then):
    """Stops where archived runs are not those that the experiment describes now."""
    now, before = ({name: settings for name, settings, _ in each.runs()} for each in (experiment, then))
    changed = [name for name in before if name in now and before[name] != now[name]]
    if changed or then.common != experiment.common:
        stop(f"{os.path.dirname(then.path)}: recorded with other settings than {experiment.path}: remove "
             f"it, and the experiment's runs in {args.out}, to run anew")


def put(path, data):
    """Leaves a file alone that holds the data."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    with open(path, "wb") as file:
        file.write(data)


def unpack(args, experiment):
    """The experiment's archived runs into OUT."""
    path, names = archive_of(args, experiment), [name for name, _, _ in experiment.runs()]
    members = members_of(path)
    if not members:
        return
    conf = f"{experiment.name}.conf"
    check_settings(args, experiment, Experiment(os.path.join(path, conf), members.get(conf, b"").decode()))
    os.makedirs(args.out, exist_ok=True)
    for name in names:
        if f"{name}.h5" in members:
            put(os.path.join(args.out, f"{name}.h5"), members[f"{name}.h5"])


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def pack(args, experiment):
    """The experiment's runs that are done, kept in its archive. The same runs make the same bytes."""
    path = archive_of(args, experiment)
    done = sorted(name for name, _, _ in experiment.runs() if state(args, name) in DONE)
    files = {f"{experiment.name}.conf": experiment.path,
             **{f"{name}.h5": os.path.join(args.out, f"{name}.h5") for name in done}}
    if not done or list(files) == list(members_of(path)):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tarfile.open(path + ".new", "w:xz", preset=9) as archive:
        for name, source in files.items():
            with open(source, "rb") as file:
                add_member(archive, name, file.read())
    os.replace(path + ".new", path)


# -- plan and run ------------------------------------------------------------------------------------

def plan(args):
    """[(experiment, name, settings, state)] of what is not done; told, with the time that it takes."""
    waiting, total = [], 0.0
    for experiment in experiments(args):
        unpack(args, experiment)
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
    switches = {"yes": "", "no": "no-"}
    for option, value in settings.items():
        words += [f"--{switches[value]}{option}"] if value in switches else [f"--{option}", value]
    return words


def run(args):
    os.makedirs(args.out, exist_ok=True)
    failed, waiting = 0, plan(args)
    for experiment in experiments(args):
        pack(args, experiment)
    for number, (experiment, name, settings, was) in enumerate(waiting, 1):
        print(f"{number}/{len(waiting)} {name}", flush=True)
        with open(os.path.join(args.out, f"{name}.log"), "a", encoding="utf-8") as log:
            words = command(args, experiment, name, settings, was)
            status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    check=False).returncode
        if status != 0 and state(args, name) not in DONE:
            print(f"study.py: {name}: exit status {status}, see {log.name}", file=sys.stderr)
            failed += 1
        pack(args, experiment)
    return 1 if failed else 0


# -- report --------------------------------------------------------------------------------------------

def analysis(args, words, where):
    """The path of the program and its options."""
    if not re.fullmatch(r"stat(plot|-[a-z]+)", words[0] if words else ""):
        stop(f"{where}: by: a program stat-NAME, or statplot for a figure, is wanted, got {' '.join(words)!r}")
    return [os.path.join(args.bin, words[0]), *words[1:]]


def printed(words):
    try:
        told = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        stop(f"{words[0]}: {error.strerror}")
    if told.returncode != 0:
        stop(told.stderr.strip())
    return told.stdout


def lines_of(args, by, paths, where):
    """[{column: text}], {column: definition} by an analysis of the runs."""
    lines = printed([*analysis(args, by, where), *paths]).splitlines()
    meaning = dict(line[len("# column "):].split(": ", 1) for line in lines
                   if line.startswith("# column "))
    head, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [dict(zip(head, row)) for row in rows], meaning


def table_of_runs(args, by, names, where):
    """{name: {column: text}}, {column: definition} by an analysis, which has a line for each run."""
    paths = {os.path.join(args.out, f"{name}.h5"): name for name in names}
    rows, meaning = lines_of(args, by, paths, where)
    if len({row["run"] for row in rows}) < len(rows):
        stop(f"{where}: {' '.join(by)} prints more than one line a run")
    return {paths[row["run"]]: row for row in rows}, meaning


def drawn(head, rows):
    """The lines of a table in Markdown."""
    return ["| " + " | ".join(row) + " |" for row in [head]] + ["|" + "---|" * len(head)] + [
        "| " + " | ".join(row) + " |" for row in rows]


def cell(values, digits, usual):
    """Mean and interval of the values of a cell; None: one diverged; NaN: it has no such number."""
    values = [value for value in values if value is None or value == value]
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
    try:
        return float(row[column])
    except ValueError:
        return float("nan")


def experiment_of(args, name, where):
    path = os.path.join(args.conf, f"{name}.conf")
    if not os.path.exists(path):
        stop(f"{where}: {path}: no such experiment")
    return Experiment(path)


def runs_of(args, block, factors):
    """[(name, labels)] of a block's runs, whose labels are those of `only`, and the names of those that are
    done. The name of the experiment is a label too."""
    runs = []
    for name in block.experiments:
        experiment = experiment_of(args, name, block.where)
        options = {"experiment", *(options[0] for options, _ in experiment.factors)}
        for option in [*factors, *block.only]:
            if option not in options:
                stop(f"{block.where}: {name} has no factor {option!r}")
        unpack(args, experiment)
        runs += [(run, {**labels, "experiment": name}) for run, _, labels in experiment.runs()
                 if all(labels[key] in values for key, values in block.only.items())]
    return runs, [name for name, _ in runs if state(args, name) in DONE]


def split_words(words):
    """Those without = in front, {word: what it is} of the others."""
    return ([word for word in words if "=" not in word],
            dict(word.partition("=")[::2] for word in words if "=" in word))


class Table:
    """One table of the document, from the words behind `study:`."""

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
        """Of the document, or None: there is no run yet."""
        runs, done = runs_of(args, self, [self.rows, *([self.columns] if self.columns else [])])
        if not done:
            return None
        found, meaning = table_of_runs(args, self.by, done, self.where)
        for value in self.values:
            if value not in meaning:
                stop(f"{self.where}: {self.by[0]} has no column {value!r}")
        diverged = {name for name in done if state(args, name) == "diverged"}
        numbers = {value: self._numbers(runs, {
            name: None if name in diverged else number_in(found[name], value) if name in found
            else float("nan") for name in done}) for value in self.values}
        cells, rows, columns = self._cells(runs, numbers)
        usual = max(map(len, cells.values()), default=1)
        return [*self._drawn(cells, rows, columns, usual), "",
                *self._told(len(done), len(runs), usual, meaning)]

    def _numbers(self, runs, numbers):
        """{name: number of its cell}, of the runs that have one."""
        if not self.against:
            return numbers
        name_of = {tuple(labels.items()): name for name, labels in runs}
        if self.against not in (labels[self.rows] for _, labels in runs):
            stop(f"{self.where}: {self.rows} is never {self.against!r}")
        pairs = [(name, name_of[tuple({**labels, self.rows: self.against}.items())])
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

    def _drawn(self, cells, rows, columns, usual):
        head = [self.head if not self.columns else f"{self.head} \\ {self.columns}", *columns]
        return drawn(head, [[row, *(cell(cells.get((row, column), []), int(self.digits), usual)
                                    for column in columns)] for row in rows])

    def _told(self, done, planned, usual, meaning):
        """What stands below the table."""
        over = (f"; mean of {usual} runs and its 95 % interval (Student)" if usual > 1
                else "; one run each")
        less = f", less that of {self.against} with the same seed" if self.against else ""
        by = f", by `{' '.join(self.by)}`" if self.by != ["stat-table"] else ""
        what = "; ".join(f"`{value}`: {meaning[value]}" for value in self.values)
        confs = ", ".join(f"`sample_runs/study/{name}.conf`" for name in self.experiments)
        return [f"{what}{less}{by}{over}. {done} of {planned} runs of {confs}.", ""]


class Figure:
    """figure=NAME.svg by="statplot FIGURE OPTIONS" EXPERIMENT... [OPTION=LABEL,...]"""

    def __init__(self, words, where):
        (self.experiments, given), self.where = split_words(words), where
        self.file, self.by = given.pop("figure"), given.pop("by", "").split()
        self.only = {key: value.split(",") for key, value in given.items()}
        if not re.fullmatch(r"[\w.-]+\.svg", self.file) or not self.experiments:
            stop(f'{where}: figure=NAME.svg by="statplot FIGURE" EXPERIMENT... is wanted')

    def lines(self, args):
        """As a table's; the figure is drawn beside the document."""
        runs, done = runs_of(args, self, [])
        if not done:
            return None
        output = os.path.join(os.path.dirname(args.doc), self.file)
        printed([*analysis(args, self.by, self.where),
                 *(os.path.join(args.out, f"{name}.h5") for name in done), "-o", output])
        names = ", ".join(f"`{name}`" for name in self.experiments)
        return [f"![{self.file}]({self.file})", "",
                f"`{' '.join(self.by)}` of {len(done)} of {len(runs)} runs of {names}.", ""]


class Samples:
    """samples=NAME,... rows=COLUMN,... value=COLUMN,... by=ANALYSIS [digits=N]"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.experiments, self.where = given["samples"].split(","), where
        self.rows, self.values = given.get("rows", "run").split(","), given.get("value", "").split(",")
        self.digits, self.by = given.get("digits", "3"), given.get("by", "stat-table").split()
        if not all(self.rows + self.values) or not self.digits.isdigit():
            stop(f"{where}: samples=NAME,... rows=COLUMN,... value=COLUMN,... by=ANALYSIS is wanted")

    def lines(self, args):
        paths = [os.path.join(args.samples, f"{name}.h5") for name in self.experiments]
        rows, meaning = lines_of(args, self.by, paths, self.where)
        for column in self.rows + self.values:
            if column not in meaning:
                stop(f"{self.where}: {self.by[0]} has no column {column!r}")
        texts = [[os.path.basename(row[column]) for column in self.rows] +
                 [f"{number_in(row, column):.{self.digits}g}".replace("nan", "–") for column in self.values]
                 for row in rows]
        what = "; ".join(f"`{value}`: {meaning[value]}" for value in self.values)
        return [*drawn([*self.rows, *self.values], texts), "",
                f"{what}, by `{' '.join(self.by)}` of `sample_runs/`.", ""]


class Published:
    """published=TABLE,... [metric=NAME,...] [norm=NAME,...]: a column for each metric of a table"""

    def __init__(self, words, where):
        _, given = split_words(words)
        self.experiments, self.where = given["published"].split(","), where
        self.metrics, self.norms = given.get("metric", ""), given.get("norm", "")

    def lines(self, args):
        with open(args.published, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")][1:]
        wanted = [row for row in rows if row[0] in self.experiments and not row[3].endswith(".note")
                  and (not self.metrics or row[3] in self.metrics.split(","))
                  and (not self.norms or row[2] in self.norms.split(","))]
        columns = list(dict.fromkeys((row[0], row[3]) for row in wanted))
        values = {(row[2], row[0], row[3]): row[4].replace("nan", "diverged") for row in wanted}
        norms = list(dict.fromkeys(row[2] for row in wanted))
        if not wanted:
            stop(f"{self.where}: plots/published.tsv has no such value")
        sources = ", ".join(dict.fromkeys(row[1] for row in wanted))
        texts = [[norm, *(values.get((norm, *column), "–") for column in columns)] for norm in norms]
        return [*drawn(["published", *(" ".join(column) for column in columns)], texts), "",
                f"{sources}.", ""]


KINDS = {"figure": Figure, "samples": Samples, "published": Published}


def block_of(text, where):
    """What a line `study:` asks for."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        stop(f"{where}: {error}")
    if not words:
        stop(f"{where}: nothing behind study:")
    return KINDS.get(words[0].partition("=")[0], Table)(words, where)


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
        block = block_of(begun[1], where)
        made = block.lines(args)
        if made is None:
            print(f"study.py: {where}: no run of {' '.join(block.experiments)} yet: left as it is",
                  file=sys.stderr)
        new += old[at:end] if made is None else ["", *made]
        at = end
    with open(args.doc + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(new))
    os.replace(args.doc + ".new", args.doc)
    return 0


def main():
    shared = os.environ.get("STATREC_SHARED", os.path.join(HERE, "..", "..", "shared"))
    shared, top = os.path.relpath(shared), os.path.relpath(os.path.join(HERE, ".."))
    told = argparse.ArgumentParser(description="The runs of the reproduction study, and their tables.")
    told.add_argument("command", choices=["plan", "run", "report"])
    told.add_argument("experiment", nargs="*", help="names of sample_runs/study; default: all of them")
    told.add_argument("--bin", default=os.path.join(top, "build", "release", "bin"),
                      help="directory of statrec and stat-table")
    told.add_argument("--data", default=os.path.join(shared, "data"), help="directory of the data sets")
    told.add_argument("--out", default=os.path.join(top, "study"), help="directory of the runs")
    told.add_argument("--conf", default=os.path.join(HERE, "study"),
                      help="directory of the experiments, with their archives in runs")
    told.add_argument("--doc", default=os.path.join(top, "docs/reproduction.md"))
    told.add_argument("--samples", default=HERE, help="directory of the sample runs")
    told.add_argument("--published", default=os.path.join(top, "plots", "published.tsv"))
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
