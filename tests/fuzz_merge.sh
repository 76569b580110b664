#!/bin/sh
# usage: fuzz_merge.sh DIRECTORY BYTES TARGET...
# Copies finds of at most BYTES bytes into tests/fuzz/corpus, if they reach code that the corpus and
# smaller finds do not (DIRECTORY/found/TARGET, after tests/fuzz.sh). Names them found-HASH. Prints
# how many files and bytes each target gets.
[ $# -ge 3 ] || { echo "usage: fuzz_merge.sh DIRECTORY BYTES TARGET..." >&2; exit 2; }
corpus=$(cd "$(dirname "$0")" && pwd -P)/fuzz/corpus
directory=$1 most=$2
shift 2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
status=0
for target; do
    rm -rf "${work:?}"/*
    mkdir "$work/kept" "$work/small"
    cp "$corpus/$target"/* "$work/kept"
    [ ! -d "$directory/found/$target" ] || find "$directory/found/$target" -type f -size "-$((most + 1))c" -exec cp {} "$work/small" \;
    # counters: how often code ran; here it is enough that code ran at all
    "$directory/$target" -merge=1 -use_counters=0 -rss_limit_mb=512 -timeout=20 -close_fd_mask=3 \
        "$work/kept" "$work/small" >"$work/log" 2>&1 || { echo "$target: cannot merge"; tail -n 3 "$work/log"; status=1; continue; }
    files=0 bytes=0
    for file in "$work/kept"/*; do
        name=${file##*/}
        [ ! -e "$corpus/$target/$name" ] || continue
        cp "$file" "$corpus/$target/found-$(printf %.8s "$name")"
        files=$((files + 1)) bytes=$((bytes + $(wc -c <"$file")))
    done
    printf '%-16s %4d files, %6d bytes\n' "$target" $files $bytes
done
exit $status
