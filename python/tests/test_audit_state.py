"""statrec.audit leaves the model, random states and the loader unchanged."""
import math
import random
import sys
import unittest

from audit_cases import Case, convnet, inputs_of, mlp, pairs, trained

import statrec
import torch
import torch.nn.functional as F
from torch import nn


class Broken(Exception):
    pass


class State(Case):
    """An audit leaves its inputs unchanged."""

    def everything(self, model):
        """Bits and identities of all that must stay."""
        tensors = {name: (id(value), value._version, value.detach().clone(),
                          None if getattr(value, "grad", None) is None else
                          (id(value.grad), value.grad.clone()))
                   for name, value in [*model.named_parameters(), *model.named_buffers()]}
        modules = [(id(module), module.training, list(module._buffers), list(module._parameters),
                    list(module.__dict__), dict(module._forward_hooks),
                    dict(module._forward_pre_hooks),
                    dict(module._backward_hooks), dict(module._forward_hooks_always_called),
                    dict(module._forward_pre_hooks_with_kwargs)) for module in model.modules()]
        return tensors, modules

    def same(self, before, after):
        self.assertEqual(before[1], after[1])
        self.assertEqual(before[0].keys(), after[0].keys())
        for name, (place, version, value, grad) in before[0].items():
            place2, version2, value2, grad2 = after[0][name]
            self.assertEqual((place, version), (place2, version2), name)
            self.assertEqual(value.numpy().tobytes(), value2.numpy().tobytes(), name)
            self.assertEqual(grad is None, grad2 is None)
            if grad is not None:
                self.assertEqual(grad[0], grad2[0])
                self.assertTrue(torch.equal(grad[1], grad2[1]))

    def model(self):
        model = nn.Sequential(convnet()[:4], nn.Dropout(0.5), convnet()[4:])
        x = torch.randn(9, 3, 8, 8)
        F.cross_entropy(model(x), torch.zeros(9).long()).backward()
        model[1].eval()
        model[0][1].running_mean[0] = math.nan
        model.register_buffer("nothing", None)
        model.register_buffer("tied", model[0][1].running_var)
        model[0][1].register_forward_hook(lambda *_: None)
        model[0].register_forward_pre_hook(lambda *_: None)
        return model

    def batches(self):
        make = torch.Generator().manual_seed(2)
        return [(torch.randn(9, 3, 8, 8, generator=make), torch.zeros(9).long()) for _ in range(4)]

    def randoms(self):
        numpy = sys.modules.get("numpy")
        return (random.getstate(), torch.get_rng_state().tolist(),
                None if numpy is None else str(numpy.random.get_state()))

    def unchanged(self, work, error=None):
        """The model and the random states are as they were after work(model)."""
        model = self.model()
        before, randoms = self.everything(model), self.randoms()
        grad = torch.is_grad_enabled()
        if error is None:
            work(model)
        else:
            with self.assertRaises(error):
                work(model)
        self.same(before, self.everything(model))
        self.assertEqual(randoms, self.randoms())
        self.assertEqual(torch.is_grad_enabled(), grad)
        self.assertIs(model.tied, model[0][1].running_var)

    def test_all_stays(self):
        self.unchanged(lambda model: statrec.audit(model, self.batches(), F.cross_entropy))
        self.unchanged(lambda model: statrec.audit(model, self.batches(), each_site=True))
        self.unchanged(lambda model: statrec.compare(model, self.batches(), self.batches()))

    def test_after_exceptions(self):
        def broken(*_):
            raise Broken

        def loader():
            yield from self.batches()[:2]
            raise Broken

        def late(output, target, calls=[]):
            calls.append(0)
            if len(calls) > 7:
                raise KeyboardInterrupt
            return F.cross_entropy(output, target)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), broken), Broken)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), late), KeyboardInterrupt)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), call=broken), Broken)
        self.unchanged(lambda model: statrec.audit(model, loader()), Broken)
        self.unchanged(lambda model: statrec.compare(model, self.batches(), loader()), Broken)

    def test_random_states(self):
        def noisy(output, target):
            random.random()
            torch.rand(3)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.rand()
            return F.cross_entropy(output, target)
        self.unchanged(lambda model: statrec.audit(model, self.batches(), noisy))

    def test_generator_of_the_loader(self):
        make = torch.Generator().manual_seed(9)
        data = torch.utils.data.TensorDataset(torch.randn(40, 5))
        loader = torch.utils.data.DataLoader(data, 8, shuffle=True, generator=make)
        before = make.get_state()
        statrec.audit(mlp(nn.BatchNorm1d), loader)
        self.assertTrue(torch.equal(before, make.get_state()))

    @unittest.skipUnless(torch.cuda.is_available(), "no CUDA device")
    def test_on_a_gpu(self):
        model, batches = trained(mlp(nn.BatchNorm1d), pairs(4)), pairs(4)
        want = statrec.audit(model, batches, F.cross_entropy)
        model.cuda()
        before = [value.clone() for value in model.state_dict().values()]
        state = torch.cuda.get_rng_state()

        def noisy(output, target):
            torch.rand(3, device="cuda")
            return F.cross_entropy(output, target)
        audit = statrec.audit(model, batches, noisy)
        self.assertTrue(torch.equal(state, torch.cuda.get_rng_state()))
        self.assertTrue(all(map(torch.equal, before, model.state_dict().values())))
        for regime, values in audit.measures["loss"].values.items():
            for got, value in zip(values, want.measures["loss"].values[regime]):
                self.near(got, value, 1e-3)
        self.assertEqual(audit.repair()["1.running_mean"].device, model[1].running_mean.device)

    def test_repair_leaves_the_model(self):
        model, batches = mlp(nn.BatchNorm1d), pairs(3)
        before = self.everything(model)
        audit = statrec.audit(model, batches, F.cross_entropy)
        found = audit.repair()
        self.same(before, self.everything(model))
        rows = torch.cat([inputs_of(model, model[1], x) for x, _ in batches])
        self.assertTrue(torch.allclose(found["1.running_mean"].double(), rows.mean(0), atol=1e-6))
        self.assertTrue(torch.allclose(found["1.running_var"].double(), rows.var(0), rtol=1e-6))
        self.assertEqual(found["1.running_mean"].dtype, torch.float32)
        missing = model.load_state_dict(found, strict=False)
        self.assertEqual(missing.unexpected_keys, [])
        self.assertTrue(torch.equal(model[4].running_var, found["4.running_var"]))
        found["4.running_var"].zero_()
        self.assertTrue(audit.repair()["4.running_var"].all())

    def test_input_is_not_changed(self):
        class InPlace(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)

            def forward(self, x):
                return self.norm(x.mul_(2))
        batches = pairs(4)
        kept = [x.clone() for x, _ in batches]
        statrec.audit(InPlace(), batches)
        self.assertTrue(all(torch.equal(x, other) for (x, _), other in zip(batches, kept)))

    def test_reassigned_buffers(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(5)
                self.register_buffer("count", torch.zeros(()))

            def forward(self, x):
                self.count = self.count + 1
                self.norm.num_batches_tracked.add_(1)
                return self.norm(x)
        model = Counts()
        before = self.everything(model)
        statrec.audit(model, pairs(3))
        self.same(before, self.everything(model))
