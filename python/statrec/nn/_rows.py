"""The rows of an input: which dimensions they run over, which are valid, how many there are."""

from typing import NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from ._sync import all_sum


class Rows(NamedTuple):
    """The rows of one input.

    dims: dimensions that rows run over. feature: dimension of the features. view: shape of a vector
    [features] beside the input. mask: valid rows, of the input's shape with 1 feature; None: all.
    number: valid rows, of all processes where these are synchronized; at least 1. some: whether
    there is a valid row. group: processes whose rows are one batch; None: this process alone.
    """

    dims: Tuple[int, ...]
    feature: int
    view: Tuple[int, ...]
    mask: Optional[Tensor]
    number: Union[int, Tensor]
    some: Union[bool, Tensor]
    group: Optional[object]

    def wide(self, vector: Tensor) -> Tensor:
        """A vector [features], for arithmetic with the input."""
        return vector.view(self.view)

    def valid(self, x: Tensor) -> Tensor:
        """x with 0 in the rows of padding, whatever they held."""
        return x if self.mask is None else torch.where(self.mask, x, 0)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over the rows [features]; rows of padding are 0 already."""
        total = x.sum(self.dims)
        return total if self.group is None else all_sum(total, self.group)

    def mean(self, x: Tensor) -> Tensor:
        """Mean over the valid rows [features]; rows of padding are 0 already."""
        return self.sum(x) / self.number


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
    dims = tuple(i for i in range(x.dim()) if i != feature)
    view = tuple(features if i == feature else 1 for i in range(x.dim()))
    wanted = tuple(x.shape[i] for i in dims)
    count: Union[int, Tensor] = x.numel() // features
    some: Union[bool, Tensor] = bool(count != 0)
    if mask is not None:
        if mask.dtype != torch.bool or tuple(mask.shape) != wanted:
            raise ValueError(
                f"{name}: the mask has shape {tuple(mask.shape)} and is {mask.dtype}; "
                f"{wanted} of torch.bool is wanted, True in valid rows"
            )
        mask = mask.unsqueeze(feature)
        count = mask.sum()
    if group is not None:
        count = all_sum(torch.as_tensor(count, device=x.device, dtype=torch.int64), group)
    if isinstance(count, Tensor):
        some = count > 0
        return Rows(dims, feature, view, mask, count.clamp(min=1), some, group)
    return Rows(dims, feature, view, mask, max(count, 1), some, group)
