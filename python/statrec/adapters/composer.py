"""A callback for composer.Trainer.

    from statrec.adapters.composer import callback
    trainer = Trainer(..., callbacks=[callback("run.h5", sites="*norm*")])

A row is one batch of the trainer, an update; repeat="merge" merges its microbatches. loss belongs
to the last microbatch; tokens: a function of the batch that counts its tokens.
"""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, Union

if TYPE_CHECKING:
    import composer


def _total(loss):
    """The loss that Composer minimizes: "total" of several losses by name, otherwise the sum of their means."""
    if isinstance(loss, dict):
        loss = loss["total"] if "total" in loss else tuple(loss.values())
    parts = loss if isinstance(loss, (tuple, list)) else (loss,)
    return sum(part.detach().mean() for part in parts)


class _Run:
    """The actions at each event; the callback delegates to it."""

    def __init__(self, path, options, tokens=None):
        self.path, self.options, self.run, self.count = path, options, None, tokens

    def begin(self, state):
        from ..watch import watch
        start = int(state.timestamp.batch)
        self.run = watch(state.model, self.path,
                         **{"repeat": "merge", "start": start, **self.options})

    def trained(self, state):
        """After the backward passes; the optimizer has not stepped yet."""
        self.run.step(loss=_total(state.loss),
                      lr=state.optimizers[0].param_groups[0]["lr"] if state.optimizers else None,
                      tokens=int(self.count(state.batch)) if self.count else 0,
                      epoch=int(state.timestamp.epoch), scaler=getattr(state, "scaler", None))

    def end(self):
        if self.run is not None:
            self.run.close()


def callback(path: Union[str, os.PathLike[str]], tokens: Optional[Callable[[Any], int]] = None,
             **options: Any) -> composer.Callback:
    """A composer.Callback that records to path. tokens: a function of a batch; options as in
    statrec.watch."""
    from composer import Callback

    class StatrecCallback(Callback):
        """One row for each batch; see statrec.adapters.composer."""

        def __init__(self):
            self.recording = _Run(path, options, tokens)

        def fit_start(self, state, logger):
            self.recording.begin(state)

        def after_train_batch(self, state, logger):
            self.recording.trained(state)

        def fit_end(self, state, logger):
            self.recording.end()

    return StatrecCallback()
