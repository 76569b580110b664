"""statrec.models against the C engine: checkpoints of `statrec train` give the same loss and the same statistics of the
next step. Weights can be read back by train."""

import os
import random
import re
import subprocess
import unittest

import statrec
from support import InDirectory, module, wants

torch, numpy, h5py = module("torch"), module("numpy"), module("h5py")
if torch is not None:
    import torch.nn.functional as F

    import statrec.models as sm
    import statrec.nn as sn

PAD, END, UNKNOWN = 1, 2, 3
# Every method of the engine, in groups that one model has sites for. eps of rbn-released is small,
# since its xhat has max(variance, eps) where the watched one has variance + eps.
METHODS = (
    ("bn", "bn(unbiased=1)", "bn-powernorm", "ln", "ln-simple", "detach-mean", "detach-std",
     "detach-both", "adanorm(C=2;k=0.2)"),
    ("rmsnorm(placement=outside)", "pnv", "pn", "pn(alpha_bwd=0.8)+ls", "pn-released(warmup=1)",
     "rbn(lambda=0.2;nu=0.3;running=before)", "rbn-released(penalty=diff2;eps=1e-7)",
     "brn(warmup=1;r_calls=4;d_calls=4)", "mabn(buffer=2;warmup=1;clip_calls=1)"),
    ("un(window=2;warmup=1)", "repbn(t0=6)", "dyt(alpha0=0.4)", "derf(s0=0.1)", "unit(s_init=2)",
     "groupnorm(groups=2)", "instancenorm", "none", "un(window=2;warmup=1;filter=off)"),
)
TEXT_SITES = ("encoder.0.norm1 encoder.0.norm2 encoder.1.norm1 encoder.1.norm2 encoder.final "
              "decoder.0.self decoder.0.cross decoder.0.ffn decoder.final").split()
IMAGE_SITES = ("stem stage1.0.norm1 stage1.0.norm2 stage1.1.norm1 stage1.1.norm2 stage1.2.norm1 "
               "stage2.0.norm1 stage2.0.norm2 stage3.2.norm2").split()
NO_DROPOUT = ("--dropout", "0", "--attention-dropout", "0", "--relu-dropout", "0")
SMALL = ("--embed-dim", "8", "--ffn-dim", "12", "--heads", "2", *NO_DROPOUT)
PAIRS = ("--data", "parallel", "--data-dir", ".", "--trainpref", "train", "--validpref", "valid",
         "--source", "de", "--target", "en", "--max-tokens", "60", "--batching", "random")
TRANSFORMER = ("--model", "transformer", "--encoder-layers", "2", "--decoder-layers", "1", *SMALL,
               *PAIRS)
IMAGES = ("--data", "cifar10", "--data-dir", ".", "--batch-size", "8", "--conv", "direct")
STEPS = 4
VECTORS = "mu_B sigma2_B psi2_B mu sigma2 psi2 gamma nu Gamma_t Lambda_t sum_g sum_gx".split()
SCALARS = ("rows dist_mu dist_sigma dist_psi tid_mean tid_var g_mu g_sigma2 g_psi2 rel_psi "
           "rel_psi2 Gamma_max").split()
GRADIENTS = "sum_g sum_gx Lambda_t g_mu g_sigma2 g_psi2".split()
OURS = ("sigma", "psi", "pn")  # families of watch that it records as the engine does


def statrec_program(*arguments):
    """Runs the program of $STATREC_BIN."""
    program = os.path.join(os.environ.get("STATREC_BIN", ""), "statrec")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"statrec {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def at(sites, methods):
    """The option --norm-at of these methods at these sites."""
    return ",".join(f"{site}={method}" for site, method in zip(sites, methods))


def write_sentences(name, lines, seed):
    draw = random.Random(seed)
    with open(name, "w", encoding="utf-8") as file:
        for _ in range(lines):
            file.write(" ".join(f"w{draw.randrange(20)}" for _ in range(draw.randint(1, 9))) + "\n")


def write_images(name, count, seed):
    records = numpy.random.default_rng(seed).integers(0, 256, (count, 3073), dtype=numpy.uint8)
    records[:, 0] = numpy.arange(count) % 10
    records.tofile(name)
    return records


