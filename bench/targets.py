#!/usr/bin/env python3
"""Speed against PyTorch: every line of the table below, as the ratio of medians of rounds in turn.

    targets.py BUILD [--python PYTHON] [--out FILE] [--seconds 20] [--again] [LINE...]

BUILD   build/release, where bench_step and the programs are
PYTHON  has the PyTorch that we are compared with (default: this one); without it, what needs it is skipped
FILE    one row per line that was measured (default BUILD/targets.tsv). A line that is there is not measured
        again (--again: it is), so that a run that was stopped goes on.

A round is one of ours and one of each variant of bench_torch.py (plain, fused, compiled), each a process of its
own that was warmed up before; the peer is the variant with the smallest median. As many rounds as fit into
SECONDS, three at least (of `epoch` one; of `recording` and `neighbours`, whose rounds differ by more than what is
asked for, 15). Ours records every site of every step (bench_step with a run file). What is compared is
said by `#` lines at the end: a target that is missed is told as such.

Exit status 0, also where targets are missed; 1 when something could not be measured; 2 after a mistake.
"""
import argparse
import gzip
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

import roofline

HERE = os.path.dirname(os.path.abspath(__file__))
VARIANTS = ("plain", "fused", "compiled")
MANY = 15  # rounds of differences that are small compared with the difference of two rounds
COLUMNS = ("line", "threads", "ours", "unit", "peer", "which", "ratio", "must", "aim", "rounds", "load")


class Skipped(Exception):
    pass


# -- what runs ----------------------------------------------------------------------------------------

class Served:
    """A program that runs a round on request, and keeps its memory between them."""

    def __init__(self, variant, words, environment, milliseconds):
        self.variant, self.milliseconds, self.told, self.peak = variant, milliseconds, [], float("nan")
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=dict(os.environ, **environment))
        if self.process.stdout.readline().strip() != "ready":
            self.process.kill()
            raise Skipped(f"{variant} of {' '.join(words[:3])} does not run")

    def round(self, word=""):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        self.told.append(float(re.search(self.milliseconds, self.process.stdout.readline())[1]))
        return self.told[-1]

    def end(self):
        self.process.stdin.close()
        found = re.search(r"^# peak: ([\d.]+)", self.process.stdout.read(), re.M)
        self.process.wait()
        self.peak = float(found[1]) if found else float("nan")

    def median(self):
        return statistics.median(self.told)


def ours(args, case, threads, steps, run):
    """Our training; it waits as `statrec train` does."""
    words = [os.path.join(args.build, "bench/bench_step"), case, str(threads), "0", run, str(steps)]
    return Served("ours", words, {"GOMP_SPINCOUNT": "100000"}, r"^# round \d+: ([\d.]+)")


def peer(args, threads, variant, words):
    """A program of PyTorch."""
    words = [args.python, os.path.join(HERE, words[0]), *words[1:], "--threads", str(threads), "--serve"]
    return Served(variant, words, {"OMP_NUM_THREADS": str(threads)}, r"\t.*\t([\d.]+)")


def open_peers(args, threads, variants):
    """variants: {name: words}"""
    peers = []
    for variant, words in variants.items():
        try:
            peers.append(peer(args, threads, variant, words))
        except Skipped as reason:
            print(f"# skipped: {reason}", file=sys.stderr)
    if not peers:
        raise Skipped(f"{args.python} has no PyTorch that runs {' '.join(words[:2])}")
    return peers


def best_of(peers):
    return min(peers, key=Served.median)


def rounds(args, least=3):
    """Yields until the time is over."""
    began = time.monotonic()
    done = 0
    while done < least or time.monotonic() - began < args.seconds:
        yield done
        done += 1


# -- kinds of lines: each gives (ours, unit, peer, which, rounds) ----------------------------------------

def in_turn(args, programs):
    """Rounds of all; then they have ended."""
    for _ in rounds(args):
        for program in programs:
            program.round()
    for program in programs:
        program.end()


