"""torch's LayerNorm and RMSNorm with torch's own forward."""
import math

import torch
from torch import nn

_CLASSES = (nn.LayerNorm,) + ((nn.RMSNorm,) if hasattr(nn, "RMSNorm") else ())


def fits(module):
    return isinstance(module, _CLASSES) and type(module).forward in [
        one.forward for one in _CLASSES]


def describe(site, module):
    site.family, site.trailing, site.groups = "row", len(module.normalized_shape), 0
    site.width = math.prod(module.normalized_shape)
    site.eps = torch.finfo(torch.float32).eps if module.eps is None else module.eps
    if isinstance(module, nn.LayerNorm):
        site.norm, site.uses = "ln" if module.elementwise_affine else "ln-simple", "mu,sigma2"
    else:
        site.norm, site.uses = "rmsnorm", "psi2"


ROW = (fits, describe, "LayerNorm, RMSNorm", "ln, ln-simple, rmsnorm; row",
       "all of `normalized_shape`, flat", "the recorder's, with `alpha`")