@wants("torch", "numpy", "h5py")
class Trained(InDirectory):
    """Trains a tiny model in the directory of the test."""

    bound = 1e-5  # for statistics of the gradient

    def train(self, *options, name="run", steps=STEPS):
        statrec_program("train", "--quiet", "--threads", "1", "--max-steps", str(steps), "--lr", "0.01",
                        "--checkpoint-every", "1", "--keep", "9", "--vectors-every", "1",
                        "--dump-batches", name + ".npz", "--dump-steps", str(steps), "-o",
                        name + ".h5", *options)
        self.batches = numpy.load(name + ".npz")

    def batch(self, step, *names):
        return [torch.tensor(self.batches[f"step{step}/{name}"]).long() for name in names]

    def close(self, got, want, bound, what):
        got, want = (numpy.asarray(x, dtype=float) for x in (got, want))
        size = max(float(numpy.abs(want).max()), 1e-30)
        worst = float(numpy.abs(got - want).max()) / size
        self.assertLessEqual(worst, bound, f"{what}: off by {worst:.2g} of {size:.3g}")

    def check_options(self, model, path):
        """Each norm has the options that the engine writes into its configuration."""
        with h5py.File(path) as file:
            config = file.attrs["config"]
        config = config.decode() if isinstance(config, bytes) else config
        found = re.findall(r"^# (\S+)(?: and \d+ more)?: (\S+) ?(.*)$", config, re.MULTILINE)
        modules, seen = dict(model.named_modules()), 0
        for site, method, options in found:
            norm = modules.get(site)
            if norm is None or method == "none":
                continue
            for name, value in (option.split("=") for option in options.split()):
                got = getattr(norm, RENAMED.get((method, name), name), None)
                if not isinstance(got, (str, bool, int, float)):
                    continue
                if isinstance(got, str):
                    self.assertEqual(got, value, f"{site} {method} {name}")
                elif name != "s_scale":  # 0 there: 1/sqrt(features)
                    want = float({"on": 1, "off": 0}.get(value, value))
                    self.assertAlmostEqual(float(got), want, 8, f"{site} {method} {name}")
                seen += 1
        return seen

    def check_step(self, model, loss_of, masks=()):
        """Loss and statistics of the last step, from the checkpoint before it."""
        model.train()
        run = statrec.watch(model, "watched.h5", vectors_every=1, verbose=False, force=True,
                            loss_reduction="sum")
        for sites, valid in masks:
            run.mask(valid, sites)
        loss = loss_of(model) + sn.penalty(model)
        loss.backward()
        run.step(loss=loss.detach())
        run.close()
        self.close(loss.detach(), self.batches[f"step{STEPS}/loss_sum"], 1e-5, "loss of the step")
        with statrec.open("run.h5") as engine, statrec.open("watched.h5") as watched:
            self.check_sites(engine, watched)

    def check_sites(self, engine, watched):
        left = [name for name in engine.sites if engine.sites[name].norm != "none"]
        self.assertEqual(list(watched.sites), left)
        for name, site in watched.sites.items():
            exact = site.family in OURS
            scaled = engine.sites[name].layer_scale > 0
            vectors = VECTORS if exact else ["sum_g"] if scaled or engine.sites[name].norm in (
                "dyt", "derf") else VECTORS[:3] + ["sum_g"]
            for kind, names in (("vector", vectors), ("scalar", SCALARS if exact else ["rows"])):
                for statistic in names:
                    self.check_statistic(engine, watched, kind, statistic, name)

    def check_statistic(self, engine, watched, kind, statistic, site):
        def last(file):
            return file.vector(statistic, site)[-1] if kind == "vector" else \
                file[statistic][site][-1:]
        try:
            want = numpy.asarray(last(engine), dtype=float)
        except statrec.Error:  # the file has no site
            return
        if numpy.isnan(want).all():
            return
        got = numpy.asarray(last(watched), dtype=float)
        if watched.sites[site].norm == "rbn-released" and statistic in ("g_mu", "g_sigma2") and numpy.isnan(got).all():
            return  # with padding: the engine's sums include padded rows, watch's do not
        gradient = statistic in GRADIENTS
        if gradient and max(numpy.abs(want).max(), numpy.abs(got).max()) < 1e-6:
            return  # later layers cancel a shift: rounding alone
        bound = self.bound if gradient else 1e-5
        self.close(got, want, bound, f"{site} {watched.sites[site].norm} {statistic}")
        self.compared += 1

    def setUp(self):
        super().setUp()
        self.compared = 0


RENAMED = {
    ("rbn", "lambda"): "lambda_mean", ("rbn", "nu"): "lambda_std",
    ("rbn-released", "lambda"): "lambda_mean", ("rbn-released", "nu"): "lambda_std",
}


