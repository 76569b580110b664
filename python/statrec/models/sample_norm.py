"""Group and instance normalization with a mask (docs/norms.md 8, 9)."""

from torch import Tensor

from ..nn import Norm
from ..nn._base._options import Options, Unpack
from ..nn._base._rows import Rows


class SampleNorm(Norm):
    """Mean and variance over the valid rows of a sample and the features of a group.

    The first dimension of the input counts samples. Shapes: as statrec.nn.LayerNorm; no state.
    """

    shown = {"groups": str, **Norm.shown}
    groups: int

    def __init__(
        self,
        num_features: int,
        groups: int,
        eps: float,
        affine: bool,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, eps, affine, **options)
        if groups < 1 or num_features % groups:
            raise ValueError(
                f"{self._name()}: {num_features} features cannot be cut into {groups} groups"
            )
        self.groups = groups

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        last = x.movedim(rows.feature, -1)
        parts = last.reshape(len(x), -1, self.groups, self.num_features // self.groups)
        if rows.mask is None:
            valid = parts.new_ones(parts.shape[:2])
        else:
            valid = rows.mask.reshape(len(x), -1).to(x.dtype)
        valid = valid[..., None, None]  # of [samples, rows, groups, features of a group]
        number = (valid.sum((1, 3), keepdim=True) * parts.shape[-1]).clamp(min=1)
        apart = (parts - (parts * valid).sum((1, 3), keepdim=True) / number) * valid
        variance = (apart * apart).sum((1, 3), keepdim=True) / number
        y = (apart * (variance + self.eps).rsqrt()).reshape(last.shape)
        return self._affine(y.movedim(-1, rows.feature), rows)


class GroupNorm(SampleNorm):
    """Group normalization (Wu and He, ECCV 2018). With channels_last=True, as for text, each row is
    a separate sample."""

    method = "groupnorm"

    def __init__(
        self,
        num_features: int,
        groups: int = 1,
        eps: float = 1e-5,
        affine: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, groups, eps, affine, **options)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        if not self.channels_last:
            return super()._normalized(x, rows)
        each = rows._replace(feature=1, dims=(0,), view=(1, self.num_features), mask=None)
        return super()._normalized(x.flatten(0, -2), each).view_as(x)


class InstanceNorm(SampleNorm):
    """Instance normalization (Ulyanov, Vedaldi and Lempitsky, 2016): each feature over the rows of
    a sample."""

    method = "instancenorm"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        affine: bool = True,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, num_features, eps, affine, **options)
