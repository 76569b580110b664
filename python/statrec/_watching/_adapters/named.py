"""Normalizations that no row of the file describes in full: statistics of their input, as a BN in its
place would have them. g is the gradient of their output, after an activation that they contain."""
import re

from .. import _probe

_NAMES = {"frn": r"FilterResponseNorm|^FRN", "evonorm": r"^EvoNorm",
          "grn": r"GlobalResponseNorm|^GRN", "graphnorm": r"^GraphNorm",
          "brn": r"Batch_?Renorm"}


def _norm(module):
    name = _probe.class_of(module).__name__
    return next((norm for norm, pattern in _NAMES.items() if re.search(pattern, name)), None)


def fits(module):
    return _norm(module) is not None and next(module.children(), None) is None


def describe(site, module):
    first = _probe.features_first(module)
    if first is None:
        return False
    site.norm, site.first, site.gain, site.stock = _norm(module), first, None, False
    return True


ROW = (fits, describe, "FilterResponseNorm, EvoNorm, GlobalResponseNorm, GraphNorm, BatchRenorm, by "
       "name", "frn, evonorm, grn, graphnorm, brn; none", "dimension 1 or the last",
       "the recorder's, with `alpha`")
