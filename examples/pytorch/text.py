"""Trains an encoder-decoder Transformer on sentence pairs and records its normalizations.

The directory has train.de, train.en, valid.de and valid.en, plain or as .gz, one sentence a line,
as `statrec bpe` writes them:

    statrec bpe learn -s 8000 raw/train.de raw/train.en > codes
    for file in train.de train.en valid.de valid.en; do
        statrec bpe apply -c codes raw/$file > data/$file
    done
    python text.py --data data --source de --target en --norm bn --steps 2000

fairseq's model, loss, schedule and batches of similar length (docs/models.md 2). --norm is for the
encoder, --decoder-norm for the decoder.
"""

import collections
import random

import torch
import torch.nn.functional as F
from training import finish, options, read, train

import statrec.models

METRIC = ("valid_nll", "nats per token", "validation loss without smoothing", "less")
PAD, END, UNKNOWN = 1, 2, 3
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")


def read_pairs(directory, split, source, target, limit):
    """Pairs of lists of words."""
    sides = [
        read(directory, f"{split}.{language}").decode("utf-8").split("\n")
        for language in (source, target)
    ]
    if len(sides[0]) != len(sides[1]):
        raise SystemExit(f"{directory}: {split}.{source} and .{target} differ in lines")
    pairs = [(a.split(), b.split()) for a, b in zip(*sides)]
    return [pair for pair in pairs if pair[0] and pair[1]][: limit or None]


def dictionary(pairs, least):
    """{word: id} of both languages, by decreasing count."""
    counts = collections.Counter(word for pair in pairs for side in pair for word in side)
    words = sorted((w for w in counts if counts[w] >= least), key=lambda w: (-counts[w], w))
    return {word: i for i, word in enumerate([*SPECIAL, *words])}


def in_batches(pairs, ids, most):
    """Pairs of similar length, at most `most` padded tokens a side: source, target, next words."""
    coded = [[[ids.get(w, UNKNOWN) for w in side] + [END] for side in pair] for pair in pairs]
    coded.sort(key=lambda pair: (len(pair[1]), len(pair[0])))
    batches, batch, longest = [], [], 0
    for pair in coded:
        longest = max(longest, len(pair[0]), len(pair[1]))
        if batch and (len(batch) + 1) * longest > most:
            batches.append(padded(batch))
            batch, longest = [], max(len(pair[0]), len(pair[1]))
        batch.append(pair)
    return [*batches, padded(batch)]


def padded(pairs):
    """Source; target that starts with </s>; words to predict; their number."""
    sides = [[a for a, _ in pairs], [[END, *b[:-1]] for _, b in pairs], [b for _, b in pairs]]
    tensors = []
    for side in sides:
        length = max(map(len, side))
        tensors.append(torch.tensor([row + [PAD] * (length - len(row)) for row in side]))
    return (*tensors, sum(len(b) for _, b in pairs))


def moved(batch, device):
    """The batch on a device."""
    *tensors, words = batch
    return (*(x.to(device, non_blocking=True) for x in tensors), words)


def endless(batches, device):
    """Batches in a new order in each pass."""
    while True:
        random.shuffle(batches)
        for batch in batches:
            yield moved(batch, device)


def loss_of(model, batch, smoothing=0.1):
    """The summed cross entropy, and the number of words."""
    source, target, following, words = batch
    logits = model(source, target).transpose(1, 2)
    loss = F.cross_entropy(
        logits, following, ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
    return loss, words


def masks(batch):
    """Valid rows of the sites."""
    source, target = batch[0] != PAD, batch[1] != PAD
    return {"encoder*": source, "decoder*": target}


@torch.no_grad()
def valid_nll(model, batches, device):
    """Nats per word of the validation set, by running values."""
    model.eval()
    sums = [loss_of(model, moved(batch, device), smoothing=0.0) for batch in batches]
    model.train()
    return float(sum(loss for loss, _ in sums)) / sum(words for _, words in sums)


def main():
    p = options(__doc__.splitlines()[0], "text.h5", "bn")
    p.add_argument("--source", default="de", help="language, the end of the files' names")
    p.add_argument("--target", default="en")
    p.add_argument("--preset", default="mini", help="size of the model; statrec list presets")
    p.add_argument("--decoder-norm", default="ln")
    p.add_argument("--max-tokens", type=int, default=2048, help="padded words in a batch")
    p.add_argument("--min-count", type=int, default=1, help="rarer words are unknown")
    p.add_argument("--lr", type=float, default=0.002)
    p.add_argument("--warmup", type=int, default=400, help="steps to the full learning rate")
    chosen = p.parse_args()
    torch.manual_seed(chosen.seed)
    random.seed(chosen.seed)
    languages = chosen.source, chosen.target
    pairs = read_pairs(chosen.data, "train", *languages, chosen.limit)
    ids = dictionary(pairs, chosen.min_count)
    model = statrec.models.make(
        "transformer",
        preset=chosen.preset,
        norm=chosen.norm,
        decoder_norm=chosen.decoder_norm,
        vocabulary=-(-len(ids) // 8) * 8,
    ).to(chosen.device)
    optimizer = torch.optim.AdamW(
        model.parameters(), chosen.lr, betas=(0.9, 0.98), eps=1e-8, weight_decay=1e-4
    )

    def rate(step, _done):
        return chosen.lr * min(step / chosen.warmup, (chosen.warmup / step) ** 0.5)

    batches = in_batches(pairs, ids, chosen.max_tokens)
    moving = endless(batches, chosen.device)
    run = train(model, chosen, moving, loss_of, optimizer, rate, METRIC, masks)
    valid = read_pairs(chosen.data, "valid", *languages, chosen.limit)
    valid = in_batches(valid, ids, chosen.max_tokens)
    finish(run, METRIC, valid_nll(model, valid, chosen.device))


if __name__ == "__main__":
    main()
