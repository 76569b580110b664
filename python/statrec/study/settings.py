"""The settings that a run was begun with: OUT/NAME.settings, beside its file. A run of other settings, of an experiment that was
changed, or of another one with the same name, is not taken for this one. Runs of older versions have no such file, and count.
"""
import json
import os
import shlex

from .experiment import DONE, after_of, finished, put, state, stop

PROGRAM = "#: program"


def path_of(args, name):
    return os.path.join(args.out, f"{name}.settings")


def settings_of(experiment, settings):
    """{option: text} of a run, and its program."""
    return {**experiment.common, **settings, **({PROGRAM: shlex.join(experiment.program)} if experiment.program else {})}


def after_key(label):
    return f"#: after {label}"


def after_text(commands):
    return "; ".join(map(shlex.join, commands))


def kept(args, name):
    """The kept settings of a run; {}: none, an older version began it."""
    try:
        with open(path_of(args, name), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        stop(f"{path_of(args, name)}: {error}")


def keep(args, experiment, name, settings, labels=()):
    """labels: of what came after the run."""
    found = {**settings_of(experiment, settings), **{after_key(label): after_text(experiment.after[label]) for label in labels}}
    put(path_of(args, name), json.dumps(found, indent=0, sort_keys=True).encode())


def keep_after(args, experiment, name, label):
    """The command of what came after a run."""
    found = kept(args, name)
    if found:
        found[after_key(label)] = after_text(experiment.after[label])
        put(path_of(args, name), json.dumps(found, indent=0, sort_keys=True).encode())


def difference(one, other):
    """("OPTION = VALUE" of one, of the other) of the first setting that differs, None: there is none."""
    for key in [*one, *(key for key in other if key not in one)]:
        if one.get(key) != other.get(key):
            return tuple(f"{key} = {each[key]}" if key in each else f"no {key}" for each in (one, other))
    return None


def check_run(args, experiment, name, settings):
    """Stops if the existing run is another one."""
    found = {key: text for key, text in kept(args, name).items() if not key.startswith("#: after ")}
    differs = difference(found, settings_of(experiment, settings)) if found else None
    if differs:
        there = [path for path in [os.path.join(args.out, name + end) for end in (".h5", ".h5.part")] +
                 [after_of(args, name, label) for label in experiment.after] if os.path.exists(path)]
        stop(f"{os.path.join(args.out, name)}: this run has {differs[0]}, {experiment.path} has {differs[1]}: remove "
             f"{' '.join(there)} to run anew, or choose another --out")


def check_after(args, experiment, name):
    """Stops where what came after a run came from another command."""
    found = kept(args, name)
    for label, commands in experiment.after.items():
        path, before = after_of(args, name, label), found.get(after_key(label))
        if os.path.exists(path) and before not in (None, after_text(commands)):
            stop(f"{path}: made by '{before}', {experiment.path} has '{after_text(commands)}': remove it to make it anew")


def check(args, experiment):
    """Stops where one of the runs that are done is another one."""
    for name, settings, _ in experiment.runs():
        if os.path.exists(path_of(args, name)) and (state(args, name) in DONE or finished(args, experiment, name)):
            check_run(args, experiment, name, settings)
            check_after(args, experiment, name)
