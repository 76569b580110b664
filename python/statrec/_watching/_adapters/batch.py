"""torch's BatchNorm1d, 2d, 3d and SyncBatchNorm with torch's own forward."""
import math

from torch import nn

_FORWARD = (nn.modules.batchnorm._BatchNorm.forward, nn.SyncBatchNorm.forward)


def fits(module):
    return isinstance(module, nn.modules.batchnorm._BatchNorm) and type(module).forward in _FORWARD


def describe(site, module):
    site.norm, site.family, site.observed = "bn", "sigma", False
    site.width, site.eps, site.first = module.num_features or None, module.eps, True
    running(site, module)


def running(site, module):
    """The module's own running statistics: evaluation uses its buffers, even if training does not
    update them (track_running_stats=False set after construction)."""
    site.own_running = all(getattr(module, name, None) is not None for name in ("running_mean", "running_var"))
    momentum = getattr(module, "momentum", None)
    if not site.own_running:
        return
    if not getattr(module, "track_running_stats", True):
        site.alpha = 1.0
    else:
        site.alpha = math.nan if momentum is None else 1 - momentum


ROW = (fits, describe, "BatchNorm1d, 2d, 3d, SyncBatchNorm", "bn, sigma", "dimension 1",
       "the module's, alpha = 1 - momentum (NaN with `momentum=None`); without buffers the "
       "recorder's, with `alpha`")
