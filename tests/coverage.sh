#!/bin/sh
# usage: coverage.sh BUILDDIR [FOLDER...]
#        coverage.sh BUILDDIR --begin
# Prints how many lines and branches of each folder the tests have run, from the files that a build with --coverage left
# in BUILDDIR/obj (`make coverage`). Fails if a folder has fewer branches than its goal. With FOLDERs (of src/, as
# src/journal) it prints their missed branches by line instead. --begin discards the counts and the kept results
# (once.sh), unless they belong to the same objects.
#
# A file that no test runs counts with all its lines and branches. A branch is a way out of a condition; it has run if
# it was taken at least once. A branch that no test can take is excused by a comment with the reason, on its line or
# alone on the line before:
#     if (fstat(fd, &s) != 0) return false; /* unreached: fstat of an open file */
# The branches of that line that did not run then do not count. An excuse for a line whose branches all ran is an error.
# READERS read untrusted files: their goal is higher. Folders below them have the same.
READERS='src/hdf5 src/runfile src/journal src/train/checkpoint src/base/npz src/data src/text'
GOAL_READERS=98 GOAL=90

if [ $# -lt 1 ] || [ ! -d "$1/obj" ]; then
    echo "usage: coverage.sh BUILDDIR [FOLDER...|--begin], of MODE=coverage" >&2
    exit 2
fi
build=$1
shift
notes=$(find "$build/obj/src" "$build/obj/analyses" -name '*.gcno' 2>/dev/null | LC_ALL=C sort)
[ -n "$notes" ] || { echo "coverage: no .gcno in $build/obj; run make coverage" >&2; exit 1; }

if [ "${1-}" = --begin ]; then
    # shellcheck disable=SC2086 # a list of names
    objects=$(cat $notes | cksum)
    [ "$objects" = "$(cat "$build/passed/objects" 2>/dev/null)" ] && exit
    find "$build" -name '*.gcda' -exec rm -f {} + && rm -rf "$build/passed" && mkdir "$build/passed" &&
        echo "$objects" >"$build/passed/objects"
    exit
fi

# count_branches FILE: reads gcov's listing of FILE and of the headers that it includes. Prints "missed FILE:LINE ...",
# "stale FILE:LINE ...", and "file FILE LINES RUN BRANCHES TAKEN EXCUSED".
count_branches() {
    awk -v file="$1" '
    /^ *-: *0:Source:/ { end(); mine = substr($0, index($0, "Source:") + 7) == file; seen += mine; next }
    !mine || /^(function|call|unconditional)/ { next }
    /^branch/ { ways++; if (/never executed|taken 0( |$)/) missed++; next }
    /^ *[^ :]+: *[0-9]+:/ { end(); start() }
    END { end(); if (seen) print "file", file, lines, run, all, taken, excused }
    function start() {
        split($0, part, ":")
        number = part[2] + 0
        if (number == 0) return
        count = part[1]
        gsub(/ /, "", count)
        if (count != "-") { lines++; run += count !~ /^[#=]/ }
        text = $0
        sub(/^[^:]*:[^:]*:/, "", text)
        reason = excuse
        excuse = ""
        if (text ~ /\/\* unreached: .*\*\//) {
            if (text ~ /^ *\/\* unreached: .*\*\/ *$/) excuse = 1
            else reason = 1
        }
    }
    function end() {
        if (ways && missed && !reason) print "missed " file ":" number ": " missed " of " ways " branches:" text
        if (ways && !missed && reason) print "stale " file ":" number ": all branches ran:" text
        if (reason && !ways) print "stale " file ":" number ": no branches:" text
        if (missed && reason) excused += missed
        all += ways
        taken += ways - missed
        ways = missed = 0
        reason = ""
    }
    BEGIN { lines = run = all = taken = excused = ways = missed = 0 }'
}

run_gcov() { "${GCOV:-gcov}" -t -b -c -o "$1" "$2"; }

listing=$(for note in $notes; do
    file=${note#"$build/obj/"}
    file=${file%.gcno}.c
    # gcov reports files that it cannot open on stderr
    told=$(run_gcov "$note" "$file" 2>/dev/null | count_branches "$file")
    if [ -n "$told" ]; then
        printf '%s\n' "$told"
    elif run_gcov "$note" "$file" 2>&1 | grep -q 'no functions found'; then
        echo "file $file 0 0 0 0 0" # tables only
    fi
done)

# The folders' tables, or their missed branches.
printf '%s\n' "$listing" | awk -v files="$(printf '%s\n' "$notes" | wc -l)" -v readers="$READERS" -v reader_goal=$GOAL_READERS -v other_goal=$GOAL -v only="$*" '
$1 == "stale" { sub(/^stale /, ""); stale[++stales] = $0; next }
$1 == "missed" {
    sub(/^missed /, "")
    count = split(only, wanted, " ")
    for (i = 1; i <= count; i++) if (index($0, wanted[i] "/") == 1) print
    next
}
$1 == "file" {
    seen++
    folder = $2
    sub(/\/[^\/]*$/, "", folder)
    lines[folder] += $3
    run[folder] += $4
    ways[folder] += $5
    taken[folder] += $6
    excused[folder] += $7
}
END {
    if (seen != files) {
        printf "coverage: gcov tells of %d of %d files\n", seen, files > "/dev/stderr"
        exit 1
    }
    if (only != "") exit
    row("folder", "lines", "run", "percent", "branches", "taken", "excused", "percent", "goal")
    for (folder in lines) {
        text[++count] = folder
        all += lines[folder]
        all_run += run[folder]
        all_ways += ways[folder]
        all_taken += taken[folder]
        all_excused += excused[folder]
    }
    for (i = 2; i <= count; i++)
        for (k = i; k > 1 && text[k] < text[k - 1]; k--) { t = text[k]; text[k] = text[k - 1]; text[k - 1] = t }
    for (i = 1; i <= count; i++) {
        f = text[i]
        row(f, lines[f], run[f], percent(lines[f], run[f]), ways[f], taken[f], excused[f],
            percent(ways[f] - excused[f], taken[f]), goal(f))
    }
    row("all", all, all_run, percent(all, all_run), all_ways, all_taken, all_excused,
        percent(all_ways - all_excused, all_taken), "")
    fflush()
    for (i = 1; i <= stales; i++) print "coverage: excused without need: " stale[i] > "/dev/stderr"
    for (i = 1; i <= count; i++) {
        f = text[i]
        counted = ways[f] - excused[f]
        if (100 * taken[f] >= goal(f) * counted) continue
        printf "coverage: %s: %d of %d branches ran, below %d %%\n", f, taken[f], counted, goal(f) > "/dev/stderr"
        low = 1
    }
    exit low || stales > 0
}
function goal(folder, names, n, j) {
    n = split(readers, names, " ")
    for (j = 1; j <= n; j++) if (index(folder "/", names[j] "/") == 1) return reader_goal
    return other_goal
}
function percent(whole, part) {
    return whole ? sprintf("%.1f", 100 * part / whole) : "-"
}
function row(a, b, c, d, e, f, g, h, i) {
    printf "%-28s %7s %7s %8s %9s %7s %8s %8s %5s\n", a, b, c, d, e, f, g, h, i
}'
