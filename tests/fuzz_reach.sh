#!/bin/sh
# usage: fuzz_reach.sh BUILDDIR FOUND TARGET...
# Prints which share of the lines of its readers each fuzz target reaches with the inputs of
# tests/fuzz/corpus/TARGET and of FOUND/TARGET. BUILDDIR is a build of MODE=coverage. The line
# "Readers: FILE..." of tests/fuzz/fuzz_TARGET.c names the sources. Lists the lines that no input
# reaches in BUILDDIR/reach/TARGET.unreached. Exits with 1 if a target names no reader, or one that
# is not there, or if an input fails.
[ $# -ge 3 ] || { echo "usage: fuzz_reach.sh BUILDDIR FOUND TARGET..." >&2; exit 2; }
cd "$(dirname "$0")/.." || exit 1
build=$1 found=$2
shift 2
objects=$(cd "$build/obj" && pwd -P) || exit 1
reach=$(pwd -P)/$build/reach
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# readers TARGET: the sources that the comment of the target names, up to its end.
readers() {
    awk '/Readers:/ { on = 1; sub(/.*Readers:/, "") }
        on { end = index($0, "*/"); sub(/\*\/.*/, ""); sub(/^ \*/, ""); print }
        on && end { exit }' "tests/fuzz/fuzz_$1.c"
}

# run_inputs TARGET: a process for 200 inputs, because HDF5 leaks memory on damaged files. The counts go to
# reach/TARGET/, each below the path of its object.
run_inputs() {
    for folder in "tests/fuzz/corpus/$1" "$found/$1"; do
        [ ! -d "$folder" ] || find "$folder" -type f
    done | GCOV_PREFIX=$reach/$1 GCOV_PREFIX_STRIP=$(echo "$objects" | tr -cd / | wc -c) \
        xargs -n 200 "$build/fuzz/$1" >"$reach/$1.log" 2>&1 && return
    cat "$reach/$1.log"
    return 1
}

# lines_of TARGET READER: its lines and how many of them ran. Appends the others to the list.
lines_of() {
    object=${2%.c}
    [ -f "$reach/$1/$object.gcda" ] || { echo 0 0; return; }
    cp "$objects/$object.gcno" "$reach/$1/$object.gcno"
    "${GCOV:-gcov}" -t -o "$reach/$1/$object.gcda" "$2" 2>/dev/null | awk -v file="$2" -v list="$reach/$1.unreached" '
        $2 ~ /^0:Source:/ { mine = $2 == "0:Source:" file; next }
        { split($0, part, ":"); count = part[1]; gsub(/[ *]/, "", count) }
        !mine || count == "-" { next }
        { lines++ }
        count ~ /^[#=]+$/ { sub(/^[^:]*: */, ""); print file ":" $0 >> list; next }
        { run++ }
        END { print lines + 0, run + 0 }'
}

# target TARGET: a line for each of its readers.
target() {
    rm -rf "${reach:?}/$1" "$reach/$1.unreached"
    mkdir -p "$reach/$1"
    failed=0
    run_inputs "$1" || { echo "$1: an input fails"; failed=1; }
    files=$(readers "$1")
    [ -n "$files" ] || { echo "tests/fuzz/fuzz_$1.c names no readers"; return 1; }
    for file in $files; do
        [ -f "$file" ] || { echo "tests/fuzz/fuzz_$1.c: $file does not exist"; failed=1; continue; }
        lines_of "$1" "$file" | while read -r lines run; do
            printf '%-14s %-44s %6d %8d %8.1f\n' "$1" "$file" "$lines" "$run" \
                "$(echo "$lines $run" | awk '{ print $1 ? 100 * $2 / $1 : 0 }')"
        done
    done
    return $failed
}

mkdir -p "$reach"
status=0
printf '%-14s %-44s %6s %8s %8s\n' target reader lines reached percent
for name; do target "$name" || status=1; done
exit $status
