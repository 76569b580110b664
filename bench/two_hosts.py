#!/usr/bin/env python3
"""two_hosts.py -- steps of 1 to 8 ranks on two hosts of one machine, measured and predicted (docs/scaling.md).

    two_hosts.py BUILD [--gbit G,...] [--ranks N,...] [--rounds N] [--steps N]

BUILD: build folder of `make MPI=1 BUILD=... all`. The hosts are network namespaces with separate names, joined by a
pair of virtual adapters limited to G Gbit/s (tc tbf). Their ranks share the cores of this machine, so run it without
other work. Needs root, iproute2 and Open MPI. Prints a row for each model, link and number of ranks. A row has the
step time relative to one rank, predicted by scaling.py and measured (median, least and largest of the rounds).
Rounds take turns. A round is the median of its steps after the third. The batch grows with the ranks.

Exit status 0; 1 if something could not be run; 2 after a mistake in the arguments.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import scaling

NAMES = "statrec-a", "statrec-b"
PAIRS = "--model transformer --preset mini --data synth-pairs --max-tokens {tokens}"
IMAGES = "--model resnet20 --norm bn --data synth-images --batch-size {images}"
MODELS = {  # the name in scaling.tsv, --sync-norm or not, options
    "mini Transformer, LN": ("mini", False, PAIRS + " --norm ln"),
    "mini Transformer, BN, --sync-norm": ("mini", True, PAIRS + " --norm bn --sync-norm"),
    "ResNet20": ("resnet20_64", False, IMAGES),
    "ResNet20, --sync-norm": ("resnet20_64", True, IMAGES + " --sync-norm"),
}


def run(*words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if line.startswith("statrec")), done.stderr.strip()[-300:])
        raise OSError(f"{' '.join(words[:4])} ...: exit status {done.returncode}: {said}")
    return done.stdout


class Hosts:
    """Two network namespaces, and a script that starts a daemon of mpirun in the second one."""

    def __init__(self, folder):
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\nshift\n"
                         f"exec ip netns exec {NAMES[1]} unshare --uts sh -c 'hostname {NAMES[1]}; eval \"$@\"' sh \"$@\"\n")
        os.chmod(self.agent, 0o755)

    def __enter__(self):
        self.remove()  # removes the leftovers of a killed call
        for name in NAMES:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "joined", "netns", NAMES[0], "type", "veth", "peer", "name", "joined", "netns", NAMES[1])
        for number, name in enumerate(NAMES, 1):
            self.inside(name, "ip", "address", "add", f"10.99.0.{number}/24", "dev", "joined")
            for adapter in "joined", "lo":
                self.inside(name, "ip", "link", "set", adapter, "up")
        return self

    def __exit__(self, *_):
        self.remove()

    @staticmethod
    def remove():
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)

    @staticmethod
    def inside(name, *words):
        return run("ip", "netns", "exec", name, *words)

    def shape(self, gbit):
        for name in NAMES:
            self.inside(name, "tc", "qdisc", "replace", "dev", "joined", "root", "tbf", "rate", f"{gbit:g}gbit",
                        "burst", f"{128 * max(1, gbit):g}kb", "latency", "50ms")

    def mpirun(self, ranks, *words):
        """Half of the ranks on each host; one rank alone."""
        if ranks == 1:
            return run(*words)
        each = ranks // 2
        return self.inside(
            NAMES[0], "mpirun", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-n", str(ranks),
            "--host", f"10.99.0.1:{each},10.99.0.2:{each}", "--mca", "plm_rsh_agent", self.agent,
            "--mca", "btl", "tcp,vader,self", "--mca", "btl_tcp_if_include", "10.99.0.0/24",
            "--mca", "oob_tcp_if_include", "10.99.0.0/24", *words)


def step_of(hosts, build, folder, options, ranks, steps):
    """Seconds: the median of the steps after the third."""
    words = options.format(tokens=1024 * ranks, images=64 * ranks).split()
    output = os.path.join(folder, "run.h5")
    hosts.mpirun(ranks, os.path.join(build, "bin", "statrec"), "train", *words, "--threads", "1", "--max-steps", str(steps),
                 "--record", "none", "--quiet", "--force", "-o", output)
    rows = [line for line in run(os.path.join(build, "bin", "stat-curve"), output, "--stat", "seconds").splitlines()
            if not line.startswith("#")]
    place = rows[0].split("\t").index("seconds")
    at = [float(row.split("\t")[place]) for row in rows[1:]]
    return statistics.median(b - a for a, b in zip(at[2:], at[3:]))


def predicted(parameters, model, sync, gbit, ranks):
    link = scaling.Link(parameters[f"link {gbit:g}"], parameters["machine"], max(1, ranks // 2))
    of = scaling.of_kind(parameters, "model")[model]
    alone, many = (scaling.predict(of, link, r, sync, 1, os.cpu_count())["step_ms"] for r in (1, ranks))
    return many / alone


def checked(arguments):
    """Parameters, speeds of the link and numbers of ranks, before anything is measured."""
    here = os.path.dirname(os.path.abspath(__file__))
    parameters = scaling.read_parameters(os.path.join(here, "scaling.tsv"))
    gbits, ranks = (scaling.numbers_of(text, least, kind)
                    for text, least, kind in ((arguments.gbit, 0.001, float), (arguments.ranks, 2, int)))
    scaling.choose(scaling.of_kind(parameters, "link"), ",".join(f"{g:g}" for g in gbits), "link")
    if any(r % 2 for r in ranks):
        raise ValueError(f"--ranks {arguments.ranks}: an odd number for two hosts")
    if arguments.rounds < 1 or arguments.steps < 5:
        raise ValueError(f"--rounds {arguments.rounds} --steps {arguments.steps}: at least 1 and 5")
    return parameters, gbits, ranks


def print_rows(arguments, hosts, folder, parameters, gbits, ranks):
    seconds = {}
    for _ in range(arguments.rounds):
        for model, (_, _, options) in MODELS.items():
            seconds.setdefault((model, 0, 1), []).append(step_of(hosts, arguments.build, folder, options, 1, arguments.steps))
            for gbit in gbits:
                hosts.shape(gbit)
                for r in ranks:
                    seconds.setdefault((model, gbit, r), []).append(
                        step_of(hosts, arguments.build, folder, options, r, arguments.steps))
    print("model\tgbit\tranks\tpredicted\tmeasured\tleast\tlargest\tmilliseconds")
    for (model, gbit, r), found in seconds.items():
        alone = statistics.median(seconds[model, 0, 1])
        ratios = [one / alone for one in found]
        told = predicted(parameters, *MODELS[model][:2], gbit, r) if gbit else 1
        print(f"{model}\t{gbit:g}\t{r}\t{told:.3f}\t{statistics.median(ratios):.3f}\t{min(ratios):.3f}\t{max(ratios):.3f}\t"
              f"{1e3 * statistics.median(found):.1f}", flush=True)


def main():
    p = argparse.ArgumentParser(description="Steps of ranks on two hosts of one machine, measured and predicted.")
    p.add_argument("build", metavar="BUILD")
    p.add_argument("--gbit", default="1,10")
    p.add_argument("--ranks", default="2,4,8")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=14)
    arguments = p.parse_args()
    missing = [name for name in ("ip", "tc", "mpirun") if not shutil.which(name)]
    if os.geteuid() != 0 or missing:
        print(f"two_hosts.py: needs root{''.join(', ' + name for name in missing)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        try:
            asked = checked(arguments)
            with Hosts(folder) as hosts:
                print_rows(arguments, hosts, folder, *asked)
        except OSError as failure:
            print(f"two_hosts.py: {failure}", file=sys.stderr)
            return 1
        except ValueError as failure:
            print(f"two_hosts.py: {failure}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
