"""Generated data sets: a function of a seed for each, which returns a Task."""
import math

import torch

TRAIN, VALID = 4096, 1024


class Task:
    """x, y: training set; valid_x, valid_y: as many features, other samples. kind: "classes",
    "regression" or "binary"; classes: of the output; inputs: features, channels or words."""

    def __init__(self, name, x, y, kind, classes, inputs):
        self.name, self.kind, self.classes, self.inputs = name, kind, classes, inputs
        self.x, self.y, self.valid_x, self.valid_y = x[:TRAIN], y[:TRAIN], x[TRAIN:], y[TRAIN:]


def _random(seed):
    return torch.Generator().manual_seed(1000 + seed), TRAIN + VALID


# -- tables -----------------------------------------------------------------------------------

def clusters(seed):
    """Eight classes of two Gaussian clusters each in 20 features of different scale."""
    random, n = _random(seed)
    centres = 0.7 * torch.randn(16, 20, generator=random)
    which = torch.randint(16, (n,), generator=random)
    x = centres[which] + torch.randn(n, 20, generator=random)
    scale = torch.logspace(-0.5, 0.5, 20)
    return Task("clusters", x * scale, which % 8, "classes", 8, 20)


def spirals(seed):
    """Three spirals of two features, with six more features that are noise."""
    random, n = _random(seed)
    y = torch.randint(3, (n,), generator=random)
    r = torch.rand(n, generator=random)
    angle = 4 * r + y * 2 * math.pi / 3 + 0.15 * torch.randn(n, generator=random)
    x = torch.cat([torch.stack([r * angle.cos(), r * angle.sin()], 1) * 2,
                   torch.randn(n, 6, generator=random)], 1)
    return Task("spirals", x, y, "classes", 3, 8)


def rings(seed):
    """Four rings in five features."""
    random, n = _random(seed)
    y = torch.randint(4, (n,), generator=random)
    x = torch.randn(n, 5, generator=random)
    r = 1 + y + 0.25 * torch.randn(n, generator=random)
    return Task("rings", x / x.norm(dim=1, keepdim=True) * r[:, None], y, "classes", 4, 5)


def friedman(seed):
    """Friedman's first function of five of ten features, with noise; standardized."""
    random, n = _random(seed)
    x = torch.rand(n, 10, generator=random)
    y = (10 * (math.pi * x[:, 0] * x[:, 1]).sin() + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3]
         + 5 * x[:, 4] + torch.randn(n, generator=random))
    return Task("friedman", x, (y - y.mean()) / y.std(), "regression", 1, 10)


def sines(seed):
    """A sum of sines along random directions of twelve features."""
    random, n = _random(seed)
    x = torch.randn(n, 12, generator=random)
    along = torch.randn(12, 4, generator=random) / math.sqrt(12)
    y = (2 * x @ along).sin().sum(1) + 0.1 * torch.randn(n, generator=random)
    return Task("sines", x, y, "regression", 1, 12)


# -- images -----------------------------------------------------------------------------------

def _grid(size):
    line = torch.linspace(-1, 1, size)
    return torch.meshgrid(line, line, indexing="ij")


def _placed(n, random, size):
    """Coordinates of each image about a centre of its own, in units of a radius of its own."""
    v, u = _grid(size)
    at = 0.6 * torch.rand(n, 2, 1, 1, generator=random) - 0.3
    radius = 0.35 + 0.3 * torch.rand(n, 1, 1, generator=random)
    return (u - at[:, 0]) / radius, (v - at[:, 1]) / radius


def _drawn(inside, random, channels=1):
    """Shapes of one brightness on a background of another one, with noise."""
    n = len(inside)
    bright = 0.5 + torch.rand(n, channels, 1, 1, generator=random)
    ground = 0.4 * torch.rand(n, channels, 1, 1, generator=random)
    x = torch.where(inside[:, None], bright, ground)
    return x + 0.15 * torch.randn(x.shape, generator=random)


def _shape(y, u, v):
    """Whether a place is inside a disc, ring, square, cross, bar or triangle."""
    r, far = (u * u + v * v).sqrt(), torch.maximum(u.abs(), v.abs())
    kinds = torch.stack([r < 1, (r < 1) & (r > 0.55), far < 0.9,
                         (far < 1) & (torch.minimum(u.abs(), v.abs()) < 0.3),
                         (v.abs() < 0.3) & (u.abs() < 1.1),
                         (v.abs() < 0.9) & (u.abs() < (v + 0.9) / 1.8)])
    return kinds[y, torch.arange(len(y))]


def shapes(seed, size=16):
    """Six shapes of random place, size and brightness."""
    random, n = _random(seed)
    y = torch.randint(6, (n,), generator=random)
    return Task("shapes", _drawn(_shape(y, *_placed(n, random, size)), random), y, "classes", 6, 1)


def colours(seed, size=16):
    """Shapes of random colours: three channels."""
    random, n = _random(seed)
    y = torch.randint(6, (n,), generator=random)
    x = _drawn(_shape(y, *_placed(n, random, size)), random, 3)
    return Task("colours", x, y, "classes", 6, 3)


def masks(seed, size=16):
    """The shape's own places are the target: a logit for each of them."""
    random, n = _random(seed)
    y = torch.randint(6, (n,), generator=random)
    inside = _shape(y, *_placed(n, random, size))
    return Task("masks", _drawn(inside, random), inside[:, None].float(), "binary", 1, 1)


