"""statrec.tap: tensors that the host names itself, sites from the first step on."""
from . import _open_runs, _sites, _traced
from ._say import warn


class _Late:
    """A tensor that was first given to statrec.tap after the first step: sites do not grow."""

    def __init__(self, name):
        warn(f"tap {name!r:.80} came after the first step and is not recorded")

    def tensor(self, x):
        pass


class Tensors:
    """The tensors of a run: {name: tap}."""

    def __init__(self):
        self._taps = {}

    def record(self, run, x, name, features):
        """A tensor of this name in a forward pass. run: the Watch."""
        if name not in self._taps:
            self._taps[name] = _Late(name) if run._gathered is not None else self._new(run, name, features)
        self._taps[name].tensor(x)

    @staticmethod
    def _new(run, name, features):
        site = _sites.tensor_site(name, features, run._alpha, {tap.site.name for tap in run._taps})
        run._taps.append(run._tap_class(site, run._shared))
        return run._taps[-1]


def tap(x, name, features=-1):
    """Records a tensor at this place in every open run; see statrec.tap."""
    if features not in (-1, 1):
        raise ValueError(f"tap: features is -1 or 1, got {features!r:.80}")
    if not isinstance(name, str) or not name:
        raise TypeError(f"tap: a name is wanted, got {name!r:.80}")
    if _traced.elsewhere():
        return x
    for run in list(_open_runs.runs):
        if run._listening and run._taps_made:
            run._tensors.record(run, x, name, features)
    return x
