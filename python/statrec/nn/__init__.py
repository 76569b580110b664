"""statrec.nn: normalizations of the papers as modules of PyTorch. It needs torch alone.

    norm = statrec.nn.PowerNorm(512, layer_scale=4, channels_last=True)
    y = norm(x, mask=valid)                      # [N, L, 512], [N, L]

    statrec.nn.convert(model, "pn+ls", where="*norm*")
    loss = criterion(model(x), target) + statrec.nn.penalty(model)

Formulas are as in docs/norms.md and `statrec train --norm`. docs/use-a-norm-in-pytorch.md.
"""

from ._base import Norm, RunningNorm, penalty
from ._convert import convert
from ._recompute import recompute
from ._table import METHODS, make
from .ada_norm import AdaNorm
from .batch_norm import BatchNorm
from .batch_norm_powernorm import BatchNormPowerNorm
from .batch_renorm import BatchRenorm
from .derf import Derf
from .detach_norm import DetachNorm
from .dynamic_tanh import DynamicTanh
from .layer_norm import LayerNorm
from .layer_norm_simple import LayerNormSimple
from .layer_scale import GroupScaling, LayerScale
from .moving_average_batch_norm import MovingAverageBatchNorm, center_weights
from .power_norm import PowerNorm
from .power_norm_released import PowerNormReleased
from .power_norm_v import PowerNormV
from .regularized_batch_norm import RegularizedBatchNorm
from .regularized_batch_norm_released import RegularizedBatchNormReleased
from .rep_bn import RepBN
from .rms_norm import RMSNorm
from .unified_norm import UnifiedNorm
from .unit_norm import UnitNorm

__all__ = [
    "AdaNorm",
    "BatchNorm",
    "BatchNormPowerNorm",
    "BatchRenorm",
    "Derf",
    "DetachNorm",
    "DynamicTanh",
    "GroupScaling",
    "LayerNorm",
    "LayerNormSimple",
    "LayerScale",
    "METHODS",
    "MovingAverageBatchNorm",
    "Norm",
    "PowerNorm",
    "PowerNormReleased",
    "PowerNormV",
    "RMSNorm",
    "RegularizedBatchNorm",
    "RegularizedBatchNormReleased",
    "RepBN",
    "RunningNorm",
    "UnifiedNorm",
    "UnitNorm",
    "center_weights",
    "convert",
    "make",
    "penalty",
    "recompute",
]