class Text(Trained):
    def setUp(self):
        super().setUp()
        for number, name in enumerate(("train.de", "train.en", "valid.de", "valid.en")):
            write_sentences(name, 60 if "train" in name else 12, number)

    def coded(self, name, words):
        ids = {word: i for i, word in enumerate(words)}
        with open(name, encoding="utf-8") as file:
            return [[ids.get(word, UNKNOWN) for word in line.split()] for line in file]

    def valid_nll(self, model, path):
        """Nats per word of valid.*, in one padded batch: padding on the right, then on the left."""
        sides = [self.coded("valid." + end, sm.dictionary(path, side))
                 for end, side in (("de", "source"), ("en", "target"))]
        sentences = [[words + [END] for words in sides[0]], [[END] + words for words in sides[1]],
                     [words + [END] for words in sides[1]]]
        longest = [max(map(len, side)) for side in sentences]
        count = sum(map(len, sentences[2]))
        right = [torch.tensor([row + [PAD] * (n - len(row)) for row in side])
                 for side, n in zip(sentences, longest)]
        left = torch.tensor([[PAD] * (longest[0] - len(row)) + row for row in sentences[0]])
        sums = []
        with torch.no_grad():
            for source in (right[0], left):
                logits = model(source, right[1]).transpose(1, 2)
                sums.append(float(F.cross_entropy(logits, right[2], ignore_index=PAD,
                                                  reduction="sum")) / count)
        return sums

    def loss(self, model):
        source, target, following = self.batch(STEPS, "source", "target_in", "target_out")
        return F.cross_entropy(model(source, target).transpose(1, 2), following, ignore_index=PAD,
                               label_smoothing=0.1, reduction="sum")

    def check_run(self, *options, left=True, masks=True):
        self.train(*options)
        before, after = (sm.load(f"run-{update:07}.ckpt") for update in (STEPS - 1, STEPS))
        source, target = self.batch(STEPS, "source", "target_in")
        self.assertTrue((source == PAD).any() and (target == PAD).any(), "padding")
        valid = [("encoder*", source != PAD), ("decoder*", target != PAD),
                 ("*cross_attention.k_norm", source != PAD)]
        self.check_step(before.double(), self.loss, valid if masks else ())
        with h5py.File("run.h5") as file:
            want = file["evals/valid_nll"][-1]
        for got in self.valid_nll(after, f"run-{STEPS:07}.ckpt")[:2 if left else 1]:
            self.close(got, want, 1e-5, "validation")
        return after

    def test_every_method(self):
        for number, methods in enumerate(METHODS):
            with self.subTest(methods=methods):
                model = self.check_run(*TRANSFORMER, "--placement", "pre", "--norm-at",
                                       at(TEXT_SITES, methods), "--force", left=number == 1)
                self.assertGreater(self.check_options(model, "run.h5"), 8)
        self.assertGreater(self.compared, 130)

    def test_placements(self):
        for options in (
            ("--placement", "post", "--qk-norm", "bn", "--dictionary", "separate"),
            # a BN after a BN would have mean 0 but for rounding
            ("--placement", "peri", "--qk-norm", "ln", "--norm-at", "encoder.embedding=ln"),
            ("--placement", "scaled", "--decoder-norm", "pnv", "--norm-eps", "0.01", "--norm-alpha",
             "0.7"),
            ("--placement", "pre", "--norm", "bn", "--norm-at", "first=pn+ls,encoder.*=ln,last=bn"),
        ):
            with self.subTest(options=options):
                self.compared = 0
                self.check_run(*TRANSFORMER, "--norm", "bn", *options, "--force")
                self.assertGreater(self.compared, 10)

    def test_counted_padding(self):
        self.check_run(*TRANSFORMER, "--placement", "pre", "--norm", "bn", "--count-padding",
                       left=False, masks=False)

    def test_back_to_train(self):
        """save writes what train reads: the same numbers, and the same loss of the next step."""
        methods = at(TEXT_SITES, METHODS[1])
        options = (*TRANSFORMER, "--placement", "pre", "--norm-at", methods)
        self.train(*options, steps=2)
        model = sm.load("run-0000002.ckpt")
        sm.save(model, "start.npz")
        self.assertFalse(os.path.exists("start.npz.part"))
        self.train(*options, "--weights", "start.npz", "--dump-weights", "weights.npz", name="again",
                   steps=1)
        first = numpy.load("weights.npz")
        with h5py.File("run-0000002.ckpt") as file:
            for group in ("parameters", "running"):
                for name, want in file[group].items():
                    got = first["update0/" + name]
                    if group == "running":  # float32 here
                        numpy.testing.assert_allclose(got, want[()], rtol=1e-7, atol=1e-12)
                    else:
                        numpy.testing.assert_array_equal(got, want[()], name)
        model.train()
        for norm in model.modules():  # such a file has no counts
            if hasattr(norm, "num_batches_tracked"):
                norm.num_batches_tracked.zero_()
        source, target, following = self.batch(1, "source", "target_in", "target_out")
        loss = F.cross_entropy(model(source, target).transpose(1, 2), following, ignore_index=PAD,
                               label_smoothing=0.1, reduction="sum") + sn.penalty(model)
        self.close(loss.detach(), self.batches["step1/loss_sum"], 1e-5, "loss")

    def test_classifier(self):
        for name in ("train.tsv", "valid.tsv"):
            draw = random.Random(name)
            with open(name, "w", encoding="utf-8") as file:
                for i in range(40):
                    words = " ".join(f"w{draw.randrange(9)}" for _ in range(draw.randint(2, 9)))
                    file.write(f"{i % 3}\t{words}\n")
        for preset, more in (("rt", ()), ("imdb", ("--pooling", "cls"))):
            with self.subTest(preset=preset):
                self.train("--model", "transformer_classifier", "--preset", preset, "--data",
                           "labelled", "--data-dir", ".", "--trainpref", "train.tsv", "--validpref",
                           "valid.tsv", "--layers", "2", "--norm", "bn", "--min-count", "1", *SMALL,
                           "--force", *more)
                model = sm.load(f"run-{STEPS - 1:07}.ckpt").double()
                words, labels = self.batch(STEPS, "source", "label")
                self.check_step(model, lambda m: F.cross_entropy(m(words), labels, reduction="sum"),
                                [("encoder*", words != PAD)])
        self.assertGreater(self.compared, 50)

    def test_language_model(self):
        os.rename("train.de", "ptb.train.txt"), os.rename("valid.de", "ptb.valid.txt")
        for mask in ("causal", "released"):
            with self.subTest(mask=mask):
                self.train("--model", "transformer_lm", "--data", "text", "--data-dir", ".", "--testpref",
                           "", "--layers", "1", "--norm", "bn", "--batch-size", "4", "--tgt-len", "5",
                           "--eval-batch-size", "2", "--lm-mask", mask, *SMALL, "--force")
                model = sm.load(f"run-{STEPS - 1:07}.ckpt").double()
                tokens, following = self.batch(STEPS, "target_in", "target_out")
                self.check_step(model, lambda m: F.cross_entropy(m(tokens).transpose(1, 2), following,
                                                                 reduction="sum"))
        self.assertGreater(self.compared, 50)


