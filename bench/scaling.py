#!/usr/bin/env python3
"""scaling.py -- step time and efficiency of training in several processes, predicted.

    scaling.py [--model M,...] [--link L,...] [--ranks N,...] [--speed X] [--cores N] [--record no|first|shards]
               [--host-ranks N] [--merge-hosts] [--bounds] [--parameters FILE]

Every rank has its batch to itself, the same for any number of ranks R (the global batch grows). Parameters are in
scaling.tsv, each marked as measured, counted or assumed. Formulas:

    gather(w)     G = a + (R-1) (o + 8 w / B) + nap             w doubles of each rank to every rank (linear, as
                                                                Open MPI's MPI_Iallgather sends them)
                  nap if the rest is longer than look: a waiting rank polls for that time, then it sleeps
    bucket k      S_k = 2 (a + (R-1) o + 4 n_k (R-1) / (R B)) + n_k / A
                                                                n_k numbers to the owners of their chunks, added up
                                                                there, and back (src/train/gradient_sum.c)
    ready         r_k = T_b (e + n_1 + .. + n_k) / P, r_K = T_b the backward pass leaves parameters in turn, in time
                                                                proportional to their number; e: the last bucket's,
                                                                whose embedding is used in the output layer first
    end           z_k = max(r_k, z_(k-1)) + S_k                 one exchange after the other
    gradients     E = max(0, z_K - T_b)                         not hidden by the backward pass
    synchronised  Y = sum over sites of G(2d+1) + G(2d) + R d m two exchanges of every site, and folding them
    writing       W = t, or R t with --record shards            rank 0 records one shard or all, the others wait
    step          T(R) = c (T_f + T_b + T_u) / x + E + G(3) + Y + W
                                                                c = max(1, R / cores), x: --speed; T_b likewise in
                                                                r_k and z_k; G(3): losses and the stop flag
    efficiency    T(1) / T(R)                                   T(1) has no exchanges

a, B: latency and bandwidth of a link; o: each further message; A: numbers added per second; m: merging a feature of
a rank. P: parameters; d: features of a site; T_f, T_b, T_u: forward, backward, update on one core; t: recording a
shard, which more cores do not shorten.

The part of E that stays with a = o = 0 is the bandwidth bound; the rest, with G(3), is the latency bound. Y is the
statistics bound, W the writing bound. --bounds prints the largest of these four for a model, from the first R of
--ranks with an efficiency below 0.9.

--host-ranks h: R ranks are on R/h hosts and share adapters, B/h for each; of what a rank sends, (R-h)/(R-1) leaves
its host. --merge-hosts: as if exchanges merged the data of a host's h ranks by link shm, then once between hosts at
B, then returned (statrec does not):

    gather(w)     G_shm(h) + G(R/h) + G_shm(h)
    bucket k      S_shm(h) + S(R/h)

Left out: ranks that wait for the slowest one (noise of the machines, uneven sentences), busy switches, sending all
shards' statistics to rank 0, and threads that do not scale. Also left out: a message proceeds only when the rank
calls MPI, after every operation of the backward pass. So the prediction is an upper limit, not the expected
efficiency.

Exit status 0; 2 after a mistake in the arguments or parameters.
"""
import argparse
import copy
import os
import sys

COLUMNS = [
    ("model", "name in the parameters"),
    ("link", "name in the parameters"),
    ("sync", "yes: --sync-norm"),
    ("ranks", "R"),
    ("speed", "cores of one rank, taken to be so many times as fast as one"),
    ("step_ms", "T(R)"),
    ("efficiency", "T(1) / T(R)"),
    ("gradients_ms", "E, what the backward pass does not hide of the exchanges of gradients"),
    ("hidden_ms", "sum of S_k less E"),
    ("norm_ms", "Y, 0 without --sync-norm"),
]
PARTS = {"bandwidth": "E with a = o = 0", "latency": "the rest of E, and G(3)", "statistics": "Y", "writing": "more of W than one rank's"}
BOUNDS = [
    *COLUMNS[:3],
    ("record", "first: rank 0 records its first shard; shards: all of them"),
    COLUMNS[4],
    ("from", "the first R with an efficiency below 0.9; -: none"),
    ("bound", f"what costs most from there on: {', '.join(PARTS)}"),
    ("at_last", "efficiency with the most ranks"),
    ("bound_at_last", "what costs most there"),
]


