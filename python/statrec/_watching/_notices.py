"""Warnings about the steps of a run, each once, and for the file the reasons why sites have no rows."""
from __future__ import annotations

import sys

from . import _kinds, _sites
from ._say import warn

_NO_FORWARD = "no forward pass of any site was seen: step() comes after it"
_NO_BACKWARD = ("no backward pass of any site was seen: is the model in training mode, was it compiled after watch(), and "
                "does step() come after backward()? A graph that torch.compile made of another model of this shape is "
                "used again: torch.compiler.reset() before")
_EMPTY = "they have no {} pass of any site"
_LATE = "step() came between their forward pass and backward(), and comes after backward()"
_AGAIN = "of several {} passes in a step the last is recorded"
_NO_PASS = "no forward pass in training mode; modules that came after watch() have no hooks"
_NO_STEP = "no step was recorded: every= leaves steps out"
_NO_WIDTH = "it had no forward pass before the first step, its width is not known"


def _named(names):
    """'NAME' and 3 more"""
    return repr(names[0]) + (f" and {len(names) - 1} more" if names[1:] else "")


def say_sites(path, count, left, resumed):
    """Prints how many sites there are. left: of find_sites; resumed: of _resumed.checked, or None."""
    more = f"; not recorded: {_sites.counted(left)} (statrec.register)" if left else ""
    if resumed:
        more += f"; continues {resumed.source} (last step {resumed.last}) after step {resumed.start}"
    if not count:
        more += "; no normalization module: statrec.tap(x, name) adds sites"
    print(f"statrec: {path}: sites {count} of {count + len(left)}{more}", file=sys.stderr)


