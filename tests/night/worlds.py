"""A training while its environment changes: its folder is renamed, its run file removed or replaced, the clock set
back. Or another training writes checkpoints with the same prefix. It reports it in one line or ends as usual. Every
remaining checkpoint is valid, no foreign file changes, and resuming gives the weights of an undisturbed run."""
import glob
import os
import re
import shutil
import subprocess
import time

from cases import all_cases, arguments, random_of, run, summed, verdict_of

MODES = ["renamed", "removed", "replaced", "clock", "prefix"]
STEPS = 60
TRAIN = ("statrec train --model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 "
         f"--decoder-layers 1 --data synth-pairs --max-tokens 256 --limit 200 --threads 1 --quiet --max-steps {STEPS} --flush-steps 4 "
         "--checkpoint-every 5").split()

given = arguments("worlds", 100)
clock = os.path.join(given.folder, "clock.so")
subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "tests/night/clock.c", "-o", clock, "-ldl"], check=True)


def digest(text):
    """The weights' digest that a training printed."""
    found = re.search(r"^# weights_digest: (\w+)", text, re.M)
    return found.group(1) if found else ""


def undisturbed(seed):
    """The weights of a run that nothing happened to."""
    path = os.path.join(given.folder, f"seed-{seed}")
    if not os.path.exists(path):
        done = subprocess.run([*TRAIN, "--seed", str(seed), "--checkpoint-every", "none", "--force", "-o", path + ".h5"], cwd=given.folder,
                              check=True, capture_output=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(digest(done.stdout.decode()))
    with open(path, encoding="utf-8") as text:
        return text.read()


def start(folder, words, **more):
    return subprocess.Popen([*TRAIN, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **more)


def wait_for(pattern, process):
    for _ in range(6000):
        if glob.glob(pattern) or process.poll() is not None:
            return
        time.sleep(0.005)


def disturb(mode, folder, process, rng):
    """The folder where the files are afterwards."""
    part = os.path.join(folder, "run.h5.part")
    wait_for(part, process)
    time.sleep(rng.random() * 0.3)
    if mode == "renamed":
        os.rename(folder, folder + "-moved")
        return folder + "-moved"
    if mode in ("removed", "replaced") and os.path.exists(part):
        os.unlink(part)
        if mode == "replaced":
            with open(part, "w", encoding="utf-8") as out:
                out.write("of somebody else\n")
    return folder


def one(case):
    rng, mode = random_of(given, case), MODES[case % len(MODES)]
    folder = os.path.join(given.folder, "case")
    for old in (folder, folder + "-moved"):
        shutil.rmtree(old, ignore_errors=True)
    os.makedirs(folder)
    seed = rng.choice((1, 2))
    words = ["--seed", str(seed), "-o", os.path.join(folder, "run.h5")]
    env = dict(os.environ)
    if mode == "clock":
        env.update(LD_PRELOAD=clock, CLOCK_AFTER=str(rng.randrange(1, 60)))
    goes_on = rng.random() < 0.5
    if goes_on:
        words += ["--on-write-error", "continue"]
    first = start(given.folder, words, env=env)
    second = None
    if mode == "prefix":
        time.sleep(rng.random() * 0.3)
        second = start(given.folder, ["--seed", str(3 - seed), "-o", os.path.join(folder, "other.h5"), "--checkpoint",
                                      os.path.join(folder, "run")])
    else:
        folder = disturb(mode, folder, first, rng)
    out, err = first.communicate(timeout=600)
    results = []
    text = err.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if "hint:" not in line and "warning:" not in line and ": recording:" not in line]
    if first.returncode not in (0, 1) or (first.returncode == 1 and len(lines) != 1):
        results.append((mode, f"exit {first.returncode}, {text[-300:]}"))
    if first.returncode == 0 and mode in ("clock",) and digest(out.decode()) != undisturbed(seed):
        results.append((mode, "other weights"))
    if second:
        second_out, second_err = second.communicate(timeout=600)
        if second.returncode not in (0, 1):
            results.append((mode, f"second: exit {second.returncode}, {second_err[-300:]}"))
        if first.returncode == 0 and second.returncode == 0:
            results.append((mode, "two trainings wrote checkpoints of one prefix"))
        if first.returncode == 0 and digest(out.decode()) != undisturbed(seed):
            results.append((mode, "other weights"))
    if mode == "replaced" and first.returncode != 0:
        with open(os.path.join(folder, "run.h5.part"), "rb") as kept:
            if kept.read() not in (b"of somebody else\n",):
                results.append((mode, "the file of somebody else was changed"))
    for checkpoint in glob.glob(os.path.join(folder, "*.ckpt")):
        checked = run(["statrec", "check", checkpoint], folder)
        if checked.status != 0:
            results.append((mode, f"{os.path.basename(checkpoint)}: {checked.text[-200:]}"))
    if mode in ("renamed", "prefix") and os.path.exists(os.path.join(folder, "run.h5.part")) and glob.glob(
            os.path.join(folder, "run-*.ckpt")) and first.returncode != 0:
        resumed = subprocess.run(["statrec", "resume", "run.h5", "--quiet"], cwd=folder, capture_output=True, check=False)
        if resumed.returncode == 0 and digest(resumed.stdout.decode()) != undisturbed(seed):
            results.append((mode, "resumed to other weights"))
    return summed(results or [(mode, "ok")])


all_cases(given, one)
