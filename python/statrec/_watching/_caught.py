"""Results of a forward and a backward pass of a site, until the step ends."""
import torch

from .. import _native

# Of the private functions that save calls; without them the calls are made one by one.
copy_all = getattr(torch, "_foreach_copy_", None) or (
    lambda to, tensors: [a.copy_(b) for a, b in zip(to, tensors)])


class Pass:
    """A forward and backward pass of a site. kind: what `tensors` are, [width] each.

    "sums": mean, variance, sum g, sum g (x - mean), sum g^2. "batch_norm": mean,
    1/sqrt(variance + eps), sum g, sum g xhat, sum g^2. "leaf": one [10, width] of
    _traced.leaf_rows. block: the five and the gain as one [6, width] of doubles, or None. norms: the two of
    _sums.row_norms, a tensor or a list of floats.
    """
    __slots__ = ("site", "kind", "tensors", "rows", "samples", "padded", "gamma", "serial", "block",
                 "norms")

    def __init__(self, site, kind, tensors, counts, gamma, serial, block=None):
        self.site, self.kind, self.tensors, self.gamma = site, kind, tensors, gamma
        self.block, self.norms = block, None
        self.rows, self.samples, self.padded = counts
        self.serial = serial


class Stored:
    """A Pass whose sums and gain are rows of one block that is made once; on the CPU."""
    __slots__ = ("told", "sums", "gamma", "known", "to", "site", "block", "layout", "like", "call")

    def __init__(self, site, width):
        self.site = site
        self.block = block = torch.ones(6, width, dtype=torch.float64, device="cpu")
        self.layout = self.like = self.call = None
        *self.sums, self.gamma = block.unbind()
        self.told = Pass(site, None, self.sums, (0, 0, 0), None, 0, block)
        self.known, self.to = None, []

    def fill(self, kind, tensors, gamma, counts, serial):
        """The Pass. tensors: five; the last may be None, and its rows stay."""
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

    def read(self, layout, g, x, gain, square, serial):
        """The Pass of x and g, which libstatrec reads in place. gain [width]: contiguous, or None.
        square: whether the squares of _sums.row_norms are wanted."""
        dtype = layout.dtype if gain is None else gain.dtype
        if layout is not self.layout or (dtype, square) != self.like:
            self._prepare(layout, dtype, square)
        of_g, of_x = g.data_ptr(), x.data_ptr()
        if not (of_g and of_x):
            raise RuntimeError("a tensor has no memory")
        self.call(of_g, of_x, 0, 0, 0, 0, 0 if gain is None else gain.data_ptr())
        told = self.told
        told.kind, told.serial, told.norms = "sums", serial, self.call.squares[:] if square else None
        told.gamma = None if gain is None else self.gamma
        told.rows, told.samples, told.padded = layout.counts
        self.known = None  # of fill: which rows have been ones
        return told

    def read_node(self, layout, g, vectors, counts, serial):
        """The Pass of a batch norm's node. g: None if sum g^2 is not wanted; vectors: mean, 1/s,
        sum g, sum g xhat and gain [width], contiguous and of one type."""
        mean, inverse, sum_g, sum_gx, gain = vectors
        if layout is not self.layout or (mean.dtype, False) != self.like:
            self._prepare(layout, mean.dtype, False)
        of_g = 0 if g is None else g.data_ptr()
        if not of_g and g is not None:
            raise RuntimeError("a tensor has no memory")
        self.call(of_g, 0, mean.data_ptr(), inverse.data_ptr(),
                  sum_g.data_ptr(), sum_gx.data_ptr(), gain.data_ptr())
        told = self.told
        told.kind, told.serial, told.norms, told.gamma = "batch_norm", serial, None, self.gamma
        told.rows, told.samples, told.padded = counts
        self.known = None
        return told

    def _prepare(self, layout, dtype, square):
        self.layout, self.like = layout, (dtype, square)
        self.call = _native.PassSums(layout.native, layout.dtype, dtype, self.block, square,
                                     self.site.eps * self.site.share, self.site.uses == "psi2")