def gratings(seed, size=16):
    """Gratings of eight orientations, of random frequency, phase and contrast."""
    random, n = _random(seed)
    y = torch.randint(8, (n,), generator=random)
    v, u = _grid(size)
    angle = (y * math.pi / 8 + 0.08 * torch.randn(n, generator=random)).view(n, 1, 1)
    rate = 5 + 5 * torch.rand(n, 1, 1, generator=random)
    phase = 2 * math.pi * torch.rand(n, 1, 1, generator=random)
    x = (rate * (u * angle.cos() + v * angle.sin()) + phase).sin()
    x = (0.3 + torch.rand(n, 1, 1, generator=random)) * x
    x = x + 0.3 * torch.randn(x.shape, generator=random)
    return Task("gratings", x[:, None], y, "classes", 8, 1)


def strokes(seed, size=14):
    """Five signs of two to three strokes each, turned and moved a little, as handwriting is."""
    random, n = _random(seed)
    y = torch.randint(5, (n,), generator=random)
    u, v = _placed(n, random, size)
    turn = (0.3 * torch.randn(n, 1, 1, generator=random))
    u, v = u * turn.cos() - v * turn.sin(), u * turn.sin() + v * turn.cos()
    near = (u.abs() < 1.1) & (v.abs() < 1.1)
    signs = torch.stack([(v.abs() < 0.25) | (u.abs() < 0.25), (u - v).abs() < 0.35,
                         ((u - v).abs() < 0.35) | ((u + v).abs() < 0.35),
                         (v - 0.8).abs() < 0.3,
                         ((v - 0.7).abs() < 0.25) | ((v + 0.7).abs() < 0.25)])
    return Task("strokes", _drawn(near & signs[y, torch.arange(n)], random), y, "classes", 5, 1)


# -- sequences --------------------------------------------------------------------------------

def _walked(table, length, random, n):
    """Words [n, length] of a Markov chain of second order: table [V, V, V] of probabilities."""
    words = torch.randint(table.shape[0], (n, 2), generator=random)
    for _ in range(length - 2):
        rows = table[words[:, -2], words[:, -1]]
        words = torch.cat([words, torch.multinomial(rows, 1, generator=random)], 1)
    return words


def chain(seed, length=24, vocabulary=16):
    """Language modelling: a Markov chain of second order with few likely followers."""
    random, n = _random(seed)
    table = torch.softmax(2.5 * torch.randn(*[vocabulary] * 3, generator=random), -1)
    words = _walked(table, length + 1, random, n)
    return Task("chain", words[:, :-1], words[:, 1:], "classes", vocabulary, vocabulary)


def brackets(seed, length=20):
    """Language modelling: brackets of two kinds that close in order, and letters."""
    random, n = _random(seed)
    dice = torch.rand(n, length + 1, generator=random).tolist()
    letters = torch.randint(4, (n, length + 1), generator=random).tolist()
    rows = []
    for chances, words in zip(dice, letters):
        open_, line = [], []
        for chance, word in zip(chances, words):
            if chance < 0.3 and len(open_) < 4:
                open_.append(word % 2)
                line.append(open_[-1])
            elif chance < 0.7 and open_:
                line.append(2 + open_.pop())
            else:
                line.append(4 + word)
        rows.append(line)
    words = torch.tensor(rows)
    return Task("brackets", words[:, :-1], words[:, 1:], "classes", 8, 8)


def motifs(seed, length=24, vocabulary=12):
    """Tagging: whether a word is part of one of three motifs in random words, and of which."""
    random, n = _random(seed)
    words = torch.randint(vocabulary, (n, length), generator=random)
    tags = torch.zeros(n, length, dtype=torch.long)
    known = torch.stack([torch.randperm(vocabulary, generator=random)[:4] for _ in range(3)])
    for part in range(3):
        which = torch.randint(3, (n,), generator=random)
        at = torch.randint(length // 3 - 3, (n, 1), generator=random) + part * (length // 3)
        places = at + torch.arange(4)
        words.scatter_(1, places, known[which])
        tags.scatter_(1, places, (which + 1)[:, None].expand(-1, 4))
    return Task("motifs", words, tags, "classes", 4, vocabulary)


def waves(seed, length=32):
    """The kind of a noisy wave: sine, square, saw or two sines; two channels."""
    random, n = _random(seed)
    y = torch.randint(4, (n,), generator=random)
    t = torch.linspace(0, 1, length)
    rate = 2 + 2 * torch.rand(n, 1, generator=random)
    phase = torch.rand(n, 1, generator=random)
    turn = rate * t + phase
    sine = (2 * math.pi * turn).sin()
    kinds = torch.stack([sine, sine.sign(), 2 * (turn % 1) - 1,
                         0.6 * sine + 0.6 * (4 * math.pi * turn).sin()])
    x = kinds[y, torch.arange(n)] * (0.5 + torch.rand(n, 1, generator=random))
    x = torch.stack([x, x.roll(1, 1) * 0.5], 1)
    return Task("waves", x + 0.2 * torch.randn(x.shape, generator=random), y, "classes", 4, 2)


def pulses(seed, length=32):
    """How many of up to four pulses a noisy line has; two channels."""
    random, n = _random(seed)
    y = torch.randint(4, (n,), generator=random)
    t = torch.arange(length)
    x = torch.zeros(n, length)
    for number in range(4):
        at = 4 + 8 * number + torch.randint(-2, 3, (n, 1), generator=random)
        x += torch.exp(-0.5 * (t - at) ** 2 / 1.5) * (number <= y)[:, None]
    x = torch.stack([x, x.cumsum(1) / 8], 1)
    return Task("pulses", x + 0.2 * torch.randn(x.shape, generator=random), y, "classes", 4, 2)
