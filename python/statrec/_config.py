"""The configuration that run files and checkpoints contain."""

from typing import Dict

_MOST = 200_000  # characters that are read


def config_of(text: str) -> Dict[str, str]:
    """{key: value} of the lines `key = value` of a .conf file."""
    pairs = (
        line.split("=", 1)
        for line in text[:_MOST].splitlines()
        if "=" in line and not line.lstrip().startswith("#")
    )
    return {key.strip(): value.strip() for key, value in pairs}