class Images(Trained):
    # Some of millions of ReLU inputs are within float32's rounding of 0, so a term of a sum over rows comes or goes
    # (tests/py/torch_compare.py). Losses and inputs have no such jumps.
    bound = 2e-2

    def setUp(self):
        super().setUp()
        self.records = write_images("data_batch_1.bin", 40, 1)
        self.test = write_images("test_batch.bin", 20, 2)

    def loss(self, model):
        images = torch.tensor(self.batches[f"step{STEPS}/image"]).double().permute(0, 3, 1, 2)
        labels, = self.batch(STEPS, "label")
        return F.cross_entropy(model(images), labels, reduction="sum")

    def valid_nll(self, model):
        images, test = (torch.tensor(r[:, 1:]).double().div(255).view(-1, 3, 32, 32)
                        for r in (self.records, self.test))
        mean, deviation = images.mean((0, 2, 3)), images.std((0, 2, 3), unbiased=False)
        x = ((test - mean[:, None, None]) / deviation[:, None, None]).float()
        with torch.no_grad():
            return F.cross_entropy(model(x), torch.tensor(self.test[:, 0]).long())

    def check_run(self, *options):
        self.train(*IMAGES, *options, "--force")
        self.check_step(sm.load(f"run-{STEPS - 1:07}.ckpt").double(), self.loss)
        model = sm.load(f"run-{STEPS:07}.ckpt")
        with h5py.File("run.h5") as file:
            self.close(self.valid_nll(model), file["evals/valid_nll"][-1], 1e-5, "validation")
        return model

    def test_every_method(self):
        for methods in METHODS:
            with self.subTest(methods=methods):
                model = self.check_run("--model", "resnet20", "--norm", "bn", "--norm-at",
                                       at(IMAGE_SITES, methods))
                self.assertGreater(self.check_options(model, "run.h5"), 8)
        self.assertGreater(self.compared, 200)

    def test_projected_shortcuts(self):
        self.check_run("--model", "resnet18", "--preset", "mini", "--norm", "mabn(buffer=2;warmup=1)",
                       "--norm-at", "*.shortcut=bn")


if __name__ == "__main__":
    unittest.main()
