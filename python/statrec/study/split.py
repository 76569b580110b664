"""One table of the three parts of paired runs' difference in validation loss, which add up to it."""
import re

from .experiment import stop
from .rule import apart, half_width, last_third
from .printed import drawn, named
from .verdicts import Verdict, plus_minus

PARTS = {"difference": "valid_loss", "training": "train_loss_batch",
         "generalization": "valid_loss_batch-train_loss_batch", "discrepancy": "valid_loss-valid_loss_batch"}


class Split(Verdict):
    """split=EXPERIMENT,... of=OPTION against=LABEL [claim=CLAIM] [digits=N] [OPTION=LABEL,...]: a row as of a verdict"""
    kind = "split"

    def __init__(self, words, where):
        ignored = [word for word in words if re.match("(value|less|by|pick)=", word)]
        if ignored:
            stop(f"{where}: split= is of {PARTS['difference']}, and has no {' '.join(ignored)}")
        super().__init__([*words, f"value={PARTS['difference']}"], where)
        self.parts = [Verdict([f"verdict={','.join(self.experiments)}", *words[1:], f"value={value}"], where)
                      for value in PARTS.values()]

    def _figures(self, args):
        """[[text of each part]] in the order of the rows."""
        cells, experiment = self.cells(args)
        return [[mean_of(pairs, int(self.digits)) for pairs in of_same_steps(
            [part.differences(args, cell, experiment)[0] for part in self.parts])] for cell in cells]

    def lines(self, args):
        judged = self.judged(args)
        names = self.names([cell for cell, _, _ in judged if cell.pairs])
        rows = [[*(cell.labels.get(name, "–") for name in names), f"{found.pairs} of {cell.planned}", *figures, found.text()]
                for (cell, found, _), figures in zip(judged, self._figures(args)) if cell.pairs]
        there = {cell.labels["experiment"] for cell, _, _ in judged if cell.pairs}
        lacking = [name for name in self.experiments if name not in there]
        if not rows:
            return None
        return [*drawn([*names, "pairs", *PARTS, "verdict"], rows), "", f"{'Nats' if self.in_nats else 'In the unit of the loss'}, minus {self.against} with the same seed. The verdict is "
                f"about the difference.{f' No pair yet: {named(lacking)}.' if lacking else ''}", ""]


def of_same_steps(parts):
    """[[{step: difference}] of the pairs] of each part, at the steps that all parts have: there they add up. Without
    such steps, or without one at the end, the first part alone has its own. parts: the same, {}: no evaluation in
    common."""
    found = [[] for _ in parts]
    for pair in zip(*parts):
        if pair[0] == {}:
            continue
        steps = set() if None in pair else set.intersection(*map(set, pair))
        if None not in pair and (not steps or apart(steps, pair[:1])):
            return [[each for each in parts[0] if each != {}], *([] for _ in parts[1:])]
        for each, part in zip(found, pair):
            each.append(None if None in pair else {step: part[step] for step in steps})
    return found


def mean_of(pairs, digits):
    """Mean of the last third of the evaluations, with the interval over pairs, as text."""
    if not pairs or None in pairs:
        return "diverged" if pairs else "–"
    means = [sum(value for _, value in third) / len(third) for third in map(last_third, pairs)]
    return plus_minus(sum(means) / len(means), half_width(means), digits)
