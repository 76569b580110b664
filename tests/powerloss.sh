#!/bin/sh
# usage: powerloss.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# Losses of power while checkpoints, archives, copies, averages and texts are written, also in place of older ones: a file
# that has its name is whole. 400 losses; a call that was stopped goes on (BUILDDIR/night/powerloss-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night powerloss "$@"