def against_torch(args, case, threads, steps):
    """Ours and the peers, after rounds in turn."""
    variants = {variant: ["bench_torch.py", case, "--variant", variant, "--steps", str(steps)]
                for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as directory:
        peers = open_peers(args, threads, variants)
        own = ours(args, case, threads, steps, os.path.join(directory, "run.h5"))
        in_turn(args, [*peers, own])
    return own, peers


def step(args, case, threads, steps):
    own, peers = against_torch(args, case, threads, steps)
    best = best_of(peers)
    return own.median(), "ms", best.median(), best.variant, len(own.told)


def memory(args, case, threads, steps):
    few = argparse.Namespace(**{**vars(args), "seconds": 0})
    own, peers = against_torch(few, case, threads, steps)
    best = min(peers, key=lambda peer: peer.peak)
    return own.peak, "MB", best.peak, best.variant, len(own.told)


def recording(args, case, threads, steps):
    """Cost of recording (and of observers, if any) against the step without them in the same process. Two processes
    differ by more than that, and so do two rounds some time apart; so this is the median of differences."""
    with tempfile.TemporaryDirectory() as directory:
        own = ours(args, case, threads, steps, os.path.join(directory, "run.h5"))
        pairs = [(own.round("-"), own.round()) for _ in rounds(args, MANY)]
        own.end()
    added = statistics.median(with_it - without for without, with_it in pairs)
    return added, "ms", statistics.median(without for without, _ in pairs), "without recording", len(pairs)


def neighbours(args, case, threads, steps):
    """A step beside two processes that never wait, compared with a quiet one."""
    quiet, busy = (ours(args, case, threads, steps, "-") for _ in range(2))
    for _ in rounds(args, MANY):
        quiet.round()
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            busy.round()
        finally:
            for other in others:
                other.kill()
                other.wait()
    quiet.end()
    busy.end()
    return busy.median(), "ms", quiet.median(), "quiet step", len(quiet.told)


def first_step(words):
    """Seconds from the start of a training to its first line of progress."""
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if re.search(r" \d+/\d+ updates ", line):
                seconds = time.monotonic() - began
                run.kill()
                return seconds
    raise Skipped(f"{words[0]} ended before its first step")


def start(args, _, threads, __):
    """`statrec train` to its first step: 169,813 pairs, BPE applied, its merges learnt before."""
    data = os.path.join(os.environ.get("STATREC_SHARED", "../shared"), "data/tatoeba-de-en")
    statrec = os.path.join(args.build, "bin/statrec")
    if not os.path.isdir(data):
        raise Skipped(f"{data} is not there")
    with tempfile.TemporaryDirectory() as directory:
        codes = os.path.join(directory, "codes")
        subprocess.run([statrec, "bpe", "learn", "-s", "6000", "-o", codes,
                        os.path.join(data, "deu.txt.gz")], check=True)
        words = [statrec, "train", "--model", "transformer", "--preset", "mini", "--data", "tabbed",
                 "--data-dir", data, "--tokenize", "13a", "--bpe-codes", codes, "--max-steps", "1",
                 "--threads", str(threads), "-o", os.path.join(directory, "run.h5"), "--force"]
        seconds = [first_step(words) for _ in range(5)]
    return statistics.median(seconds), "s", 1.0, "one second", len(seconds)


def pairs_data():
    data = os.path.join(os.environ.get("STATREC_SHARED", "../shared"), "data/multi30k-de-en")
    if not os.path.isdir(data):
        raise Skipped(f"{data} is not there")
    return data


def pairs_words(args, threads, directory):
    """`statrec train` of the mini Transformer on Multi30k with a dictionary of 4,000 words, which it makes."""
    data, dictionary = pairs_data(), os.path.join(directory, "dictionary")
    statrec = os.path.join(args.build, "bin/statrec")
    subprocess.run([statrec, "dictionary", "--size", "4000", "--pad-to", "1", "-o", dictionary,
                    os.path.join(data, "train.de.gz"), os.path.join(data, "train.en.gz")], check=True,
                   stdout=subprocess.DEVNULL)
    return [statrec, "train", "--model", "transformer", "--preset", "mini", "--norm", "ln", "--dropout", "0",
            "--data", "parallel", "--data-dir", data, "--source", "de", "--target", "en", "--testpref", "",
            "--source-dictionary", dictionary, "--max-tokens", "1024", "--warmup-updates", "100", "--quiet",
            "--threads", str(threads), "--force", "-o", os.path.join(directory, "run.h5")]


def seconds_of(words):
    began = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def against_peers(args, threads, variants, words, least=3):
    """Per round the peers, and our command as a whole: its start and reading are part of it."""
    peers, seconds = open_peers(args, threads, variants), []
    for _ in rounds(args, least):
        for peer in peers:
            peer.round()
        seconds.append(seconds_of(words))
    for peer in peers:
        peer.end()
    best = best_of(peers)
    return statistics.median(seconds), "s", best.median(), best.variant, len(seconds)


def epoch(args, _, threads, __):
    """An epoch with everything recorded, validation, BLEU with a beam of 5 and checkpoints."""
    with tempfile.TemporaryDirectory() as directory:
        words = pairs_words(args, threads, directory) + ["--epochs", "1"]
        batches = os.path.join(directory, "batches.npz")
        subprocess.run(words + ["--record", "none", "--dump-batches", batches, "--dump-steps", "1000"],
                       check=True, stdout=subprocess.DEVNULL)
        variants = {variant: ["bench_torch_run.py", batches, os.path.join(directory, "dictionary"),
                              os.path.join(pairs_data(), "valid.de.gz"), "--variant", variant]
                    for variant in VARIANTS}
        return against_peers(args, threads, variants,
                             words + ["--bleu-every", "1", "--checkpoint-every", "100"], least=1)


def beam(args, _, threads, __):
    """The test set of 2016 by a beam of 5, with a model of 300 updates; the peer has its weights."""
    with tempfile.TemporaryDirectory() as directory:
        text, run = (os.path.join(directory, name) for name in ("test", "run"))
        subprocess.run(pairs_words(args, threads, directory) +
                       ["--max-steps", "300", "--checkpoint-every", "end", "--record", "none"],
                       check=True, stdout=subprocess.DEVNULL)
        statrec = os.path.join(args.build, "bin/statrec")
        subprocess.run([statrec, "export", run + "-0000300.ckpt", "-o", run + ".npz"], check=True,
                       stdout=subprocess.DEVNULL)
        with gzip.open(os.path.join(pairs_data(), "test_2016_flickr.de.gz")) as packed, open(text, "wb") as plain:
            plain.write(packed.read())
        variants = {f"{count} at once": ["bench_torch_translate.py", run + ".npz",
                                         os.path.join(directory, "dictionary"), text, "--sentences", str(count)]
                    for count in (64, 128, 256)}
        return against_peers(args, threads, variants,
                             [statrec, "translate", run + "-0000300.ckpt", text, "--quiet", "--threads",
                              str(threads), "--force", "-o", os.path.join(directory, "found")])


def limit(args, case, threads, steps):
    """A step against the products of its linear layers at the limit of fma, measured just before and after it."""
    words = [os.path.join(args.build, "bench/bench_limits"), str(threads), "3"]
    peaks = [fma_of(words)]
    own = ours(args, case, threads, steps, "-")
    in_turn(args, [own])
    peaks.append(fma_of(words))
    flop = roofline.linear_layers(*roofline.LINEAR[case])
    return own.median(), "ms", flop / 1e6 / max(peaks), "products at fma limit", len(own.told)


def fma_of(words):
    """GFLOP/s of the threads in `words`."""
    printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines() if not line.startswith("#")]
    best = [float(row[rows[0].index("best")]) for row in rows[1:] if row[:2] == ["fma", words[1]]]
    return best[0]


