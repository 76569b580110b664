"""Options that the modules share. A constructor takes them as **options: Unpack[...], so that a
type checker knows them by name; the defaults are in Norm and RunningNorm."""

import inspect
import typing
from typing import Any, Dict, Iterable, Iterator, Optional, Type

from typing_extensions import TypedDict
from typing_extensions import Unpack as Unpack

from ..._nearest import nearest


class Options(TypedDict, total=False):
    """channels_last: the input is [..., C], otherwise [N, C] or [N, C, ...]. device, dtype: of
    parameters and running values, as everywhere in torch."""

    channels_last: bool
    device: Any
    dtype: Any


class RowOptions(Options, total=False):
    """unbiased: the variance over d - 1. placement: "inside", s = sqrt(v + eps), or "outside",
    s = sqrt(v) + eps."""

    unbiased: bool
    placement: str


class RunningOptions(Options, total=False):
    """alpha: weight of the OLD running value; None: 1 - momentum. check: raise ValueError where a
    batch has no valid row; otherwise such a step has no effect."""

    alpha: Optional[float]
    check: bool


class ScaledOptions(RunningOptions, total=False):
    """layer_scale: G > 0 divides each row, in G groups of features, by its root mean square
    first."""

    layer_scale: int


class SyncOptions(ScaledOptions, total=False):
    """sync: the rows of all processes of process_group (None: of all processes) are one batch."""

    sync: bool
    process_group: Any


class Default(float):
    """A number that was not given: an equal number of the caller's is another type."""


def signature_of(cls: Type[Any]) -> inspect.Signature:
    """The constructor's signature with every option of **options."""
    own = inspect.signature(cls.__init__)
    known = list(own.parameters.values())[1:]  # without self
    if not known or known[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return own.replace(parameters=known)
    defaults = {p.name: p.default for p in _options_of_bases(cls)}
    for name, kind in _named(known.pop().annotation).items():
        known.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind
            )
        )
    return own.replace(parameters=known)


def check_options(cls: Type[Any], method: str, given: Iterable[str], caller: str) -> None:
    """TypeError for a name that is none of the options of a method's class."""
    known = list(cls.__signature__.parameters)[1:]  # without num_features
    for name in given:
        if name not in known:
            near = nearest(name, known)
            raise TypeError(
                f"{caller}: {method} has no option {name!r:.80}; it has {', '.join(known)}"
                + (f"; {near}" if near else "")
            )


def _named(unpacked: Any) -> Dict[str, Any]:
    """Names and types of Unpack[a TypedDict]; none of another annotation."""
    options = typing.get_args(unpacked)
    return typing.get_type_hints(options[0]) if options else {}


def _options_of_bases(cls: Type[Any]) -> Iterator[inspect.Parameter]:
    for base in cls.__mro__:
        if "__init__" in vars(base):
            for parameter in inspect.signature(vars(base)["__init__"]).parameters.values():
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                    yield parameter
