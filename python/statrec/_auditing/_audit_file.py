"""The run file of an audit: a step for each batch, readable by statrec.open and the programs."""
import math
import os

from ._audit_score import OUTPUTS
from ._audit_sites import BATCH, RECOMPUTED, RUNNING
from .._library import Error, library
from .._version import version

_SCALARS = {
    "audit_shift": ("1", "||mean - mu||_2 / ||sigma||_2, mean over all batches, without the noise "
                         "of the batches; in the last step"),
    "audit_spread": ("1", "||s - sigma||_2 / ||sigma||_2, s^2 the mean variance of all batches "
                          "with divisor n - 1, without the noise of the batches; in the last step"),
    "audit_share": ("1", "(running - this site's)/(running - every site's) of the audit's measure; "
                         "in the last step"),
}
_ENDINGS = {RUNNING: "", BATCH: "_batch", RECOMPUTED: "_recomputed"}


def check(path):
    """statrec.Error where the file cannot be written, before the audit begins."""
    if os.path.exists(os.fsdecode(path)):
        raise Error(f"{os.fsdecode(path)} exists", "io", "choose another name")
    library()


def write(audit, work, path):
    """Writes it. Moments of the batches are those with batch statistics; mu and sigma2 are the
    running statistics. Evaluations have the measures as NAME, NAME_batch and NAME_recomputed."""
    from .._recorder import Recorder
    used = [(site, gauge) for site, gauge in zip(audit.sites, work.gauges) if gauge.moments.seen]
    with Recorder(path, program="statrec.audit", version=version, model=audit.model,
                  planned_steps=audit.batches, vectors_every=1, loss_reduction="mean") as recorder:
        for name, (unit, definition) in _SCALARS.items():
            recorder.declare_scalar(name, unit, definition, "site")
        _declare_metrics(recorder, audit)
        numbers = [recorder.add_site(**{**gauge.site.declaration(depth, "last"),
                                        "width": gauge.width, "alpha": math.nan})
                   for depth, (_, gauge) in enumerate(used)]
        for place in range(audit.batches):
            recorder.begin_step(place + 1)
            for number, (_, gauge) in zip(numbers, used):
                _put(recorder, number, gauge, place)
            if place == audit.batches - 1:
                _put_scalars(recorder, numbers, used)
            recorder.end_step(update=place + 1, tokens=0, loss=_loss(audit, place))
            recorder.evaluate(place + 1, **{one.name + end: one.values[regime][place]
                                            for one in audit.measures.values()
                                            for regime, end in _ENDINGS.items()})


def _declare_metrics(recorder, audit):
    words = {RUNNING: "running", BATCH: "batch", RECOMPUTED: "recomputed"}
    for one in audit.measures.values():
        what = ("||output - o|| / ||o||, o with batch statistics" if one.name == OUTPUTS
                else f"{one.name} of a batch")
        for regime, end in _ENDINGS.items():
            recorder.add_metric(one.name + end, one.unit or "1",
                                f"{what}, with {words[regime]} statistics",
                                "more" if one.more else "less")


def _put(recorder, number, gauge, place):
    found = gauge.moments.at(place)
    if found is None:
        return
    rows, mean, variance = found
    kept = [mean, variance, variance + mean * mean, gauge.mean, gauge.variance]
    at = [tensor.data_ptr() for tensor in kept]
    recorder.put_forward(number, rows, *at[:3])
    recorder.put_vectors("mu", [(number, at[3])])
    recorder.put_vectors("sigma2", [(number, at[4])])


def _put_scalars(recorder, numbers, used):
    for number, (site, _) in zip(numbers, used):
        share = math.nan if site.share is None else site.share
        for name, value in zip(_SCALARS, (site.shift.value, site.spread.value, share)):
            recorder.put_scalar(number, name, value)


def _loss(audit, place):
    one = audit.measures.get("loss")
    return math.nan if one is None else one.values[RUNNING][place]
