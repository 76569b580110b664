"""study_runs.py -- the experiments of sample_runs/study, the runs that each asks for, and the archives that
hold those that are done. What the files say is in the head of study.py.
"""
import functools
import glob
import io
import itertools
import lzma
import os
import re
import shlex
import subprocess
import sys
import tarfile

DONE = ("complete", "diverged")
# Run files are numbers of 4 and 8 bytes: 5 % smaller than by the preset alone
PACKING = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 2, "pb": 2}]


def stop(text):
    print(f"study.py: {text}", file=sys.stderr)
    sys.exit(2)


class Experiment:
    """factors: [(options, [(label, values)])], values as many as options. after: {label: [words of a
    command]}. keeps_runs: in the archive, beside what comes after them. common: words of the lines that statrec
    obeys."""

    def __init__(self, path, text=None):
        self.path, self.name = path, os.path.basename(path)[:-len(".conf")]
        self.minutes, self.factors, self.after, self.data, self.common = None, [], {}, None, []
        self.keeps_runs = True
        if text is None:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        for number, line in enumerate(text.splitlines(), 1):
            self._read(line, f"{path}:{number}")
        if self.minutes is None:
            stop(f"{path}: no line '#: minutes = N'")
        if not self.keeps_runs and not self.after:
            stop(f"{path}: '#: archive = after' without a line '#: after LABEL = COMMAND'")

    def _read(self, line, where):
        found = re.match(r"data-dir\s*=\s*(?:\S*?/data/|\S*/)?(\S*?)/*\s*$", line)
        if found:
            self.data = found[1] # below the directory of the data sets
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


def after_of(args, name, label):
    return os.path.join(args.out, f"{name}-{label}.tsv")


def finished(args, experiment, name, labels=None):
    """The run is done, and so is what comes after it (labels: these alone), which may be all that was kept of it."""
    was = state(args, name)
    is_there = was == "complete" or was is None and not experiment.keeps_runs
    return was == "diverged" or is_there and all(
        os.path.exists(after_of(args, name, label)) for label in labels or experiment.after)


def expanded(args, name, words):
    """The words of a command: RUN is OUT/NAME, and behind it *, ? and [] stand for the files that there are."""
    stem = os.path.join(args.out, name)
    for word in words:
        found = sorted(glob.glob(word.replace("RUN", glob.escape(stem)))) if "RUN" in word else []
        yield from found or [word.replace("RUN", stem)]


def printed_after(args, name, commands, log):
    """What the last of the commands prints, None: one failed."""
    printed = None
    for words in commands:
        words = words if re.fullmatch(r"stat-[a-z]+", words[0]) else ["statrec", *words]
        done = subprocess.run([os.path.join(args.bin, words[0]), *expanded(args, name, words[1:])], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, check=False)
        if done.returncode != 0:
            return None
        printed = done.stdout
    return printed


def run_after(args, experiment, name, log):
    """What comes after a complete run and is not there yet."""
    for label, commands in experiment.after.items():
        if not os.path.exists(after_of(args, name, label)):
            printed = printed_after(args, name, commands, log)
            if printed is None:
                return
            put(after_of(args, name, label), printed.encode())


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
    if changed or any(getattr(then, what) != getattr(experiment, what)
                      for what in ("common", "after", "keeps_runs")):
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


def remove(path):
    if os.path.exists(path):
        os.remove(path)


def files_of(experiment, name):
    """The files of OUT that hold what is kept of a run, and what comes after it."""
    return [f"{name}.h5"] * experiment.keeps_runs + [f"{name}-{label}.tsv" for label in experiment.after]


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
        for file in files_of(experiment, name):
            if file in members:
                put(os.path.join(args.out, file), members[file])


def add_member(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def pack(args, experiment):
    """The experiment's runs that are done, kept in its archive. The same runs make the same bytes."""
    path = archive_of(args, experiment)
    done = sorted(name for name, _, _ in experiment.runs() if finished(args, experiment, name))
    files = {f"{experiment.name}.conf": experiment.path}
    for file in (file for name in done for file in files_of(experiment, name)):
        if os.path.exists(os.path.join(args.out, file)): # a run that diverged has nothing after it
            files[file] = os.path.join(args.out, file)
    if not done or list(files) == list(members_of(path)):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with lzma.open(path + ".new", "wb", filters=PACKING) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, source in files.items():
            with open(source, "rb") as file:
                add_member(archive, name, file.read())
    os.replace(path + ".new", path)