def has_amx():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as told:
            return " amx_tile" in told.read()
    except OSError:
        return False


# name: (kind, case, threads, steps of a round, must, aim); must and aim are ratios, two where hosts with and without
# AMX differ
LINES = {
    **{f"{case}-{threads}": (step, case, threads, steps, must, aim)
       for case, threads, steps, must, aim in (
           ("resnet20", 2, 5, 0.50, 0.46), ("resnet20", 1, 5, 0.56, 0.46), ("resnet18", 2, 1, 0.65, 0.55),
           ("resnet18", 1, 1, 0.90, 0.70), ("transformer", 2, 5, (0.56, 0.62), (0.53, 0.57)),
           ("transformer", 1, 5, (0.61, 0.73), (0.57, 0.67)), ("lm", 2, 2, 0.65, 0.55), ("lm", 1, 2, 0.75, 0.65),
           ("tensorized", 2, 2, 0.65, 0.55), ("tensorized", 1, 2, 0.75, 0.65), ("iwslt", 2, 1, 0.80, 0.70),
           ("iwslt", 1, 1, 0.80, 0.70))},
    "limit-2": (limit, "transformer", 2, 5, 1.25, 1.15),
    "limit-1": (limit, "transformer", 1, 5, 1.25, 1.15),
    "recording-bn": (recording, "transformer", 2, 10, 0.02, 0.01),
    "recording-resnet20": (recording, "resnet20", 2, 5, 0.02, 0.01),
    "recording-observed": (recording, "transformer-ln", 2, 10, 0.05, 0.04),
    "memory-iwslt": (memory, "iwslt", 2, 1, 0.6, 0.5),
    "neighbours": (neighbours, "transformer", 2, 10, 2.2, 2.0),
    "start": (start, "", 2, 0, 3, 1),
    "epoch": (epoch, "", 2, 0, 0.50, 0.40),
    "translate": (beam, "", 2, 0, 0.40, 0.33),
}


