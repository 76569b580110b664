#!/usr/bin/env python3
"""What analyses of many run files cost: the table of docs/scaling.md, "Many runs". usage: bench_many_runs.py BIN [RUNS...]

For each number of RUNS (default 10 100 1000) as many copies of sample_runs/nlp_bn.h5, in $TMPDIR, and a row with the
largest memory of a process and the processor time of all of them; a report of up to REPORTED runs. No process may have
more than 1,024 descriptors."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile

SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sample_runs", "nlp_bn.h5")
REPORTED = 100
COMMANDS = (
    ("stat-table", []),
    ("stat-compare", ["--match", "last", "--stat", "tid_mean,g_mu_share"]),
    ("statplot", ["report", "-o", "report"]),
)


def seconds(x):
    return f"{x:.2f} s" if x < 1 else f"{x:.1f} s" if x < 10 else f"{x:.0f} s"


def measured(program, words, runs, directory):
    if "report" in words and len(runs) > REPORTED:
        return ""
    with open(os.path.join(directory, "errors"), "w+", encoding="utf-8", errors="replace") as errors:
        try:
            process = subprocess.Popen([program, *words, *runs], cwd=directory, stdout=subprocess.DEVNULL, stderr=errors)
        except OSError as error:
            sys.exit(f"bench_many_runs: {error.filename}: {error.strerror}")
        _, status, used = os.wait4(process.pid, 0)
        errors.seek(0)
        if status:
            sys.exit(f"bench_many_runs: {os.path.basename(program)} of {len(runs)} runs: {errors.read().strip()}")
    return f"{used.ru_maxrss / 1000:.0f} MB, {seconds(used.ru_utime + used.ru_stime)}"


def row(binaries, count):
    with tempfile.TemporaryDirectory() as directory:
        runs = [f"run{i}.h5" for i in range(count)]
        for run in runs:
            shutil.copyfile(SAMPLE, os.path.join(directory, run))
        return [measured(os.path.join(binaries, program), words, runs, directory) for program, words in COMMANDS]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, most) if most > 0 else 1024, most))
    print("| runs |", " | ".join(f"`{' '.join([program, *words])}`" for program, words in COMMANDS), "|")
    print("|---" * (1 + len(COMMANDS)) + "|")
    for count in map(int, sys.argv[2:] or ("10", "100", "1000")):
        print(f"| {count:,} |", " | ".join(row(os.path.abspath(sys.argv[1]), count)), "|", flush=True)


main()
