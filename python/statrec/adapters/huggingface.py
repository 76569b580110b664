"""A callback for transformers.Trainer.

    from statrec.adapters.huggingface import callback
    trainer = Trainer(..., callbacks=[callback("run.h5", sites="*norm*", metrics=["eval_loss"])])

A row is one update; repeat="merge", the default, merges its micro-batches. The trainer passes the
loss, the learning rate and the norm of the gradients to a callback when it logs. With
logging_steps=1 each row has them, otherwise only rows of logged updates; the loss is then the mean
since the last log. tokens are those that the trainer counts (include_num_input_tokens_seen), and the
scale of the loss under fp16 is the optimizer's.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from . import _metrics

if TYPE_CHECKING:
    import transformers

_LOGGED = {"loss": "loss", "learning_rate": "lr", "grad_norm": "grad_norm", "epoch": "epoch"}


class _Run:
    """The actions at each event; the callback delegates to it."""

    def __init__(self, path, metrics, options):
        self.path, self.metrics, self.options = path, metrics, options
        self.run, self.declared, self.waiting = None, frozenset(), None
        self.scale, self.seen = 1.0, 0

    def begin(self, args, state, model):
        from ..watch import watch
        options = {"repeat": "merge", "start": state.global_step,
                   "planned_steps": max(0, state.max_steps), **self.options}
        self.run = watch(model, self.path, **options)
        self.declared = _metrics.declare(self.run, self.metrics)
        self.seen = getattr(state, "num_input_tokens_seen", 0) or 0

    def step_ended(self, state):
        """The row waits for its logged values, up to the next step, evaluation or end."""
        seen = getattr(state, "num_input_tokens_seen", 0) or 0
        self.waiting = {"update": state.global_step, "epoch": state.epoch,
                        "grad_scale": self.scale, "tokens": int(seen - self.seen)}
        self.seen = seen

    def before_update(self, optimizer):
        """The scale that this update's gradients have; it changes after it."""
        scaler = getattr(optimizer, "scaler", None)
        self.scale = scaler.get_scale() if scaler is not None else 1.0

    def logged(self, logs):
        if self.waiting is not None:
            self.waiting.update({mine: logs[name] for name, mine in _LOGGED.items()
                                 if isinstance(logs.get(name), (int, float))})

    def settle(self):
        if self.waiting is not None:
            row, self.waiting = self.waiting, None
            self.run.step(step=row["update"], **row)

    def evaluated(self, state, metrics):
        self.settle()
        values = _metrics.chosen(self.declared, metrics or {})
        if values:
            self.run.evaluate(epoch=state.epoch, **values)

    def end(self, **how):
        if self.run is not None:
            self.settle()
            self.run.close(**how)


def callback(path: Union[str, os.PathLike[str]], metrics: _metrics.Metrics = (),
             **options: Any) -> transformers.TrainerCallback:
    """A TrainerCallback that records to path. metrics: names that trainer.evaluate() returns, or
    {name: (unit, definition, better)}; options as in statrec.watch."""
    from transformers import TrainerCallback

    class StatrecCallback(TrainerCallback):
        """One row for each update; see statrec.adapters.huggingface."""
        recording = _Run(path, metrics, options)

        def on_train_begin(self, args, state, control, model=None, **_):
            self.recording.begin(args, state, model)

        def on_step_begin(self, args, state, control, **_):
            self.recording.settle()

        def on_pre_optimizer_step(self, args, state, control, optimizer=None, **_):
            self.recording.before_update(optimizer)

        def on_step_end(self, args, state, control, **_):
            self.recording.step_ended(state)

        def on_log(self, args, state, control, logs=None, **_):
            self.recording.logged(logs or {})

        def on_evaluate(self, args, state, control, metrics=None, **_):
            self.recording.evaluated(state, metrics)

        def on_save(self, args, state, control, **_):
            self.recording.settle()
            self.recording.run.flush()

        def on_train_end(self, args, state, control, **_):
            self.recording.end()

    return StatrecCallback()
