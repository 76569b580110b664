#!/bin/sh
# usage: kills.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# kill -9 at a random moment of a program that writes a report, a page, a figure, a copy, an average, an archive or a
# text in place of an older one. The file with the name is the old or the new one, complete. The next call writes the
# new one, at once or after the NAME.part that it reports is removed, and leaves nothing else. 200 kills; a later call
# resumes (BUILDDIR/night/kills-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night kills "$@"
