"""Cases of two processes that are one group, each a DistributedDataParallel training: all in one
interpreter, since torch takes seconds to import. outcome() runs it once for all tests."""

import datetime
import functools
import os
import subprocess
import sys
import tempfile
import traceback

CASES = {}


def case(function):
    """Adds a function of the rank to the cases that the processes run."""
    CASES[function.__name__] = function
    return function


@case
def without_the_library(_):
    import statrec.nn

    statrec.nn.PowerNorm(3)(torch.ones(2, 3))
    loaded = [name for name in ("h5py", "statrec._native") if name in sys.modules]
    assert not loaded, loaded


@case
def synchronized_norms(rank):
    """sync=True: the statistics cover all rows."""
    import statrec.nn as sn

    same = functools.partial(torch.testing.assert_close, rtol=1e-9, atol=1e-9)
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)).double()
    mine = slice(5) if rank == 0 else slice(5, None)
    for name in ("bn", "pnv", "pn", "rbn", "un", "repbn"):
        whole, norm = (sn.make(name, 4, **o).double() for o in ({}, {"sync": True}))
        model = torch.nn.parallel.DistributedDataParallel(norm)
        for _ in range(2):
            a, b = x.clone().requires_grad_(), x[mine].clone().requires_grad_()
            (whole(a).pow(3).sum() + sn.penalty(whole)).backward()
            # each process has the whole penalty: its half of the sum of both
            (model(b).pow(3).sum() + sn.penalty(norm) / 2).backward()
            same(b.grad, a.grad[mine])
        same(norm.weight.grad * 2, whole.weight.grad)
        for key, value in whole.named_buffers():
            same(getattr(norm, key), value)


@case
def audit_of_one_rank(rank):
    """Rank 1 audits a model with its own buffers, rank 0 does not: rank 1 does not wait for rank 0 or take its
    buffers."""
    from audit_cases import F, mlp, nn, pairs

    import statrec

    model = nn.parallel.DistributedDataParallel(mlp(nn.BatchNorm1d))
    if rank == 1:
        statrec.audit(mlp(nn.SyncBatchNorm), pairs(2), F.cross_entropy)
        model.module[1].running_mean.fill_(3.0)
        audit = statrec.audit(model, pairs(4), F.cross_entropy)
        assert audit.sites[0].shift.value > 2, str(audit)
        assert model.module[1].running_mean.eq(3).all()
    torch.distributed.barrier()


def run(rank, directory):
    """In a process: every case, and a file for each that passes."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=2,
        timeout=datetime.timedelta(seconds=120))
    for name, function in CASES.items():
        function(rank)
        with open(os.path.join(directory, f"{name}.{rank}"), "w", encoding="utf-8"):
            pass
    torch.distributed.destroy_process_group()


@functools.lru_cache(maxsize=None)
def outcome():
    """Returns CASE.RANK of the passed cases, and the output of the processes."""
    from support import HERE, PACKAGE

    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [sys.executable, os.path.abspath(__file__), directory], capture_output=True, text=True,
            timeout=500, check=False, env={
                **os.environ, "PYTHONPATH": PACKAGE + os.pathsep + HERE,
                "STATREC_LIBRARY": os.path.join(directory, "no.so")})
        return frozenset(os.listdir(directory)), done.stdout + done.stderr


def passes(test, name):
    """Asserts in a test that the case passed in both processes."""
    passed, said = outcome()
    test.assertLessEqual({f"{name}.0", f"{name}.1"}, passed, said[-3000:])


def main(directory):
    """Forks before either process has run a backward pass, which torch asks for."""
    child = os.fork()
    try:
        run(1 if child == 0 else 0, directory)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0 if child == 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    import torch
    import torch._dynamo  # DistributedDataParallel imports it: once for both

    main(sys.argv[1])
