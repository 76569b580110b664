#!/usr/bin/env python3
"""What analyses of many run files cost: the table of docs/scaling.md, "Many runs". usage: bench_many_runs.py BIN [RUNS...]

For each number of RUNS (default 10 100 1000) as many copies of sample_runs/nlp_bn.h5, in $TMPDIR, and a line for each command
with the largest memory of a process, the processor time of all of them, and the time that passed. A figure of up to FIGURED
runs. The second report is of one run more. No process may have more than 1,024 descriptors. Last, what a run adds to the
memory, between the two largest numbers of RUNS."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sample_runs", "nlp_bn.h5")
FIGURED = 100
COMMANDS = (
    ("stat-table",),
    ("stat-compare", "--match", "last", "--stat", "tid_mean,g_mu_share"),
    ("stat-compare",),
    ("statplot", "results", "-o", "results.svg"),
    ("statplot", "curves", "-o", "curves.svg"),
    ("statplot", "report", "-o", "report"),
    ("statplot", "report", "-o", "report", "added.h5"),
)


def seconds(x):
    return f"{x:.2f} s" if x < 1 else f"{x:.1f} s" if x < 10 else f"{x:.0f} s"


def measured(binaries, words, runs, directory):
    """Largest memory in kB, and the cells of a line."""
    program, *options = words
    command = (
        [os.path.join(binaries, program), *options[:1], *runs, *options[1:]]
        if program == "statplot"
        else [os.path.join(binaries, program), *options, *runs]
    )
    with open(os.path.join(directory, "errors"), "w+", encoding="utf-8", errors="replace") as errors:
        begin = time.monotonic()
        try:
            process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=errors)
        except OSError as error:
            sys.exit(f"bench_many_runs: {error.filename}: {error.strerror}")
        _, status, used = os.wait4(process.pid, 0)
        passed = time.monotonic() - begin
        errors.seek(0)
        if status:
            sys.exit(f"bench_many_runs: {program} of {len(runs)} runs: {errors.read().strip()}")
    memory = used.ru_maxrss
    return memory, f"{memory / 1000:.0f} MB | {seconds(used.ru_utime + used.ru_stime)} | {seconds(passed)}"


def lines(binaries, count):
    """A line for each command; its memory in kB."""
    memory = {}
    with tempfile.TemporaryDirectory() as directory:
        runs = [f"run{i}.h5" for i in range(count)]
        for run in [*runs, "added.h5"]:
            shutil.copyfile(SAMPLE, os.path.join(directory, run))
        for words in COMMANDS:
            if words[0] == "statplot" and words[1] != "report" and count > FIGURED:
                continue
            memory[words], cells = measured(binaries, words, runs, directory)
            print(f"| {count:,} | `{' '.join(words)}` | {cells} |", flush=True)
    return memory


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, most) if most > 0 else 1024, most))
    counts = sorted(map(int, sys.argv[2:] or ("10", "100", "1000")))
    print("| runs | command | memory | processor | passed |\n|---|---|---|---|---|")
    memory = [lines(os.path.abspath(sys.argv[1]), count) for count in counts]
    for words in COMMANDS[:2]:
        if len(counts) > 1:
            each = (memory[-1][words] - memory[-2][words]) / (counts[-1] - counts[-2])
            print(f"# a run adds {each:.1f} kB to `{' '.join(words)}`")


main()
