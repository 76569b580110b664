"""Layer scale and group scale (Shen et al., ICML 2020, appendix; docs/norms.md 13)."""

from typing import ClassVar

from torch import Tensor

from ._base import Norm, Options, Rows, Texts, Unpack, layer_scaled


class LayerScale(Norm):
    """Each row, cut into `groups` groups of features, divided by the root mean square of the group.

        y = x / sqrt(mean over the group of x^2 + eps)

    One group: the layer scale; one a head: the group scale, which the PowerNorm release calls
    GroupScaling. y^2 is at most features/groups, which limits how fast PowerNorm's nu can grow.
    Methods with running values contain it as their option layer_scale. No parameters, no state. Shapes: as LayerNorm.
    Source: docs/norms.md 13.
    """

    method = "ls"
    shown: ClassVar[Texts] = {"groups": str, "eps": str}

    def __init__(
        self, num_features: int, groups: int = 1, eps: float = 1e-5, **options: Unpack[Options]
    ) -> None:
        super().__init__(num_features, eps, False, **options)
        self.groups = self._count("groups", groups, 1)
        if num_features % groups:
            raise ValueError(
                f"{self._name()}: {num_features} features cannot be cut into {groups} groups"
            )

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        return layer_scaled(x, rows.feature, self.groups, self.eps)


GroupScaling = LayerScale
