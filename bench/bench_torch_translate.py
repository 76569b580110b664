#!/usr/bin/env python3
"""Time of translating a text with beam search in PyTorch: the peer of `statrec translate`.

    bench_torch_translate.py WEIGHTS.npz DICTIONARY TEXT [--heads 4] [--beam 5] [--sentences 128] [--threads 2]
                             [--output FILE] [--serve]

WEIGHTS.npz  of a pre-norm Transformer with LN, as `statrec export X.ckpt` writes them
DICTIONARY   `word count` lines, joint, as `statrec dictionary` writes it
TEXT         one sentence a line, words between blanks; .gz too

Decoding as in src/decode/beam.c (fairseq's generator): 2 B candidates a step, of which the first B may end; length
penalty 1, at most 200 words. Batched: so many sentences at once, sorted by length, done ones leave the batch. Cached:
keys and values of self-attention grow by a row a step; those of the source are made once a sentence, its B hypotheses
are queries of one product. float32, inference mode. Prints seconds a round, from ids to words; what is read and
loaded before is not part of it.
"""
import argparse
import gzip
import sys
import time

from bench_torch import sinusoids  # sets what PyTorch reads when it is loaded

import numpy as np
import torch
from torch.nn import functional as F

PAD, EOS, UNK = 1, 2, 3
LONGEST = 200


# -- the model --------------------------------------------------------------------------------------

