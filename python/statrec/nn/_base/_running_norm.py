"""The base of the modules with running values."""

import math
from typing import Any, Callable, ClassVar, Dict, Mapping, Optional

import torch
from torch import Tensor

from ._moments import centered, layer_scaled
from ._norm import Norm, Texts
from ._options import Default, Options, Unpack
from ._recomputation import Calls, within_backward
from ._rows import Rows
from ._sync import group_of


class RunningNorm(Norm):
    """A normalization with running values, which training moves and evaluation uses.

    alpha weighs the OLD running value, momentum = 1 - alpha the new one; alpha=None takes momentum;
    values that disagree are an error.
    layer_scale=G divides each row, in G groups of features, by its root mean square first.
    sync=True: the rows of all processes of `process_group` are one batch. check=True raises where a
    batch has no valid row; otherwise such a step has no effect.
    """

    synchronizes: ClassVar[bool] = True
    shown: ClassVar[Texts] = {
        "eps": str,
        "momentum": lambda value: str(round(value, 12)),
        "affine": str,
        "layer_scale": str,
        "sync": str,
    }
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: Optional[float],
        affine: bool,
        *,
        alpha: Optional[float] = None,
        layer_scale: int = 0,
        sync: bool = False,
        process_group: Any = None,
        check: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(num_features, eps, affine, **options)
        self.momentum = self._weight(momentum, alpha)
        self.layer_scale = self._count("layer_scale", layer_scale, 0)
        if self.layer_scale and self.num_features % self.layer_scale:
            raise ValueError(
                f"{self._name()}: {num_features} features cannot be cut into "
                f"{layer_scale} groups of the layer scale"
            )
        self.check, self.sync = self._flag("check", check), self._flag("sync", sync)
        if (self.sync or process_group is not None) and not self.synchronizes:
            raise ValueError(f"{self._name()}: the method has no synchronized statistics")
        self.process_group = process_group
        self._first: Dict[str, float] = {}
        self._state("num_batches_tracked", 0, dtype=torch.long)
        self._calls = Calls()
        self._watcher: Optional[Callable[[Any, Tensor, Tensor], None]] = None

    def _weight(self, momentum: Optional[float], alpha: Optional[float]) -> float:
        """Weight of the new value: momentum, or 1 - alpha."""
        weight = float(self._number("momentum", momentum, 0, 1))
        if alpha is None:
            return weight
        new = 1 - float(self._number("alpha", alpha, 0, 1))
        if isinstance(momentum, Default):
            return new
        if not math.isclose(weight, new, abs_tol=1e-12):
            raise ValueError(
                f"{self._name()}: alpha and momentum are both given, {alpha} and {momentum}; "
                "one is wanted, alpha = 1 - momentum"
            )
        return weight

    @property
    def alpha(self) -> float:
        """Weight of the old running value."""
        return 1 - self.momentum

    def _state(self, name: str, first: float, *shape: int, dtype: Any = None) -> None:
        """Adds a buffer that training moves, and remembers its first number."""
        self._first[name] = first
        place = self._place if dtype is None else {**self._place, "dtype": dtype}
        self.register_buffer(name, torch.full(shape, first, **place))

    def _running(self, name: str, first: float, *slots: int) -> None:
        """Adds a running value [slots, features]."""
        self._state(name, float(first), *slots, self.num_features)

    def reset_parameters(self) -> None:
        """Parameters and running values as they were at construction."""
        super().reset_parameters()
        self.reset_running_stats()

    def reset_running_stats(self) -> None:
        """Running values as they were at construction."""
        for name, first in self._first.items():
            self._buffers[name].fill_(first)  # type: ignore[union-attr]

    def _group(self) -> Optional[object]:
        return group_of(self.sync and self.training, self.process_group)

    # -- a call ---------------------------------------------------------------------------------

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        if self.layer_scale:
            x = layer_scaled(x, rows.feature, self.layer_scale, self.eps)
        if not self.training:
            return self._evaluated(x, rows)
        if self.check and not bool(rows.some):
            raise ValueError(f"{self._name()}: the batch has no valid row")
        if self._watcher is not None:
            self._tell(x, rows)
        return self._trained(x, rows, self._before(x))

    def _tell(self, x: Tensor, rows: Rows) -> None:
        """Gives statrec.nn.recompute the moments of the valid rows."""
        assert self._watcher is not None
        mean, _, variance = centered(rows.valid(x.detach()), rows)
        count = rows.number if rows.some is True else rows.number * rows.some
        self._watcher(count, mean, variance)

    def _evaluated(self, x: Tensor, rows: Rows) -> Tensor:
        """By running values."""
        raise NotImplementedError

    def _trained(self, x: Tensor, rows: Rows, before: Mapping[str, Tensor]) -> Tensor:
        """By the batch; before: running values of this call. Ends with _move."""
        raise NotImplementedError

    def _before(self, x: Tensor) -> Mapping[str, Tensor]:
        """Running values from before this call: in the second run of a region of
        torch.utils.checkpoint those that the first one had."""
        if not torch.compiler.is_compiling() and within_backward():
            return self._calls.first_time(x, self._name())
        state = {name: value for name, value in self._buffers.items() if value is not None}
        if not torch.compiler.is_compiling():
            self._calls.note(x, state)
        return state

    def _move(self, rows: Rows, before: Mapping[str, Tensor], **values: Tensor) -> None:
        """Gives running values their new numbers, unless there was no valid row or the call is the
        second of a checkpointed region."""
        if not torch.compiler.is_compiling() and within_backward():
            return
        with torch.no_grad():
            values["num_batches_tracked"] = before["num_batches_tracked"] + 1
            for name, value in values.items():
                new = rows.kept(value, before[name])
                if torch.compiler.is_compiling():  # the graph must not lose what the call has used
                    setattr(self, name, new)
                else:
                    before[name].copy_(new)

    def _averaged(self, before: Tensor, batch: Tensor) -> Tensor:
        """alpha old + (1 - alpha) batch."""
        batch = batch.detach()
        return self.alpha * before.to(batch.dtype) + self.momentum * batch

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_calls": Calls()}