class Notices:
    """repeat: watch(repeat=...) as given; None warns of several passes. forward: no gradients are recorded."""

    def __init__(self, repeat, forward):
        self._repeat, self._forward, self._said = repeat, forward, set()
        self._steps = 0  # that a hook could see, and those of them with passes
        self._full = 0
        self._empty = {}  # {why no site has a row: steps}
        self._misfits = {}  # {site name: {why it is not recorded: steps}}
        self._never = {}  # {site name: why it has no rows at all}
        self._late, self._again = {}, {}  # {site name: steps}
        self._kind = "forward" if forward else "backward"
        self._silent, self._some = set(), ({}, 0)  # names of sites without rows, and with some: of without_rows
        self._unseen = ""  # modules that call functions for norms

    def once(self, subject, text):
        """A warning, unless there was one of this subject."""
        if subject not in self._said:
            self._said.add(subject)
            warn(text)

    def _misfit(self, tap):
        """Counts a site whose tensors could not be recorded in this step, with one warning for each."""
        why, tap.misfit = tap.misfit or _kinds.CAPTURED, None
        known = self._misfits.setdefault(tap.site.name, {})
        if not known:
            warn(f"{tap.site.name!r} is not recorded: {why}")
        known[why] = known.get(why, 0) + 1

    def never(self, tap):
        """A site without width at the first step, which has no rows."""
        name = tap.site.name
        self._never[name] = next(iter(self._misfits.get(name, ())), _NO_WIDTH)
        if name not in self._misfits:
            warn(f"{name!r} is not recorded: {_NO_WIDTH}")

    def unseen(self, path, left, verbose):
        """Modules that call torch's functions for norms and are no site; left: of _unseen.find()."""
        functions = ", ".join(sorted({function for _, _, function in left}))
        counts = _sites.counted([(name, kind) for name, kind, _ in left])
        self._unseen = f"not recorded: {counts} (modules that call {functions})" if left else ""
        if left and verbose:
            print(f"statrec: {path}: {self._unseen}; statrec.register or statrec.tap", file=sys.stderr)

    def step(self, taps, shared, passes):
        """Notes unusual passes of a step."""
        missing = [tap for tap in taps if tap.misfit is not None or tap.captured and not tap.passes]
        for tap in missing:
            self._misfit(tap)
        self._repeated(shared)
        if shared.late:
            self.once("late", f"step() came between a forward pass of {shared.late!r} and its backward(), which is not "
                      "recorded: call step() after backward()")
            self._late[shared.late] = self._late.get(shared.late, 0) + 1
        if shared.outside:
            self.once("outside", f"a pass of {shared.outside!r} outside of run.phase() is not recorded")
        self._steps += 1
        self._full += bool(passes)
        if not passes and shared.on and taps and not missing:
            self._nothing(shared.late)
        shared.late = None

    def _repeated(self, shared):
        again, shared.again = shared.again, None
        if again and self._repeat is None:
            self.once("again", f"{again!r} had several {self._kind} passes in a step, and the last is recorded: "
                      'repeat="last" agrees, repeat="merge" joins their rows, phases= keeps them apart')
            self._again[again] = self._again.get(again, 0) + 1

    def _nothing(self, late):
        """A step in which no site has a row."""
        why = _LATE if late else _EMPTY.format(self._kind)
        if not self._full and not late:
            why = _NO_FORWARD if self._forward else _NO_BACKWARD
        if not late:
            self.once("", why if not self._full else f"a step has no {self._kind} pass of any site")
        self._empty[why] = self._empty.get(why, 0) + 1

    def without_rows(self, taps, rows):
        """"'NAME' and 3 more: no rows (REASON)", of sites that have none in the whole file; or "". rows: Rows."""
        self._silent = {site.name for site in rows.silent}
        self._some = {site.name: steps for site, steps in rows.lacking.items() if site not in rows.silent}, rows.full
        found = {}
        for tap in taps if self._full or not self._empty else ():
            if tap.site in rows.silent and tap.site.name not in self._misfits and tap.site.name not in self._never:
                found.setdefault(self._why(tap, rows.full), []).append(tap.site.name)
        return "; ".join(f"{_named(names)}: no rows ({why})" for why, names in found.items())

    def _why(self, tap, full):
        """Why a site has no rows at all. full: steps with rows."""
        if tap.evaluated or not full:
            return "evaluation mode" if tap.evaluated else _NO_STEP
        return _NO_PASS if tap.order is None else f"no {self._kind} pass of it came"

    def _at_times(self):
        """"'NAME' and 3 more: no rows in 2 of 9 steps", of sites that have some."""
        names, full = self._some
        names = {name: steps for name, steps in names.items() if name not in self._misfits and name not in self._late}
        most = max(names.values(), default=0)
        upto = "" if len(set(names.values())) < 2 else "up to "
        return f"{_named(list(names))}: no rows in {upto}{most} of {full} steps" if names else ""

    def _part(self, steps):
        """" in 3 of 10 steps", or "" for all of them."""
        return "" if steps >= self._steps else f" in {steps} of {self._steps} steps"

    def not_recorded(self):
        """Sites without passes, in how many steps and why, for the file: "not recorded in 1 of 2 steps: 'NAME' and 3
        more: REASON"."""
        if not self._full and self._empty:
            return f"nothing is recorded: {list(self._empty)[-1]}"
        told = [f"nothing is recorded{self._part(steps)}: {why}" for why, steps in self._empty.items()]
        found = {}
        for name, reasons in self._misfits.items():
            for why, steps in reasons.items() if name not in self._never else ():
                part = "" if name in self._silent else self._part(steps)
                found.setdefault((why, part), []).append(name)
        for name, why in self._never.items():
            found.setdefault((why, ""), []).append(name)
        if self._late and _LATE not in self._empty:
            found[_LATE, self._part(max(self._late.values()))] = list(self._late)
        told += [f"not recorded{part}: {_named(names)}: {why}" for (why, part), names in found.items()]
        told += [f"{_AGAIN.format(self._kind)}{self._part(steps)}: {name!r}" for name, steps in self._again.items()]
        return "; ".join(filter(None, [*told, self._at_times(), self._unseen]))
