"""A callback for lightning.Trainer.

    from statrec.adapters.lightning import callback
    trainer = Trainer(..., callbacks=[callback("run.h5", sites="*norm*", metrics=["val_loss"])])

A row is one update (trainer.global_step); repeat="merge", the default, merges the micro-batches of
accumulate_grad_batches. loss is the value that training_step returned for the last micro-batch.
tokens: a function of the batch that counts its tokens; an update adds them up.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _metrics

if TYPE_CHECKING:
    import lightning.pytorch


def _loss(outputs):
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    return loss.detach() if hasattr(loss, "detach") else loss


def _rate(trainer):
    for optimizer in getattr(trainer, "optimizers", None) or []:
        return optimizer.param_groups[0]["lr"]
    return None


class _Run:
    """The actions at each event; the callback delegates to it."""

    def __init__(self, path, metrics, options, tokens=None):
        self.path, self.metrics, self.options = path, metrics, options
        self.run, self.declared, self.seen = None, frozenset(), 0
        self.rate, self.scale, self.count, self.tokens = None, 1.0, tokens, 0

    def begin(self, trainer, module):
        from ..watch import watch
        planned = getattr(trainer, "estimated_stepping_batches", 0)
        planned = int(planned) if 0 < planned < float("inf") else 0
        self.seen = trainer.global_step
        self.run = watch(module, self.path,
                         **{"repeat": "merge", "start": self.seen, "planned_steps": planned,
                            **self.options})
        self.declared = _metrics.declare(self.run, self.metrics)

    def before_update(self, trainer):
        """The scale and the learning rate of this update; both change after it."""
        scaler = getattr(getattr(trainer, "precision_plugin", None), "scaler", None)
        self.scale = scaler.get_scale() if scaler is not None else 1.0
        self.rate = _rate(trainer)

    def batch_ended(self, trainer, outputs, batch=None):
        self.tokens += int(self.count(batch)) if self.count else 0
        if trainer.global_step == self.seen:  # within an accumulation
            return
        self.seen = trainer.global_step
        self.run.step(loss=_loss(outputs), lr=self.rate, grad_scale=self.scale, step=self.seen,
                      update=self.seen, epoch=trainer.current_epoch, tokens=self.tokens)
        self.tokens = 0

    def validated(self, trainer):
        values = _metrics.chosen(self.declared, trainer.callback_metrics)
        if self.run is not None and values and not trainer.sanity_checking:
            self.run.evaluate(epoch=trainer.current_epoch, **values)

    def end(self, error=None):
        if self.run is not None:
            self.run.__exit__(*((None, None) if error is None else (type(error), error)), None)


def _library():
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback
    return Callback


def callback(path: Union[str, os.PathLike[str]], metrics: _metrics.Metrics = (),
             tokens: Optional[Callable[[Any], int]] = None,
             **options: Any) -> lightning.pytorch.Callback:
    """A Callback that records to path. metrics: names that the module logs in validation, or
    {name: (unit, definition, better)}; tokens: a function of a batch; options as in statrec.watch."""

    base: Any = _library()

    class StatrecCallback(base):
        """One row for each update; see statrec.adapters.lightning."""
        recording = _Run(path, metrics, options, tokens)

        def on_train_start(self, trainer, module):
            self.recording.begin(trainer, module)

        def on_before_optimizer_step(self, trainer, module, optimizer):
            self.recording.before_update(trainer)

        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            self.recording.batch_ended(trainer, outputs, batch)

        def on_validation_end(self, trainer, module):
            self.recording.validated(trainer)

        def on_exception(self, trainer, module, exception):
            self.recording.end(exception)

        def on_train_end(self, trainer, module):
            self.recording.end()

    return StatrecCallback()
