"""Helpers shared by the night's scripts: numbered cases that are made from a seed, run in any order, and resumed.

A case is a number. Its result is a line of BUILD/night/NAME-SEED.tsv: the number, a tab, a verdict. `ok` and
`refused` are good; any other verdict is a defect and stays in the file. Cases that have a line are not run again.
"""
import argparse
import collections
import os
import random
import resource
import subprocess
import sys
import time

MINUTES = 60  # a script ends within this time, done or not; the next call continues


def arguments(name, count, kinds=()):
    parser = argparse.ArgumentParser(prog=name)
    if kinds:
        parser.add_argument("--kind", choices=kinds, help="only the cases of this kind")
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--percent", type=float, default=100, help="so much of the cases")
    parser.add_argument("--minutes", type=float, default=MINUTES - 2)
    given = parser.parse_args()
    given.name, given.count = name, max(1, round(count * given.percent / 100))
    given.bin = os.path.abspath(os.path.join(given.build, "bin"))
    given.folder = os.path.abspath(os.path.join(given.build, "night", f"{name}-{given.seed}"))
    os.makedirs(given.folder, exist_ok=True)
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", LC_ALL="C")
    os.environ.setdefault("STATREC_PRESETS", os.path.abspath("share/presets"))
    os.environ["PATH"] = given.bin + ":" + os.environ["PATH"]
    return given


def random_of(given, case):
    """The generator of one case, which depends on the seed and its number alone."""
    return random.Random(f"{given.name} {given.seed} {case}")


class Outcome(collections.namedtuple("Outcome", "status text seconds")):
    """Result of a command: its exit status, or minus the signal; None: it took too long."""


def limit_processor():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, folder, seconds=600, **more):
    """At most 60 seconds of a processor: a busy machine is no fault of the program."""
    began = time.monotonic()
    more.setdefault("preexec_fn", limit_processor)
    try:
        done = subprocess.run(command, cwd=folder, timeout=seconds, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, **more)
    except subprocess.TimeoutExpired:
        return Outcome(None, "", seconds)
    return Outcome(done.returncode, done.stderr.decode("utf-8", "replace"), time.monotonic() - began)


def verdict_of(outcome):
    """Returns ok, refused, or a description of the fault."""
    lines = [line for line in outcome.text.splitlines() if ": hint: " not in line and ": warning: " not in line]
    if outcome.status is None:
        return f"took more than {outcome.seconds:.0f} s"
    if outcome.status in (-9, -24):
        return "took more than 60 s of a processor"
    if outcome.status < 0:
        return f"signal {-outcome.status}"
    if "Sanitizer" in outcome.text or "runtime error" in outcome.text:
        return "sanitizer: " + next((line for line in lines if "Sanitizer" in line or "runtime" in line), "")[:200]
    if outcome.status in (0, 3):
        return "ok"
    if outcome.status not in (1, 2):
        return f"exit {outcome.status}"
    return "refused" if lines else f"exit {outcome.status} without a line"


def all_cases(given, one, wanted=lambda case: True):
    """Runs one(case) for each wanted one without a line; prints counts and minutes. Exits with 1 after a defect."""
    began = time.monotonic()
    path = given.folder + ".tsv"
    done = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            done = dict(line.rstrip("\n").split("\t", 1) for line in lines if "\t" in line)
    with open(path, "a", encoding="utf-8") as out:
        cases = [case for case in range(given.count) if wanted(case)]
        for case in cases:
            if time.monotonic() - began > 60 * given.minutes:
                break
            if str(case) in done:
                continue
            done[str(case)] = one(case)
            print(case, done[str(case)], sep="\t", file=out, flush=True)
    done = {case: verdicts for case, verdicts in done.items() if wanted(int(case))}
    counts = collections.Counter()
    bad = []
    for case, verdicts in sorted(done.items(), key=lambda item: int(item[0])):
        for verdict in verdicts.split("; "):
            kind, _, text = verdict.partition(": ")
            times, _, word = kind.partition(" ")
            if times.isdigit() and word in ("ok", "refused"):
                counts[word] += int(times)
            else:
                counts["defects"] += 1
                bad.append(f"case {case}: {kind}: {text}")
    minutes = (time.monotonic() - began) / 60
    print(f"{given.name}: seed {given.seed}, {len(done)} of {len(cases)} cases, {counts['ok']} read or done, "
          f"{counts['refused']} refused in one line, {counts['defects']} defects, {minutes:.1f} minutes")
    for line in bad[:40]:
        print("  " + line)
    if len(done) < len(cases):
        print(f"{given.name}: the time is up; the next call goes on")
    sys.exit(1 if bad else 0)


def summed(results):
    """results: [(command, verdict)]; as a line of the state: '5 ok; 3 refused; stat-tid run.h5: signal 8'."""
    good = collections.Counter(verdict for _, verdict in results if verdict in ("ok", "refused"))
    parts = [f"{count} {word}" for word, count in sorted(good.items())]
    parts += [f"{command}: {verdict}".replace("\t", " ").replace("\n", " ").replace("; ", ", ")
              for command, verdict in results if verdict not in ("ok", "refused")]
    return "; ".join(parts) or "0 ok"
