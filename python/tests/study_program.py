"""A training by another program than statrec, for test_study_runs.py: it writes a run file, and waits or fails on
demand."""
import argparse
import os
import signal
import sys
import time

import statrec

STEPS = 12


def options():
    told = argparse.ArgumentParser()
    for name, kind in (("out", str), ("seed", int), ("norm", str), ("fail", str), ("meet", int), ("wait", str), ("linger", str), ("end-rate", float)):
        told.add_argument(f"--{name}", type=kind, default=kind())
    told.add_argument("--resume", action="store_true")
    told.add_argument("--careful", action="store_true") # replaces no file
    told.add_argument("--deaf", action="store_true") # to SIGTERM
    told.add_argument("--lose", action="store_true") # bn with seed 2 has no validation loss after step 4
    told.add_argument("--parts", action="store_true") # of the validation loss; ln has no valid_loss_batch
    told.add_argument("--noisy", action=argparse.BooleanOptionalAction, default=False)
    return told.parse_args()


def meet(args):
    """Returns when args.meet of these programs run at once; prints the largest number that did."""
    folder = os.path.join(os.path.dirname(args.out), "here")
    os.makedirs(folder, exist_ok=True)
    mine = os.path.join(folder, str(os.getpid()))
    with open(mine, "w", encoding="utf-8"):
        pass
    end, most = time.monotonic() + 20, 0
    while most < args.meet and time.monotonic() < end:
        most = max(most, len(os.listdir(folder)))
        time.sleep(0.02)
    time.sleep(0.3) # one too many would come now
    most = max(most, len(os.listdir(folder)))
    print(f"at once: {most}", flush=True)
    os.remove(mine)


def linger(args):
    """Works on behind the run file, until `args.linger`.end tells the exit status."""
    with open(args.linger, "w", encoding="utf-8"):
        pass
    while not os.path.exists(f"{args.linger}.end"):
        time.sleep(0.02)
    with open(f"{args.linger}.end", encoding="utf-8") as file:
        sys.exit(int(file.read()))


def main():
    args = options()
    print(f"begun: {' '.join(sys.argv[1:])}", flush=True)
    if args.meet:
        meet(args)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if args.deaf else lambda number, frame: sys.exit(128 + number))
    if args.fail == "early":
        sys.exit(3)
    if args.fail == "nothing":
        return
    with statrec.Recorder(args.out, program="study_program", force=not args.careful, seed=args.seed) as recorder:
        recorder.add_metric("valid_loss", "nats", "of no data", "less")
        for name in ["train_loss_batch", "valid_loss_batch"][:args.parts * (1 + (args.norm == "bn"))]:
            recorder.add_metric(name, "nats", "of no data", "less")
        recorder.add_site("norm1", norm="bn" if args.norm == "bn" else "ln", family="sigma" if args.norm == "bn" else "row", kind="encoder", width=1, eps=1e-5, alpha=0.9)
        for step in range(1, STEPS + 1):
            recorder.begin_step(step)
            rate = args.end_rate or 0.05
            recorder.end_step(update=step, tokens=1, loss=3 / step, lr=1.0 + (rate - 1.0) * (step - 1) / (STEPS - 1))
            gone = args.lose and args.norm == "bn" and args.seed == 2 and step > 4
            loss = float("nan") if gone else 3 + 0.01 * args.seed ** 2 + (0.1 + 0.0001 * args.seed) * (args.norm == "bn")
            parts = {"train_loss_batch": 2.0} if args.parts else {}
            if args.parts and args.norm == "bn":
                parts["valid_loss_batch"] = loss - 0.5
            recorder.evaluate(step, valid_loss=loss, **parts)
            recorder.flush()
            if args.fail == "amid":
                raise RuntimeError("as planned")
            if step == 3 and args.wait and not args.resume:
                with open(args.wait, "w", encoding="utf-8"):
                    pass
                time.sleep(60)
    if args.linger and args.norm == "bn":
        linger(args)
    if args.fail == "late":
        sys.exit(4)


if __name__ == "__main__":
    main()
