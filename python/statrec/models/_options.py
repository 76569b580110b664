"""Options of a model, by the names that they have in `statrec train`."""

import math
from typing import Any, Dict, Mapping, Sequence, Tuple

from .._config import config_of

# Option: its value without a preset. 0, "" and NaN: the preset's.
_DEFAULTS: Dict[str, Any] = {
    "preset": "",
    "norm": "bn",
    "decoder-norm": "ln",
    "norm-at": "",
    "norm-eps": math.nan,
    "norm-alpha": math.nan,
    "layer-scale": 0,
    "embed-dim": 0,
    "ffn-dim": 0,
    "heads": 0,
    "key-size": 0,
    "value-size": 0,
    "layers": 0,
    "encoder-layers": 0,
    "decoder-layers": 0,
    "placement": "",
    "qk-norm": "none",
    "dropout": math.nan,
    "attention-dropout": math.nan,
    "relu-dropout": math.nan,
    "count-padding": False,
    "positions": "",
    "pooling": "",
    "lm-mask": "causal",
    "init": "he",
    "linear-init": "",
    "embed-std": math.nan,
    # sizes of the data
    "channels": 3,
    "classes": 10,
    "vocabulary": 0,
    "target-vocabulary": 0,
}
_WORDS: Dict[str, Tuple[str, ...]] = {
    "placement": ("", "pre", "post", "peri", "scaled"),
    "positions": ("", "sinusoidal", "none"),
    "pooling": ("", "mean", "cls"),
    "lm-mask": ("causal", "released"),
    "init": ("he", "pytorch"),
    "linear-init": ("", "xavier", "fan-in"),
}
_MOST = {"layers": 110, "encoder-layers": 64, "decoder-layers": 64, "heads": 1024}
_FRACTIONS = ("dropout", "attention-dropout", "relu-dropout", "norm-alpha", "norm-eps")

# Options of version 0.1 for parameters of a method, which a configuration has only if they did
# not fit into --norm.
_FIRST_VERSION = ("adanorm-", "brn-", "mabn-", "pn-", "rbn-")


class Options(Dict[str, Any]):
    """Values of all options of a model: options["embed-dim"]. Raises ValueError with the option,
    its value and the range. given: names with - or _."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__(_DEFAULTS)
        for name, value in given.items():
            name = name.replace("_", "-")
            if name not in _DEFAULTS:
                raise ValueError(f"{name!r:.80} is no option; there are {', '.join(_DEFAULTS)}")
            self[name] = _value(name, value)

    @classmethod
    def of_config(cls, text: str, sizes: Mapping[str, int]) -> "Options":
        """Options of the configuration that run files and checkpoints contain; others of a training
        are left out. sizes: of the data."""
        given = config_of(text)
        for name, value in given.items():
            if value and name.startswith(_FIRST_VERSION):
                raise ValueError(f"option {name} of statrec 0.1 is not supported")
        return cls({**{name: given[name] for name in _DEFAULTS if name in given}, **sizes})

    def chosen(self, name: str, preset: Any) -> Any:
        """The option's value, or the preset's without one."""
        value = self[name]
        return preset if not value or value != value else value

    def fraction(self, name: str, preset: float) -> float:
        """As chosen, where 0 is a value."""
        return preset if math.isnan(self[name]) else float(self[name])

    def preset(self, model: str, rows: Mapping[str, Any]) -> Any:
        """The row of the option preset; the first one without it."""
        name = self["preset"] or next(iter(rows))
        if name not in rows:
            raise ValueError(f"preset is {name!r:.80}; {model} has {', '.join(rows)}")
        return rows[name]


def _value(name: str, value: Any) -> Any:
    default = _DEFAULTS[name]
    try:
        if isinstance(default, bool):
            return {"yes": True, "no": False}.get(value, value) is True
        value = type(default)(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r:.80}, which is no {type(default).__name__}") from None
    if name in _WORDS and value not in _WORDS[name]:
        raise ValueError(f"{name} is {value!r:.80}, not one of {_listed(_WORDS[name])}")
    most = _MOST.get(name, 2**30) if isinstance(value, int) else 1
    checked = isinstance(value, int) or name in _FRACTIONS
    if checked and not math.isnan(value) and not 0 <= value <= most:
        raise ValueError(f"{name} is {value}, not 0 to {most}")
    return value


def _listed(words: Sequence[str]) -> str:
    return ", ".join(word for word in words if word)
