"""Small models: functions of their settings that return a function of a data.Task."""
import torch
from torch import nn


def mlp(norm, width=64, layers=3):
    def make(task):
        parts, before = [], task.inputs
        for _ in range(layers):
            parts += [nn.Linear(before, width), norm(width), nn.ReLU()]
            before = width
        return nn.Sequential(*parts, nn.Linear(width, task.classes))
    return make


# -- images -----------------------------------------------------------------------------------

def cnn(width=16, norm=nn.BatchNorm2d):
    def block(before, after):
        return [nn.Conv2d(before, after, 3, padding=1, bias=False), norm(after), nn.ReLU()]

    def make(task):
        return nn.Sequential(*block(task.inputs, width), nn.MaxPool2d(2), *block(width, 2 * width),
                             nn.MaxPool2d(2), *block(2 * width, 2 * width), nn.AdaptiveAvgPool2d(1),
                             nn.Flatten(), nn.Linear(2 * width, task.classes))
    return make


def segmenter(width=16):
    def make(task):
        parts, before = [], task.inputs
        for dilation in (1, 2, 4):
            parts += [nn.Conv2d(before, width, 3, padding=dilation, dilation=dilation, bias=False),
                      nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        return nn.Sequential(*parts, nn.Conv2d(width, 1, 1))
    return make


class Residual(nn.Module):
    """A basic block of a ResNet."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        same = before == after and stride == 1
        self.short = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + self.short(x)).relu()


def resnet(width=8):
    def make(task):
        return nn.Sequential(nn.Conv2d(task.inputs, width, 3, padding=1, bias=False),
                             nn.BatchNorm2d(width), nn.ReLU(), Residual(width, width, 1),
                             Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                             nn.Linear(4 * width, task.classes))
    return make


# -- sequences --------------------------------------------------------------------------------

class Block(nn.Module):
    """A pre-norm block of attention and two linear layers."""

    def __init__(self, width, norm, causal):
        super().__init__()
        self.norm1, self.norm2, self.causal = norm(width), norm(width), causal
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width))

    def forward(self, x):
        y, length = self.norm1(x), x.shape[1]
        hidden = None
        if self.causal:
            hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        x = x + self.attention(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.inner(self.norm2(x))


class Tokens(nn.Module):
    """Embeddings of words and places, blocks, a last norm, logits for each place."""

    def __init__(self, words, classes, width, norm, causal, layers=2, longest=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(0.1 * torch.randn(longest, width))
        self.blocks = nn.Sequential(*(Block(width, norm, causal) for _ in range(layers)))
        self.norm, self.out = norm(width), nn.Linear(width, classes)

    def forward(self, words):
        x = 0.3 * self.words(words) + self.places[:words.shape[1]]
        return self.out(self.norm(self.blocks(x)))


class Turned(nn.Module):
    """BatchNorm over [N, L, d], all places are rows."""

    def __init__(self, width):
        super().__init__()
        self.bn = nn.BatchNorm1d(width)

    def forward(self, x):
        return self.bn(x.flatten(0, 1)).view(x.shape)


def transformer(norm=nn.LayerNorm, width=32):
    return lambda task: Tokens(task.inputs, task.classes, width, norm, True)


def encoder(width=32):
    return lambda task: Tokens(task.inputs, task.classes, width, Turned, False)


class Patches(nn.Module):
    """A small vision transformer over patches of 4 x 4."""

    def __init__(self, channels, classes, width, layers=2):
        super().__init__()
        self.patches = nn.Conv2d(channels, width, 4, 4)
        self.places = nn.Parameter(0.1 * torch.randn(64, width))
        self.blocks = nn.Sequential(*(Block(width, nn.LayerNorm, False) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.blocks(x + self.places[:x.shape[1]])
        return self.out(self.norm(x).mean(1))


def vit(width=32):
    return lambda task: Patches(task.inputs, task.classes, width)


class Recurrent(nn.Module):
    """A GRU over [N, channels, L], with a LayerNorm before and after it."""

    def __init__(self, channels, classes, width):
        super().__init__()
        self.inside, self.before = nn.Linear(channels, width), nn.LayerNorm(width)
        self.gru, self.after = nn.GRU(width, width, batch_first=True), nn.LayerNorm(width)
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        states, _ = self.gru(self.before(self.inside(x.transpose(1, 2))))
        return self.out(self.after(states).mean(1))


def recurrent(width=32):
    return lambda task: Recurrent(task.inputs, task.classes, width)


def temporal(width=16):
    def make(task):
        parts, before = [], task.inputs
        for _ in range(3):
            parts += [nn.Conv1d(before, width, 5, padding=2, bias=False), nn.BatchNorm1d(width),
                      nn.ReLU()]
            before = width
        return nn.Sequential(*parts, nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                             nn.Linear(width, task.classes))
    return make
