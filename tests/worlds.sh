#!/bin/sh
# usage: worlds.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# A training whose folder is renamed, whose run file is removed or replaced, whose clock is set back, beside another one
# with the same checkpoint prefix. 100 cases; a later call resumes (BUILDDIR/night/worlds-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night worlds "$@"
