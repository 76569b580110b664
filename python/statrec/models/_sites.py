"""The normalization of every site of a model, as `statrec train` chooses it."""

import fnmatch
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from torch import Tensor, nn

from ..nn import METHODS, Norm, make
from ..nn._base._running_norm import RunningNorm
from ._options import Options
from .sample_norm import GroupNorm, InstanceNorm

# Default alpha, the weight of the old running value, if it is not 0.95 (0.9 in image networks).
_ALPHA = {"pn": 0.9, "pn-released": 0.9, "un": 0.9, "brn": 0.99, "mabn": 0.98}
# Parameters that have another name in statrec.nn.
_RENAMED = {
    "rbn": {"lambda": "lambda_mean", "nu": "lambda_std"},
    "rbn-released": {"lambda": "lambda_mean", "nu": "lambda_std"},
}
# Parameters that statrec.nn leaves to its caller: the loss that the penalty is added to.
_CALLERS = {("rbn", "scale")}
_WORDS: Dict[str, Any] = {"on": True, "off": False}
_SAMPLES = {"groupnorm": GroupNorm, "instancenorm": InstanceNorm}


class NoNorm(nn.Module):
    """y = x, with 0 in rows of padding."""

    def forward(self, input: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        return input if mask is None else input * mask.unsqueeze(-1)


class _Site(NamedTuple):
    parent: nn.Module
    attribute: str
    name: str
    features: int
    norm: str


class Sites:
    """Collects the sites of a model in the order of the forward pass, then gives each its norm."""

    def __init__(self, options: Options, channels_last: bool, heads: int = 0) -> None:
        self._options, self._last, self._heads = options, channels_last, heads
        self._sites: List[_Site] = []

    def add(self, parent: nn.Module, attribute: str, name: str, features: int, norm: str) -> None:
        """A site whose norm will be parent.attribute; norm: METHOD(NAME=VALUE;...)+ls."""
        parent.add_module(attribute, NoNorm())
        self._sites.append(_Site(parent, attribute, name, features, norm))

    def fill(self) -> None:
        """Makes the norms. The first pattern of norm-at that matches a site decides."""
        chosen: Dict[int, str] = {}
        for pattern, norm in self._assignments():
            met = [i for i in self._matches(pattern) if i not in chosen]
            if not met:
                raise ValueError(f"norm-at: {pattern!r:.80} decides no site")
            chosen.update({i: norm for i in met})
        for i, site in enumerate(self._sites):
            made = self._made(chosen.get(i, site.norm), site.features)
            site.parent.add_module(site.attribute, made)

    def _assignments(self) -> List[Tuple[str, str]]:
        text = self._options["norm-at"]
        entries = re.findall(r"(?:[^,(]|\([^)]*\))+", text)
        pairs = [entry.split("=", 1) for entry in entries]
        if any(len(pair) < 2 for pair in pairs):
            raise ValueError(f"norm-at: {text!r:.80} is no list of SITES=METHOD")
        return [(pair[0], pair[1]) for pair in pairs]

    def _matches(self, pattern: str) -> List[int]:
        count = len(self._sites)
        places = {"first": 0, "middle": (count - 1) // 2, "last": count - 1}
        if pattern in places:
            return [places[pattern]]
        return [i for i in range(count) if fnmatch.fnmatchcase(self._sites[i].name, pattern)]

    def _made(self, norm: str, features: int) -> nn.Module:
        method, options = _parsed(norm)
        if method == "none":
            return NoNorm()
        options = {**self._shared(method), **options}
        if method in _SAMPLES:
            return _SAMPLES[method](features, channels_last=self._last, **options)
        cls = METHODS[method].cls if method in METHODS else None
        if cls is None:
            raise ValueError(f"no normalization is called {method!r:.80}")
        scale = options.get("layer_scale", 0) or self._scale(method, norm)
        if scale and not issubclass(cls, RunningNorm):
            raise ValueError(f"{method} has no layer scale here, as {norm!r:.80} wants")
        if scale:
            options["layer_scale"] = scale
        try:
            return make(method, features, channels_last=self._last, **options)
        except TypeError as error:
            raise ValueError(f"{norm!r:.80}: {error}") from None

    def _shared(self, method: str) -> Dict[str, Any]:
        """eps and alpha of the options, or the method's."""
        options: Dict[str, Any] = {}
        eps, alpha = self._options["norm-eps"], self._options["norm-alpha"]
        if eps == eps and method not in ("dyt", "derf"):
            options["eps"] = eps
        if method in METHODS and issubclass(METHODS[method].cls, RunningNorm):
            default = _ALPHA.get(method, 0.95 if self._last else 0.9)
            options["alpha"] = alpha if alpha == alpha else default
        return options

    def _scale(self, method: str, norm: str) -> int:
        """Groups of the layer scale: one a head for NAME+ls and pn-released, in images one."""
        if self._options["layer-scale"]:
            return int(self._options["layer-scale"])
        if norm.endswith("+ls") or method == "pn-released":
            return self._heads or 1
        return 1 if method == "bn-powernorm" else 0


def _parsed(norm: str) -> Tuple[str, Dict[str, Any]]:
    """Method and parameters of METHOD(NAME=VALUE;...)+ls, for statrec.nn."""
    form = re.fullmatch(r"([^(+]+)(?:\(([^()]*)\))?(?:\+ls)?", norm)
    if form is None:
        raise ValueError(f"{norm!r:.80} is not METHOD(NAME=VALUE;...)+ls")
    method, options = form[1], {}
    for entry in filter(None, (form[2] or "").split(";")):
        name, equals, value = entry.partition("=")
        if not equals:
            raise ValueError(f"{norm!r:.80}: {entry!r:.80} is not NAME=VALUE")
        if (method, name) not in _CALLERS:
            options[_RENAMED.get(method, {}).get(name, name)] = _number(value)
    return method, options


def _number(text: str) -> Any:
    """A number, or a word of an option."""
    if text in _WORDS:
        return _WORDS[text]
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value

