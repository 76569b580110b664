#!/bin/sh
# usage: kills.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# kill -9 at a random moment of a program that writes a report, a page, a figure, a copy, an average, an archive or a text in
# place of an older one: what has the name is the old one or the new one, whole, and the next call writes the new one, at once
# or when the NAME.part that it refuses is removed, and leaves nothing else. 200 kills; a call that was stopped goes on (BUILDDIR/night/kills-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night kills "$@"
