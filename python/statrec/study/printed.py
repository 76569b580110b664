"""Output of the analyses, and tables in Markdown."""
import functools
import os
import re
import subprocess

from .experiment import stop

SOME = 3 # names of runs in a sentence


def analysis(args, words, where):
    """The path of the program and its options."""
    if not re.fullmatch(r"stat(plot|-[a-z]+)", words[0] if words else ""):
        stop(f"{where}: by: a program stat-NAME, or statplot for a figure, is wanted, got {' '.join(words)!r}")
    return [os.path.join(args.bin, words[0]), *words[1:]]


def printed(words):
    """Output of a program; it does not run again with the same words."""
    return _printed(tuple(words))


@functools.lru_cache(maxsize=None)
def _printed(words):
    try:
        told = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        stop(f"{words[0]}: {error.strerror}")
    if told.returncode != 0:
        stop(told.stderr.strip())
    return told.stdout


def lines_in(text):
    """[{column: text}], {column: definition} of what an analysis printed."""
    lines = text.splitlines()
    meaning = dict(line[len("# column "):].split(": ", 1) for line in lines
                   if line.startswith("# column "))
    head, *rows = [line.split("\t") for line in lines if not line.startswith("#")] or [[]]
    return [dict(zip(head, row)) for row in rows], meaning


def defined(names, meaning):
    """The definitions of columns, each once, also of several sites."""
    named_so = {}
    for name in names:
        column = f"`{re.sub('@.*', '@SITE', name)}`"
        columns = named_so.setdefault(meaning[name], [])
        columns += [column] * (column not in columns)
    return "; ".join(f"{', '.join(columns)}: {text}" for text, columns in named_so.items())


def named(experiments):
    return ", ".join(f"`{name}`" for name in experiments)


def some(names):
    """The first of them, and how many more there are."""
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(names[:SOME]) + more


def drawn(head, rows):
    """The lines of a table in Markdown."""
    head, *rows = ["| " + " | ".join(re.sub(r"(?<!\\)\|", r"\|", text) for text in row) + " |" for row in [head, *rows]]
    return [head, "|" + "---|" * (len(re.findall(r"(?<!\\)\|", head)) - 1), *rows]


def number_in(row, column):
    try:
        return float(row[column])
    except ValueError:
        return float("nan")


def split_words(words):
    """The words without =, and {word: value} of the others."""
    return ([word for word in words if "=" not in word],
            dict(word.partition("=")[::2] for word in words if "=" in word))
