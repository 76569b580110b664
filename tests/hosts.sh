#!/bin/sh
# usage: hosts.sh BUILDDIR [--seed N] [--percent P] [--minutes M]
# Host programs of libstatrec that are killed, fork, exec, write into a broken pipe, run out of descriptors, record in
# two threads, or unload the library. 200 cases; a later call resumes (BUILDDIR/night/hosts-SEED.tsv).
# shellcheck source=tests/night/start.sh
. "$(dirname "$0")/night/start.sh"
night hosts "$@"
