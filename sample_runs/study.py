#!/usr/bin/env python3
"""study.py -- the runs of the reproduction study, and the tables that are made of them.

    study.py plan   [OPTIONS] [EXPERIMENT...]   what there is to run, and how long it takes
    study.py run    [OPTIONS] [EXPERIMENT...]   runs it, one after another; what was stopped goes on
    study.py report [OPTIONS]                   writes the tables into docs/reproduction.md, its pages in
                                                docs/reproduction, docs/why-bn-loses.md and README.md

An experiment is a file NAME.conf of sample_runs/study: options as `statrec train -c` reads them, and
lines that only this program reads:

    #: minutes = 0.25                 of one run, on one core
    #: seed = 1 2 3                   one run for each combination of these values,
    #: norm = ln bn                   the first line changing most slowly
    #: max-tokens+update-freq = 256+8 2048+1    options that change together
    #: norm-at = all:*=bn first:stem=bn,*=ln    what a value is called, where it makes no name
    #: after last5 = average RUN-0*.ckpt -o RUN-5.ckpt; evaluate RUN-5.ckpt
    #: archive = after                only this goes into the archive: the run file is too large

The run with seed 1, ln and 256 is OUT/NAME-1-ln-256.h5. One that is complete, or diverged, is not
repeated; one that was stopped is resumed from its newest checkpoint. yes and no are values of switches.
A + too many belongs to the first of the values. After a run that is complete: statrec with these words, or the
program stat-NAME that they begin with, where RUN is OUT/NAME-1-ln-256; what the last command prints is
OUT/NAME-1-ln-256-last5.tsv.

Runs that are done, and what came after them, stay in sample_runs/study/runs/NAME.tar.xz, with the settings of
NAME.conf, so that tables can be made without running anything: what is there is unpacked into OUT first, over
what OUT has, and counts as done. To run an experiment anew, or with other settings, remove its archive and its runs.

A table in the document stands between two lines, which stay:

    <!-- study: NAME rows=norm columns=max-tokens value=best_valid_loss -->
    <!-- study: end -->

value: a column of stat-table, or of by="stat-distance --site first --stat sigma2", a table with one line
a run; several with commas where no columns= is given. The mean over what is neither in rows nor in columns
(seeds), with its 95 % interval by Student's t. digits=N behind the point (3). norm=ln,bn: only these.
against=ln: differences from the run whose rows= is ln and that is like it otherwise, seed too. A cell with
fewer runs than others says how many. head=WORD: above the labels of rows=. Tables of which no run exists
stay as they are, and are named. Several experiments make one table: rows=experiment. by=after: what came after
the runs, value= being a name of `statrec evaluate`, NAME@SITE, or a column of an analysis that printed one line; `after` is an
option then, its labels the values.

Further blocks: a figure, drawn into the document's directory; lines of an analysis of sample_runs/*.h5 or of
experiments, with digits=N significant digits, columns= being a column that makes columns, or lines=NAME after=LABEL:
those that came after its runs; what papers print, from plots/published.tsv, tables beside one another.

    <!-- study: figure=NAME.svg by="statplot tidgap --metric valid_accuracy" task-rt task-sst5 norm=ln,bn -->
    <!-- study: samples=nlp_bn,nlp_pnv rows=site,norm value=median,q99 by="stat-distance --site first" -->
    <!-- study: lines=running-text rows=run,alpha columns=kept_in value=median by="stat-alpha --running-dtype double,bf16" -->
    <!-- study: published=an-rt,an-sst5 metric=accuracy norm=ln,ln-simple,adanorm -->

Blocks that judge (study_verdicts.py), and the claims of sample_runs/study/claims.conf with their verdicts (study_claims.py), all of
them or one. of= is the option that is compared with the label against=; there is a row for each combination of the other
labels but the seed. The rule is in study_rule.py:

    <!-- study: verdict=mask of=norm against=ln value=valid_loss norm=bn claim=higher -->
    <!-- study: verdict=microbatch of=norm against=ln value=valid_loss less=max-tokens:2048 -->
    <!-- study: verdict=task-rt of=norm against=ln value=valid_accuracy within=0.1 -->
    <!-- study: verdict=mask of=norm against=ln value=decay by="stat-svd --summary" pick=last -->
    <!-- study: paired=layer-scale,averaging of=norm against=ln value=valid_loss norm=bn since=240 -->
    <!-- study: bound=samples/nlp_pn by=stat-gamma rows=site value=max limit=1 claim=below -->
    <!-- study: order=conditions by="stat-distance --stat sigma2,psi2" across=statistic of=dist_psi2 against=dist_sigma2 value=median claim=lower -->
    <!-- study: claims -->
    <!-- study: claim=micro-batches -->

    <!-- study: split=gap-translation,gap-tags of=norm against=ln -->
    <!-- study: opening=docs/why-bn-loses.md sentences=3 -->

value=A-B is a difference of two metrics of a run. by="after LABEL" takes a number of what came after the runs. split= is a table of the
parts of a difference in validation loss (study_split.py); opening= quotes the first sentences of a page. samples= and lines= take
COLUMN=TEXT,... for lines with these texts alone.

Exit status 0; 1 when a run failed; 2 after a mistake in the arguments or files.
"""
import argparse
import glob
import os
import re
import subprocess
import sys

