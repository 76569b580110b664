#!/bin/sh
# usage: hostile.sh BUILDDIR [--seed N] [--percent P] [--minutes M] [--kind run|checkpoint|archive|corpus|sparse]
# Mutated run files, checkpoints, archives, corpora and sparse files in every program that reads such files: each is
# read, or rejected in one line, within 60 s. 2,000 files; a later call resumes. BUILDDIR/night/hostile-SEED.tsv has a
# line for each. With a MODE=asan build the sanitizers check too.
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night hostile "$@"
