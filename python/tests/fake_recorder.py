"""A recorder that keeps its arguments: the interface of statrec.Recorder, for exact tests."""
import ctypes
import math


def doubles(where, count):
    """count doubles at an address, or of a sequence."""
    if where is None:
        return None
    if isinstance(where, int):
        return list((ctypes.c_double * count).from_address(where))
    return [float(value) for value in where]


class Refused(Exception):
    """Error of a recorder whose file cannot be written."""


class FakeRecorder:
    """sites: their declarations; steps: dicts of the recorded values of each step."""

    def __init__(self, path="", fail_at=None, **options):
        self.path, self.options, self.fail_at = path, options, fail_at
        self.sites, self.steps, self.evals, self.metrics, self.declared = [], [], [], {}, {}
        self.status, self.reason, self.failure = None, None, None
        self.flushed, self.seconds, self.now = 0, 0.0, None

    own_seconds = property(lambda self: 0.0)

    def add_seconds(self, seconds):
        self.seconds += seconds

    def add_site(self, name, norm="", kind="", family="sigma", **more):
        assert self.now is None and not self.steps, "sites are declared before the first step"
        self.sites.append(dict(name=name, norm=norm, kind=kind, family=family, **more))
        return len(self.sites) - 1

    def add_metric(self, name, unit="", definition="", better=0):
        self.metrics[name] = (unit, definition, better)

    def declare_scalar(self, name, unit, definition, scope="site"):
        self.declared[name] = (unit, definition, scope)
        return 1000 + len(self.declared)

    def begin_step(self, step):
        if self.fail_at == step:
            raise Refused("no space left on device")
        self.now = dict(step=step, passes=[], vectors={}, scalars={}, numbers={})

    def wants_vectors(self):
        return True

    def put_forward(self, site, rows, mean, variance, mean_square, gamma=None, samples=0, padded=0):
        width = self.sites[site]["width"]
        self.now["passes"].append(dict(
            site=self.sites[site]["name"], rows=rows, samples=samples, padded=padded,
            mean=doubles(mean, width), variance=doubles(variance, width),
            mean_square=doubles(mean_square, width), gamma=doubles(gamma, width)))

    def put_backward(self, site, sum_g, sum_gc, sum_gg=None):
        width, last = self.sites[site]["width"], self.now["passes"][-1]
        assert last["site"] == self.sites[site]["name"]
        last.update(sum_g=doubles(sum_g, width), sum_gc=doubles(sum_gc, width),
                    sum_gg=doubles(sum_gg, width))

    def put_passes(self, passes, gradient_norms=True):
        for site, rows, samples, padded, at, stride, has_gamma in passes:
            row = [at + number * stride for number in range(7)]
            self.put_forward(site, rows, *row[:3], row[6] if has_gamma else None, samples, padded)
            self.put_backward(site, *row[3:5], row[5] if gradient_norms else None)

    def put_vectors(self, name, places):
        for site, where in places:
            self.put_vector(site, name, where)

    def put_vector(self, site, name, values):
        declared = self.sites[site]
        self.now["vectors"][declared["name"], name] = doubles(values, declared["width"])

    def put_scalar(self, site, which, value):
        self.now["scalars"][self.sites[site]["name"], which] = value

    def put_scalars(self, which, values):
        for site, value in values:
            self.put_scalar(site, which, value)

    def put_step_scalar(self, which, value):
        self.now["numbers"][which] = value

    def end_step(self, **row):
        self.now.update(row)
        self.steps.append(self.now)
        self.now = None

    def evaluate(self, step, epoch=math.nan, **metrics):
        self.evals.append(dict(step=step, epoch=epoch, **metrics))

    def flush(self):
        self.flushed += 1

    def close(self, status="complete", reason=""):
        if self.status is None:
            self.status, self.reason = status, reason

    def abandon(self):
        self.close("abandoned")

    def passes(self, site, step=-1):
        """Returns the passes recorded at a site in a step."""
        return [one for one in self.steps[step]["passes"] if one["site"] == site]
