"""What a run says of its steps: each warning once, and for the file why sites have no rows."""
from __future__ import annotations

import sys

from . import _sites, _taps
from ._say import warn

_NO_FORWARD = "no forward pass of any site was seen: step() comes after it"
_NO_BACKWARD = ("no backward pass of any site was seen: is the model in training mode, and was it compiled "
                "after watch()? A graph that torch.compile made of another model of this shape is used again: "
                "torch.compiler.reset() before")


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
        self._misfits = {}  # {site name: why it is not recorded}
        self._unseen = ""  # modules that call functions for norms
        self._early = ""  # why no site has rows up to now

    def once(self, subject, text):
        """A warning, unless there was one of this subject."""
        if subject not in self._said:
            self._said.add(subject)
            warn(text)

    def unseen(self, path, left, verbose):
        """Modules that call torch's functions for norms and are no site; left: of _unseen.find()."""
        functions = ", ".join(sorted({function for _, _, function in left}))
        counts = _sites.counted([(name, kind) for name, kind, _ in left])
        self._unseen = f"not recorded: {counts} (modules that call {functions})" if left else ""
        if left and verbose:
            print(f"statrec: {path}: {self._unseen}; statrec.register or statrec.tap", file=sys.stderr)

    def misfits(self, taps):
        """Warns of sites whose tensors could not be recorded."""
        _taps.warn_misfits(taps, self._misfits)

    def step(self, taps, shared, passes):
        """What is remarkable about the passes of a step."""
        self.misfits(taps)
        if shared.again and self._repeat is None:
            kind = "forward" if self._forward else "backward"
            self.once("again", f"{shared.again!r} had several {kind} passes in a step, and the last is recorded: "
                      'repeat="last" agrees, repeat="merge" joins their rows, phases= keeps them apart')
        if shared.outside:
            self.once("outside", f"a pass of {shared.outside!r} outside of run.phase() is not recorded")
        if passes:
            self._early = ""
        elif shared.on and taps and not self._misfits:
            self._early = _NO_FORWARD if self._forward else _NO_BACKWARD
            self.once("", self._early)

    def evaluated(self, taps, silent):
        """"'NAME' and 3 more: no rows (evaluation mode)", of sites that were so in all training passes; or "".
        silent: sites without rows."""
        names = [tap.site.name for tap in taps
                 if tap.evaluated and tap.site in silent and tap.site.name not in self._misfits]
        return f"{_named(names)}: no rows (evaluation mode)" if names and not self._early else ""

    def not_recorded(self):
        """Which sites lack passes and why, for the file: "not recorded: 'NAME' and 3 more: REASON"."""
        if self._early:
            return f"nothing is recorded: {self._early}"
        by_reason = {}
        for name, why in self._misfits.items():
            by_reason.setdefault(why, []).append(name)
        texts = [f"not recorded: {_named(names)}: {why}" for why, names in by_reason.items()]
        return "; ".join(filter(None, [*texts, self._unseen]))
