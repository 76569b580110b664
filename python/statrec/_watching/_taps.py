"""Taps: what a forward pass and its backward pass leave of a site.

A forward hook takes the moments of the module's input x, and asks for the gradient g of the output.
Three ways; none changes a number of the host program:

node      a hook of the autograd node that made the output: sees g whatever is done in place to the
          output later on. That of a BatchNorm has mean, 1/s, sum g and sum g xhat itself, and they
          are taken where they are exact enough (_nodes.py): nothing is computed twice.
          (The change of the running buffers gives the mean of planes too, but only to 8e-6 of the
          deviation where the mean is 10 deviations, and 9e-5 where it is 100; the node's is right to
          5e-7 and 3e-6. And it is that of one forward pass only when there was one. It is not used.)
through   within hooks for saved tensors (activation checkpointing without reentry, offloading) a
          node's hook would hold x alive. There the output goes through an autograd.Function that
          saves x as any operation does and marks the output dirty, so that later in-place
          operations still work. A forward pass and its recomputation must save the same tensors:
          the Function is applied in both, also after the recorder has failed in between. torch
          ends a recomputation by an exception out of the saving; it is not caught here.
compiled  torch.compile sees no hooks of nodes: a Function again, which hands all sums as the
          gradient of a leaf [10, width] to the leaf's hook.

In all three a forward pass is recorded when its backward pass arrives; one without is forgotten.
"""
import itertools
import math
import time
import weakref

import torch

from . import _activations, _arrivals, _engine, _kinds, _made, _nodes, _sums, _traced
from ._catch import Catch, Through, as_known, saving, source_of
from ._caught import Pass, Stored
from ._hooks import Handle, Hook
from ._inner import Enter, Leave
from ._signature import OTHERWISE


class Shared(_engine.Runs):
    """State that the taps of one run share: whether they record, and failures."""

    def __init__(self, repeat, norms=True):
        super().__init__()
        self.unsure = False  # passes of this step are for _arrivals.settle
        self.on, self.repeat, self.failure, self.norms = True, repeat, None, norms
        self.phase = ""  # of Watch.phase(); taps of other phases do not listen
        self.again = self.outside = None  # a site with a second pass in a step, or one in no phase
        self.activations = False  # whether this step has Counts
        self.saves = True  # Functions are applied; changes between steps only, unlike `on`
        self.idle, self.cards = False, None  # nothing of this step is recorded; _cards.Cards
        self.begun, self.late = 0, None  # the last serial of the step before; a site whose pass belongs to it
        self.serial, self.order, self.seconds = 0, itertools.count(), 0.0

    def guarded(self, work, *given):
        """The result of work(*given); None after a failure, when the host's training continues."""
        start = time.perf_counter()
        try:
            return work(*given)
        except Exception as error:
            self.fail(error)
            return None
        finally:
            self.seconds += time.perf_counter() - start

    def fail(self, error):
        if isinstance(error, _made.Unseen):  # of one site alone
            error.tap.misfit = _made.UNSEEN
            return
        self.on = False
        self.failure = self.failure or error.with_traceback(None)  # its frames hold tensors


def _no_module():
    """The module of a tensor's tap."""
    return None


class _Tensor:
    """Replaces the module in a tensor's tap: it is recorded in training."""
    training = True


_TENSOR = _Tensor()


_is_compiling = torch.compiler.is_compiling


