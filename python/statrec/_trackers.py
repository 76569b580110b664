"""Scalars and findings of a run for the user's tracker: wandb, trackio, mlflow, or a tensorboard
writer. It is recognised by its methods; no package of it is imported."""
import fnmatch
import math

from ._plot import diagnosed

SCALARS = ("tid_mean", "tid_var", "dx_norm", "g_mu", "g_sigma2")


def sender(writer):
    """A function (values {name: number}, step), and one (name, text, step)."""
    if hasattr(writer, "add_scalar"):  # tensorboard
        def numbers(values, step):
            for name, value in values.items():
                writer.add_scalar(name, value, step)
        return numbers, lambda name, text, step: writer.add_text(name, f"```\n{text}\n```", step)
    if hasattr(writer, "log_metrics"):  # mlflow
        return (lambda values, step: writer.log_metrics(values, step=step),
                lambda name, text, step: writer.log_text(text, name.replace("/", "_") + ".txt"))
    if hasattr(writer, "log"):  # wandb, trackio: their own step only rises, and the host moves it
        if hasattr(writer, "define_metric"):
            writer.define_metric("statrec/*", step_metric="statrec/step")
        return (lambda values, step: writer.log({**values, "statrec/step": step}),
                lambda name, text, step: writer.log({name: text, "statrec/step": step}))
    raise TypeError(f"log_to: {type(writer).__name__} has none of add_scalar, log_metrics, log")


class Follower:
    """Sends the rows of a growing file that it has not sent yet."""

    what = "log_to"  # in a warning

    def __init__(self, writer, sites="*", scalars=SCALARS, every=100):
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"log_to: every is a number of steps from 1, got {every!r:.80}")
        self._numbers, self._text = sender(writer)
        self._sites = [sites] if isinstance(sites, str) else list(sites)
        self._scalars, self.every, self._sent = tuple(scalars), every, 0

    def send(self, file):
        """file: an open File."""
        steps = file.steps["step"]
        names = [name for name in self._scalars if name in file.scalars]
        sites = [site for site in file.sites
                 if any(fnmatch.fnmatchcase(site, wish) for wish in self._sites)]
        columns = {f"statrec/{name}/{site}": file[name][site][self._sent:len(steps)]
                   for name in names for site in sites}
        for row, step in enumerate(steps[self._sent:]):
            values = {name: float(column[row]) for name, column in columns.items()
                      if math.isfinite(column[row])}
            if values:
                self._numbers(values, int(step))
        self._sent = len(steps)

    def conclude(self, file, step):
        """The diagnosis of the finished file."""
        diagnosis = file.diagnose()
        self._numbers({"statrec/findings": len(diagnosis.findings)}, step)
        self._text("statrec/diagnosis", str(diagnosis), step)


class Findings:
    """Calls function(finding) for each finding of a growing file, once for each question."""

    what = "on_finding"

    def __init__(self, function, every):
        if not callable(function):
            raise TypeError(f"on_finding: a function is wanted, got {function!r:.80}")
        self._function, self.every, self._told = function, every, set()

    def send(self, file):
        """file: an open File."""
        for finding in diagnosed([file]).findings:
            if finding["question"] not in self._told:
                self._told.add(finding["question"])
                self._function(finding)

    def conclude(self, file, step):
        """send() has sent everything."""


def _summary_writer():
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise ImportError("to_tensorboard: pip install tensorboard (beside torch), or "
                              "tensorboardX") from None
    return SummaryWriter


def to_tensorboard(path, directory, sites="*", scalars=None):
    """Writes the scalars and the diagnosis of a run file for TensorBoard.

        statrec.to_tensorboard("run.h5", "logs")      # then: tensorboard --logdir logs

    sites: globs; scalars: names; default: all with values. It takes the package tensorboard with
    torch, or tensorboardX.
    """
    from ._file import open as open_file
    writer = _summary_writer()(directory)
    try:
        with open_file(path) as file:
            Follower(writer, sites, scalars or file.scalars).send(file)
            steps = file.steps["step"]
            for name in ("loss", "lr", "grad_norm"):
                for step, value in zip(steps, file.steps[name]):
                    if math.isfinite(value):
                        writer.add_scalar(name, float(value), int(step))
            Follower(writer).conclude(file, int(steps[-1]) if len(steps) else 0)
    finally:
        writer.close()
