"""Host programs of libstatrec: killed, forked, replaced by exec, with a broken pipe, out of descriptors, with two
recorders in two threads, unloading the library. Flushed rows can be read, with the right values; a run that ends is
complete."""
import os
import shutil
import subprocess

import h5py

from cases import all_cases, arguments, random_of, run, summed, verdict_of

MODES = ["plain", "kill", "fork", "exec", "pipe", "descriptors", "threads", "close"]
FLUSH = 4

given = arguments("hosts", 200)
host = os.path.join(given.folder, "host")
subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O1", "-Iinclude", "tests/night/host.c", "-o", host, "-ldl", "-pthread"],
               check=True)
os.environ["LD_LIBRARY_PATH"] = os.path.abspath(os.path.join(given.build, "lib"))


def wrong(path, least, most):
    """Returns the fault of a run file that must have `least` to `most` rows; "" if none."""
    try:
        with h5py.File(path, "r", swmr=path.endswith(".part")) as file:
            count = int(file["state/committed_steps"][()])
            steps, losses = file["steps/step"][:count], file["steps/loss"][:count]
            rows = min(int(file["state/committed_vectors"][()]), len(file["vectors/mu_B"]))
            vectors = file["vectors/mu_B"][:rows]
    except (OSError, KeyError) as error:
        return f"{os.path.basename(path)} cannot be read, {error}"
    if not least <= count <= most:
        return f"{os.path.basename(path)} has {count} rows, not {least} to {most}"
    for i in range(count):
        if steps[i] != i + 1 or losses[i] != 1.0 / (i + 1):
            return f"row {i} is step {steps[i]}, loss {losses[i]}"
    for i in range(rows):
        if vectors[i][0] != i + 1:
            return f"vector {i} is {vectors[i][0]}"
    return ""


def one(case):
    rng = random_of(given, case)
    folder = os.path.join(given.folder, "case")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    mode, steps = MODES[case % len(MODES)], rng.randrange(2, 120)
    outcome = run([host, mode, "run.h5", str(steps)], folder)
    results = []
    dies = mode in ("kill", "exec")
    if mode == "kill" and outcome.status == -9:
        outcome = outcome._replace(status=0)
    results.append((mode, verdict_of(outcome)))
    if mode == "descriptors" and outcome.status == 1:
        # the file cannot be renamed safely without a descriptor: flushed rows remain
        fault = wrong(os.path.join(folder, "run.h5.part"), steps // 2 // FLUSH * FLUSH, steps)
    elif dies:
        fault = wrong(os.path.join(folder, "run.h5.part"), steps // 2 // FLUSH * FLUSH, steps // 2)
    else:
        fault = wrong(os.path.join(folder, "run.h5"), steps, steps)
    results.append((f"{mode} {steps}", fault or "ok"))
    if mode == "threads":
        results.append(("threads", wrong(os.path.join(folder, "run.h5-2"), steps, steps) or "ok"))
    if not dies and outcome.status == 0:
        checked = run(["statrec", "check", "run.h5"], folder)
        results.append((f"{mode}: check", "ok" if checked.status == 0 else "exit %s, %s" % (checked.status, checked.text)))
    if dies:
        saved = run(["statrec", "recover", "run.h5.part", "-o", "saved.h5"], folder)
        if steps // 2 >= FLUSH:
            results.append((f"{mode}: recover", verdict_of(saved)))
    return summed(results)


all_cases(given, one)
