"""performance_page.py -- writes the tables and the figure of docs/performance.md from the output that performance.py
kept. The head of performance.py describes the blocks of the page.
"""
import math
import os
import re
import subprocess

import roofline
import targets

NOT_YET = "Not measured."
REPEAT = "measure this part --again"
# cases of bench_step: steps of a round, rounds in 20 seconds with two cores
STEPS = {"resnet20": (5, 25), "resnet18": (1, 11), "transformer": (5, 81), "transformer-ln": (5, 81),
         "lm": (2, 25), "tensorized": (2, 25), "iwslt": (1, 7)}
LEAST_SHARE = 1  # percent of a step; smaller operations share one row
# columns that need not be numbers
TEXT = ("limit", "unit", "product", "shape", "pass", "method", "op", "model", "line", "which", "what", "cache", "figure")
VERDICT = {"aim": "met, aim too", "met": "met", "missed": "**missed**"}


class Mistake(Exception):
    """A mistake in the arguments, the page or the kept files."""


# -- kept files -----------------------------------------------------------------------------------------

def kept(args, part):
    return os.path.join(args.build, "performance", f"{part}.txt")


class Told(dict):
    """Contents of a file; a missing key is a mistake in the file."""

    def __init__(self, where, kind, pairs):
        super().__init__(pairs)
        self.where, self.kind = where, kind

    def __missing__(self, key):
        raise Mistake(f"{self.where}: no {self.kind} {key!r}; {REPEAT}")


def row_of(where, head, cells):
    if len(cells) != len(head):
        raise Mistake(f"{where}: {len(cells)} cells in a table of {len(head)}; {REPEAT}")
    for column, cell in zip(head, cells):
        try:
            good = column in TEXT or not cell or math.isfinite(float(cell))
        except ValueError:
            good = False
        if not good:
            raise Mistake(f"{where}: {column}: {cell!r} is not a number; {REPEAT}")
    return Told(where, "column", zip(head, cells))


def read(path):
    """Returns {key: value} of its lines `# key: value`, [row]; None, [] for a missing file."""
    if not os.path.exists(path):
        return None, []
    told, head, rows = Told(path, "line", {}), None, []
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            cells = line.rstrip("\n").split("\t")
            if line.startswith("#"):
                found = re.match(r"# ([^:]+): (.*)", line)
                told.update([found.groups()] if found else [])
            elif head is None:
                head = cells
            elif cells != head:
                rows.append(row_of(f"{path}:{number}", head, cells))
    return told, rows


def heads(args, parts):
    """{part: its `#` lines} of the existing parts, which must come from one machine."""
    there = {part: told for part in parts for told, _ in [read(kept(args, part))] if told is not None}
    for key in ("CPU", "threads"):
        values = {told.get(key): part for part, told in there.items()}
        if len(values) > 1:
            (one, first), (other, second), *_ = values.items()
            raise Mistake(f"{kept(args, first)}: {key} {one}, but {other} in {second}.txt: measure one of them --again")
    return there


def all_parts(args):
    folder = os.path.dirname(kept(args, ""))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [name[:-len(".txt")] for name in names if name.endswith(".txt")]


# -- blocks: each gives its lines ------------------------------------------------------------------------

def drawn(head, rows):
    """A table in Markdown."""
    return ["| " + " | ".join(row) + " |" for row in [head]] + ["|" + "---|" * len(head)] + [
        "| " + " | ".join(row) + " |" for row in rows]


def span(values, key=None):
    least, most = min(values, key=key), max(values, key=key)
    return least if least == most else f"{least} to {most}"


def machine(args, _):
    there = heads(args, all_parts(args))
    if "limits" not in there:
        return [NOT_YET]
    told = there["limits"]
    dates, loads, commits = ({head[key] for head in there.values()} for key in ("date", "load", "statrec"))
    rows = [["date", span(dates)], *([key, told[key]] for key in ("CPU", "compiler", "products", "OpenBLAS", "oneDNN", "HDF5")),
            ["PyTorch", there.get("targets", told)["PyTorch"]], ["statrec", ", ".join(sorted(commits))],
            ["load before a part", span(loads, float)]]
    return drawn(["what", "which"], rows)


def limits(args, _):
    told, rows = read(kept(args, "limits"))
    if told is None:
        return [NOT_YET]
    names = list(dict.fromkeys(row["limit"] for row in rows))
    threads = list(dict.fromkeys(row["threads"] for row in rows))
    cells = {(row["limit"], row["threads"]): row for row in rows}
    head = ["limit", "unit", *(f"{n} thread{'s' * (n != '1')}, {which}" for n in threads for which in ("median", "best"))]
    return [*drawn(head, [[name, cells[name, threads[0]]["unit"],
                           *(cells[name, n][which] for n in threads for which in ("median", "best"))]
                          for name in names]), "", f"`{told['command']}`"]


