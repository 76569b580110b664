#!/usr/bin/env python3
"""performance.py -- measures what docs/performance.md shows, and writes its tables and its figure.

    performance.py BUILD [--python PYTHON] [--doc FILE] [--seconds 20] [--threads N] [--again] [--write] [PART...]

BUILD    build/release, where the bench programs are
PYTHON   has the PyTorch that we are compared with (default: this one); without it those lines stay unmeasured
SECONDS  roughly what a model's profile and a line against PyTorch may take; fewer make everything noisier
PART     limits, gemm, conv, norm, ops, analysis, figures, step-CASE, targets (default: all of them). What a part prints is kept in
         BUILD/performance/PART.txt, with date, CPU and load; one that is there is not measured again (--again:
         it is), so that a run that was stopped goes on. `targets` measures what BUILD/targets.tsv lacks.
--write  measures nothing

A table of the page stands between two lines, which stay; so does what is written around them:

    <!-- performance: targets -->
    <!-- performance: end -->

machine   date, CPU, versions, load               limits   peak and bandwidth, by bench_limits
targets   against PyTorch, by targets.py          profile CASE   what a step is made of, by bench_step
least     what products of linear layers take at the limit of fma, beside PyTorch's whole step
roofline  the figure, drawn beside the page as PAGE-roofline.svg, and its points; roofline.py has the formulas
analyses  by bench_analysis and bench_figures

What was not measured is told as such. Exit status 0; 1 when something could not be measured; 2 after a mistake in the
arguments, the page or what is kept.
"""
import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile

import performance_page
import targets
from performance_page import STEPS, Mistake, kept

NORMS = (("bn", 131072, 16), ("bn", 4096, 512), ("ln", 4096, 512))
ROUNDS = {"limits": 25, "gemm": 25, "conv": 31, "ops": 25}
ANALYSES = {"analysis": 5, "figures": 5}  # rounds
PARTS = (*ROUNDS, "norm", *ANALYSES, *(f"step-{case}" for case in STEPS), "targets")


def commands(args, part, run):
    """Commands of a part; run: path of the run file to write."""
    threads = str(args.threads)

    def rounds(usual):
        return str(max(3, round(usual * args.seconds / 20)))

    if part.startswith("step-"):
        case = part[len("step-"):]
        steps, usual = STEPS[case]
        return [["bench_step", case, threads, rounds(usual), run, str(steps)]]
    if part == "norm":
        return [["bench_norm", method, str(rows), str(features), threads] for method, rows, features in NORMS]
    if part in ANALYSES:
        return [[f"bench_{part}", os.path.join(args.build, "bin"), rounds(ANALYSES[part])]]
    return [[f"bench_{part}", threads, rounds(ROUNDS[part])]]


def printed(words, **others):
    try:
        told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False,
                              env=dict(os.environ, GOMP_SPINCOUNT="100000"), **others)  # as `statrec train` waits
    except OSError as error:
        raise Mistake(f"{words[0]}: {error.strerror}") from None
    return told.returncode, told.stdout


def run_programs(args, part):
    text = ""
    with tempfile.TemporaryDirectory() as directory:
        for words in commands(args, part, os.path.join(directory, "run.h5")):
            status, told = printed([os.path.join(args.build, "bench", words[0]), *words[1:]])
            if status != 0:
                raise targets.Skipped(f"{words[0]}: exit status {status}")
            shown = " ".join(words).replace(directory + "/", "").replace(args.build + "/bin", "BIN")
            text += f"# command: {shown}\n{told}"
    return text


def run_targets(args):
    words = [sys.executable, "-B", os.path.join(targets.HERE, "targets.py"), args.build, "--python", args.python,
             "--seconds", str(args.seconds), *(["--again"] if args.again else [])]
    status, told = printed(words)
    if status > 1:
        raise targets.Skipped(f"targets.py: exit status {status}")
    return "".join(f"# {line.removeprefix('# ')}\n" for line in told.splitlines())


def cores():
    """Number of cores of the whole machine."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as told:
            text = told.read()
    except OSError:
        return os.cpu_count()
    pairs = zip(re.findall(r"^physical id\s*: (\d+)", text, re.M), re.findall(r"^core id\s*: (\d+)", text, re.M))
    return len(set(pairs)) or os.cpu_count()


def versions(args):
    """Ours and PyTorch's."""
    status, told = printed([os.path.join(args.build, "bin", "statrec"), "--version"])
    commit = ""
    if os.path.exists(os.path.join(args.build, "git")):
        with open(os.path.join(args.build, "git"), encoding="utf-8") as file:
            commit = f" ({file.read().strip()})"
    yield "statrec", told.replace("statrec", "").strip() + commit if status == 0 else "unknown"
    status, told = printed([args.python, "-c", "import torch; print(torch.__version__)"], stderr=subprocess.DEVNULL)
    yield "PyTorch", told.strip() if status == 0 else "none"


def measure(args, part):
    head = [("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")),
            ("CPU", f"{targets.processor()}; cores: {cores()}, threads: {os.cpu_count()}"),
            ("threads", args.threads), ("load", f"{os.getloadavg()[0]:.1f}"), *versions(args)]
    text = run_targets(args) if part == "targets" else run_programs(args, part)
    path = kept(args, part)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write("".join(f"# {key}: {value}\n" for key, value in head) + text)
    os.replace(path + ".part", path)


def measure_all(args):
    failed = 0
    os.makedirs(os.path.dirname(kept(args, "limits")), exist_ok=True)
    for part in args.part or PARTS:
        if os.path.exists(kept(args, part)) and not args.again and part != "targets":
            continue
        print(f"# {part}", file=sys.stderr, flush=True)
        try:
            measure(args, part)
        except targets.Skipped as reason:
            failed += 1
            print(f"performance.py: {part}: {reason}", file=sys.stderr)
    return failed


def arguments():
    top = os.path.dirname(targets.HERE)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("part", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--doc", default=os.path.join(top, "docs/performance.md"))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_intermixed_args()
    for name in args.part:
        if name not in PARTS:
            parser.error(f"no part {name!r}: there are {' '.join(PARTS)}")
    if not 0 <= args.seconds < 1e6 or not 1 <= args.threads <= 1024:
        parser.error("--seconds is from 0 to a million, --threads from 1 to 1024")
    return args


def main():
    args, failed = arguments(), 0
    for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS"):  # every program waits as it does by itself
        os.environ.pop(name, None)
    try:
        performance_page.read_page(args.doc)  # before a quarter of an hour is spent
        failed = 0 if args.write else measure_all(args)
        performance_page.write(args)
    except Mistake as mistake:
        print(f"performance.py: {mistake}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"performance.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
