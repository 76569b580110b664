"""Which backward passes of a step count, if a forward pass has several of them.

g of a forward pass is the gradient of the loss: the sum over the backward() calls of the step.
Gradients of torch.autograd.grad() count if no backward() comes, once for a forward pass.
"""
import copy
import math

from . import _passes

NO_SUMS = "a backward pass asked for no gradients of its weight and bias"
FREED = "its forward pass had several backward passes, and the graph was freed after the first"
_UNCLEAR = ("its forward pass had several calls of torch.autograd.grad() and no backward(): which of them is that of "
            "the loss is not known")


def settle(taps):
    """After a step with passes of that kind: what does not count goes from the taps."""
    for tap in taps:
        serials = [one.serial for one in tap.passes]
        several = len(set(serials)) < len(serials)
        if tap.lacking and not serials:
            tap.misfit = NO_SUMS
        elif several and not tap.of_loss:
            tap.misfit = _UNCLEAR
        if tap.spoiled or several and not tap.of_loss:
            tap.passes.clear()
        elif several:
            tap.passes[:] = [_without_squares(one) for one in tap.passes]
        tap.of_loss, tap.lacking, tap.spoiled, tap.leaf_stays = True, False, False, False


def _without_squares(caught):
    """Squares of a sum are not the sum of the squares."""
    caught = copy.copy(caught)
    if caught.kind == "placed":
        caught.normed = False
    else:
        caught.norms = None
    return caught


def places(passes):
    """Places of passes of one forward pass, a list for each forward pass."""
    found = {}
    for place, one in enumerate(passes):
        found.setdefault((one.site, one.serial), []).append(place)
    return list(found.values())


def summed(hosts, places):
    """HostPasses of forward passes: sums of g are added, rows count once, and sum g^2 is not known."""
    hosts = list(hosts)
    for first, *more in places:
        for other in more:
            for row in (_passes.SUM_G, _passes.SUM_GC):
                hosts[first][row].add_(hosts[other][row])
        if more:
            hosts[first] = copy.copy(hosts[first])  # others are used again
            hosts[first].squares = False
            hosts[first][_passes.SUM_GG].fill_(math.nan)
    return [hosts[first] for first, *_ in places]
