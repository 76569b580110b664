"""Scalars of sites that are computed here and not by the recorder: single passes of merged ones (_own_rows.py), how
running means moved (_momentum.py), sizes of activations (_activations.py), and with forward=True the distance from the
statistics of the data before (_forward.py)."""
from . import _activations, _forward, _momentum, _own_rows


class Derived:
    """recorder: None on a rank that has no file; merge: several passes are one batch; every: in how many
    recorded steps there is one with activations, 0: none; forward: no gradients are recorded."""

    def __init__(self, recorder, merge, every, forward, resume):
        self._recorder, self._forward, self._every = recorder, forward, every
        self._own = self._source = None
        self._moves = False
        if recorder is None:
            return
        if merge:
            self._own = _own_rows.OwnRows(resume)
            _own_rows.declare(recorder)
        if every:
            _activations.declare(recorder)

    def of_modules(self, taps, running):
        """Declares the scalars that depend on whether modules have their own running statistics. running: the
        statistics by site."""
        if self._recorder is None:
            return
        if self._forward:
            self._source = _forward.source(running)
            _forward.declare(self._recorder, bool(self._source))
        elif any(_momentum.asked(tap.site) for tap in taps):
            self._moves = True
            _momentum.declare(self._recorder)

    def wanted(self, due, rest):
        """Whether the sizes of activations are recorded in a step; due, rest: of divmod(step, every)."""
        return self._recorder is not None and self._every > 0 and rest == 0 and due % self._every == 0

    def running(self, before):
        """Running statistics that the rows of a step are compared with. before: the modules'."""
        return {**self._source, **before} if self._source else before

    def scalars(self, own, hosts, before, after):
        """{scalar: {site name: number}} of a step. own: HostPasses of this process; hosts: HostPasses of all ranks;
        before, after: running statistics [2, width] by site."""
        found = {}
        if self._own is not None:
            found.update(self._own.scalars(own, hosts, before))
        if self._moves:
            found.update(_momentum.scalars(hosts, before, after))
        if self._source:
            found.update(_forward.source_scalars(hosts, self._source))
        return found

    def activations(self, taps):
        """{scalar: {site name: number}} of the inputs' sizes in this step."""
        found = {}
        if not self._every and not self._forward:
            return found
        for tap in taps:
            if tap.activations is not None and tap.width is not None:
                for name, value in tap.activations[1].numbers().items():
                    found.setdefault(name, {})[tap.site.name] = value
        return found
