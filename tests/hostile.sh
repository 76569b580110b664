#!/bin/sh
# usage: hostile.sh BUILDDIR [--seed N] [--percent P] [--minutes M] [--kind run|checkpoint|archive|corpus|sparse]
# Mutated run files, checkpoints, archives, corpora and sparse files in every program that reads such files: each is read, or
# refused in one line, within 60 s. 2,000 files; a call that was stopped goes on. BUILDDIR/night/hostile-SEED.tsv has a line
# for each. With MODE=asan's build the sanitizers look on.
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night hostile "$@"