def read_parameters(path):
    """{subject: {key: [numbers]}}"""
    subjects = {}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            cells = line.rstrip("\n").split("\t")
            try:
                subject, key, values, origin = cells[:4]
                numbers = [float(v) for word in values.split() for v in expand(word)]
            except ValueError:
                raise ValueError(f"{path}:{number}: not subject, key, numbers, origin")
            if origin.split(" ")[0].rstrip(":") not in ("measured", "counted", "assumed"):
                raise ValueError(f"{path}:{number}: origin '{origin}': not measured, counted or assumed")
            if any(not v >= 0 for v in numbers):
                raise ValueError(f"{path}:{number}: {subject} {key}: a negative number")
            subjects.setdefault(subject, {})[key] = numbers
    return subjects


def expand(word):
    """'7x16' is seven times 16."""
    times, _, value = word.rpartition("x")
    return [value] * int(times or 1)


class Link:
    """Exchanges of ranks that share an adapter by `sharing`; with `shm`, merged on each host first."""

    def __init__(self, values, machine, sharing=1, shm=None):
        self.latency = values["latency_us"][0] * 1e-6
        self.message = values["message_us"][0] * 1e-6
        self.bandwidth = values["gbit"][0] * values["share"][0] * 1e9 / 8
        self.look = machine["look_us"][0] * 1e-6
        self.nap = machine["nap_us"][0] * 1e-6
        self.add = machine["add_numbers_per_s"][0]
        self.merge = machine["merge_ns"][0] * 1e-9
        self.host, self.shm = sharing, shm

    def at_once(self):
        """The same without latency."""
        other = copy.copy(self)
        other.latency = other.message = other.nap = 0.0
        other.shm = self.shm and self.shm.at_once()
        return other

    def crossing(self, ranks):
        """How much more an adapter sends than one rank."""
        return 1.0 if self.shm else self.host * max(0, ranks - self.host) / (ranks - 1)

    def gather(self, ranks, doubles):
        if ranks == 1:
            return 0.0
        if self.shm:
            return 2 * self.shm.gather(min(ranks, self.host), doubles) + self._gather(ranks / self.host, doubles)
        return self._gather(ranks, doubles)

    def _gather(self, ranks, doubles):
        if ranks <= 1:
            return 0.0
        time = self.latency + (ranks - 1) * (self.message + self.crossing(ranks) * 8 * doubles / self.bandwidth)
        return time + (self.nap if time > self.look else 0)

    def bucket(self, ranks, numbers):
        if ranks == 1:
            return 0.0
        if self.shm:
            return self.shm.bucket(min(ranks, self.host), numbers) + self._bucket(ranks / self.host, numbers)
        return self._bucket(ranks, numbers)

    def _bucket(self, ranks, numbers):
        if ranks <= 1:
            return 0.0
        sent = self.crossing(ranks) * 4 * numbers * (ranks - 1) / ranks
        one_way = self.latency + (ranks - 1) * self.message + sent / self.bandwidth
        return 2 * one_way + numbers / self.add

    def folded(self, ranks, features):
        return 0.0 if ranks == 1 else ranks * features * self.merge


def exposed(link, ranks, buckets, backward):
    """E, and the sum of S_k."""
    cost = [link.bucket(ranks, n) for n in buckets]
    total, passed, end = sum(buckets), buckets[-1], 0.0
    for k, numbers in enumerate(buckets):
        passed += numbers
        ready = backward if k == len(buckets) - 1 else backward * passed / total
        end = max(ready, end) + cost[k]
    return max(0.0, end - backward), sum(cost)


def predict(model, link, ranks, sync, speed, cores, record="no"):
    factor = max(1.0, ranks / cores) if cores else 1.0
    forward, backward, update = (model[k][0] * 1e-3 * factor / speed for k in ("forward_ms", "backward_ms", "update_ms"))
    gradients, sent = exposed(link, ranks, model["buckets"], backward)
    bandwidth, _ = exposed(link.at_once(), ranks, model["buckets"], backward)
    flags = link.gather(ranks, 3)
    norm = 0.0
    for d in model["sites"] if sync else []:
        norm += link.gather(ranks, 2 * d + 1) + link.gather(ranks, 2 * d) + link.folded(ranks, d)
    recording = 0.0 if record == "no" else model["record_ms"][0] * 1e-3
    writing = recording * (ranks if record == "shards" else 1)
    step = forward + backward + update + gradients + flags + norm + writing
    alone = (forward + backward + update) / factor + recording
    parts = dict(zip(PARTS, (bandwidth, gradients - bandwidth + flags, norm, writing - recording)))
    return {"step_ms": 1e3 * step, "efficiency": alone / step, "gradients_ms": 1e3 * gradients,
            "hidden_ms": 1e3 * max(0.0, round(sent - gradients, 12)), "norm_ms": 1e3 * norm, "bound": max(parts, key=parts.get)}


