"""A training loop with accelerate.Accelerator.

    from statrec.adapters import accelerate
    run = accelerate.watch(accelerator, model, "run.h5")     # after prepare()
    with accelerator.accumulate(model):
        accelerator.backward(loss)
        accelerate.step(run, accelerator, loss=loss)         # before optimizer.step()

A row is one update; its micro-batches are merged.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import accelerate
    import torch

    from ..watch import Watch


def watch(accelerator: accelerate.Accelerator, model: torch.nn.Module,
          path: Union[str, os.PathLike[str]], **options: Any) -> Watch:
    """statrec.watch of the model that accelerator.prepare() wrapped; repeat="merge" by default."""
    from ..watch import watch as watch_model
    return watch_model(accelerator.unwrap_model(model), path, **{"repeat": "merge", **options})


def step(run: Watch, accelerator: accelerate.Accelerator, **row: Any) -> None:
    """run.step() where gradients are synchronized, with the scale of the loss under fp16."""
    if accelerator.sync_gradients:
        run.step(scaler=getattr(accelerator, "scaler", None), **row)
