"""What a forward and a backward pass of a site have left, until the step ends."""
import torch

# Of the private functions that save calls; without them the calls are made one by one.
copy_all = getattr(torch, "_foreach_copy_", None) or (
    lambda to, tensors: [a.copy_(b) for a, b in zip(to, tensors)])


class Pass:
    """A forward and backward pass of a site. kind: what `tensors` are, [width] each.

    "sums": mean, variance, sum g, sum g (x - mean), sum g^2. "batch_norm": mean,
    1/sqrt(variance + eps), sum g, sum g xhat, sum g^2. "leaf": one [10, width] of
    _traced.leaf_rows. block: the five and the gain as one [6, width] of doubles, or None.
    """
    __slots__ = ("site", "kind", "tensors", "rows", "samples", "padded", "gamma", "serial", "block",
                 "norms")

    def __init__(self, site, kind, tensors, counts, gamma, serial, block=None):
        self.site, self.kind, self.tensors, self.gamma = site, kind, tensors, gamma
        self.block, self.norms = block, None  # norms: [2] of _sums.row_norms
        self.rows, self.samples, self.padded = counts
        self.serial = serial


class Stored:
    """A Pass whose sums and gain are rows of one block that is made once; on the CPU."""
    __slots__ = ("told", "sums", "gamma", "known", "to")

    def __init__(self, site, width):
        block = torch.ones(6, width, dtype=torch.float64)
        *self.sums, self.gamma = block.unbind()
        self.told = Pass(site, None, self.sums, (0, 0, 0), None, 0, block)
        self.known, self.to = None, []

    def fill(self, kind, tensors, gamma, counts, serial):
        """The Pass. tensors: five, of which the last may be None; rows of what is None stay."""
        told, has_last, has_gamma = self.told, tensors[4] is not None, gamma is not None
        if (has_last, has_gamma) != self.known:
            self.known = has_last, has_gamma
            self.to = self.sums[:4 + has_last] + [self.gamma] * has_gamma
            told.gamma = self.gamma if has_gamma else None
        given = [x for x in (*tensors, gamma) if x is not None]
        if torch.is_grad_enabled():  # create_graph
            with torch.no_grad():
                copy_all(self.to, given)
        else:
            copy_all(self.to, given)
        told.kind, told.serial, told.norms = kind, serial, None
        told.rows, told.samples, told.padded = counts
        return told