def of_kind(subjects, kind):
    return {name.split(" ", 1)[1]: values for name, values in subjects.items() if name.startswith(kind + " ")}


def choose(there, asked, kind):
    names = asked.split(",") if asked else list(there)
    for name in names:
        if name not in there:
            raise ValueError(f"no {kind} '{name}'; there are {', '.join(there)}")
    return names


def numbers_of(text, least, kind):
    try:
        values = [kind(v) for v in text.split(",")]
    except ValueError:
        raise ValueError(f"'{text}': not numbers with commas between them")
    for v in values:
        if not least <= v <= 1e6:
            raise ValueError(f"{v}: not from {least} to 1000000")
    return values


def print_columns(columns, out):
    for name, text in columns:
        out.write(f"# column {name}: {text}\n")
    out.write("\t".join(name for name, _ in columns) + "\n")


def print_table(arguments, cases, ranks, out):
    print_columns(COLUMNS, out)
    for names, predicted in cases:
        for r in ranks:
            row = predicted(r, arguments.record)
            numbers = "\t".join(f"{row[name]:.6g}" for name, _ in COLUMNS[5:])
            out.write(f"{names[0]}\t{names[1]}\t{names[2]}\t{r}\t{names[3]:g}\t{numbers}\n")


def print_bounds(cases, ranks, out):
    print_columns(BOUNDS, out)
    for names, predicted in cases:
        for record in "first", "shards":
            rows = [(r, predicted(r, record)) for r in sorted(ranks)]
            start, first = next(((r, row["bound"]) for r, row in rows if row["efficiency"] < 0.9), ("-", "-"))
            last = rows[-1][1]
            out.write(f"{names[0]}\t{names[1]}\t{names[2]}\t{record}\t{names[3]:g}\t{start}\t{first}\t"
                      f"{last['efficiency']:.3g}\t{last['bound']}\n")


def print_asked(arguments, out):
    subjects = read_parameters(arguments.parameters)
    models, links, machine = of_kind(subjects, "model"), of_kind(subjects, "link"), subjects["machine"]
    ranks, hosts = numbers_of(arguments.ranks, 1, int), arguments.host_ranks
    if hosts < 1 or any(r > hosts and r % hosts for r in ranks):
        raise ValueError(f"--host-ranks {hosts}: does not divide every number of ranks")
    shm = Link(links["shm"], machine) if arguments.merge_hosts else None

    def case(m, l, sync, x):
        link = Link(links[l], machine, hosts, shm)
        names = m, l, "yes" if sync else "no", x
        return names, lambda r, record: predict(models[m], link, r, sync, x, arguments.cores, record)
    cases = [case(m, l, sync, x) for x in numbers_of(arguments.speed, 0.001, float)
             for m in choose(models, arguments.model, "model")
             for l in choose(links, arguments.link, "link") for sync in (False, True)]
    if arguments.bounds:
        print_bounds(cases, ranks, out)
    else:
        print_table(arguments, cases, ranks, out)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description="Predicted step time and efficiency of training in several processes.")
    p.add_argument("--parameters", default=os.path.join(here, "scaling.tsv"), metavar="FILE")
    p.add_argument("--model", default="resnet20,iwslt,transformer_big", help="names with commas; empty: all")
    p.add_argument("--link", default="10,100,400", help="names with commas; empty: all")
    p.add_argument("--ranks", default="1,2,4,8,16,32,64,128,256,512,1024")
    p.add_argument("--speed", default="1", help="cores of a rank, as if each counted in full")
    p.add_argument("--cores", type=int, default=0, help="of the one host that all ranks are on; 0: each has its own")
    p.add_argument("--record", choices=("no", "first", "shards"), default="no", help="what rank 0 records: its first shard, or all")
    p.add_argument("--host-ranks", type=int, default=1, metavar="N", help="ranks of a host, which share its adapter")
    p.add_argument("--merge-hosts", action="store_true", help="as if exchanges were merged on each host first")
    p.add_argument("--bounds", action="store_true", help="what bounds each model, and from how many ranks on")
    arguments = p.parse_args()
    try:
        print_asked(arguments, sys.stdout)
    except OSError as failure:
        print(f"scaling.py: {failure.filename}: {failure.strerror}", file=sys.stderr)
        return 2
    except ValueError as failure:
        print(f"scaling.py: {failure}", file=sys.stderr)
        return 2
    except KeyError as failure:
        print(f"scaling.py: {arguments.parameters}: nothing about {failure}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
