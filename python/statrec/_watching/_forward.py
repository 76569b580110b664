"""watch(..., forward=True): forward passes are recorded as they come, without waiting for backward.

Every pass of a site counts, in training or evaluation mode, with gradients or without, also in
torch.inference_mode(). It records the moments of the module's input x, as in training, and the size
of x in scalars of each site: extremes, quantiles, kurtosis, the share of entries that are not
finite. The discrepancy to the running statistics follows from the moments and the module's buffers;
if modules have buffers when watch() is called, a second one is against these: adaptation to test
batches moves or removes the buffers. Gradients are not recorded.
"""
import contextlib

import torch

from . import _activations, _passes, _sums, _taps

SCALARS = {name: text for name, text in _activations.SCALARS.items() if name != "saturated"}
SCALARS = {name: text.replace("valid rows and features", "finite entries of valid rows")
           for name, text in SCALARS.items()}
SCALARS.update({
    "x_min": "smallest finite entry of x in valid rows, x what the site normalises",
    "x_max": "largest finite entry of x in valid rows",
    "x_nonfinite": "share of the entries of x in valid rows that are not finite",
})
OF_SOURCE = {
    "source_tid_mean": "||mu_B - mu||_2 / ||sqrt(sigma2)||_2 with the running statistics mu and "
                       "sigma2 that the module had when the recording began",
    "source_tid_var": "||sqrt(sigma2_B) - sqrt(sigma2)||_2 / ||sqrt(sigma2)||_2 with the running "
                      "variance sigma2 that the module had when the recording began",
}


def declare(recorder, source):
    """Declares SCALARS; source: whether modules have running statistics."""
    for name, definition in {**SCALARS, **(OF_SOURCE if source else {})}.items():
        recorder.declare_scalar(name, "1", definition, "site")


def plain():
    """A context for operations without gradients whose results may be changed later, also within
    torch.inference_mode()."""
    stack = contextlib.ExitStack()
    if torch.is_inference_mode_enabled():
        stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.no_grad())
    return stack


class Sizes:
    """Size of the entries of one or several passes: numbers that add up."""

    def __init__(self, rows):
        """rows [R, width], the valid ones of one pass."""
        finite = torch.isfinite(rows)
        self.total, self.finite = rows.numel(), int(finite.sum())
        self.whole = self.finite == self.total
        kept = rows if self.whole else rows[finite].unsqueeze(1)
        self.counts = self.least = self.most = None
        if self.finite:
            self.counts = _activations.Counts(kept)
            self.least, self.most = (float(one) for one in kept.aminmax())

    def add(self, other):
        """The passes of another one, too."""
        self.total, self.finite = self.total + other.total, self.finite + other.finite
        self.whole = self.whole and other.whole
        if self.counts is None:
            self.counts, self.least, self.most = other.counts, other.least, other.most
        elif other.counts is not None:
            self.counts.add(other.counts)
            self.least, self.most = min(self.least, other.least), max(self.most, other.most)

    def numbers(self):
        """{name of SCALARS: number}. x_row_rms covers whole rows: missing if entries are not
        finite."""
        found = {"x_nonfinite": 1 - self.finite / self.total}
        if self.counts is None:
            return found
        found.update(self.counts.numbers(), x_min=self.least, x_max=self.most)
        if not self.whole:
            del found["x_row_rms"]
        return found


class ForwardTap(_taps.Tap):
    """The forward hook of a site whose passes are recorded at once."""

    waits = False

    def wants(self, module):
        return True

    def _compiled(self, args, output):
        self.misfit = ("within torch.compile forward=True does not record; call the model outside "
                       "of it")

    def _seen(self, module, args, output):
        self.shared.guarded(self._look, module, args, output)

    def _look(self, module, args, output):
        if self.order is None and self.site.own_running and not module.training:
            self.site.alpha = 1.0  # the running statistics do not move
        with plain():
            x = self._input(args, output)
            layout = None if x is None else self._layout(x)
            if layout is None or layout.rows == 0:
                return
            rows = _activations.as_rows(x.detach(), self.first, self.width, layout.index)
            self._keep(x, layout, Sizes(rows))

    def _keep(self, x, layout, sizes):
        shared = self.shared
        shared.serial += 1
        mean, variance = _sums.moments(layout(x.detach()))
        nothing = torch.zeros_like(mean)
        samples = x.shape[0] if self.first and x.dim() > 2 else 0
        counts = layout.rows, samples, x.numel() // self.width - layout.rows
        if self.passes and not self.counts(shared.serial):
            return
        self.keep("sums", (mean, variance, nothing, nothing, nothing), self.gain(), counts,
                  shared.serial)
        self.activated(sizes, shared.serial)


def source(running):
    """Copies on the CPU of running statistics [2, width] by site."""
    return {site: values.double().cpu().clone() for site, values in running.items()}


def source_scalars(hosts, running):
    """{scalar of OF_SOURCE: {site name: number}} of a step. running: of `source`."""
    found, passes = {name: {} for name in OF_SOURCE}, {}
    for one in hosts:
        if one.rows > 0 and one.site in running:
            passes.setdefault(one.site, []).append(one)
    for site, several in passes.items():
        one, (mu, sigma2) = _passes.merged(several), running[site]
        sigma = sigma2.sqrt()
        parts = one[_passes.MEAN] - mu, one[_passes.VARIANCE].sqrt() - sigma
        for name, part in zip(OF_SOURCE, parts):
            found[name][site.name] = (part.norm() / sigma.norm()).item()
    return found
