"""torch's GroupNorm and InstanceNorm with torch's own forward."""
from torch import nn

_INSTANCE = nn.modules.instancenorm._InstanceNorm


def fits(module):
    return (isinstance(module, nn.GroupNorm) and type(module).forward is nn.GroupNorm.forward
            or isinstance(module, _INSTANCE) and type(module).forward is _INSTANCE.forward)


def describe(site, module):
    grouped = isinstance(module, nn.GroupNorm)
    site.norm, site.family = "groupnorm" if grouped else "instancenorm", "row"
    site.axis, site.uses = "sample", "mu,sigma2"
    site.width = (module.num_channels if grouped else module.num_features) or None
    site.eps, site.first = module.eps, True
    site.groups = module.num_groups if grouped else site.width


ROW = (fits, describe, "GroupNorm, InstanceNorm1d, 2d, 3d", "groupnorm, instancenorm; row",
       "dimension 1", "the recorder's, with `alpha`")
