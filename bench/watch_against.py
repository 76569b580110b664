"""usage: watch_against.py TREE [ROUNDS] [CASE...]

What statrec.watch of this tree and of another built tree, at TREE, cost of the processor: the cases of
bench_watch.py, in rounds in which a step without recording and the watched ones take turns. Each tree
runs in a process of its own, with one thread, which is asked for a turn at a time; a turn is a block of
steps without and one with statrec.watch, every vector and scalar of every step.

  case     of bench_watch.py
  tree     "here" or the other one's path
  bare_ms  processor time of a step without recording, the median over turns
  more_us  what recording a step takes more for each site, the median over turns of the differences; and
           the least difference, which other work on the machine disturbs least
  ratio    of both to those of TREE; in brackets of the whole step

20 rounds of the cases of small sites take a minute, all cases three. Needs torch and h5py.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = {"small_bn": 20, "small_ln": 20, "resnet20": 2, "bn": 1, "ln": 1}  # steps of a block
ROUNDS = {"resnet20": 5, "bn": 3, "ln": 3}  # where ROUNDS is not given; else 20
FIRST = 2  # steps before those that are measured: the first one declares the sites


# -- the process of one tree ------------------------------------------------------------------

def serve(case):
    """Answers each line of standard input by the seconds of a step, without and with recording."""
    import torch

    import bench_watch
    import statrec

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model, x, target = bench_watch.CASES[case]()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def block(run):
        for number in range(FIRST + STEPS[case]):
            if number == FIRST:
                start = time.process_time()
            loss = torch.nn.functional.cross_entropy(model(x).flatten(0, -2), target)
            loss.backward()
            if run is not None:
                run.step(loss=loss)
            optimizer.step()
            optimizer.zero_grad()
        return (time.process_time() - start) / STEPS[case]

    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "run.h5")
        for _ in sys.stdin:
            bare = block(None)
            run = statrec.watch(model, path, vectors_every=1, force=True)
            watched, sites = block(run), len(run.sites)
            run.close()
            print(bare, watched, sites, flush=True)


def start(tree, case):
    environment = {**os.environ, "PYTHONPATH": os.path.join(tree, "python"),
                   "STATREC_LIBRARY": os.path.join(tree, "build/release/lib/libstatrec.so")}
    return subprocess.Popen([sys.executable, __file__, "--serve", case], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


# -- the table --------------------------------------------------------------------------------

def turn(process):
    process.stdin.write("\n")
    process.stdin.flush()
    bare, watched, sites = process.stdout.readline().split()
    return float(bare), float(watched), int(sites)


def measure(trees, case, rounds):
    """[(seconds without, seconds with recording, sites) of each turn] of each tree."""
    processes = [start(tree, case) for tree in trees]
    try:
        for process in processes:
            turn(process)  # whose memory is touched for the first time
        found = [[] for _ in trees]
        for _ in range(rounds):
            for process, turns in zip(processes, found):
                turns.append(turn(process))
        return found
    finally:
        for process in processes:
            process.stdin.close()
            process.wait()


def row(case, name, turns, against):
    """Columns of the table. against: turns of the other tree."""
    def costs(of):
        more = [(watched - bare) / sites for bare, watched, sites in of]
        return statistics.median(more), min(more), statistics.median(watched for _, watched, _ in of)
    (median, least, whole), (other, other_least, other_whole) = costs(turns), costs(against)
    bare = statistics.median(bare for bare, _, _ in turns)
    return (f"{case}\t{name}\t{1e3 * bare:.1f}\t{1e6 * median:.0f} ({1e6 * least:.0f})\t"
            f"{median / other:.2f} ({least / other_least:.2f}) [{whole / other_whole:.3f}]")


def main(words):
    tree, rounds = os.path.abspath(words[0]), int(words[1]) if words[1:] else None
    print("case\ttree\tbare_ms\tmore_us\tratio", flush=True)
    for case in words[2:] or STEPS:
        other, here = measure((tree, HERE), case, rounds or ROUNDS.get(case, 20))
        print(row(case, tree, other, other))
        print(row(case, "here", here, other), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    elif sys.argv[1:]:
        main(sys.argv[1:])
    else:
        sys.exit(__doc__)
