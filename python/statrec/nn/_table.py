"""The methods by the name that `statrec train --norm` has for them; one row each."""

from typing import Any, Dict, NamedTuple, Tuple, Type

from ._base import Norm
from ._base._options import check_options
from .ada_norm import AdaNorm
from .batch_norm import BatchNorm
from .batch_norm_powernorm import BatchNormPowerNorm
from .batch_renorm import BatchRenorm
from .derf import Derf
from .detach_norm import DetachNorm
from .dynamic_tanh import DynamicTanh
from .layer_norm import LayerNorm
from .layer_norm_simple import LayerNormSimple
from .layer_scale import LayerScale
from .moving_average_batch_norm import MovingAverageBatchNorm
from .power_norm import PowerNorm
from .power_norm_released import PowerNormReleased
from .power_norm_v import PowerNormV
from .regularized_batch_norm import RegularizedBatchNorm
from .regularized_batch_norm_released import RegularizedBatchNormReleased
from .rep_bn import RepBN
from .rms_norm import RMSNorm
from .unified_norm import UnifiedNorm
from .unit_norm import UnitNorm


class Method(NamedTuple):
    """A class and the options that its name implies."""

    cls: Type[Norm]
    options: Dict[str, Any]


METHODS: Dict[str, Method] = {
    "bn": Method(BatchNorm, {}),
    "bn-powernorm": Method(BatchNormPowerNorm, {}),
    "ln": Method(LayerNorm, {}),
    "ln-simple": Method(LayerNormSimple, {}),
    "detach-mean": Method(DetachNorm, {"detach": "mean"}),
    "detach-std": Method(DetachNorm, {"detach": "std"}),
    "detach-both": Method(DetachNorm, {"detach": "both"}),
    "adanorm": Method(AdaNorm, {}),
    "rmsnorm": Method(RMSNorm, {}),
    "pnv": Method(PowerNormV, {}),
    "pn": Method(PowerNorm, {}),
    "pn-released": Method(PowerNormReleased, {}),
    "ls": Method(LayerScale, {}),
    "rbn": Method(RegularizedBatchNorm, {}),
    "rbn-released": Method(RegularizedBatchNormReleased, {}),
    "brn": Method(BatchRenorm, {}),
    "mabn": Method(MovingAverageBatchNorm, {}),
    "dyt": Method(DynamicTanh, {}),
    "derf": Method(Derf, {}),
    "un": Method(UnifiedNorm, {}),
    "repbn": Method(RepBN, {}),
    "unit": Method(UnitNorm, {}),
}


def method_of(name: str) -> Tuple[Type[Norm], Dict[str, Any]]:
    """Class and options of a name of METHODS, or of NAME+ls: the same after a layer scale."""
    base, plus, scale = name.partition("+") if isinstance(name, str) else (name, "", "")
    if not isinstance(name, str) or base not in METHODS or (plus and scale != "ls"):
        raise ValueError(
            f"no normalization is called {name!r:.80}; there are {', '.join(METHODS)}, and "
            "NAME+ls with a layer scale before those with running values"
        )
    row = METHODS[base]
    if plus and "layer_scale" not in row.cls.__signature__.parameters:
        raise ValueError(f"{name}: {base} has no layer scale; LayerScale before it is the same")
    return row.cls, {**row.options, **({"layer_scale": 1} if plus else {})}


def make(name: str, num_features: int, **options: Any) -> Norm:
    """A module by its name: make("pn+ls", 512, channels_last=True)."""
    cls, own = method_of(name)
    check_options(cls, name, options, "make")
    return cls(num_features, **{**own, **options})
