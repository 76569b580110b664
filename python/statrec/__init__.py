"""statrec: statistics of normalization layers, recorded in any training loop and read as arrays.

    run = statrec.watch(model, "run.h5")         # record a PyTorch model
    print(statrec.audit(model, loader, loss=f))  # what running statistics cost a model
    run = statrec.open("run.h5")                 # read what any program recorded
    statrec.plot("fair", "cv.h5", "nlp.h5", output="fair.pdf")
    statrec.show("run.h5")                       # an interactive page, in a notebook

Importing it loads neither libstatrec nor any other package; they are loaded at first use.
"""
import importlib
import sys
import types
from typing import TYPE_CHECKING, Any, Callable, Iterable, TypeVar

from ._file import File, check, open
from ._library import Error
from ._plot import diagnose, plot, table
from ._recorder import Recorder
from ._version import version

if TYPE_CHECKING:
    import os

    import torch

    from ._audit import Audit
    from ._auditing._audit_compare import Comparison
    from .watch import Watch

_Tensor = TypeVar("_Tensor")

__version__ = version
__all__ = ["Error", "File", "Recorder", "audit", "check", "compare", "diagnose", "open", "plot", "register", "show", "table",
           "tap", "to_tensorboard", "version", "watch"]


def watch(model: "torch.nn.Module", path: "str | os.PathLike", *,
          sites: "str | type | torch.nn.Module | list | None" = None,
          observe: "str | type | torch.nn.Module | list | None" = None,
          observe_output: "str | type | torch.nn.Module | list | None" = None,
          alpha: float = 0.9, eps: float = 1e-5, repeat: "str | None" = None,
          phases: "list[str] | tuple[str, ...]" = (), ranks: "str | None" = None,
          process_group: "torch.distributed.ProcessGroup | None" = None, every: int = 1,
          activations_every: int = 0, on_error: str = "warn", gradient_norms: bool = True,
          kind: "str | Callable[[str], str] | None" = None, start: "int | None" = None, verbose: bool = True,
          forward: bool = False, labels: "list[str] | tuple[str, ...]" = (),
          on_finding: "Callable[[dict[str, Any]], Any] | None" = None, findings_every: int = 500,
          **options: Any) -> "Watch":
    """Records the normalization sites of a PyTorch model from its own training loop.

        run = statrec.watch(model, "run.h5")
        for batch in loader:
            loss = ...
            loss.backward()
            run.step(loss=loss, lr=lr, tokens=n)
        run.close()

    model: after .to(device) and before torch.compile; DistributedDataParallel is fine. path: the
    run file. Weights are the same to the bit as without it.

    sites: globs over names, types or modules; None: every normalization. observe, observe_output:
    the same among all modules; BN's statistics are observed in place of them, or after them.
    alpha: weight of the OLD running value if a module has no running statistics. eps: for observed
    modules. repeat: "last" records the last of several passes in a step, "merge" all of them as one
    batch; None: the last, with a warning. phases: names of passes that are kept apart
    (`with run.phase("real"):`). ranks: "merge" or "own" with torch.distributed (None: merge if
    there is a SyncBatchNorm or sync=True), over process_group. every=N: records the sites in every
    N-th step. activations_every=K: also the size of each site's input in every K-th of these. on_error: "warn"
    continues without recording, "raise" stops the training. gradient_norms=False: without dx_norm
    and direct_norm, which cost a pass over the gradient. kind: a text, or a function of a site's
    name. start: steps before this run; default: 0, with resume=True the last step of the file. Its
    rows after start are replaced. verbose: prints the number of sites, and the classes that
    look like norms and are not recorded. forward=True: every forward pass is recorded in any mode,
    nothing of gradients. labels: names of domains or clients for run.step(label=...). on_finding: a
    function of a finding of diagnose, called once for each every findings_every steps and at the
    end. Other options are statrec.Recorder's: force=True, resume=True, planned_steps=N,
    vectors=False, vectors_every=N (0: never; -1, the default: as often as size_limit and overhead
    allow), ...

    Raises ValueError if no module is recognised as a normalization but some look like one, TypeError for
    an unknown option, and statrec.Error if the file cannot be made. A model without normalizations
    needs sites of statrec.tap before the first run.step(), which otherwise raises ValueError. Everything that is recorded: docs/python-watch.md.
    """
    from .watch import watch as begin
    return begin(model, path, sites=sites, observe=observe, observe_output=observe_output,
                 alpha=alpha, eps=eps, repeat=repeat, phases=phases, ranks=ranks,
                 process_group=process_group, every=every,
                 activations_every=activations_every, on_error=on_error,
                 gradient_norms=gradient_norms, kind=kind, start=start, verbose=verbose,
                 forward=forward, labels=labels, on_finding=on_finding,
                 findings_every=findings_every, **options)


