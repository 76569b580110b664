"""statrec.models: the models of `statrec train` as modules of PyTorch.

    model = statrec.models.load("run-0000500.ckpt")         # weights and running values of a training
    model = statrec.models.make("resnet20", norm="pn+ls")   # a new one
    statrec.models.save(model, "start.npz")                 # statrec train --weights start.npz

Options are as in `statrec train`, normalizations as in statrec.nn. Needs torch; load also
h5py, save numpy. docs/checkpoints-in-pytorch.md.
"""

from ._checkpoint import dictionary, load, save
from ._options import Options
from ._table import MODELS, make
from .residual_net import ResidualNet
from .sample_norm import GroupNorm, InstanceNorm
from .transformer import Transformer
from .transformer_classifier import TransformerClassifier
from .transformer_lm import TransformerLM

__all__ = [
    "GroupNorm",
    "InstanceNorm",
    "MODELS",
    "Options",
    "ResidualNet",
    "Transformer",
    "TransformerClassifier",
    "TransformerLM",
    "dictionary",
    "load",
    "make",
    "save",
]
