"""roofline.py -- operations and bytes of the kernels that the bench programs measure, for docs/performance.md.

An operation (FLOP) is an addition, subtraction, multiplication, division, comparison or root of float32 numbers.
Operations are counted by the formula below, whatever a kernel does: Winograd convolutions multiply less often than
counted here. Bytes are compulsory traffic: every operand is read once and every result is written once, 4 bytes a
number. n = rows x features, or numbers of a parameter.

    product m, n, k          2 m n k                   4 (m k + k n + m n)
    convolution, each pass   2 N H' W' 9 C_in C_out    4 (N H W C_in + 9 C_in C_out + N H' W' C_out)
                                                       3 x 3, H' = H / stride; a pass reads two of input, weights
                                                       and output (or their gradients) and writes the third
    attention, forward       4 B T_q T_k d             4 B (2 T_q d + 2 T_k d)      q, k, v; output
    attention, backward      8 B T_q T_k d             4 B (3 T_q d + 4 T_k d)      q, k, v, dy; dq, dk, dv
                                                       q k', its product with v and their four gradients, softmax
                                                       and dropout not counted
    BN, LN, forward          8 n                       8 n     x; y
                                                       mean 1, variance 3, gain (x - mu) / sigma + bias 4
    BN, backward             9 n                       12 n    x, dy; dx
                                                       x^ 2, sum of dy 1, of dy x^ 2, dx 4
    LN, backward             13 n                      12 n    the same; gradients of gain and bias are separate
                                                       sums: g = gain dy 1, x^ 2, sum of g 1, of g x^ 2, dx 4,
                                                       gain 2, bias 1
    relu, forward            n                         8.125 n x; y, a bit each
    relu, backward           n                         8.125 n the bits, dy; dx
    sgd with momentum        7 n                       20 n    p, g, buf; p, buf
                                                       g scale + wd p 3, mom buf + g 2, p - lr buf 2
    adam                     15 n                      28 n    p, g, m, v; p, m, v
                                                       g scale + wd p 3, m 3, v 4, p - step m / (sqrt v + eps) 5

    linear layers, a step    6 rows W                  W the weights of all of them: 4 d^2 + 2 d FFN of a layer of an
                                                       encoder, 8 d^2 + 2 d FFN of a decoder's, vocabulary d of
                                                       the logits; y, dx and dw are 2 rows W each

The roof at intensity I = FLOP / bytes is the smaller of the measured peak and I times the measured bandwidth, with all
threads. Both, and every point, are the best round.
"""
import os
import re
import subprocess

COLUMNS = ("group", "point", "flop", "bytes", "intensity", "gflops", "of_roof")


# -- formulas: (operations, bytes) -----------------------------------------------------------------------

def product(m, n, k):
    return 2 * m * n * k, 4 * (m * k + k * n + m * n)


def convolution(batch, size, channels_in, channels_out, stride):
    after = size // stride
    numbers = batch * size ** 2 * channels_in + 9 * channels_in * channels_out + batch * after ** 2 * channels_out
    return 18 * batch * after ** 2 * channels_in * channels_out, 4 * numbers


def attention(batch, queries, keys, d, backward):
    numbers = batch * d * (3 * queries + 4 * keys if backward else 2 * queries + 2 * keys)
    return (8 if backward else 4) * batch * queries * keys * d, 4 * numbers


# linear layers and attention in the models of bench_step: rows, d, FFN, layers of the encoder and the decoder,
# vocabulary
LINEAR = {"transformer": (1024, 128, 256, 3, 3, 4000), "lm": (2240, 256, 2100, 3, 0, 10000),
          "iwslt": (4096, 512, 1024, 6, 6, 10000)}


def linear_layers(rows, d, ffn, encoder, decoder, vocabulary):
    """Operations of a step."""
    return 6 * rows * (encoder * (4 * d * d + 2 * d * ffn) + decoder * (8 * d * d + 2 * d * ffn) + vocabulary * d)


# operations and bytes of a number: forward, backward; an optimizer has no backward pass
OF_A_NUMBER = {"bn": ((8, 8), (9, 12)), "ln": ((8, 8), (13, 12)), "relu": ((1, 8.125), (1, 8.125)),
               "sgd": ((7, 20), None), "adam": ((15, 28), None)}


def of_numbers(name, backward, count):
    operations, moved = OF_A_NUMBER[name][backward]
    return operations * count, moved * count


# -- points: (group, name, (operations, bytes), GFLOP/s) -------------------------------------------------

def of_products(rows, threads):
    """Points of gemm(); a product of a head (gemm_chunk) uses one thread."""
    for row in rows:
        if not row["product"].startswith("head"):
            work = product(int(row["m"]), int(row["n"]), int(row["k"]))
            yield "product", row["product"], work, float(row[f"best {threads}"])


def of_convolutions(rows, batch):
    for row in rows:
        shape = re.fullmatch(r"(\d+)x\d+ (\d+)->(\d+)/(\d+)", row["shape"])
        if shape:
            work = convolution(batch, *map(int, shape.groups()))
            yield f"conv {row['pass']}", row["shape"], work, speed(work, float(row["best ms"]))


def of_norms(rows):
    for row in rows:
        for backward, which in enumerate(("forward", "backward")):
            work = of_numbers(row["method"], backward, int(row["rows"]) * int(row["features"]))
            name = f"{row['method']} {row['rows']} x {row['features']}"
            yield f"norm {which}", name, work, speed(work, float(row[which]))


def of_ops(rows, least=1e6):
    """Attention, and of the others those that no cache holds: `least` numbers or more."""
    for row in rows:
        a, b, c, d = (int(row[key]) for key in "abcd")
        for backward, which in enumerate(("forward", "backward")):
            ms = float(row[f"{which} least"]) / 1e3
            if row["op"] == "attention":
                work = attention(a, b, c, d, backward)
                yield f"attention {which}", f"{a} x {b} x {c} x {d}", work, speed(work, ms)
            elif row["op"] in OF_A_NUMBER and OF_A_NUMBER[row["op"]][backward] and a * b >= least:
                work = of_numbers(row["op"], backward, a * b)
                step = f" {which}" if OF_A_NUMBER[row["op"]][1] else ""
                yield "elementwise", f"{row['op']}{step} {a} x {b}", work, speed(work, ms)


def speed(work, ms):
    return work[0] / ms / 1e6


def roof(intensity, peak, bandwidth):
    return min(peak, intensity * bandwidth)


def table(points, peak, bandwidth):
    """[{column: value}]"""
    return [dict(zip(COLUMNS, (group, name, operations, moved, operations / moved, gflops,
                               gflops / roof(operations / moved, peak, bandwidth))))
            for group, name, (operations, moved), gflops in points]


def draw(rows, peak, bandwidth, data, output):
    """Writes the rows into the file `data` and the figure by gnuplot; OSError, CalledProcessError."""
    with open(data, "w", encoding="utf-8") as file:
        print(*COLUMNS, sep="\t", file=file)
        for row in rows:
            print(*(f"{row[column]:.6g}" if isinstance(row[column], float) else row[column]
                    for column in COLUMNS), sep="\t", file=file)
    settings = f"table='{data}'; output='{output}'; peak={peak}; bandwidth={bandwidth}"
    template = os.path.join(os.path.dirname(os.path.abspath(__file__)), "roofline.gp")
    subprocess.run(["gnuplot", "-e", settings, template], check=True, capture_output=True, text=True)
