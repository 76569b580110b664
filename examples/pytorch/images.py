"""Trains ResNet20 on CIFAR-10 with any normalization and records its statistics.

    curl -O https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz && tar xzf cifar-10-binary.tar.gz
    python images.py --data cifar-10-batches-bin --norm bn --steps 2000

He et al., CVPR 2016; docs/models.md 1.1. The learning rate falls to a tenth after half and after
three quarters of the run.
"""

import os

import numpy
import torch
import torch.nn.functional as F
from training import finish, options, read, train

import statrec.models

METRIC = ("test_accuracy", "percent", "test images with the largest logit", "more")
SIDE, RECORD = 32, 1 + 3 * 32 * 32  # a label, then red, green and blue


def read_images(directory, names, limit):
    """Images [N, 32, 32, 3] and labels [N] of the binary files that there are."""
    found = [
        name
        for name in names
        if any(os.path.exists(os.path.join(directory, name + end)) for end in ("", ".gz"))
    ]
    if not found:
        raise SystemExit(f"{directory}: has none of {', '.join(names)}")
    data = numpy.frombuffer(b"".join(read(directory, name) for name in found), numpy.uint8)
    if data.size % RECORD:
        raise SystemExit(f"{directory}: {data.size} bytes are no records of {RECORD}")
    data = data.reshape(-1, RECORD)[: limit or None]
    images = data[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return torch.tensor(images), torch.tensor(data[:, 0], dtype=torch.long)


class Pixels:
    """Normalizes by mean and deviation of each channel over the training images."""

    def __init__(self, images, device):
        values = images.double() / 255
        self.mean = values.mean((0, 1, 2)).float().to(device)
        self.deviation = values.std((0, 1, 2), unbiased=False).float().to(device)

    def __call__(self, images):
        x = (images.float() / 255 - self.mean) / self.deviation
        return x.permute(0, 3, 1, 2)


def batches(images, labels, pixels, size):
    """Endless: shuffled, each image cropped from 4 pixels of padding and mirrored at random."""
    padded = F.pad(images, (0, 0, 4, 4, 4, 4))
    size = min(size, len(images))
    while True:
        order = torch.randperm(len(images), device=images.device)
        for chosen in order[: len(order) // size * size].split(size):
            corner = torch.randint(0, 9, (2, size, 1), device=images.device)
            rows, columns = corner + torch.arange(SIDE, device=images.device)
            mirrored = torch.rand(size, 1, device=images.device) < 0.5
            columns = torch.where(mirrored, columns.flip(1), columns)
            crop = padded[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]
            yield pixels(crop), labels[chosen]


def loss_of(model, batch):
    """The summed cross entropy, and the number of images."""
    images, labels = batch
    return F.cross_entropy(model(images), labels, reduction="sum"), len(labels)


@torch.no_grad()
def accuracy(model, images, labels, pixels):
    """Percent of the images whose class has the largest logit, by running values."""
    model.eval()
    parts = zip(images.split(500), labels.split(500))
    right = sum(int((model(pixels(x)).argmax(1) == y).sum()) for x, y in parts)
    model.train()
    return 100 * right / len(labels)


def main():
    p = options(__doc__.splitlines()[0], "images.h5", "bn")
    p.add_argument("--layers", type=int, default=20, help="20, 32, 44, 56 or 110")
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--lr", type=float, default=0.1)
    chosen = p.parse_args()
    torch.manual_seed(chosen.seed)
    names = [f"data_batch_{i}.bin" for i in range(1, 6)]
    images, labels = (x.to(chosen.device) for x in read_images(chosen.data, names, chosen.limit))
    pixels = Pixels(images, chosen.device)
    model = statrec.models.make("resnet20", norm=chosen.norm, layers=chosen.layers)
    model = model.to(chosen.device)
    optimizer = torch.optim.SGD(model.parameters(), chosen.lr, momentum=0.9, weight_decay=1e-4)

    def rate(_step, done):
        return chosen.lr * 0.1 ** ((done >= 0.5) + (done >= 0.75))

    endless = batches(images, labels, pixels, chosen.batch_size)
    run = train(model, chosen, endless, loss_of, optimizer, rate, METRIC)
    test = [x.to(chosen.device) for x in read_images(chosen.data, ["test_batch.bin"], chosen.limit)]
    finish(run, METRIC, accuracy(model, *test, pixels))


if __name__ == "__main__":
    main()
