"""How far the running mean of a batch norm moved in a step, as two sums of each site.

Over steps v = sum mu_moved / sum mu_apart is the effective momentum: 1 - alpha if the buffers are
updated once a step, 1 - alpha^k if k passes of (nearly) the same batch update them, 0 if they do
not move. Vectors are recorded in few steps, and mu of consecutive steps is needed: hence scalars.
"""
from .. import _native
from . import _passes

SCALARS = {
    "mu_moved": "sum over features of (mu[t+1] - mu[t]) (mu_B[t] - mu[t]); mu[t]: running mean "
                "before the step's first forward pass; mu[t+1]: after its last; mu_B: recorded "
                "batch mean of the step (of merged passes the merged one)",
    "mu_apart": "sum over features of (mu_B[t] - mu[t])^2; mu[t]: running mean before the step's "
                "first forward pass; mu_B: recorded batch mean of the step (of merged passes the "
                "merged one)",
}


def asked(site):
    """Whether the site normalizes over the batch and its module keeps a running mean."""
    return site.own_running and site.norm != "frozenbn"


def declare(recorder):
    """Declares SCALARS."""
    for name, definition in SCALARS.items():
        recorder.declare_scalar(name, "1", definition, "site")


def scalars(hosts, before, after):
    """{scalar: {site name: number}} of a step, by one call of the library, without torch.

    hosts: HostPasses of the step, of all ranks; before, after: running statistics by site, [2, width] of
    doubles on the CPU, whose first row is the mean.
    """
    passes = {}
    for one in hosts:
        if one.rows > 0 and asked(one.site) and one.site in before and one.site in after:
            passes.setdefault(one.site, []).append(one)
    if not passes:
        return {}
    merged = [found[0] if len(found) == 1 else _passes.merged(found) for found in passes.values()]
    blocks = {}
    for one in merged:
        if id(one.block) not in blocks:
            at, stride = _passes.place(one.block)
            blocks[id(one.block)] = at + _passes.MEAN * stride
    found = _native.sum_moves([one.width for one in merged],
                              [blocks[id(one.block)] + 8 * one.start for one in merged],
                              _means(before, passes), _means(after, passes))
    names = [site.name for site in passes]
    return {name: dict(zip(names, row)) for name, row in zip(SCALARS, found)}


def _means(running, sites):
    """Addresses of the sites' running means."""
    places = getattr(running, "places", {})
    return [places[site][0] if site in places else running[site].data_ptr() for site in sites]
