"""Writes what the blocks of the documents ask for. The package's head describes them."""
import os
import re
import shlex
import sys
import textwrap

from .claims import TESTS, Claim, Claims
from .experiment import experiments, put, stop
from .split import Split
from .tables import Figure, Lines, Published, Table
from .printed import split_words

class Opening:
    """opening=PAGE sentences=N: the first sentences of a page, which another one quotes"""
    experiments = ("opening",)

    def __init__(self, words, where):
        _, given = split_words(words)
        self.page, self.count = given.pop("opening"), given.pop("sentences", "")
        if given or not self.count.isdigit():
            stop(f"{where}: opening=PAGE sentences=N is wanted")

    def lines(self, args):
        """The lines of the page's first paragraph, which has as many sentences or more."""
        with open(os.path.join(os.path.dirname(args.doc), self.page), encoding="utf-8") as file:
            paragraph = file.read().split("\n\n")[1]
        sentences = re.split(r"(?<=[.?!])\s+", paragraph)[:int(self.count)]
        if len(sentences) < int(self.count):
            stop(f"{args.doc}: the first paragraph of {self.page} has {len(sentences)} sentences")
        return [*textwrap.wrap(" ".join(sentences), 140, break_on_hyphens=False), ""]


KINDS = {"figure": Figure, "opening": Opening, "samples": Lines, "lines": Lines, "published": Published, "claim": Claim, "claims": Claims, "split": Split, **TESTS}


def nothing_of(block):
    """Why a block has no table."""
    done = getattr(block, "done", 0)
    return f"No pair of runs is done yet, {done} run{'s are' if done > 1 else ' is'} done." if done else "No run is done yet."


def block_of(text, where):
    """The request of a line `study:`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        stop(f"{where}: {error}")
    if not words:
        stop(f"{where}: nothing behind study:")
    return KINDS.get(words[0].partition("=")[0], Table)(words, where)


def report_one(args):
    """One document."""
    try:
        with open(args.doc, encoding="utf-8", newline="") as file:
            text = file.read()
    except OSError as error:
        stop(f"{args.doc}: {error.strerror}")
    ending = "\r\n" if "\r\n" in text else "\n"
    old, new, at = text.split(ending), [], 0
    while at < len(old):
        line = old[at]
        at += 1
        new.append(line)
        if re.match(r"\s+<!-- study: (?!end)", line):
            print(f"statrec study: {args.doc}:{at}: an indented block is left as it is", file=sys.stderr)
        begun = re.fullmatch(r"<!-- study: (.*) -->", line)
        if not begun or begun[1] == "end":
            continue
        where = f"{args.doc}:{at}"
        end = next((i for i in range(at, len(old)) if old[i].startswith("<!-- study:")), len(old))
        if end == len(old) or old[end] != "<!-- study: end -->":
            stop(f"{where}: no line '<!-- study: end -->' behind this one")
        block = block_of(begun[1], where)
        made = block.lines(args)
        if made is None:
            what = "pair of runs" if getattr(block, "done", 0) else "run"
            print(f"statrec study: {where}: no {what} of {' '.join(block.experiments)} yet: left as it is", file=sys.stderr)
        new += old[at:end] if made is None else ["", *made]
        at = end
    put(args.doc, ending.join(new).encode())


def report(args):
    """Into the pages that were given; without a page what each experiment asks for, or a table by the rule, is printed."""
    for args.doc in args.docs:
        report_one(args)
    if not args.docs:
        args.doc = ""
        for experiment in experiments(args):
            print(f"# {experiment.name}\n")
            for text, where in experiment.blocks or [(usual_block(experiment), experiment.path)]:
                block = block_of(text.replace("NAME", experiment.name), where)
                print("\n".join(block.lines(args) or [nothing_of(block), ""]))
    return 0


def usual_block(experiment):
    """The verdict of the rule on the validation loss of what the first factor but the seed changes; without one, a table."""
    of = [(options[0], levels) for options, levels in experiment.factors if options[0] != "seed"]
    if of and len(of[0][1]) > 1:
        return f"verdict=NAME of={of[0][0]} against={of[0][1][0][0]} value=valid_loss"
    rows = experiment.factors[0][0][0] if experiment.factors else "experiment"
    return f"NAME rows={rows} value=loss,best_valid_loss"
