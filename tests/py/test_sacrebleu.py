"""usage: test_sacrebleu.py SHARED -- `statrec score bleu` beside sacreBLEU 2.

Generated lines full of characters that tokenizers treat differently, and the shared texts if present, against one to
three references that differ in some words. Prints differences; exit status 1 if any.
"""

import glob
import gzip
import logging
import random
import re
import subprocess
import sys

from sacrebleu.metrics import BLEU

WORDS = (
    "the cat The sat on mat . , a dog über Über 1.5 2, 1,000 &quot; &amp;lt; don't 3-4 « $5 € ΟΔΟΣ "
    "A'Σ e.g. ﬁ İ ... (x) a/b ½,5 ٣.٣ 🙂 <skipped> in 1999. –"
).split(" ") + ["x\u00a0y", "x\u2028y", "\ufeff", "\r", "\x0b", "\x1c", "\u200b"]
OPTIONS = [("exp", None), ("none", None), ("floor", None), ("floor", 0.3), ("add-k", None), ("add-k", 2.5)]
LINES = 2000  # lines of a shared text


def generated_line():
    words = WORDS[: random.choice([4, 12, len(WORDS)])]
    return random.choice([" ", "  ", "\t", ""]).join(random.choices(words, k=random.choice([0, 1, 3, 5, 20])))


def changed(line):
    """Some words left out, some replaced."""
    kept = [w for w in line.split(" ") if random.random() < 0.95]
    return " ".join(random.choice(WORDS) if random.random() < 0.1 else w for w in kept)


def texts(shared):
    for lines in [1, 1, 2, 3, 10, 50] * 5:
        yield "generated", [generated_line() for _ in range(lines)]
    for path in sorted(glob.glob(shared + "/data/*-de-en/**/*test*.gz", recursive=True)):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
            yield path, [line.rstrip("\n") for line, _ in zip(f, range(LINES))]


def write(path, lines):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(line + "\n" for line in lines))


def measure(files, hyp, options):
    """Returns the score and the text after it."""
    command = ["statrec", "score", "bleu", "--digits", "15"] + [a for f in files for a in ("--ref", f)]
    out = subprocess.run(command + options + [hyp], capture_output=True, check=True).stdout.decode()
    found = re.fullmatch(r"statrec-bleu\|\S+ = (\S+) (.*)\n", out)
    return float(found[1]), found[2]


def compare(name, hyp, refs, tokenize, smooth, value, lowercase):
    files = [f"ref.{i}" for i in range(len(refs))]
    for path, lines in zip(files + ["hyp"], refs + [hyp]):
        write(path, lines)
    options = ["--tokenize", tokenize, "--smooth", smooth] + (["--lowercase"] if lowercase else [])
    options += ["--smooth-value", str(value)] if value is not None else []
    original = BLEU(tokenize=tokenize, smooth_method=smooth, smooth_value=value, lowercase=lowercase, force=True)
    want = original.corpus_score([h.rstrip() for h in hyp], [[r.rstrip() for r in ref] for ref in refs])
    got, rest = measure(files, "hyp", options)
    same = abs(got - want.score) <= 1e-9 * max(1, want.score) and rest == want._verbose
    if not same:
        print(f"{name} {' '.join(options)}: got {got!r} {rest}, sacreBLEU {want.score!r} {want._verbose}")
    return same


def main():
    logging.disable(logging.CRITICAL)
    random.seed(1)
    compared = wrong = 0
    for name, ref in texts(sys.argv[1]):
        refs = [ref] + [[changed(line) for line in ref] for _ in range(random.choice([0, 0, 1, 2]))]
        hyp = [changed(line) for line in ref]
        for tokenize in ("13a", "intl", "none"):
            smooth, value = random.choice(OPTIONS)
            compared += 1
            wrong += not compare(name, hyp, refs, tokenize, smooth, value, random.random() < 0.5)
    if not wrong:
        print("all the same" if compared >= 90 else f"only {compared} compared")
    sys.exit(wrong > 0)


main()
