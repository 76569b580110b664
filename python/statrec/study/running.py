"""Runs of experiments: several at a time, resumed after an interruption, with the remaining time."""
import concurrent.futures
import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time

from .archive import check_kept, pack, unpack
from .experiment import DONE, after_of, expanded, experiments, finished, put, remove, state, state_of_files, unended
from .settings import check_run, keep, keep_after

CHILD = os.path.join(os.path.dirname(__file__), "child.py")
SWITCHES = {"yes": "", "no": "no-"}


class Waiting:
    """A run that is not done. was: its state."""

    def __init__(self, experiment, name, settings, was):
        self.experiment, self.name, self.settings, self.was = experiment, name, settings, was


def plan(args):
    """[Waiting], printed, with the time that they take."""
    waiting = []
    for experiment in experiments(args):
        unpack(args, experiment)
        runs = [Waiting(experiment, name, settings, state(args, name)) for name, settings, _ in experiment.runs()]
        left = [run for run in runs if not finished(args, experiment, run.name)]
        for run in left:
            if run.was in DONE or resumes(args, run):
                check_run(args, experiment, run.name, run.settings)
        waiting += left
        told = "" if experiment.minutes is None else f", the others take {experiment.minutes * len(left):.0f} min"
        print(f"{experiment.name}: {len(runs) - len(left)} of {len(runs)} runs are done{told}")
    clock = Clock(waiting, 1)
    hours = "" if clock.hours() is None else f", about {clock.hours():.1f} h of one core"
    jobs = f", {clock.hours() / args.jobs:.1f} h by {args.jobs} at a time" if hours and args.jobs > 1 else ""
    print(f"in all {len(waiting)} runs{hours}{jobs}", flush=True)
    return waiting


class Clock:
    """The remaining time: for each run the duration of the runs of its experiment so far, else the experiment's
    estimate."""

    def __init__(self, waiting, jobs, now=time.monotonic):
        self.left, self.jobs, self.now = {run.name: run.experiment for run in waiting}, jobs, now
        self.begun, self.took = {}, {}

    def begin(self, name):
        self.begun[name] = self.now()

    def end(self, name, whole):
        """whole: the run was made from its beginning to its end."""
        experiment = self.left.pop(name)
        minutes = (self.now() - self.begun.pop(name)) / 60
        if whole:
            self.took.setdefault(experiment.name, []).append(minutes)

    def _minutes(self, name, experiment):
        took = self.took.get(experiment.name)
        minutes = sum(took) / len(took) if took else experiment.minutes
        if minutes is None or name not in self.begun:
            return minutes
        return max(0.0, minutes - (self.now() - self.begun[name]) / 60)

    def hours(self):
        """None: it is not known for some run."""
        each = [self._minutes(name, experiment) for name, experiment in self.left.items()]
        if None in each:
            return None
        return max(sum(each) / self.jobs, max(each, default=0.0)) / 60


def options(settings):
    """The words of {option: value}."""
    words = []
    for option, value in settings.items():
        words += [f"--{SWITCHES[value]}{option}"] if value in SWITCHES else [f"--{option}", value]
    return words


