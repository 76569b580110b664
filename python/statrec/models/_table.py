"""The models by the name that `statrec train --model` has for them; one row each."""

from typing import Any, Callable, Dict

from torch import nn

from ._options import Options
from .residual_net import resnet18, resnet20
from .transformer import Transformer
from .transformer_classifier import TransformerClassifier
from .transformer_lm import TransformerLM

MODELS: Dict[str, Callable[[Options], nn.Module]] = {
    "resnet20": resnet20,
    "resnet18": resnet18,
    "transformer": Transformer,
    "transformer_classifier": TransformerClassifier,
    "transformer_lm": TransformerLM,
}


def make(model: str, **options: Any) -> nn.Module:
    """A new model, initialized as `statrec train` does.

        make("resnet20", norm="brn(r_max=3)", classes=10)
        make("transformer", preset="mini", norm="pn+ls", decoder_norm="ln", vocabulary=8000)

    model: a name of MODELS. options: of `statrec train`, with _ for -; and the sizes of the data:
    channels, classes, vocabulary, target_vocabulary. Raises ValueError for a name or value that
    does not fit.
    """
    return build(model, Options(options))


def build(model: str, options: Options) -> nn.Module:
    """The model of a name with these options."""
    if model not in MODELS:
        raise ValueError(f"no model is called {model!r:.80}; there are {', '.join(MODELS)}")
    return MODELS[model](options)
