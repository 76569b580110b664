"""What the modules share: options, shapes and masks, gain and bias, running values."""

import math
from typing import Any, Callable, ClassVar, Dict, List, Mapping, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from ._rows import Rows, rows_of
from ._sync import all_sum, group_of

_KEPT = 8  # calls in a checkpointed region that may await their second forward pass


class Norm(nn.Module):
    """A normalization of [N, C], [N, C, L], [N, C, H, W], or of [..., C] with channels_last=True.

    `mask` of forward: True in valid rows, of the input's shape without its features. Rows of
    padding enter no sum; they come out as 0 and get gradient 0. Statistics are computed in float32
    at least; the output has the type of the input.
    """

    method: ClassVar[str] = ""
    padded: ClassVar[bool] = False  # a release that writes rows of padding too
    num_features: int
    weight: Optional[nn.Parameter]
    bias: Optional[nn.Parameter]

    def __init__(
        self,
        num_features: int,
        eps: float,
        affine: bool,
        channels_last: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if num_features < 1:
            raise ValueError(
                f"{self._name()}: num_features is {num_features}, at least 1 is wanted"
            )
        if not 0 <= eps < math.inf:
            raise ValueError(f"{self._name()}: eps is {eps}, zero or a positive number is wanted")
        self.num_features, self.eps, self.channels_last = num_features, eps, channels_last
        self.affine = affine
        place = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.ones(num_features, **place)) if affine else None
        self.bias = nn.Parameter(torch.zeros(num_features, **place)) if affine else None

    def _name(self) -> str:
        return type(self).__name__

    def _group(self) -> Optional[object]:
        return None

    def forward(self, input: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """The normalized input. mask: True in valid rows; None: all are valid."""
        rows = rows_of(
            input, mask, self.num_features, self.channels_last, self._group(), self._name()
        )
        x = input.to(torch.promote_types(input.dtype, torch.float32))
        if self.padded:
            return self._normalized(x, rows).to(input.dtype)
        return rows.valid(self._normalized(rows.valid(x), rows)).to(input.dtype)

    def _normalized(self, x: Tensor, rows: Rows) -> Tensor:
        raise NotImplementedError

    def _affine(self, z: Tensor, rows: Rows) -> Tensor:
        """gamma z + beta."""
        if self.weight is None or self.bias is None:
            return z
        return rows.wide(self.weight.to(z.dtype)) * z + rows.wide(self.bias.to(z.dtype))

    def _options(self) -> Dict[str, Any]:
        """What extra_repr prints."""
        return {"eps": self.eps, "affine": self.affine}

    def extra_repr(self) -> str:
        options = dict(self._options())
        if self.channels_last:
            options["channels_last"] = True
        return ", ".join(
            [str(self.num_features), *(f"{name}={value}" for name, value in options.items())]
        )


class RunningNorm(Norm):
    """A normalization with running values, which training moves and evaluation uses.

    alpha weighs the OLD running value, momentum = 1 - alpha the new one; alpha=None takes momentum.
    layer_scale=G divides each row, in G groups of features, by its root mean square first.
    sync=True: the rows of all processes of `process_group` are one batch. check=True raises where a
    batch has no valid row; otherwise such a step has no effect.
    """

    synchronizes: ClassVar[bool] = True
    num_batches_tracked: Tensor

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: Optional[float],
        affine: bool,
        alpha: Optional[float],
        layer_scale: int,
        sync: bool,
        process_group: Any,
        channels_last: bool,
        check: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__(num_features, eps, affine, channels_last, device, dtype)
        if alpha is not None:
            momentum = 1 - alpha
        if momentum is None or not 0 <= momentum <= 1:
            raise ValueError(
                f"{self._name()}: momentum is {momentum} and alpha {alpha}; numbers from "
                "0 to 1 are wanted, alpha = 1 - momentum"
            )
        if layer_scale < 0 or (layer_scale and num_features % layer_scale):
            raise ValueError(
                f"{self._name()}: {num_features} features cannot be cut into "
                f"{layer_scale} groups of the layer scale"
            )
        if sync and not self.synchronizes:
            raise ValueError(f"{self._name()}: the method has no synchronized statistics")
        self.momentum, self.layer_scale, self.check = momentum, layer_scale, check
        self.sync, self.process_group = sync, process_group
        self._place = {"device": device, "dtype": dtype}
        self.register_buffer(
            "num_batches_tracked", torch.tensor(0, device=device, dtype=torch.long)
        )
        self._calls: List[Tuple[Tensor, Mapping[str, Tensor]]] = []
        self._watcher: Optional[Callable[[Any, Tensor, Tensor], None]] = None

    @property
    def alpha(self) -> float:
        """Weight of the old running value."""
        return 1 - self.momentum

    def _running(self, name: str, initial: float, *slots: int) -> None:
        """Adds a running value [slots, features]."""
        value = torch.full((*slots, self.num_features), float(initial), **self._place)
        self.register_buffer(name, value)

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
        """Running values from before this call. A region of torch.utils.checkpoint runs twice: the
        second time, within the backward pass, the values are those that the first time had."""
        state = {name: value for name, value in self._buffers.items() if value is not None}
        if torch.compiler.is_compiling():
            return state
        if _within_backward():
            return self._first_time(x)
        if not torch.is_grad_enabled() or _saves_elsewhere():
            copy = {name: value.clone() for name, value in state.items()}
            self._calls = [*self._calls, (x.detach().sum(), copy)][-_KEPT:]
        return state

    def _first_time(self, x: Tensor) -> Mapping[str, Tensor]:
        if not self._calls:
            raise RuntimeError(
                f"{self._name()}: a forward pass within a backward pass, whose first "
                "time was not seen"
            )
        mark, found = x.detach().sum(), 0
        if len(self._calls) > 1:
            found = next(
                (i for i, (other, _) in enumerate(self._calls) if torch.equal(mark, other)),
                len(self._calls) - 1,
            )
        return self._calls[found][1]

    def _move(self, rows: Rows, before: Mapping[str, Tensor], **values: Tensor) -> None:
        """Gives running values their new numbers, unless there was no valid row or the call is the
        second of a checkpointed region."""
        if not torch.compiler.is_compiling() and _within_backward():
            return
        with torch.no_grad():
            values["num_batches_tracked"] = before["num_batches_tracked"] + 1
            for name, new in values.items():
                old = before[name]
                new = new.detach().to(old.dtype)
                if rows.some is not True:
                    new = torch.where(torch.as_tensor(rows.some, device=old.device), new, old)
                if torch.compiler.is_compiling():  # the graph must not lose what the call has used
                    setattr(self, name, new)
                else:
                    old.copy_(new)

    def _averaged(self, before: Tensor, batch: Tensor) -> Tensor:
        """alpha old + (1 - alpha) batch."""
        batch = batch.detach()
        return self.alpha * before.to(batch.dtype) + self.momentum * batch

    def _options(self) -> Dict[str, Any]:
        options = {"eps": self.eps, "momentum": round(self.momentum, 12), "affine": self.affine}
        if self.layer_scale:
            options["layer_scale"] = self.layer_scale
        return {**options, **({"sync": True} if self.sync else {})}

    def reset_running_stats(self) -> None:
        """Running values as they were at construction."""
        for name, value in self._initial().items():
            self._buffers[name].fill_(value)  # type: ignore[union-attr]

    def _initial(self) -> Dict[str, float]:
        return {"num_batches_tracked": 0}

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_calls": []}


def layer_scaled(x: Tensor, feature: int, groups: int, eps: float) -> Tensor:
    """Each row, in `groups` groups of features, divided by its root mean square."""
    parts = x.unflatten(feature, (groups, -1))
    square = (parts * parts).mean(feature + 1, keepdim=True)
    return (parts * (square + eps).rsqrt()).flatten(feature, feature + 1)


def centered(x: Tensor, rows: Rows) -> Tuple[Tensor, Tensor, Tensor]:
    """Mean [features], x minus it (0 in rows of padding), biased variance [features].

    A value of each column is subtracted first: float32 keeps the deviations where the mean is
    large.
    """
    own: Union[int, Tensor] = max(x.numel() // rows_wide(x, rows), 1)
    if rows.mask is not None:
        own = rows.mask.sum().clamp(min=1)
        shift = x.detach().sum(rows.dims) / own
    elif x.numel() == 0:
        shift = x.new_zeros(rows_wide(x, rows))
    else:
        shift = x.detach()
        for i in reversed(rows.dims):
            shift = shift.select(i, 0)
    apart = rows.valid(x - rows.wide(shift))
    if rows.group is None:
        delta = rows.mean(apart)
        mean = shift + delta
    else:
        n = x.numel() // rows_wide(x, rows) if rows.mask is None else rows.mask.sum()
        total = apart.sum(rows.dims).double() + shift.double() * n
        exact = all_sum(total, rows.group) / rows.number
        delta, mean = (exact - shift.double()).to(x.dtype), exact.to(x.dtype)
    apart = rows.valid(apart - rows.wide(delta))
    return mean, apart, rows.mean(apart * apart)


def rows_wide(x: Tensor, rows: Rows) -> int:
    """Number of features."""
    return x.shape[rows.feature]


# -- torch's private functions; without them nothing is checkpointed -----


def _within_backward() -> bool:
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def _saves_elsewhere() -> bool:
    top = getattr(getattr(torch._C, "_autograd", None), "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None