# -- the table -------------------------------------------------------------------------------------------

def read_table(path):
    try:
        with open(path, encoding="utf-8") as table:
            rows = [line.rstrip("\n").split("\t") for line in table if not line.startswith("#")]
    except FileNotFoundError:
        return {}
    return {row[0]: dict(zip(COLUMNS, row)) for row in rows[1:]}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as told:
            name, family, model = (re.search(rf"^{key}\s*: (.*)$", text, re.M)[1]
                                   for text in [told.read()] for key in ("model name", "cpu family", "model"))
            return f"{name} (family {family}, model {model})"  # virtual machines have names without a number
    except (OSError, TypeError):
        return platform.machine()


def write_table(path, rows):
    with open(path + ".part", "w", encoding="utf-8") as table:
        print(f"# {processor()}, {os.cpu_count()} cores; medians of rounds in turn; ratio: ours / peer",
              file=table)
        print(*COLUMNS, sep="\t", file=table)
        for row in rows.values():
            print(*(row[column] for column in COLUMNS), sep="\t", file=table)
    os.replace(path + ".part", path)


def asked(name):
    """Must and aim on this host."""
    return [ratio[0 if has_amx() else 1] if isinstance(ratio, tuple) else ratio for ratio in LINES[name][4:]]


def measure(args, name):
    kind, case, threads, steps, _, _ = LINES[name]
    must, aim = asked(name)
    load = os.getloadavg()[0]
    value, unit, peer, which, count = kind(args, case, threads, steps)
    return dict(zip(COLUMNS, (name, threads, f"{value:.4g}", unit, f"{peer:.4g}", which,
                              f"{value / peer:.3f}", must, aim, count, f"{load:.1f}")))


def verdict(row):
    ratio = float(row["ratio"])
    return "aim" if ratio <= float(row["aim"]) else "met" if ratio <= float(row["must"]) else "missed"


def summary(rows):
    for row in rows.values():
        print(f"{row['line']:20} {row['ratio']:>7} of {row['which']:18} must {row['must']}, aim "
              f"{row['aim']}: {verdict(row)}")
    missed = [row["line"] for row in rows.values() if verdict(row) == "missed"]
    print(f"# {len(rows)} of {len(LINES)} lines measured, {len(missed)} missed{': ' if missed else ''}"
          f"{' '.join(missed)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("line", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--again", action="store_true")
    args = parser.parse_intermixed_args()
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):  # every program waits as it does by itself
        os.environ.pop(name, None)
    for name in args.line:
        if name not in LINES:
            parser.error(f"no line {name!r}: there are {' '.join(LINES)}")
    args.out = args.out or os.path.join(args.build, "targets.tsv")
    rows, failed = read_table(args.out), 0
    for name in args.line or LINES:
        if name in rows and not args.again:
            continue
        print(f"# {name}", file=sys.stderr, flush=True)
        try:
            rows[name] = measure(args, name)
            write_table(args.out, rows)
        except Skipped as reason:
            failed += 1
            print(f"# skipped: {name}: {reason}", file=sys.stderr)
    summary(rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
