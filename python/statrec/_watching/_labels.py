"""Labels of steps, such as the domain or the client of a batch: watch(..., labels=NAMES).

The file has the number of a step's label as a custom scalar, and the names in its definition: a
file holds numbers alone, and its datasets are created before the first step.
"""
import math
from typing import Any

SCALAR = "label"
_BEGIN = "number of the step's label, from 0: "
_BYTES = 511  # SR_DEFINITION_SIZE with its end


def checked(labels):
    """The names as a tuple; ValueError for names that the definition cannot hold."""
    if isinstance(labels, str):
        raise ValueError(f"labels: a list of names is wanted, got {labels!r:.80}")
    labels = tuple(labels)
    for name in labels:
        if not isinstance(name, str) or not name.strip() or "," in name or not name.isprintable():
            raise ValueError(f"labels: names without commas are wanted, got {name!r:.80}")
    if len(set(labels)) < len(labels):
        raise ValueError("labels: a name occurs twice")
    size = len(definition(labels).encode())
    if size > _BYTES:
        raise ValueError(f"labels: the names take {size - len(_BEGIN)} bytes with a comma between "
                         f"them, at most {_BYTES - len(_BEGIN)} fit: use shorter ones")
    return labels


def definition(labels):
    """The definition of SCALAR."""
    return _BEGIN + ",".join(labels)


def number(labels, label) -> Any:
    """The number of a label, or without labels the label; ValueError where watch() has none of this name."""
    if not labels:
        return label
    if label not in labels:
        raise ValueError(f"step: label {label!r:.80} is none of watch(labels={labels!r:.200})")
    return labels.index(label)


def names(text):
    """The names in a definition; none for a scalar that another program has declared."""
    return text[len(_BEGIN):].split(",") if text.startswith(_BEGIN) else []


def read(text, column):
    """The names of the numbers in a column, None where a step has no label."""
    known = names(text)
    if not known:
        return []
    return [known[int(value)] if math.isfinite(value) else None for value in column]