from study_runs import DONE, after_of, experiments, finished, pack, remove, run_after, state, unpack
from study_report import report

# Run files say where their data and settings were: from the root of the checkout, without the path to it.
HERE = os.path.relpath(os.path.dirname(os.path.abspath(__file__)))


def plan(args):
    """[(experiment, name, settings, state)] of what is not done; told, with the time that it takes."""
    waiting, total = [], 0.0
    for experiment in experiments(args):
        unpack(args, experiment)
        runs = [(experiment, name, settings, state(args, name))
                for name, settings, _ in experiment.runs()]
        left = [run for run in runs if not finished(args, experiment, run[1])]
        total += experiment.minutes * len(left)
        waiting += left
        print(f"{experiment.name}: {len(runs) - len(left)} of {len(runs)} runs are done, the others "
              f"take {experiment.minutes * len(left):.0f} min")
    print(f"in all {len(waiting)} runs, about {total / 60:.1f} h of one core", flush=True)
    return waiting


def command(args, experiment, name, settings, was):
    statrec, output = os.path.join(args.bin, "statrec"), os.path.join(args.out, f"{name}.h5")
    if was is not None and any(re.fullmatch(re.escape(name) + r"-\d+\.ckpt", entry)
                               for entry in os.listdir(args.out)):
        return [statrec, "resume", output, "--quiet"]
    words = [statrec, "train", "-c", experiment.path, "--quiet", "--force", "-o", output]
    if experiment.data:
        words += ["--data-dir", os.path.join(args.data, experiment.data)]
    switches = {"yes": "", "no": "no-"}
    for option, value in settings.items():
        words += [f"--{switches[value]}{option}"] if value in switches else [f"--{option}", value]
    return words


def run_one(args, experiment, name, settings, was):
    """Whether it is done now, and what comes after it."""
    status = 0
    with open(os.path.join(args.out, f"{name}.log"), "a", encoding="utf-8") as log:
        if was not in DONE:
            for label in experiment.after: # of another run
                remove(after_of(args, name, label))
            words = command(args, experiment, name, settings, was)
            status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    check=False).returncode
        if state(args, name) == "complete":
            run_after(args, experiment, name, log)
    if finished(args, experiment, name):
        return True
    what = f"exit status {status}" if state(args, name) not in DONE else "what comes after it failed"
    print(f"study.py: {name}: {what}, see {log.name}", file=sys.stderr)
    return False


def run(args):
    os.makedirs(args.out, exist_ok=True)
    failed, waiting = 0, plan(args)
    for experiment in experiments(args):
        pack(args, experiment)
    for number, (experiment, name, settings, was) in enumerate(waiting, 1):
        print(f"{number}/{len(waiting)} {name}", flush=True)
        if not run_one(args, experiment, name, settings, was):
            failed += 1
        pack(args, experiment)
    return 1 if failed else 0


def documents(top):
    """Those that hold tables of the study."""
    pages = sorted(glob.glob(os.path.join(top, "docs/reproduction/*.md")))
    return [os.path.join(top, "docs/reproduction.md"), *pages,
            *(os.path.join(top, name) for name in ("docs/why-bn-loses.md", "README.md"))]


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
    told.add_argument("--doc", action="append", dest="docs", help="document to write; default: those of docs/ with blocks")
    told.add_argument("--samples", default=HERE, help="directory of the sample runs")
    told.add_argument("--published", default=os.path.join(top, "plots", "published.tsv"))
    args = told.parse_intermixed_args()
    args.docs = args.docs or documents(top)
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