def threads_each(args):
    """The threads of each of the runs at a time."""
    return max(1, (os.cpu_count() or 1) // args.jobs)


def has_checkpoint(args, name):
    return any(re.fullmatch(re.escape(name) + r"-\d+\.ckpt", entry) for entry in os.listdir(args.out))


def resumes(args, run):
    """The run goes on; else it begins: one that failed would go on with what it failed of."""
    return run.was not in (None, "failed") and bool(run.experiment.resume if run.experiment.program else has_checkpoint(args, run.name))


def command(args, run):
    """The words that begin the run or resume it."""
    if run.experiment.program:
        return command_of_program(args, run)
    statrec, output = os.path.join(args.bin, "statrec"), os.path.join(args.out, f"{run.name}.h5")
    if resumes(args, run):
        return [statrec, "resume", output, "--quiet"]
    words = [statrec, "train", "-c", run.experiment.path, "--quiet", "--force", "-o", output]
    if run.experiment.data and args.data:
        words += ["--data-dir", os.path.join(args.data, run.experiment.data)]
    if args.jobs > 1 and "threads" not in [*run.settings, *run.experiment.common]:
        words += ["--threads", str(threads_each(args))] # results do not depend on it
    return words + options(run.settings)


def command_of_program(args, run):
    words = run.experiment.resume if resumes(args, run) else run.experiment.program
    settings = {**run.experiment.common, **run.settings}
    named = {option for option in settings if any(f"{{{option}}}" in word for word in words)}
    made = []
    for word in words:
        for option in named:
            word = word.replace(f"{{{option}}}", settings[option])
        made.append(word.replace("RUN", os.path.join(args.out, run.name)))
    return made + options({option: value for option, value in settings.items() if option not in named})


class Stopped(Exception):
    """A signal ended the study."""


class Runner:
    """Runs of `args.jobs` threads; each waits for one program at a time."""

    def __init__(self, args, waiting):
        self.args, self.waiting = args, waiting
        self.clock, self.lock = Clock(waiting, args.jobs), threading.Lock()
        self.stopped, self.programs, self.begun = None, set(), 0

    def stop(self, number, _frame):
        """Every program is asked to end its run file; the second time it is killed."""
        again, self.stopped = self.stopped, number
        for program in list(self.programs):
            with contextlib.suppress(OSError):
                if again:
                    os.killpg(program.pid, signal.SIGKILL) # each has a session of its own
                else:
                    program.terminate()

    def call(self, words, log, output=None):
        """(exit status, what it printed). Programs get no signals of the terminal: stop() hands them on, and stopped is set."""
        environment = dict(os.environ)
        if self.args.jobs > 1:
            environment.setdefault("OMP_NUM_THREADS", str(threads_each(self.args)))
        if self.stopped:
            raise Stopped
        try:
            program = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output or log, stderr=log, text=True, env=environment,
                                       start_new_session=True)
        except OSError as error:
            log.write(f"{words[0]}: {error.strerror}\n")
            return 127, ""
        self.programs.add(program)
        if self.stopped:
            program.terminate()
        printed, _ = program.communicate()
        self.programs.discard(program)
        return program.returncode, printed

    def make(self, run, log):
        """The exit status of the program that makes the run."""
        for label in run.experiment.after: # of another run
            remove(after_of(self.args, run.name, label))
        goes_on = resumes(self.args, run)
        if run.experiment.program and not goes_on:
            for end in (".h5", ".h5.part"):
                remove(os.path.join(self.args.out, run.name + end))
        if not goes_on:
            keep(self.args, run.experiment, run.name, run.settings)
        put(unended(self.args, run.name), b"")
        status, _ = self.call([sys.executable, "-I", CHILD, unended(self.args, run.name), *command(self.args, run)], log)
        if self.stopped:
            raise Stopped
        if status and state_of_files(self.args, run.name) == "complete":
            path = os.path.join(self.args.out, run.name)
            os.replace(f"{path}.h5", f"{path}.failed.h5")
        return status

    def make_after(self, run, log):
        """Runs the commands after a complete run whose results do not exist yet."""
        for label, commands in run.experiment.after.items():
            path, printed = after_of(self.args, run.name, label), ""
            if os.path.exists(path):
                continue
            for words in commands:
                words = words if re.fullmatch(r"stat-[a-z]+", words[0]) else ["statrec", *words]
                program = os.path.join(self.args.bin, words[0])
                status, printed = self.call([program, *expanded(self.args, run.name, words[1:])], log, subprocess.PIPE)
                if self.stopped:
                    raise Stopped
                if status:
                    return
            keep_after(self.args, run.experiment, run.name, label)
            put(path, printed.encode())

    def one(self, run):
        """Whether it is done now, and what comes after it."""
        status, path = 0, os.path.join(self.args.out, f"{run.name}.log")
        with open(path, "a", encoding="utf-8") as log:
            try: # a program that outlived its study has it, too
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return self.failed(run, "another process makes this run")
            run.was = state(self.args, run.name) # another process may have made it
            if run.was not in DONE:
                status = self.make(run, log)
            if state(self.args, run.name) == "complete":
                self.make_after(run, log)
        if finished(self.args, run.experiment, run.name):
            return True
        was = state(self.args, run.name)
        if was == "complete":
            return self.failed(run, f"what comes after it failed, see {path}")
        return self.failed(run, f"exit status {status}{f', {run.name}.h5 is {was}' if not status and was else ''}"
                           f"{f', and no {run.name}.h5' if not status and not was else ''}, see {path}")

    @staticmethod
    def failed(run, what):
        print(f"statrec study: {run.name}: {what}", file=sys.stderr, flush=True)
        return False

    def begin(self, run):
        with self.lock:
            self.begun += 1
            self.clock.begin(run.name)
            hours = self.clock.hours()
            left = "" if hours is None else f", {hours:.1f} h left"
            print(f"{self.begun}/{len(self.waiting)} {run.name}{left}", flush=True)

    def work(self, run):
        """Whether the run is done; it is kept then."""
        if self.stopped:
            raise Stopped
        self.begin(run)
        done = False
        try:
            done = self.one(run)
            with self.lock:
                pack(self.args, run.experiment)
        except OSError as why: # the others can be made
            done = self.failed(run, f"{why.filename}: {why.strerror}" if why.filename else str(why))
        with self.lock:
            self.clock.end(run.name, done and run.was is None)
        return done

    def run(self):
        """The exit status."""
        before = {number: signal.signal(number, self.stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
                futures = [pool.submit(self.work, run) for run in self.waiting]
                done = [future.result() for future in futures]
        except Stopped:
            print("statrec study: stopped; the same command resumes", file=sys.stderr)
            return 128 + self.stopped
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return 0 if all(done) else 1


def run(args):
    os.makedirs(args.out, exist_ok=True)
    for experiment in experiments(args):
        check_kept(experiment)
    waiting = plan(args)
    for experiment in experiments(args):
        pack(args, experiment)
    return Runner(args, waiting).run()