class Translator:
    """w: weights by the names of `statrec export`."""

    def __init__(self, w, heads):
        self.w = w
        self.heads, self.d = heads, self.w["embedding"].shape[1]
        self.position = sinusoids(4096, self.d)
        self.layers = sum(name.endswith("cross_attention.q.weight") for name in self.w)

    def linear(self, x, name):
        return F.linear(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def norm(self, x, name):
        return F.layer_norm(x, (self.d,), self.w[name + ".gamma"], self.w[name + ".beta"])

    def split(self, x):
        """[n, t, d] -> [n, heads, t, d/heads]"""
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def join(self, y, name):
        return self.linear(y.transpose(1, 2).flatten(2), name + ".o")

    def keys(self, x, name):
        return [self.split(self.linear(x, f"{name}.{part}")) for part in "kv"]

    def ffn(self, x, name):
        return self.linear(F.relu(self.linear(x, name + ".ffn_block.in")), name + ".ffn_block.out")

    def embed(self, token, position):
        return self.w["embedding"][token] * self.d**0.5 + self.position[position]

    def encode(self, source):
        """-> keys and values of each decoder layer [n, heads, t, dh], mask [n, 1, 1, t]"""
        seen = (source != PAD)[:, None, None]
        x = self.embed(source, (source != PAD).cumsum(1) + PAD)
        for i in range(sum(name.startswith("encoder.") and name.endswith(".attention.q.weight")
                           for name in self.w)):
            name = f"encoder.{i}"
            h = self.norm(x, name + ".norm1")
            k, v = self.keys(h, name + ".attention")
            q = self.split(self.linear(h, name + ".attention.q"))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
            x = x + self.join(y, name + ".attention")
            x = x + self.ffn(self.norm(x, name + ".norm2"), name)
        x = self.norm(x, "encoder.final")
        return [self.keys(x, f"decoder.{i}.cross_attention") for i in range(self.layers)], seen

    def step(self, token, t, past, memory, seen):
        """Returns log p [n, B, V] of the words after token [n, B]; past grows by this step."""
        n, beam = token.shape
        x = self.embed(token, t + PAD + 1)
        for i in range(self.layers):
            name = f"decoder.{i}"
            h = self.norm(x, name + ".self").view(n * beam, 1, self.d)
            new = self.keys(h, name + ".self_attention")
            past[i] = new if past[i] is None else [torch.cat(p, 2) for p in zip(past[i], new)]
            q = self.split(self.linear(h, name + ".self_attention.q"))
            y = F.scaled_dot_product_attention(q, *past[i])
            x = x + self.join(y, name + ".self_attention").view(n, beam, self.d)
            q = self.split(self.linear(self.norm(x, name + ".cross"), name + ".cross_attention.q"))
            y = F.scaled_dot_product_attention(q, *memory[i], attn_mask=seen)
            x = x + self.join(y, name + ".cross_attention")
            x = x + self.ffn(self.norm(x, name + ".ffn"), name)
        return F.log_softmax(self.norm(x, "decoder.final") @ self.w["embedding"].t(), -1)


# -- beam search ------------------------------------------------------------------------------------

class Search:
    """Search of a batch. sentence [n]: indices of unfinished sentences; sum [n, B] and word [n, B, t]: their
    hypotheses."""

    def __init__(self, model, source, beam):
        self.model, self.beam = model, beam
        self.memory, self.seen = model.encode(source)
        self.past = [None] * model.layers
        self.done = [[] for _ in source]
        self.sentence = torch.arange(len(source))
        self.sum = torch.full((len(source), beam), -torch.inf)
        self.sum[:, 0] = 0  # all begin alike
        self.word = torch.full((len(source), beam, 1), EOS)

    def finish(self, sums, token, parent, t):
        """Ends of the first B candidates."""
        for i, k in (token[:, :self.beam].eq(EOS) & (sums[:, :self.beam] > -torch.inf)).nonzero().tolist():
            done = self.done[self.sentence[i]]
            if len(done) < self.beam:
                done.append((sums[i, k].item() / (t + 1), self.word[i, parent[i, k], 1:]))

    def reorder(self, going, row):
        """Sentences `going` stay; row: the hypotheses that theirs follow."""
        if len(going) < len(self.sentence):
            self.sentence, self.seen = self.sentence[going], self.seen[going]
            self.memory = [[part[going] for part in layer] for layer in self.memory]
        self.past = [[part.index_select(0, row) for part in layer] for layer in self.past]

    def step(self, t):
        log_p = self.model.step(self.word[..., -1], t, self.past, self.memory, self.seen)
        n, beam, words = log_p.shape
        log_p[..., PAD] = -torch.inf
        if t == 0:
            log_p[..., EOS] = -torch.inf
        if t >= LONGEST:
            log_p[..., torch.arange(words) != EOS] = -torch.inf
        sums, at = (self.sum[..., None] + log_p).flatten(1).topk(2 * beam)
        token, parent = at % words, at // words
        self.finish(sums, token, parent, t)
        order = (token.eq(EOS) * 2 * beam + torch.arange(2 * beam)).topk(beam, largest=False, sorted=True)[1]
        sums, token, parent = (part.gather(1, order) for part in (sums, token, parent))
        sums = sums.masked_fill(token.eq(EOS), -torch.inf)
        going = torch.tensor([i for i, s in enumerate(self.sentence.tolist())
                              if len(self.done[s]) < beam and t < LONGEST], dtype=torch.long)
        sums, token, parent = sums[going], token[going], parent[going]
        word = self.word[going].gather(1, parent[..., None].expand(-1, -1, t + 1))
        self.reorder(going, (going[:, None] * beam + parent).flatten())
        self.sum, self.word = sums, torch.cat((word, token[..., None]), 2)

    def run(self):
        t = 0
        while len(self.sentence):
            self.step(t)
            t += 1
        return [max(done, key=lambda h: h[0])[1].tolist() for done in self.done]


def translate(model, source, beam, at_once):
    """Ids of each sentence's best hypothesis, in the order of the sources."""
    order = sorted(range(len(source)), key=lambda i: -len(source[i]))
    found = [None] * len(source)
    for first in range(0, len(order), at_once):
        batch = order[first:first + at_once]
        ids = torch.full((len(batch), len(source[batch[0]])), PAD)
        for row, i in enumerate(batch):
            ids[row, :len(source[i])] = torch.tensor(source[i])
        for i, words in zip(batch, Search(model, ids, beam).run()):
            found[i] = words
    return found


# -- text -------------------------------------------------------------------------------------------

def lines_of(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as text:
        return text.read().splitlines()


def read_text(dictionary, text):
    """Returns words by index, and the indices of each line's words, followed by </s>."""
    words = ["<s>", "<pad>", "</s>", "<unk>"] + [line.split()[0] for line in lines_of(dictionary)]
    number = {word: i for i, word in enumerate(words)}
    return words, [[number.get(w, UNK) for w in line.split()] + [EOS] for line in lines_of(text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("dictionary")
    parser.add_argument("text")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output")
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)
    words, source = read_text(given.dictionary, given.text)
    weights = {name: torch.from_numpy(a).float() for name, a in np.load(given.weights).items()}
    model = Translator(weights, given.heads)
    with torch.inference_mode():
        translate(model, source[:given.sentences], given.beam, given.sentences)
        if given.serve:
            print("ready", flush=True)
        for _ in sys.stdin if given.serve else range(1):
            began = time.perf_counter()
            found = [" ".join(words[i] for i in ids)
                     for ids in translate(model, source, given.beam, given.sentences)]
            print(f"torch\ttranslate\t{time.perf_counter() - began:.3f}", flush=True)
    if given.output:
        with open(given.output, "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in found)


if __name__ == "__main__":
    main()
