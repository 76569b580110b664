#!/usr/bin/env python3
"""What statrec view costs, beside the limits that it keeps. usage: bench_view.py BIN [STEPS] [SITES]

A run of STEPS steps x SITES sites (default 100,000 x 61) with four scalars is recorded in $TMPDIR. Each row is measured in
a process of its own, which has drawn another run before, as a warm server has. It prints processor time, elapsed time and
the largest memory: the page with all panels, its losses, its verdict, a zoom, a zoom to single steps, and the table of
100 and of 1,000 runs. Documents are serialized as the server does it, without a browser. Exit status 1: a limit is missed by
the processor time or the memory."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SAMPLE = os.path.join(TOP, "sample_runs", "nlp_bn.h5")
STATS = ("tid_mean", "tid_var", "g_mu", "dx_norm")
MEMORY = 500  # MB
# case, description, seconds at most
CASES = (
    ("losses", "losses of the page", 2),
    ("page", "the whole page", 10),
    ("verdict", "verdict, by statrec diagnose", 10),
    ("zoom", "zoom to a tenth", 0.2),
    ("steps", "zoom to single steps", 0.2),
    ("table100", "table of 100 runs", 3),
    ("table1000", "table of 1,000 runs", 20),
)


def record(path, steps, sites):
    import numpy
    import statrec
    random = numpy.random.default_rng(1)
    with statrec.Recorder(path, program="bench", vectors=False, flush_steps=5000) as recorder:
        for site in range(sites):
            recorder.add_site(f"layer{site}.norm", norm="bn", kind="conv", width=64, eps=1e-5, alpha=0.9)
        for step in range(1, steps + 1):
            recorder.begin_step(step)
            for stat in STATS:
                recorder.put_scalars(stat, list(enumerate(random.random(sites).tolist())))
            recorder.end_step(update=step, tokens=128, loss=5 / step + 0.1 * random.random(), lr=0.1, grad_norm=1.0,
                              epoch=step / 1000)


class Session:
    """A page as on the server, and the messages that it would send."""

    def __init__(self, *paths):
        from bokeh.document import Document
        from statrec.viewer.page import Page
        from statrec.viewer.runs import Runs
        self.document = Document()
        self.page = Page(Runs(paths), Quiet())
        self.send = []
        self.root = None

    def panel(self, name):
        return next(one for one in self.page.panels if one.name == name)

    def serve(self):
        """The whole document, once."""
        self.root = self.page.layout.get_root(self.document)
        self.document.add_root(self.root)
        return len(json.dumps(self.document.to_json(), default=str))


class Quiet:
    """Replaces verdict.Watch: the verdict is measured in a separate row."""

    def get(self, run):
        return None, ""


def timed(function):
    """(processor seconds, elapsed seconds) of this process and of its children."""
    def now():
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    used, began = now(), time.perf_counter()
    function()
    return now() - used, time.perf_counter() - began


def case(name, path, paths):
    import panel
    panel.extension("tabulator")
    warm = Session(SAMPLE)
    warm.page.refresh()
    warm.serve()
    if name == "verdict":
        from statrec.viewer import source, verdict
        return timed(lambda: verdict.diagnose(source.Run(path)))
    if name.startswith("table"):
        return timed(lambda: table(paths))
    if name in ("losses", "page"):
        return timed(lambda: page(path, name))
    session = Session(path)
    session.page.refresh()
    session.serve()
    last = int(session.page.run.steps[-1])
    ends = (0.4 * last, 0.5 * last) if name == "zoom" else (0.4 * last, 0.4 * last + 600)
    return timed(lambda: session.page.set(**{"from": ends[0], "to": ends[1]}))


def page(path, name):
    session = Session(path)
    if name == "page":
        session.page.refresh()
    else:
        session.panel("losses").refresh()
    session.serve()


def table(paths):
    session = Session(*paths)
    session.panel("runs").refresh()
    session.serve()


def linked(directory, count):
    paths = [os.path.join(directory, f"run{i}.h5") for i in range(count)]
    for path in paths:
        if not os.path.exists(path):
            os.symlink(os.path.abspath(SAMPLE), path)
    return paths


def measure(name, path, directory):
    count = int(name[5:]) if name.startswith("table") else 0
    paths = linked(directory, count)
    used, elapsed = case(name, path, paths)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps([used, elapsed, memory]))


def main():
    if sys.argv[1:2] == ["--case"]:
        return measure(*sys.argv[2:5])
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    steps, sites = (int(word) for word in (sys.argv[2:4] + ["100000", "61"][len(sys.argv[2:4]):]))
    build = os.path.abspath(os.path.join(sys.argv[1], ".."))
    places = {"STATREC_BIN": os.path.abspath(sys.argv[1]), "PYTHONPATH": os.path.join(TOP, "python"),
              "STATREC_LIBRARY": os.path.join(build, "lib", "libstatrec.so")}
    for name, value in places.items():
        os.environ.setdefault(name, value)
    sys.path.insert(0, places["PYTHONPATH"])
    missed = False
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "long.h5")
        used, _ = timed(lambda: record(path, steps, sites))
        print(f"# {steps:,} steps x {sites} sites, {os.path.getsize(path) / 1e6:.0f} MB, recorded in {used:.0f} s")
        print("| | limit | processor time | elapsed | memory |\n|---|---|---|---|---|")
        for name, words, limit in CASES:
            result = subprocess.run([sys.executable, __file__, "--case", name, path, directory], check=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            used, elapsed, memory = json.loads(result.stdout.splitlines()[-1])
            missed |= used > limit or memory > MEMORY
            print(f"| {words} | {limit} s | {used:.2f} s | {elapsed:.2f} s | {memory:.0f} MB |", flush=True)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
