"""A run in notebooks: its facts and its sites as a table."""
from html import escape

_SITES = 30  # rows that are shown


def preformatted(text):
    """Text as it is."""
    return f"<pre>{escape(text)}</pre>"


def table(title, facts, sites):
    """title; facts {name: value}; sites: dicts of one row each; the first 30 are shown."""
    told = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
                   for name, value in facts.items() if value not in (None, ""))
    parts = [f"<p><b>{escape(title)}</b></p><table>{told}</table>"]
    if sites:
        head = "".join(f"<th>{escape(name)}</th>" for name in sites[0])
        rows = "".join("<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in site.values())
                       + "</tr>" for site in sites[:_SITES])
        parts.append(f"<table><tr>{head}</tr>{rows}</table>")
    if len(sites) > _SITES:
        parts.append(f"<p>and {len(sites) - _SITES} more sites</p>")
    return "".join(parts)
