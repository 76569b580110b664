"""check_models.py under DistributedDataParallel and FSDP2: two processes of gloo, one thread each.

Each rank has its own inputs and ranks="merge", so the reference is the float64 sums over the rows of both ranks. In
both cases torch minimizes the mean of the losses: g is the gradient of half the loss.
"""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

WORLD = 2


def check(row, mode):
    """Returns (verdict, text) of a model, as check_models.check; rank 0 returns them."""
    with tempfile.TemporaryDirectory() as folder:
        store, answer = os.path.join(folder, "store"), os.path.join(folder, "answer")
        processes.spawn(_rank, args=(row, mode, store, answer), nprocs=WORLD)
        return torch.load(answer)


def _rank(rank, row, mode, store, answer):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    found = _gathered(_checked(row, mode, rank))
    if rank == 0:
        torch.save(next((one for one in found if one[0] != "ok"), found[0]), answer)
    dist.barrier()
    dist.destroy_process_group()


def _gathered(value):
    everyone = [None] * WORLD
    dist.all_gather_object(everyone, value)
    return everyone


def wrapped(model, mode):
    """With FSDP2 each block of a list is sharded separately; the root keeps the shared parts of blocks."""
    if mode == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    from torch.distributed.fsdp import fully_shard
    for block in blocks(model):
        fully_shard(block)
    return fully_shard(model)


def blocks(model):
    """The outermost elements of lists that have parameters."""
    for part in model.children():
        if isinstance(part, (torch.nn.ModuleList, torch.nn.Sequential)):
            yield from (block for block in part if any(True for _ in block.parameters()))
        else:
            yield from blocks(part)


def state(model):
    """The rank's own part of each parameter and buffer, by name."""
    return {name: value.to_local() if hasattr(value, "to_local") else value
            for name, value in model.state_dict().items()}


def _checked(row, mode, rank):
    import check_models as models
    model = models.build(row)
    if model is None:
        return "skip", f"{row['package']} is not installed"
    given = models.inputs(row, seed=2 + rank)
    plain, model = wrapped(models.build(row), mode), wrapped(model, mode)
    want, _ = models.train(plain, given, "eager")
    run = models.watch(model, "run.h5", recorder=models.FakeRecorder, verbose=False, ranks="merge")
    got, _ = models.train(model, given, "eager", run)
    run.close()
    if run.failure:
        return "fault", run.failure
    if got != want or models.difference(state(plain), state(model)):
        return "fault", "the weights are others"
    again = wrapped(models.build(row), mode)
    # The recorder is rank 0's.
    names = _gathered(rank == 0 and models.spied(again, run.recorder.sites))[0]
    spy = models.Spy(again, names)
    try:
        _, seen = models.train(again, given, "eager", spy=spy)
    finally:
        spy.close()
    merged = _merged(_gathered(seen))
    return models.judged(run, merged, set(), models.BOUND) if rank == 0 else ("ok", "")


def _merged(ranks):
    """Merges the observations of all ranks' spies, step by step: all rows, and g of the mean loss."""
    steps = []
    for parts in zip(*ranks):
        steps.append({name: (parts[0][name][0], torch.cat([part[name][1] for part in parts]),
                             torch.cat([part[name][2] for part in parts]) / len(parts))
                      for name in parts[0]})
    return steps
