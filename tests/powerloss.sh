#!/bin/sh
# usage: powerloss.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# Losses of power while checkpoints, archives, copies, averages and texts are written, also in place of older ones: a
# file with its final name is valid. 400 losses; a later call resumes (BUILDDIR/night/powerloss-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night powerloss "$@"