def check_machine(args, path):
    """The lines against PyTorch are to be of the machine of the others."""
    with open(path, encoding="utf-8") as file:
        line = file.readline().rstrip("\n")
    other = [told["CPU"] for told in heads(args, all_parts(args)).values()][:1]
    found = re.match(r"# (.*), \d+ cores; ", line)
    if other and found and found[1] != other[0].partition(";")[0]:
        raise Mistake(f"{path}: measured on {found[1]}, the others on {other[0]}: remove it, or measure them --again")


def both(ratio):
    """Ratio on hosts with AMX; on others."""
    return "; ".join(map(str, ratio)) if isinstance(ratio, tuple) else str(ratio)


def against_torch(args, _):
    path = os.path.join(args.build, "targets.tsv")
    if os.path.exists(path):
        check_machine(args, path)
    found = {row["line"]: row for row in read(path)[1]}
    rows, missed = [], []
    for name, (_, _, threads, _, must, aim) in targets.LINES.items():
        row = found.get(name)
        if row is None:
            rows.append([name, str(threads), "not measured", "–", "–", "–", both(must), both(aim), "–"])
            continue
        missed += [name] if targets.verdict(row) == "missed" else []
        rows.append([name, row["threads"], f"{row['ours']} {row['unit']}", f"{row['peer']} {row['unit']}", row["which"],
                     row["ratio"], row["must"], row["aim"], VERDICT[targets.verdict(row)]])
    measured = sum(name in found for name in targets.LINES)
    return [*drawn(["line", "threads", "ours", "peer", "which", "ratio", "must", "aim", "verdict"], rows), "",
            f"{measured} of {len(rows)} lines measured, {len(missed)} missed{': ' if missed else ''}{', '.join(missed)}."]


def least(args, _):
    """Time of the linear layers' products at the limit of fma, compared with PyTorch's whole step."""
    peak = {row["threads"]: float(row["best"]) for row in read(kept(args, "limits"))[1] if row["limit"] == "fma"}
    found = {row["line"]: row for row in read(os.path.join(args.build, "targets.tsv"))[1]}
    cells = []
    for name, (kind, case, *_) in targets.LINES.items():
        row = found.get(name)
        if row is None or kind is not targets.step or case not in roofline.LINEAR or row["threads"] not in peak:
            continue
        flop = roofline.linear_layers(*roofline.LINEAR[case])
        ms = flop / 1e6 / peak[row["threads"]]
        cells.append([name, f"{flop / 1e9:.4g}", f"{ms:.4g}", share(ms, row["ours"]), share(ms, row["peer"]), row["must"]])
    head = ["line", "GFLOP", "at the limit of fma (ms)", "of our step", "of the peer's", "must"]
    return drawn(head, cells) if cells else [NOT_YET]


def profile(args, case):
    told, rows = read(kept(args, f"step-{case}"))
    if told is None:
        return [NOT_YET]
    large = [row for row in rows if float(row["percent_of_step"]) >= LEAST_SHARE]
    small = [row for row in rows if row not in large]
    large.sort(key=lambda row: -float(row["percent_of_step"]))
    cells = [[row["op"], row["forward_ms"], "–" if row["op"] in ("optimizer", "recorder", "rest") else row["backward_ms"],
              row["percent_of_step"]] for row in large]
    if small:
        sums = [sum(float(row[key]) for row in small) for key in ("forward_ms", "backward_ms", "percent_of_step")]
        cells.append([f"{len(small)} others", f"{sums[0]:.2f}", f"{sums[1]:.2f}", f"{sums[2]:.1f}"])
    return [f"Median step {told['median']}, peak memory {told['peak']}; recording {told['recording']}. `{told['command']}`",
            "", *drawn(["operation", "forward (ms)", "backward (ms)", "percent of the mean step"], cells)]


def roofs(path, rows):
    """Peak and bandwidth of all threads, and the kind of bandwidth."""
    best = {row["limit"]: float(row["best"]) for row in rows}  # all threads follow one thread
    for wanted in ("fma", "read", "copy", "triad"):
        if wanted not in best:
            raise Mistake(f"{path}: no {wanted} of all threads; {REPEAT}")
    which = max((name for name in best if name != "fma"), key=best.get)
    return best["fma"], best[which], which


