"""Writes odd_lines.h: unusual lines of text, and Python's results for them.

    python3 tests/testing/odd_lines.py > tests/testing/odd_lines.h

  words    str.split, as fairseq's tokenize_line
  pieces   str.split of the line after `subword-nmt apply-bpe -i` without merges: lines end as for
           str.splitlines, blanks are U+0020 alone (apply_bpe.py, process_line)
  columns  fields between spaces and tabs
  lower    str.lower of each column
"""

import re

BLANKS = [chr(c) for c in range(0x110000) if chr(c).isspace() and chr(c) != "\n"]
NO_BLANKS = ["\u200b", "\ufeff", "\u180e", "\u2060", "\u00ad"]  # look like blanks
CASES = [
    "\u03a3", "\u0391\u03a3", "\u0391\u03a3\u0391", "\u0391\u03a3.", "\u0391\u03a3\u2019\u0391", "\u0391.\u03a3",
    "\u0391\u00ad\u03a3", "\u0391\u03a3\u00ad", "\u0391\u03a3\u0301", "\u02b0\u03a3", "1\u03a3", "a\u03a3b",
    "\u0130", "\u0130stanbul", "I\u0307", "I", "\u0131", "\u1e9e", "STRA\u1e9eE", "\u01c4", "\u01c5", "\u01c6",
    "\u0152UVRE", "\u2160\u2161", "\u24b6", "\u212b", "\u2126", "\u212a", "\u13a0", "\u10a0", "\u1c90",
    "\u2c00", "\ua64a", "\uff21", "\U00010400", "\U0001d400",
]


def lines() -> list[str]:
    made = []
    for b in BLANKS + NO_BLANKS:
        made += [b + "ab cd", "ab" + b + "cd", "ab cd" + b, "ab " + b + " cd", "Ab" + b + b + "cd E"]
    return made + ["x " + c + " Y" for c in CASES]


def pieces(line: str) -> list[str]:
    out = ""
    for part in line.splitlines(keepends=True):
        bare = part.strip("\r\n ")
        words = ["@@ ".join(w) for w in bare.split(" ") if w]
        start = len(part) - len(part.lstrip("\r\n "))
        end = len(part) - len(part.rstrip("\r\n "))
        out += part[:start] + " ".join(words)
        out += part[-end:] if end and end != len(part) else ""
    return out.split()


def literal(words: list[str]) -> str:
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(b) if b in plain else "\\%03o" % b for b in "\n".join(words).encode()) + '"'


HEAD = """/* odd_lines.h -- made by odd_lines.py: lines with every blank in every position, and what Python
 * makes of them. '\\n' separates words. */
#ifndef TESTS_ODD_LINES_H
#define TESTS_ODD_LINES_H

typedef struct odd_line {
    const char *line, *words, *columns, *lower, *pieces;
} odd_line;

/* clang-format off */
static const odd_line odd_lines[] = {"""


def main() -> None:
    print(HEAD)
    for line in lines():
        columns = [c for c in re.split("[ \t]", line[:-1] if line.endswith("\r") else line) if c]
        fields = [[line], line.split(), columns, [c.lower() for c in columns]]
        print("    {" + ", ".join(literal(f) for f in fields) + ",")
        print("     " + literal(pieces(line)) + "},")
    print("};")
    print("/* clang-format on */")
    print("enum { ODD_LINES = sizeof odd_lines / sizeof *odd_lines };")
    print()
    print("#endif")


if __name__ == "__main__":
    main()
