"""The rows of an input: which dimensions they run over, which are valid, how many there are."""

from typing import NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from ._sync import all_sum


class Rows(NamedTuple):
    """The rows of one input. As a tuple of plain values it goes through autograd functions.

    dims: dimensions that rows run over. feature: dimension of the features. view: shape of a vector
    [features] beside the input. mask: valid rows, of the input's shape with 1 feature; None: all.
    own: valid rows of this process. number: of all processes where these are synchronized; at least
    1. some: whether there is a valid row. group: processes whose rows are one batch; None: this
    process alone.
    """

    dims: Tuple[int, ...]
    feature: int
    view: Tuple[int, ...]
    mask: Optional[Tensor]
    own: Union[int, Tensor]
    number: Union[int, Tensor]
    some: Union[bool, Tensor]
    group: Optional[object]

    def wide(self, vector: Tensor) -> Tensor:
        """A vector [features], for arithmetic with the input."""
        return vector.view(self.view)

    def valid(self, x: Tensor) -> Tensor:
        """x with 0 in the rows of padding, whatever they held."""
        return x if self.mask is None else torch.where(self.mask, x, 0)

    def any(self, x: Tensor) -> Tensor:
        """x with 0 in all rows if none is valid, whatever they held."""
        if self.mask is None:
            return x
        return torch.where(torch.as_tensor(self.some, device=x.device), x, 0)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the rows [features]; rows of padding are 0 already."""
        total = x.sum(self.dims)
        return total if self.group is None else all_sum(total, self.group)

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the valid rows [features]; rows of padding are 0 already."""
        return self.sum(x) / self.number

    def all(self, x: Tensor) -> "Rows":
        """The same with every row valid, rows of padding too."""
        number = max(x.numel() // x.shape[self.feature], 1)
        return self._replace(mask=None, own=number, number=number)

    def kept(self, new: Tensor, old: Tensor) -> Tensor:
        """new, in old's type; old without a valid row."""
        new = new.detach().to(old.dtype)
        if self.some is True:
            return new
        return torch.where(torch.as_tensor(self.some, device=old.device), new, old)


def rows_of(
    x: Tensor,
    mask: Optional[Tensor],
    features: int,
    channels_last: bool,
    group: Optional[object],
    name: str,
) -> Rows:
    """The rows of an input whose shape fits. Raises ValueError or TypeError before anything
    else."""
    feature = _feature(x, features, channels_last, name)
    dims = tuple(i for i in range(x.dim()) if i != feature)
    view = tuple(features if i == feature else 1 for i in range(x.dim()))
    own: Union[int, Tensor] = x.numel() // features
    if mask is not None:
        _check_mask(mask, tuple(x.shape[i] for i in dims), name)
        mask = mask.unsqueeze(feature)
        own = mask.sum()
    number = own
    if group is not None:
        number = all_sum(torch.as_tensor(own, device=x.device, dtype=torch.int64), group)
    if isinstance(number, Tensor):
        return Rows(dims, feature, view, mask, own, number.clamp(min=1), number > 0, group)
    return Rows(dims, feature, view, mask, own, max(number, 1), bool(number != 0), group)


def _feature(x: Tensor, features: int, channels_last: bool, name: str) -> int:
    """Dimension of the features."""
    if not torch.is_floating_point(x):
        raise TypeError(f"{name}: the input is {x.dtype}, floating point is wanted")
    if x.dim() < (1 if channels_last else 2):
        raise ValueError(
            f"{name}: the input has shape {tuple(x.shape)}; "
            f"{'[..., C]' if channels_last else '[N, C] or [N, C, ...]'} is wanted"
        )
    feature = x.dim() - 1 if channels_last else 1
    if x.shape[feature] != features:
        other = "" if channels_last else "; channels_last=True takes [..., C]"
        raise ValueError(
            f"{name}: the input has shape {tuple(x.shape)}, {x.shape[feature]} features "
            f"in dimension {feature}; the layer has {features}{other}"
        )
    return feature


def _check_mask(mask: Tensor, wanted: Tuple[int, ...], name: str) -> None:
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}: the mask is of type {type(mask).__name__}, not a tensor")
    if mask.dtype != torch.bool or tuple(mask.shape) != wanted:
        raise ValueError(
            f"{name}: the mask has shape {tuple(mask.shape)} and is {mask.dtype}; "
            f"{wanted} of torch.bool is wanted, True in valid rows"
        )
