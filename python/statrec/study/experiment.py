"""An experiment, which is a file NAME.conf, its planned runs, and the existing files of each. The package's head
describes the lines of the file.
"""
import functools
import glob
import itertools
import os
import re
import shlex
import subprocess
import sys

DONE = ("complete", "diverged")
CLAIMS = "claims.conf" # beside experiments, but none


def stop(text):
    print(f"statrec study: {text}", file=sys.stderr)
    sys.exit(2)


@functools.lru_cache(maxsize=None)
def note(text):
    """The same once."""
    print(f"statrec study: {text}", file=sys.stderr)


class Experiment:
    """factors: [(options, [(label, values)])], values as many as options. after: {label: [words of a
    command]}. keeps_runs: in the archive, beside what comes after them. common: {option: value} of the lines that the program
    obeys. program, resume: words of another program than statrec's, which begins a run, which continues one; empty: none.
    blocks: what `report` prints where no page is given. minutes: of one run; None: not known."""

    def __init__(self, path, text=None, archived=False):
        self.path, self.name = path, os.path.basename(path)[:-len(".conf")]
        self.minutes, self.factors, self.after, self.data, self.common = None, [], {}, None, {}
        self.keeps_runs, self.program, self.resume, self.blocks = True, [], [], []
        if text is None:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
        for number, line in enumerate(text.split("\n"), 1):
            self._read(line.strip(), f"{path}:{number}", archived)
        if self.resume and not self.program:
            stop(f"{path}: '#: resume = COMMAND' without a line '#: program = COMMAND'")
        if not self.keeps_runs and not self.after:
            stop(f"{path}: '#: archive = after' without a line '#: after LABEL = COMMAND'")
        if not archived: # names that were not unique then
            check_names([self])

    def _read(self, line, where, archived):
        if not line.startswith("#:"):
            try:
                self.common.update(option_of(line))
            except ValueError as why:
                if not archived: # such a line was ignored then
                    stop(f"{where}: {why}")
            if self.common.get("data-dir"): # below the directory of the data sets
                self.data = re.fullmatch("(?:.*?/data/|.*/)?(.*?)/*", self.common["data-dir"])[1]
            return
        key, equals, values = (part.strip() for part in line[2:].partition("="))
        if not equals or not values:
            stop(f"{where}: '#: OPTION = VALUE...' is wanted, got {line.strip()!r}")
        if key == "minutes":
            self.minutes = minutes_in(values, where)
            return
        if key == "report":
            self.blocks.append((values, where))
            return
        if key in ("program", "resume"):
            self._read_program(key, values, where)
            return
        if key == "archive":
            if values != "after":
                stop(f"{where}: archive: after is wanted, got {values!r}")
            self.keeps_runs = False
            return
        if key.split()[:1] == ["after"]:
            self._read_after(key.split()[1:], values, where)
            return
        options = key.split("+")
        self.factors.append((options, [self._level(word, options, where) for word in values.split()]))

    def _read_after(self, labels, values, where):
        commands = [shlex.split(command) for command in values.split(";")]
        if len(labels) != 1 or not re.fullmatch(r"[\w.-]+", labels[0]) or not all(commands):
            stop(f"{where}: '#: after LABEL = COMMAND; COMMAND...' is wanted, words of statrec or stat-NAME ...")
        self.after[labels[0]] = commands

    def _read_program(self, key, values, where):
        try:
            words = shlex.split(values)
        except ValueError as error:
            stop(f"{where}: {key}: {error}")
        if not any("RUN" in word for word in words):
            stop(f"{where}: {key}: RUN.h5, the run file to write, is wanted among the words, got {values!r}")
        setattr(self, key, words)

    @staticmethod
    def _level(word, options, where):
        label, colon, value = word.partition(":")
        parts = (value if colon else word).rsplit("+", len(options) - 1)
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


def described(settings):
    return ", ".join(f"{option} = {value}" for option, value in settings.items()) or "one run"


def check_names(experiments):
    """Stops where two runs, or what comes after them, have the same file."""
    taken = {}
    for experiment in experiments:
        for name, settings, _ in experiment.runs():
            what = f"{experiment.path} ({described(settings)})"
            for file in [f"{name}.h5", *(f"{name}-{label}.tsv" for label in experiment.after)]:
                if file in taken:
                    stop(f"{what}: the same name {file} as {taken[file]}: give a value another name, LABEL:VALUE")
                taken[file] = what


ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def option_of(line):
    """{option: value} of a line of a .conf file, as statrec train reads it (src/base/options/options_read.c); {}: it has none."""
    key, equals, value = (part.strip(" \t") for part in line.partition("="))
    if not key or key.startswith("#"):
        return {}
    if not equals or "#" in key:
        raise ValueError(f"'{line:.80}' is not of the form 'key = value'")
    if not value.startswith('"'):
        return {key: re.split(r"(?:^|[ \t])#", value)[0].strip(" \t")}
    found = re.fullmatch(r'"((?:[^"\\]|\\["\\nrt])*)"[ \t]*(#.*)?', value)
    if not found:
        raise ValueError(f"value of {key}: no quoted text, with \\\" \\\\ \\n \\r \\t alone, got {value:.80}")
    return {key: re.sub(r"\\(.)", lambda letter: ESCAPED[letter[1]], found[1])}


