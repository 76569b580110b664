"""A training loop with accelerate.Accelerator.

    from statrec.adapters import accelerate
    run = accelerate.watch(accelerator, model, "run.h5")     # after prepare()
    with accelerator.accumulate(model):
        accelerator.backward(loss)
        accelerate.step(run, accelerator, loss=loss)         # before optimizer.step()

A row is one update; its micro-batches are merged.
"""


def watch(accelerator, model, path, **options):
    """statrec.watch of the model that accelerator.prepare() wrapped; repeat="merge" by default."""
    from ..watch import watch as watch_model
    return watch_model(accelerator.unwrap_model(model), path, **{"repeat": "merge", **options})


def step(run, accelerator, **row):
    """run.step() where gradients are synchronized, with the scale of the loss under fp16."""
    if accelerator.sync_gradients:
        run.step(scaler=getattr(accelerator, "scaler", None), **row)
