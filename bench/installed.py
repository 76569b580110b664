#!/usr/bin/env python3
"""installed.py -- training steps of installed programs in times of the native build's (docs/install.md).

    installed.py BUILD PREFIX [ROUNDS]

BUILD: build/release of `make`; PREFIX: where `make install` put its programs. Both train the mini Transformer and
ResNet20 on generated data with two threads, in turn. A round is the median of its steps after the third. Prints the
medians of the rounds (default 4) in milliseconds and their ratio. Run it without other work.

Exit status 0; 1 if a program failed; 2 after a mistake in the arguments.
"""
import os
import statistics
import subprocess
import sys
import tempfile

MODELS = {
    "transformer": "--model transformer --preset mini --data synth-pairs --norm bn --max-tokens 1024 --max-steps 40",
    "resnet20": "--model resnet20 --data synth-images --norm bn --batch-size 128 --limit 2000 --max-steps 12",
}


def step_of(programs, options, output):
    """Milliseconds."""
    words = ["train", *options.split(), "--threads", "2", "--quiet", "--force", "-o", output]
    subprocess.run([os.path.join(programs, "statrec"), *words], check=True, stdout=subprocess.DEVNULL)
    printed = subprocess.run([os.path.join(programs, "stat-curve"), output, "--stat", "seconds"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    rows = [line.split("\t") for line in printed.splitlines() if not line.startswith("#")]
    at = [float(row[rows[0].index("seconds")]) for row in rows[1:]]
    return 1e3 * statistics.median(b - a for a, b in zip(at[2:], at[3:]))


def main():
    rounds = sys.argv[3] if len(sys.argv) == 4 else "4"
    if len(sys.argv) not in (3, 4) or not rounds.isdigit() or int(rounds) < 1:
        print("usage: installed.py BUILD PREFIX [ROUNDS]", file=sys.stderr)
        return 2
    places = [os.path.join(folder, "bin") for folder in sys.argv[1:3]]
    print("model\tnative_ms\tinstalled_ms\tratio")
    with tempfile.TemporaryDirectory() as folder:
        for model, options in MODELS.items():
            found = [[], []]
            for _ in range(int(rounds)):
                for place, steps in zip(places, found):
                    try:
                        steps.append(step_of(place, options, os.path.join(folder, "run.h5")))
                    except (OSError, subprocess.CalledProcessError) as failure:
                        print(f"installed.py: {failure}", file=sys.stderr)
                        return 1
            native, installed = map(statistics.median, found)
            print(f"{model}\t{native:.2f}\t{installed:.2f}\t{installed / native:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
