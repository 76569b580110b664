#!/bin/sh
# usage: fuzz_reach.sh BUILDDIR FOUND TARGET...
# Prints which share of the lines of its readers each fuzz target reaches with the inputs of tests/fuzz/corpus/TARGET
# and of FOUND/TARGET. BUILDDIR is a build of MODE=coverage. The line "Readers: FILE..." of tests/fuzz/fuzz_TARGET.c
# names the sources. Lists the lines that no input reaches in BUILDDIR/reach/TARGET.unreached. The last line is the
# total: a reader of several targets counts once, and a line is reached if any target reaches it. Exits with 1 if a
# target names no reader or a missing one, or if an input fails.
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

# lines_of TARGET READER: its lines and how many of them ran. Appends the others to the list of unreached lines, and
# "READER:LINE RAN" for each line to the list of all. No line of a reader that no input reaches ran.
lines_of() {
    object=${2%.c}
    mkdir -p "$reach/$1/$(dirname "$object")" && cp "$objects/$object.gcno" "$reach/$1/$object.gcno" || return
    "${GCOV:-gcov}" -t -o "$reach/$1/$object.gcda" "$2" 2>/dev/null | awk -v file="$2" -v list="$reach/$1.unreached" -v all="$reach/all" '
        $2 ~ /^0:Source:/ { mine = $2 == "0:Source:" file; next }
        { split($0, part, ":"); count = part[1]; gsub(/[ *]/, "", count) }
        !mine || count == "-" { next }
        { lines++; ran = count !~ /^[#=]+$/; run += ran; print file ":" part[2] + 0, ran >> all }
        !ran { sub(/^[^:]*: */, ""); print file ":" $0 >> list }
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
        counts=$(lines_of "$1" "$file")
        [ -n "$counts" ] || { echo "$file: no counts of its lines in $build/obj"; failed=1; continue; }
        # shellcheck disable=SC2086 # two numbers
        row "$1" "$file" $counts
    done
    return $failed
}

# row TARGET READER LINES REACHED
row() {
    printf '%-16s %-44s %6d %8d %8.1f\n' "$@" "$(echo "$3 $4" | awk '{ print $1 ? 100 * $2 / $1 : 0 }')"
}

# total: of the list of all lines.
total() {
    # shellcheck disable=SC2046 # three numbers
    set -- $(awk '{ ran[$1] += $2; sub(/:.*/, "", $1); readers[$1] }
        END { for (line in ran) { lines++; run += ran[line] > 0 }
            for (reader in readers) n++
            print n + 0, lines + 0, run + 0 }' "$reach/all")
    row total "$1 readers" "$2" "$3"
}

mkdir -p "$reach"
: >"$reach/all"
status=0
printf '%-16s %-44s %6s %8s %8s\n' target reader lines reached percent
for name; do target "$name" || status=1; done
total
exit $status
