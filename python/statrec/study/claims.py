"""The claims of claims.conf, beside the experiments: one table of all, and the head of each one's page.

A section of the file is a claim:

    [micro-batches]
    claim = The smaller the micro-batch, the worse BN compared with LN
    source = PowerNorm, figure 5
    printed = setting of the paper
    used = setting of the runs
    page = docs/reproduction/micro-batches.md
    tests = verdict=microbatch of=norm against=ln value=valid_loss claim=higher show=^bn

tests: blocks of verdicts.py, one a line; show= picks the rows of the table of claims by a regular expression, none: no
row.
"""
import configparser
import os
import re
import shlex

from .rule import MISSING
from .experiment import CLAIMS, beside, stop
from .printed import drawn, split_words
from .verdicts import Bound, Order, Paired, Verdict

TESTS = {"verdict": Verdict, "paired": Paired, "bound": Bound, "order": Order}
KEYS = ("claim", "source", "printed", "used", "page")


def test_of(words, where):
    """A block of verdicts.py."""
    kind = TESTS.get(words[0].partition("=")[0] if words else "")
    if kind is None:
        stop(f"{where}: a test begins with {', '.join(f'{name}=' for name in TESTS)}, got {' '.join(words)!r}")
    return kind(words, where)


def claims_of(args):
    """{name: section} of the claims."""
    path, parsed = beside(args, CLAIMS), configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            parsed.read_file(file)
    except (OSError, configparser.Error) as error:
        stop(f"{path}: {error}".replace("\n", " "))
    for name in parsed.sections():
        for key in (*KEYS, "tests"):
            if not parsed[name].get(key, "").strip():
                stop(f"{path}: [{name}]: a line '{key} = ...' is wanted")
    return path, parsed


def tests_of(path, section):
    """[(test, regular expression of its rows in the table of claims)]."""
    found = []
    for line in section["tests"].strip().splitlines():
        where = f"{path}: [{section.name}]"
        words = shlex.split(line)
        show = split_words(words)[1].get("show", "")
        found.append((test_of([word for word in words if not word.startswith("show=")], where), show))
    return found


def shown(args, path, section):
    """[(label, pairs, planned, figure, verdict)] of the rows that test a claim."""
    tests = [(test, show) for test, show in tests_of(path, section)
             if not isinstance(test, Paired) and show != "none"]
    metrics = {test.values[0] for test, _ in tests if isinstance(test, Verdict)}
    whole = {tuple(test.experiments) for test, _ in tests if isinstance(test, Verdict)}
    orders = sum(isinstance(test, Order) for test, _ in tests)
    rows = []
    for test, show in tests:
        more = ""
        if isinstance(test, Verdict):
            more = "".join(f", {word}" for word in [test.values[0]] * (len(metrics) > 1) +
                           test.experiments * (len(whole) > 1))
        these = [(label + more, *rest) for label, rest in test.summary(args).items() if re.search(show, label)]
        if isinstance(test, Order) and orders > 1:
            these = [(test.of, *rest) for _, *rest in these]
        rows += these or [("", 0, 0, "–", MISSING)]
    return rows


def together(verdicts):
    """[(label, verdict)] as one text, each verdict once with its labels."""
    labels = {}
    for label, verdict in verdicts:
        labels.setdefault(verdict, []).append(label)
    return "; ".join(verdict if len(labels) == 1 else f"{', '.join(those)}: {verdict}" for verdict, those in labels.items())


class Claims:
    """claims: one row for each claim"""
    experiments = ("claims",)

    def __init__(self, words, where):
        if words != ["claims"]:
            stop(f"{where}: claims has no options")

    def lines(self, args):
        path, parsed = claims_of(args)
        rows = []
        for name in parsed.sections():
            section = parsed[name]
            rows.append([f"[{section['claim']}]({section['page'].removeprefix('docs/')})", section["source"],
                         together([(label, row[-1]) for label, *row in shown(args, path, section)])])
        return [*drawn(["claim", "source", "verdict in our setting"], rows), ""]


class Claim:
    """claim=NAME: source, settings, the tables of its tests, which end with the verdicts"""

    def __init__(self, words, where):
        self.name, self.where = words[0].partition("=")[2], where
        self.experiments = [self.name]
        if len(words) != 1:
            stop(f"{where}: claim=NAME has no options")

    def lines(self, args):
        path, parsed = claims_of(args)
        if self.name not in parsed:
            stop(f"{self.where}: {path} has no claim {self.name!r}")
        section = parsed[self.name]
        made = [f"**Claim** ({section['source']}): {section['claim']}.", "", *drawn(
            ["setting of the paper", "setting of our runs"], [[section["printed"], section["used"]]]), ""]
        for test, _ in tests_of(path, section):
            made += test.lines(args) or [f"{' '.join(test.experiments)}: runs missing, or without the file that this test reads.", ""]
        return made