def minutes_in(text, where):
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes < float("inf"):
        stop(f"{where}: minutes: a number of 0 or more is wanted, got {text!r}")
    return minutes


def files_in(path):
    """The experiments of a directory, or the one that this file is."""
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".conf") and name != CLAIMS]


def experiments(args):
    """Those that were given, whose runs have other names."""
    found = {}
    for path in args.confs:
        for file in files_in(path):
            if not file.endswith(".conf"):
                stop(f"{file}: the name of an experiment ends with .conf")
            if not re.fullmatch(r"[\w.][\w.+-]*", os.path.basename(file)):
                stop(f"{file}: the name of an experiment has letters, digits and . _ - + alone, since tables name it so")
            try:
                experiment = Experiment(file)
            except OSError as error:
                stop(f"{file}: {error.strerror}")
            if found.setdefault(experiment.name, experiment).path != file:
                stop(f"{file}: {found[experiment.name].path} has the same name")
    if not found:
        stop(f"{' '.join(args.confs)}: no experiment (*.conf) there")
    check_names([*found.values(), *neighbours(found)])
    return list(found.values())


def neighbours(found):
    """Experiments beside those that were given whose runs could have the same names: grid-1 beside grid."""
    folders_of_them = {os.path.dirname(experiment.path) for experiment in found.values()}
    for path in (path for folder in folders_of_them for path in files_in(folder or ".")):
        name = os.path.basename(path)[:-len(".conf")]
        if name not in found and any(f"{name}-".startswith(f"{other}-") or f"{other}-".startswith(f"{name}-") for other in found):
            yield Experiment(os.path.normpath(path))


def folders(args):
    """The directories of experiments, each once."""
    return list(dict.fromkeys(path if os.path.isdir(path) else os.path.dirname(path) for path in args.confs))


def beside(args, file):
    """The path of a file in the first of the directories that has it, else in the first."""
    there = [os.path.join(folder, file) for folder in folders(args)]
    return next(filter(os.path.exists, there), there[0])


@functools.lru_cache(maxsize=None)
def status_in(statrec, path, _written):
    told = subprocess.run([statrec, "info", path], capture_output=True, text=True, check=False).stdout
    found = re.search(r"^status\s+(\w+)", told, re.M)
    return found[1] if found else "unreadable"


def unended(args, name):
    """The path of the mark that a run has from the begin of its program until that ends with status 0 (child.py). Runs of older
    versions and of archives have none."""
    return os.path.join(args.out, f"{name}.unended")


def state(args, name):
    """complete, diverged, interrupted, failed, unfinished, or None: not begun. A program that goes on, or failed, behind its run
    file has not finished the run."""
    was = state_of_files(args, name)
    return "unfinished" if was == "complete" and os.path.exists(unended(args, name)) else was


def state_of_files(args, name):
    """The same of the run file alone."""
    paths = [os.path.join(args.out, name + end) for end in (".h5", ".h5.part")]
    return next((state_of_file(args, path) for path in paths if os.path.exists(path)), None)


def state_of_file(args, path):
    """The same for one file."""
    if not os.path.exists(path):
        return None
    return status_in(os.path.join(args.bin, "statrec"), path, os.stat(path).st_mtime_ns)


def after_of(args, name, label):
    return os.path.join(args.out, f"{name}-{label}.tsv")


def finished(args, experiment, name, labels=None):
    """The run is done, and so is what comes after it (labels: these alone), which may be all that was kept of it."""
    was = state(args, name)
    is_there = was == "complete" or was is None and not experiment.keeps_runs
    return was == "diverged" or is_there and all(
        os.path.exists(after_of(args, name, label)) for label in labels or experiment.after)


def expanded(args, name, words):
    """The words of a command: RUN is OUT/NAME; after it, *, ? and [] match existing files."""
    stem = os.path.join(args.out, name)
    for word in words:
        found = sorted(glob.glob(word.replace("RUN", glob.escape(stem)))) if "RUN" in word else []
        yield from found or [word.replace("RUN", stem)]


def put(path, data):
    """Leaves a file alone that holds the data. No part of it is ever there."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            if file.read() == data:
                return
    with open(own_name(path), "wb") as file:
        file.write(data)
    os.replace(own_name(path), path)


def own_name(path):
    """Name of a file that becomes `path` when it is written: another process has another one."""
    return f"{path}.{os.getpid()}.new"


def remove(path):
    if os.path.exists(path):
        os.remove(path)
