"""statrec.models: errors of checkpoints, sizes, initial values and options of new models."""

import math
import unittest

from support import module, wants
from test_models import PAD, TRANSFORMER, Trained, write_sentences

torch, h5py = module("torch"), module("h5py")
if torch is not None:
    import statrec.models as sm


@wants("torch", "numpy", "h5py")
class Checkpoints(Trained):
    """Errors of load, save and dictionary."""

    def setUp(self):
        super().setUp()
        for number, name in enumerate(("train.de", "train.en", "valid.de", "valid.en")):
            write_sentences(name, 30, number)
        self.train(*TRANSFORMER, "--norm", "bn", steps=1)
        self.path = "run-0000001.ckpt"

    def refused(self, pattern, function, *arguments):
        with self.assertRaisesRegex(ValueError, pattern) as caught:
            function(*arguments)
        self.assertEqual(str(caught.exception).count("\n"), 0)
        return str(caught.exception)

    def changed(self, change):
        """A copy of the checkpoint after change(file)."""
        with open(self.path, "rb") as file, open("other.ckpt", "wb") as copy:
            copy.write(file.read())
        with h5py.File("other.ckpt", "r+") as file:
            change(file)
        return "other.ckpt"

    def config(self, *pair):
        def change(file):
            text = file.attrs["config"]
            text = text.decode() if isinstance(text, bytes) else text
            assert pair[0] in text
            del file.attrs["config"]
            file.attrs["config"] = text.replace(*pair)
        return change

    def test_no_checkpoint(self):
        self.assertRaises(FileNotFoundError, sm.load, "none.ckpt")
        with open("text.ckpt", "w", encoding="utf-8") as file:
            file.write("no HDF5")
        self.refused("^text.ckpt: no checkpoint", sm.load, "text.ckpt")
        self.refused("^run.h5: no checkpoint.*a run file", sm.load, "run.h5")
        with open(self.path, "rb") as file:
            whole = file.read()
        for size in (100, len(whole) // 2, len(whole) - 1):
            with open("cut.ckpt", "wb") as file:
                file.write(whole[:size])
            self.refused("^cut.ckpt: ", sm.load, "cut.ckpt")

    def test_damage(self):
        with h5py.File(self.path) as file:
            offset = file["parameters/embedding"].id.get_chunk_info(0).byte_offset
        with open(self.path, "r+b") as file:
            file.seek(offset + 40)
            byte = file.read(1)
            file.seek(offset + 40)
            file.write(bytes([byte[0] ^ 1]))
        self.refused("parameters/embedding is damaged", sm.load, self.path)

    def test_other_contents(self):
        def external(file):
            del file["parameters/embedding"]
            file["parameters/embedding"] = h5py.ExternalLink(self.path, "/parameters/embedding")

        def external_group(file):
            del file["running"]
            file["running"] = h5py.ExternalLink(self.path, "/running")

        def dropped(file):
            del file["running/encoder.0.norm1.mu"]

        def empty(file):
            shape = file["parameters/embedding"].shape
            del file["parameters/embedding"]
            file["parameters"].create_dataset("embedding", shape, "f4", chunks=True)

        for change, pattern in (
            (external, "parameters/embedding is no array of this file"),
            (external_group, "has no running/encoder.0.norm1.mu"),
            (dropped, "has no running/encoder.0.norm1.mu"),
            (empty, "parameters/embedding is not complete"),
            (lambda file: file.attrs.modify("format_version", 2), "format_version 2"),
            (lambda file: file.attrs.modify("model", b"tener"), "no model is called"),
            (lambda file: file.attrs.modify("vocabulary", 2**29), "has shape .* the model of its"),
            (self.config("norm = bn", "norm = bm"), "no normalization is called 'bm'"),
            (self.config("embed-dim = 8", "embed-dim = 1e9"), "embed-dim is '1e9'"),
            (self.config("embed-dim = 8", "embed-dim = 9"), "not divisible by heads"),
            (self.config("encoder-layers = 2", "encoder-layers = 65"), "encoder-layers is 65"),
        ):
            with self.subTest(pattern=pattern):
                self.refused(pattern, sm.load, self.changed(change))

    def test_state(self):
        """load draws no random number; the mode is evaluation, and options are set."""
        torch.manual_seed(5)
        want = torch.rand(3)
        torch.manual_seed(5)
        model = sm.load(self.path)
        self.assertTrue(torch.equal(torch.rand(3), want))
        self.assertFalse(model.training)
        self.assertEqual(model.options["norm"], "bn")
        self.assertEqual({p.device.type for p in model.parameters()}, {"cpu"})
        self.assertEqual(int(model.encoder["0"]["norm1"].num_batches_tracked), 1)
        self.refused("ends with .npz", sm.save, model, "weights.ckpt")
        self.refused("side is 'both'", sm.dictionary, self.path, "both")


@wants("torch")
class Made(unittest.TestCase):
    """Sizes, initial values and options of new models."""

    def count(self, name, **options):
        with torch.device("meta"):
            return sum(p.numel() for p in sm.make(name, **options).parameters())

    def test_sizes(self):
        """Numbers of docs/models.md."""
        self.assertEqual([self.count("resnet20", layers=n) for n in (20, 32, 44, 56, 110)],
                         [269722, 464154, 658586, 853018, 1727962])
        self.assertEqual(self.count("resnet18"), 11173962)
        self.assertEqual(self.count("resnet18", preset="mini"), 701466)
        for preset, placement, d, want in (
            ("transformer_iwslt_de_en", "", 512, 31543296),
            ("transformer_iwslt_de_en", "pre", 512, 31545344),
            ("transformer", "", 512, 44138496), ("transformer_big", "", 1024, 176361472),
        ):
            options = {"preset": preset, "placement": placement, "norm": "ln"}
            self.assertEqual(self.count("transformer", vocabulary=10, **options), want + 10 * d)
        for preset, d, inner in (("rt", 128, 793344), ("imdb", 32, 23136)):
            got = self.count("transformer_classifier", preset=preset, norm="ln", vocabulary=9, classes=2)
            self.assertEqual(got, inner + 9 * d + 2 * d + 2)

    def test_presets(self):
        """Dropout and heads, which no count shows (docs/models.md 2.1)."""
        for preset, heads, dropout in (
            ("mini", 4, (0.1, 0, 0)), ("transformer", 8, (0.1, 0, 0)),
            ("transformer_iwslt_de_en", 4, (0.3, 0.1, 0.1)), ("transformer_big", 16, (0.3, 0.1, 0.1)),
        ):
            with torch.device("meta"):
                layer = sm.make("transformer", preset=preset, vocabulary=8).encoder["0"]
            attention = layer["attention"]
            self.assertEqual(attention.heads, heads)
            self.assertEqual((layer.dropout, attention.dropout, layer["ffn_block"].dropout), dropout)

    def test_initial_values(self):
        """The deviations of docs/models.md 1.1 and 2.4."""
        torch.manual_seed(0)
        model = sm.make("transformer", preset="mini", vocabulary=400, norm="ln")
        layer = model.encoder["1"]
        root = math.sqrt(3)
        for weight, want in (
            (model.embedding.weight[2:], 128**-0.5),
            (layer["attention"].q.weight, math.sqrt(1.5 / 128) / root),
            (layer["attention"].k.bias, 128**-0.5 / root),
            (layer["attention"].o.weight, math.sqrt(6 / 256) / root),
            (layer["ffn_block"]["in"].weight, math.sqrt(6 / 384) / root),
        ):
            self.assertLess(abs(float(weight.detach().std()) / want - 1), 0.2)
        self.assertFalse(model.embedding.weight[PAD].any() or layer["attention"].o.bias.any())
        net = sm.make("resnet20")
        self.assertLess(abs(float(net.stage3[1].conv1.weight.detach().std()) * 17 - 1), 0.05)
        self.assertFalse(net.classify.bias.any())
        stem = sm.make("resnet20", init="pytorch").stem_conv.weight.detach()
        self.assertLessEqual(float(stem.abs().max()), 27**-0.5)
        fan = sm.make("transformer", preset="mini", vocabulary=9, linear_init="fan-in", embed_std=3.0)
        out = fan.decoder["0"]["ffn_block"]["out"].weight.detach()
        self.assertLessEqual(float(out.abs().max()), 1 / 16)
        self.assertLess(abs(float(fan.embedding.weight[2:].detach().std()) / 3 - 1), 0.1)

    def test_options(self):
        for name, options, pattern in (
            ("resnet21", {}, "no model is called"),
            ("resnet20", {"norms": "bn"}, "'norms' is no option"),
            ("resnet20", {"layers": 21}, "layers is 21"),
            ("resnet20", {"norm": "bn(x=1)"}, "bn.x=1"),
            ("resnet20", {"norm": "ln+ls"}, "ln has no layer scale"),
            ("resnet20", {"norm": "bn(unbiased)"}, "is not NAME=VALUE"),
            ("resnet20", {"norm_at": "nowhere=bn"}, "decides no site"),
            ("resnet20", {"norm_at": "stem"}, "no list of SITES=METHOD"),
            ("resnet20", {"norm_alpha": 1.5}, "norm-alpha is 1.5, not 0 to 1"),
            ("transformer", {}, "vocabulary is 0"),
            ("transformer", {"vocabulary": 9, "preset": "huge"}, "preset is 'huge'"),
            ("transformer", {"vocabulary": 9, "placement": "behind"}, "placement is 'behind'"),
            ("transformer", {"vocabulary": 9, "embed_dim": 7}, "not divisible"),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, pattern):
                sm.make(name, **options)
        with self.assertRaisesRegex(ValueError, "multiples of 4"):
            sm.make("resnet20")(torch.zeros(1, 3, 30, 32))


if __name__ == "__main__":
    unittest.main()