class Tap(Hook):
    """The forward hook of a site, and the passes that it has caught since the last step."""

    waits = True  # for a backward pass

    def __init__(self, site, shared, phase=""):
        self.site, self.shared, self.phase = site, shared, phase
        self.passes, self.misfit, self.order, self.mask, self.valid = [], None, None, None, None
        self.first, self.trailing, self.at_output = site.first, site.trailing, site.at_output
        self.observed, self.width, self.leaf = site.family == "none", site.width, None
        self.device, self.stored, self.prepared = None, [], None
        self.node_type, self.trusted, self.in_rows = None, _nodes.UNKNOWN, False
        self.last = self.usual = None  # a Call: of this step; one that needs no second look
        self.known = None  # the Layout of the pass before
        self.evaluated = self.captured = False  # by frozen(); in a CUDA graph: there is no pass to be seen from then on
        self.activations = None  # (serial, Counts) of this step
        self.card = None  # kept by _cards
        # of the passes: whether they are of backward(); whether one lacked its sums; whether they are not right
        self.of_loss, self.lacking, self.spoiled, self.leaf_stays = True, False, False, False
        self.signature, self.made = site.signature, {}
        self.module = _no_module if site.module is None else weakref.ref(site.module)
        self.fast = _nodes.plain_batch_norm(site, site.module)
        site.module = None  # the model must not be held by its own hooks
        self.handles = self._hooks(self.module())

    def _hooks(self, module):
        if module is None:
            return []
        self.made, handles = _made.hooks(module)
        if not self.site.calls:
            return [*handles, Handle(module, self, with_kwargs=True)]
        entered = []  # modes; a module may call itself
        return [*handles, Handle(module, Enter(self, entered), before=True),
                Handle(module, Leave(self, entered), always_call=True)]

    def detach(self):
        for handle in self.handles:
            handle.remove()
        self.passes.clear()
        self.card = None
        self.leaf = self.mask = self.valid = self.last = self.usual = self.known = None

    def set_mask(self, mask):
        self.mask, self.valid = mask, None if mask is None else mask.valid
        if mask is not None and self.leaf is not None:
            self.valid = mask.valid.to(self.leaf.device)

    def prepare(self, device):
        """Makes the leaf that a compiled graph hands its sums to, if it does not exist yet."""
        self.prepared = device
        here = self.leaf is not None and self.leaf.device == device
        if self.width is None or device is None or device.type == "meta" or here:
            return
        one = torch.zeros((), dtype=_sums.wide(device), device=device)  # only its gradient is large
        self.leaf = one.expand(_traced.LEAF_ROWS, self.width).requires_grad_()
        here = weakref.ref(self)
        self.leaf.register_post_accumulate_grad_hook(lambda leaf: _leaf_arrived(here(), leaf))

    # -- forward ------------------------------------------------------------------------------

    def __call__(self, module, args, kwargs, output):
        shared = self.shared
        if shared.idle or _traced.elsewhere():
            return None
        if self.signature is not None and (kwargs or len(args) != 1) and self._otherwise(module, args, kwargs):
            return None
        compiling = _is_compiling()  # the compiler must guard on little of what steps change
        if not compiling and (
                self.card is not None and shared.cards is not None
                and shared.cards.again(self, module, args, output)
                or self.usual is not None and _nodes.as_usual(self, module, output)
                or self.known is not None and as_known(self, module, args, output)):
            return None
        if not args and kwargs:
            args = tuple(value for value in kwargs.values() if torch.is_tensor(value))
        if not self.wants(module):
            if self.order is None and not compiling:
                self.frozen(module)
            return None
        if shared.phase != self.phase:
            if not shared.phase:
                shared.outside = self.site.name
            return None
        if compiling:
            return self._compiled(args, output)
        return self._ran(module, args, output)

    def _otherwise(self, module, args, kwargs):
        """Whether the module is called in a way that was not probed; its pass is not recorded then."""
        if not self.signature.otherwise(args, kwargs):
            return False
        if self.wants(module) and self.shared.phase == self.phase:
            self.misfit = OTHERWISE
        return True

    def wants(self, module):
        """Whether a forward pass of the module may be recorded in the mode that it is in."""
        return module.training and torch.is_grad_enabled()

    def frozen(self, module):
        """A forward pass of a site that has none yet: in evaluation mode within a training pass. It has no row,
        but a place in the order."""
        shared = self.shared
        if not module.training and torch.is_grad_enabled() and shared.phase == self.phase:
            self.evaluated = True
            if self.width is not None:
                self.order = next(shared.order)

    def _ran(self, module, args, output):
        """A forward pass outside of a compiler. Its result, if not None, is the output."""
        if _kinds.captured(output):
            self.misfit, self.captured = _kinds.CAPTURED, True
            return None
        if not (self.reads("its input", args[0] if args else None)
                and self.reads("its output", output)):
            return None
        return self._seen(module, args, output)

    def reads(self, name, value):
        """Whether a value can be read, if it is a tensor; else this site is left out."""
        kind = _kinds.strange(value) if isinstance(value, torch.Tensor) else ""
        if kind:
            self.misfit = f"{name} {kind}"
        return not kind

    def _seen(self, module, args, output):
        """A forward pass of tensors that can be read."""
        if self.shared.activations and self.shared.on:
            self.shared.guarded(self._measure, args, output)
        if not self.observed and saving(False) is not None:
            return self._through(args, output) if self.shared.saves else None
        self.shared.guarded(self._eager, module, args, output)
        return None

    def tensor(self, x):
        """The host gave a tensor to statrec.tap."""
        if self.wants(_TENSOR):
            self._ran(None, (x,), x)

    def called(self, module, call):
        """A functional norm ran within the module."""
        if call.norm != self.site.norm and (call.norm, self.site.norm) != ("bn", "frozenbn"):
            self.misfit = f"it called the function of a {call.norm}"
            return None
        return self._ran(module, (call.input,), call.output)

    def _input(self, args, output):
        x = output if self.at_output else args[0] if args else None
        if (not isinstance(x, torch.Tensor) or not isinstance(output, torch.Tensor)
                or x.shape != output.shape):
            self.misfit = "its input is no tensor of its output's shape"
            return None
        if x.dim() < 2:
            self.misfit = f"its input has the shape {tuple(x.shape)}, without a dimension of rows"
            return None
        if not x.is_floating_point():
            self.misfit = f"its input is {x.dtype}, no real floating-point type"
            return None
        return x

    def _shapes(self, x):
        """Shape of the rows, and features."""
        if self.first:
            return (x.shape[0], *x.shape[2:]), x.shape[1]
        return x.shape[:-self.trailing], math.prod(x.shape[-self.trailing:])

    def _eager(self, module, args, output):
        if self.shared.cards is not None and self.shared.cards.forward(self, module, args, output):
            return
        if self.fast and self.mask is None and self._by_node(module, output):
            return
        x = self._input(args, output)
        if x is not None:
            catch = self._catch(x, output)
            if catch is not None:
                catch.listen(output)

    def _through(self, args, output):
        """Under hooks for saved tensors: the output, after a Function that saves x."""
        x = self._input(args, output)
        if x is None or output.grad_fn is None:
            return None
        catch = self.shared.guarded(self._catch, x, output)
        return Through.apply(output, x.detach(), catch)

    def _catch(self, x, output):
        """A Catch of this forward pass; None: it is not recorded."""
        layout = self._layout(x, output.grad_fn is not None)
        return None if layout is None or layout.rows == 0 else Catch(self, x.detach(), layout, self.plain_gain())

    def _layout(self, x, wanted=True):
        """Layout of the input of a pass that is recorded, if wanted; the first pass of a site gives
        its order and its width in any case."""
        known = self.known
        if (known is not None and wanted and self.shared.on and self.mask is None
                and x.shape == known.shape and x.stride() == known.stride):
            self.device = x.device
            return known
        rows_shape, width = self._shapes(x)
        if self.order is None:
            self.order, self.width = next(self.shared.order), self.width or width
        self.device = x.device
        if not self.shared.on or not wanted:
            return None
        if width != self.width:
            self.misfit = f"its width changed from {self.width} to {width}"
            return None
        try:
            index = None if self.mask is None else self.mask.index(rows_shape, x.device)
        except ValueError as error:
            self.misfit = str(error)
            return None
        layout = _sums.Layout(x.detach(), self.width, self.first, index)
        self.known = layout if index is None else None
        return layout

    def _by_node(self, module, output):
        """Whether nothing is left to do, since the node of a batch norm has all numbers. Not with a
        replaced forward: a checkpointed one would run again when its node is read."""
        if not self.shared.on or not torch.is_tensor(output) or "forward" in module.__dict__:
            return False
        if not _nodes.caught(self, module, output):
            return False
        if self.order is None:
            self.order = next(self.shared.order)
        self.device = output.device
        return True

    def _compiled(self, args, output):
        x = self._input(args, output)
        if x is None or not output.requires_grad:
            return None
        rows_shape, width = self._shapes(x)
        if self.made:
            self.misfit = f"torch.compile hides it: {_made.UNSEEN}"
            return None
        if self.leaf is None or width != self.width or self.leaf.device != x.device:
            self.misfit = "its width or device is not the one that watch() saw"
            return None
        valid = None
        if self.valid is not None:
            valid = _traced.fitted(self.valid, rows_shape)
            if valid is None:
                self.misfit = "the mask fits no rows of it"
                return None
        form = (self.first, self.trailing)
        if self.observed or not self.site.stock:
            return _traced.ThroughCopy.apply(output, x.detach(), self.leaf, valid, form)
        return _traced.Through.apply(output, x, self.leaf, valid, form)

    def _measure(self, args, output):
        """Counts of this forward pass; its node hands them over when the backward pass comes."""
        x = self._input(args, output)
        if x is None or output.grad_fn is None:
            return
        shape, width = self._shapes(x)
        if width != (self.width or width):
            return
        index = None if self.mask is None else self.mask.index(shape, x.device)
        with torch.no_grad():
            rows = _activations.as_rows(x.detach(), self.first, width, index)
            y = _activations.as_rows(output.detach(), self.first, width, index)
            if rows.shape[0] > 0:
                counts = _activations.Counts(
                    rows, *_activations.normalized(self.module(), self.gain(), self.read(_bias), y))
                source_of(output, self.observed)[0].grad_fn.register_prehook(
                    _activations.Waiting(self, counts, next(self.shared.order)))

    def activated(self, counts, serial):
        """The backward pass of Counts came."""
        if self.activations is not None and self.shared.repeat == "merge":
            self.activations[1].add(counts)
        elif self.activations is None or self.activations[0] < serial:
            self.activations = serial, counts

    # -- backward -----------------------------------------------------------------------------

    def gain(self):
        """The gain [width] of the module, or None."""
        weight = self.plain_gain()
        return None if weight is None else weight.detach().reshape(-1)

    def plain_gain(self):
        """The gain as the module has it, to be asked for in the forward pass. Autograd refuses a backward pass after
        it has changed."""
        gain, module = self.site.gain, self.module()
        if gain is None or module is None:
            return None
        return self.read(gain) if module._modules else gain(module)  # a parametrization is a part

    def read(self, function):
        """function(module), without a parametrization that runs; None where the module is gone."""
        module = self.module()
        if module is not None and (self.made or "parametrizations" in module._modules):
            return function(_made.View(self, module))
        return None if module is None else function(module)

    def whole_gain(self, gain):
        """The gain of a forward pass, or the module's in its backward pass, where FSDP has put its parts together."""
        return self.plain_gain() if _kinds.strange(gain) else gain

    def place(self):
        """The Stored of a backward pass that comes now, on the CPU."""
        if len(self.passes) == len(self.stored):
            self.stored.append(Stored(self.site, self.width))
        return self.stored[len(self.passes)]

    def keep(self, kind, tensors, gamma, counts, serial):
        """A backward pass came: the five sums (None: not known) and the gain, safe from later steps.

        On the CPU they are copied to preallocated rows: small tensors that live on among the freed
        activations would keep their memory from being reused, which costs more than all sums.
        """
        if tensors[0].is_cpu:
            self.arrived(self.place().fill(kind, tensors, gamma, counts, serial))
        else:
            *known, last = tensors
            known.append(torch.zeros_like(known[0]) if last is None else last)
            # the node's gradients may become .grad, which the host changes in place
            own = torch.Tensor.clone if kind == "batch_norm" else torch.Tensor.detach
            self.arrived(Pass(self.site, kind, [own(tensor.detach()) for tensor in known], counts,
                              None if gamma is None else gamma.detach().clone(), serial))

    def arrived(self, caught):
        """A backward pass came, and counts."""
        if not self.passes:
            self.of_loss = self.shared.run()[0]
        self.passes.append(caught)

    def counts(self, serial):
        """Whether a backward pass that comes now counts; passes that it replaces go. serial: of its forward pass; the
        last one counts in "last"."""
        shared, passes = self.shared, self.passes
        if self.late(serial):
            return False
        loss = shared.run()[0]
        shared.unsure |= not loss
        if not passes:
            return True
        if loss is not self.of_loss:  # torch.autograd.grad() beside backward()
            if loss:
                self.drop()
            return loss
        if shared.repeat == "last" and passes[0].serial != serial:
            shared.again = shared.again or self.site.name
            if passes[0].serial > serial:
                return False
            self.drop()
        shared.unsure |= shared.retained
        return True

    def late(self, serial):
        """Whether the forward pass belongs to a step that has ended."""
        shared = self.shared
        if serial <= shared.begun:
            shared.late = shared.late or self.site.name
        return serial <= shared.begun

    def no_sums(self):
        """A backward pass came without gradients of the weight and the bias."""
        if self.shared.run()[0]:
            self.misfit = _arrivals.NO_SUMS
        else:  # unless a backward() comes
            self.lacking = self.shared.unsure = True

    def drop(self):
        """The passes of this step up to now do not count."""
        if self.shared.cards is not None:
            self.shared.cards.forget(self.passes)
        self.passes.clear()

    def spoil(self, why):
        """The data of this step are wrong."""
        self.misfit, self.spoiled, self.shared.unsure = why, True, True


def _bias(module):
    return getattr(module, "bias", None)


def _leaf_arrived(tap, leaf):
    """The leaf's gradient is a pass, or the sum of the passes of one backward call."""
    sums, leaf.grad = leaf.grad, None
    if tap is None or not tap.shared.on:
        return
    gamma = tap.gain()
    gamma = None if gamma is None else gamma.clone()
    if tap.leaf_stays:  # one forward pass or several
        tap.spoil("within torch.compile the backward passes of a graph that stays are not told apart")
        return
    tap.leaf_stays = tap.shared.run()[1]
    tap.shared.unsure |= tap.leaf_stays
    tap.shared.serial += 1
    if tap.counts(tap.shared.serial):
        tap.arrived(Pass(tap.site, "leaf", (sums,), (None, None, None), gamma, tap.shared.serial))
