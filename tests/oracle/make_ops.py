#!/usr/bin/python3
"""Writes ops_values.h: attention, cross entropy and dropout scaling by PyTorch in float64.

Inputs are exact float32 values. Usage: make_ops.py > ops_values.h (needs torch; made with 1.13).
"""
import torch
import torch.nn.functional as F

torch.manual_seed(7)


def table(name, x):
    values = x.detach().double().flatten().tolist()
    print(f"static const double {name}[{len(values)}] = {{")
    for i in range(0, len(values), 4):
        print("    " + ", ".join(f"{v:.17g}" for v in values[i:i + 4]) + ",")
    print("};")


def draw(*shape):
    return torch.randn(*shape).float().double().requires_grad_()


def attention(name, q, k, v, heads, key_valid, causal):
    """The formula of docs/models.md 2.3."""
    B, Tq, d = q.shape
    Tk = k.shape[1]
    hidden = torch.zeros(B, 1, Tq, Tk, dtype=torch.bool)
    if key_valid is not None:
        hidden |= ~key_valid[:, None, None, :]
    if causal:
        hidden |= torch.ones(Tq, Tk).triu(1).bool()
    split = lambda x: x.view(B, -1, heads, d // heads).transpose(1, 2)
    scores = split(q) @ split(k).transpose(2, 3)
    p = torch.softmax(scores.masked_fill(hidden, -float("inf")), -1)
    y = (p @ split(v)).transpose(1, 2).reshape(B, Tq, d)
    dy = draw(B, Tq, d)
    (y * dy.detach()).sum().backward()
    for part, x in (("q", q), ("k", k), ("v", v), ("dy", dy), ("y", y),
                    ("dq", q.grad), ("dk", k.grad), ("dv", v.grad)):
        table(f"{name}_{part}", x)


def main():
    print("/* Made by make_ops.py: do not edit. */\n/* clang-format off */")
    valid = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 0, 0]]).bool()
    attention("attention_masked", draw(2, 3, 8), draw(2, 5, 8), draw(2, 5, 8), 2, valid, False)
    attention("attention_causal", draw(1, 4, 6), draw(1, 4, 6), draw(1, 4, 6), 3, None, True)
    logits, target = draw(5, 7), torch.tensor([0, 6, 1, 3, 2])
    loss = F.cross_entropy(logits, target, ignore_index=1, reduction="sum", label_smoothing=0.1)
    loss.backward()
    nll = F.cross_entropy(logits, target, ignore_index=1, reduction="sum")
    table("cross_entropy_logits", logits)
    table("cross_entropy_target", target)
    table("cross_entropy_loss_nll", torch.stack([loss, nll]))
    table("cross_entropy_dlogits", logits.grad)
    rates = torch.tensor([0.1, 0.25, 0.3, 0.5, 0.9], dtype=torch.float64)
    kept = [F.dropout(torch.ones(1000, dtype=torch.float64), p, True).max() for p in rates.tolist()]
    table("dropout_rate", rates)
    table("dropout_kept", torch.stack(kept))


main()
