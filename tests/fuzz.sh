#!/bin/sh
# usage: fuzz.sh DIRECTORY SECONDS TARGET...
# Fuzzes each target of DIRECTORY for SECONDS, JOBS targets at once. Starts from the inputs of
# tests/fuzz/corpus/TARGET and from earlier finds (DIRECTORY/found/TARGET). Saves an input that
# fails as DIRECTORY/TARGET-crash-... and exits with 1. Fix the fault, then add the input to the
# corpus.
[ $# -ge 3 ] || { echo "usage: fuzz.sh DIRECTORY SECONDS TARGET..." >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
directory=$(cd "$1" && pwd -P) || exit 1
seconds=$2
shift 2
# maximum input length for libFuzzer, in bytes: image files need more than texts
longest=20000
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# the sanitizer keeps freed memory, 256 MiB by default, which counts against the memory limit
export ASAN_OPTIONS="quarantine_size_mb=64${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
# shellcheck disable=SC2016 # the inner shell expands these
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -n 1 sh -c '
    mkdir -p "$1/found/$4"
    set -- "$@" "$1/$4.log"
    dictionary=
    [ -f "$0/tests/fuzz/$4.dict" ] && dictionary=-dict=$0/tests/fuzz/$4.dict
    left=$2 runs=0 status=0
    # HDF5 leaks memory on each damaged file, so start a new process every 300 s
    while [ "$left" -gt 0 ] && [ $status -eq 0 ]; do
        turn=$((left < 300 ? left : 300)) left=$((left - 300))
        "$1/$4" -max_total_time="$turn" -max_len="$3" -rss_limit_mb=512 -timeout=20 -close_fd_mask=3 \
            -print_final_stats=1 $dictionary -artifact_prefix="$1/$4-" \
            "$1/found/$4" "$0/tests/fuzz/corpus/$4" >"$5" 2>&1
        status=$?
        more=$(sed -n "s/^stat::number_of_executed_units: *//p" "$5")
        runs=$((runs + ${more:-0}))
    done
    edges=$(grep -o "cov: [0-9]*" "$5" | tail -n 1)
    printf "%-16s %10s inputs, %s" "$4" "$runs" "$edges"
    [ $status -eq 0 ] && echo && exit
    echo ": FAILED, see $5"
    grep -m 3 "^SUMMARY\|^fuzz:\|Test unit written to" "$5"
    exit 1' "$top" "$directory" "$seconds" "$longest"