def audit(model: "torch.nn.Module", loader: "Iterable[Any]",
          loss: "Callable[[Any, Any], Any] | None" = None,
          metric: "Callable[[Any, Any], Any] | dict[str, Callable[[Any, Any], Any]] | None" = None,
          batches: int = 50, each_site: bool = False, path: "str | os.PathLike | None" = None, *,
          call: "Callable[[Any, Any], Any] | None" = None, unit: "str | None" = None) -> "Audit":
    """Measures what a model loses in evaluation by its running statistics, and where.

        audit = statrec.audit(model, loader, loss=torch.nn.CrossEntropyLoss())
        print(audit)
        model.load_state_dict(audit.repair(), strict=False)

    The loader yields (input, target), inputs, or dicts for model(**batch); for other signatures
    call(model, batch) returns the output. loss(output, target), smaller is better; metric(output,
    target), larger is better, or a dict of such functions by name. Without a second value the target
    is the batch itself. Without both: the loss that the output has, or else the outputs themselves.
    unit="nats": the unit of the loss, if it is not the mean of one of torch's likelihood losses.

    At most six passes over the first `batches` batches, which stay in memory. each_site=True: one
    more pass for each site. path: also writes a run file. The model is left bit by bit as it was.
    Raises ValueError where no normalization has running statistics. docs/audit.md.
    """
    from ._audit import audit as begin
    return begin(model, loader, loss, metric, batches, each_site, path, call=call, unit=unit)


def compare(model: "torch.nn.Module", loader_a: "Iterable[Any]", loader_b: "Iterable[Any]",
            batches: int = 50, *, call: "Callable[[Any, Any], Any] | None" = None) -> "Comparison":
    """Compares the inputs of a model's normalizations for two data sets, in evaluation.

        print(statrec.compare(model, train_loader, test_loader))

    One pass over at most `batches` batches of each. loader_a, the source, loader_b and call: as in
    statrec.audit. The model is left bit by bit as it was. docs/audit.md.
    """
    from ._auditing._audit_compare import compare as begin
    return begin(model, loader_a, loader_b, batches, call=call)


def tap(x: _Tensor, name: str, features: int = -1) -> _Tensor:
    """Records a tensor and its gradient as the site `name` of every open run; returns x.

    For functional norms and for any other tensor: statistics as a BN in this place would have them.
    x: result of an operation, [rows, ..., features], or features in dimension 1. The first step
    decides which names there are. Not within torch.compile, and not under torch.no_grad().
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.compiler.is_compiling():
        return x
    from ._watching._tensors import tap as record
    return record(x, name, features)


def to_tensorboard(path: "str | os.PathLike", directory: str, sites: "str | list[str]" = "*",
                   scalars: "list[str] | None" = None) -> None:
    """Writes the scalars of a run file and its diagnosis for TensorBoard into a directory.

    sites: globs over their names; scalars: names; default: all with values. Raises ImportError
    without one of the packages tensorboard (with torch) and tensorboardX.
    """
    from ._trackers import to_tensorboard as write
    write(path, directory, sites, scalars)


def show(*paths: "str | os.PathLike") -> "Any":
    """The interactive page of runs in a notebook, as `statrec view` opens it in a browser.

        statrec.show("run.h5")

    paths: run files, also growing ones, and directories. Returns an object of the package panel,
    which the notebook displays. Raises ImportError without the packages of `statrec[view]`.
    docs/look-at-a-run.md.
    """
    from .viewer import show as page
    return page(*paths)


def register(cls: type, like: str = "none", *, norm: "str | None" = None, features: int = -1,
             gain: "str | Callable[[Any], torch.Tensor] | None" = "weight",
             eps: "str | float" = "eps") -> None:
    """Records modules of a class of your own in every watch() from now on.

        statrec.register(StrangeNorm, "rmsnorm", gain=lambda module: 1 + module.weight)

    like: which torch layer it computes: "bn", "ln", "rmsnorm" or "groupnorm"; "none": statistics of
    its input as a BN in its place would have them. norm: the name in the file (None: like, or the
    class). features: the dimension of the features, -1 or 1. gain: name of the parameter, a
    function of the module that returns the gain [features], or None. eps: name of the attribute, or
    a number. Subclasses are not included. Raises ValueError or TypeError for wrong arguments.
    """
    from ._watching._adapters.custom import register as add
    add(cls, like, norm=norm, features=features, gain=gain, eps=eps)


def __getattr__(name):
    """Modules that need torch are loaded when they are first used: statrec.nn, statrec.models."""
    if name in ("models", "nn"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(types.ModuleType):
    """This module. The import system binds a submodule to its name in the package, also watch.py;
    statrec.watch stays the function."""

    def __setattr__(self, name, value):
        if not (name == "watch" and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