def points(args, threads):
    there = heads(args, ("limits", "gemm", "conv", "norm", "ops"))
    tables = {part: read(kept(args, part))[1] for part in there}
    found = [*roofline.of_products(tables.get("gemm", []), threads)]
    if "conv" in there:
        with open(kept(args, "conv"), encoding="utf-8") as file:
            batch = re.search(r"^# convolutions of ResNet20, batch (\d+)", file.read(), re.M)
        if not batch:
            raise Mistake(f"{kept(args, 'conv')}: no line '# convolutions of ResNet20, batch N'")
        found += roofline.of_convolutions(tables["conv"], int(batch[1]))
    found += [*roofline.of_norms(tables.get("norm", [])), *roofline.of_ops(tables.get("ops", []))]
    return found, [part for part in ("gemm", "conv", "norm", "ops") if part not in there]


def figure(args, _):
    told, rows = read(kept(args, "limits"))
    if told is None:
        return [NOT_YET]
    peak, bandwidth, which = roofs(kept(args, "limits"), rows)
    found, missing = points(args, rows[-1]["threads"])
    if not found:
        return [NOT_YET]
    table = roofline.table(found, peak, bandwidth)
    output = os.path.splitext(args.doc)[0] + "-roofline.svg"
    try:
        roofline.draw(table, peak, bandwidth, os.path.join(os.path.dirname(kept(args, "")), "roofline.tsv"), output)
    except subprocess.CalledProcessError as error:
        raise Mistake(f"gnuplot: {error.stderr.strip().splitlines()[-1]}") from None
    cells = [[row["group"], row["point"], f"{row['flop'] / 1e6:.4g}", f"{row['bytes'] / 1e6:.4g}",
              f"{row['intensity']:.3g}", f"{row['gflops']:.3g}", f"{row['of_roof']:.2f}"] for row in table]
    name = os.path.basename(output)
    return [f"![GFLOP/s of our kernels against FLOP per byte, below the roof of peak and bandwidth]({name})", "",
            f"Best rounds of {rows[-1]['threads']} threads. Roof: {peak:.0f} GFLOP/s of `fma`, {bandwidth:.0f} GB/s of "
            f"`{which}`.{' Not measured: ' + ', '.join(missing) + '.' if missing else ''}", "",
            *drawn(["group", "point", "MFLOP", "MB", "FLOP/byte", "GFLOP/s", "of the roof"], cells)]


def analyses(args, _):
    lines = []
    for part in ("analysis", "figures"):
        told, rows = read(kept(args, part))
        if not rows:
            lines += [f"`bench_{part}`: not measured.", ""]
            continue
        cells = [[cell or "–" for cell in row.values()] for row in rows]
        lines += [f"`{told['command']}`:", "", *drawn([name.replace("_", " ") for name in rows[0]], cells), ""]
    return lines[:-1]


def share(value, of):
    return f"{float(value) / float(of):.2f}" if float(of) else "–"


def products(args, _):
    """Products of gemm(), with the library's on the same shapes."""
    told, rows = read(kept(args, "gemm"))
    if told is None:
        return [NOT_YET]
    ours = f"{told['threads']} threads"
    columns = ["product", "m", "n", "k", "1 thread", ours, "library", "far", "bf16"]
    cells = [[*(row[name] for name in columns), share(row[ours], row["library"])]
             for row in rows if not row["product"].startswith("head")]
    return [*drawn([*columns, f"{ours} / library"], cells), "", f"`{told['command']}`, GFLOP/s"]


BLOCKS = {"machine": machine, "limits": limits, "products": products, "targets": against_torch, "least": least, "profile": profile,
          "roofline": figure, "analyses": analyses}
KINDS = [*(name for name in BLOCKS if name != "profile"), *(f"profile {case}" for case in STEPS)]


# -- the page --------------------------------------------------------------------------------------------

def read_page(path):
    """Returns its lines, and [(first line, last line, name, word after it)] of the blocks, from 0."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    marks = [(at, *found.groups()) for at, line in enumerate(lines)
             for found in [re.fullmatch(r"<!-- performance: (\w*) ?(.*) -->", line)] if found]
    blocks = []
    for (at, name, word), (end, closing, _) in zip(marks[::2], [*marks[1::2], (0, "", "")]):
        if f"{name} {word}".strip() not in KINDS:
            raise Mistake(f"{path}:{at + 1}: no block '{f'{name} {word}'.strip()}': there are {', '.join(KINDS)}")
        if closing != "end":
            raise Mistake(f"{path}:{at + 1}: no line '<!-- performance: end -->' behind this one")
        blocks.append((at, end, name, word))
    return lines, blocks


def write(args):
    lines, blocks = read_page(args.doc)
    made = [["", *BLOCKS[name](args, word), ""] for _, _, name, word in blocks]
    for (at, end, _, _), new in reversed(list(zip(blocks, made))):
        lines[at + 1:end] = new
    with open(args.doc + ".new", "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    os.replace(args.doc + ".new", args.doc)
