"""A callback for composer.Trainer.

    from statrec.adapters.composer import callback
    trainer = Trainer(..., callbacks=[callback("run.h5", sites="*norm*")])

A row is one batch of the trainer, an update; repeat="merge" merges its microbatches.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import composer


class _Run:
    """What happens at each event; the callback hands over."""

    def __init__(self, path, options):
        self.path, self.options, self.run, self.scale = path, options, None, 1.0

    def begin(self, state):
        from ..watch import watch
        start = int(state.timestamp.batch)
        self.run = watch(state.model, self.path,
                         **{"repeat": "merge", "start": start, **self.options})

    def trained(self, state):
        """After the backward passes; the optimizer has not stepped yet."""
        scaler = getattr(state, "scaler", None)
        loss = state.loss
        loss = sum(loss.values()) if isinstance(loss, dict) else loss
        self.run.step(loss=loss.detach() if hasattr(loss, "detach") else loss,
                      lr=state.optimizers[0].param_groups[0]["lr"] if state.optimizers else None,
                      tokens=int(getattr(state, "batch_num_tokens", 0) or 0),
                      epoch=int(state.timestamp.epoch), scaler=scaler)

    def end(self):
        if self.run is not None:
            self.run.close()


def callback(path: Union[str, os.PathLike[str]], **options: Any) -> composer.Callback:
    """A composer.Callback that records to path; options as in statrec.watch."""
    from composer import Callback

    class StatrecCallback(Callback):
        """One row for each batch; see statrec.adapters.composer."""

        def __init__(self):
            self.recording = _Run(path, options)

        def fit_start(self, state, logger):
            self.recording.begin(state)

        def after_train_batch(self, state, logger):
            self.recording.trained(state)

        def fit_end(self, state, logger):
            self.recording.end()

    return StatrecCallback()
