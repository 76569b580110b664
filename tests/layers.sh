#!/bin/sh
# usage: layers.sh [CHECKOUT]
# Checks the #include lines of src/, include/ and analyses/ against src/MODULES, that libraries do not print or exit,
# that file names are unique, that statplot has every analysis, and that every operation has a gradient check. Prints
# one line, or one line per violation and exits with 1.
top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
for analysis in analyses/stat-*.c; do
    [ -f "$analysis" ] || continue
    name=$(basename "$analysis" .c)
    grep -Eq "^    DO\\(${name#stat-}\\)" src/plot/statplot.c && continue
    echo "$analysis: not among the ANALYSES of src/plot/statplot.c"
    exit 1
done
cases=tests/engine/gradcheck_cases.c
for op in $([ -f $cases ] && sed -n 's/^\(tensor \*\|bool \)\(op_[a-z0-9_]*\)(.*/\2/p' src/engine/ops/ops.h); do
    grep -q "[^a-z0-9_]$op(" $cases && continue
    echo "src/engine/ops/ops.h: $op has no row in $cases"
    exit 1
done
twins=$(find src include analyses bench tools tests -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
    awk -F/ '$NF in first { print $0 ": another file has this name: " first[$NF]; next } { first[$NF] = $0 }')
files=$(find src include analyses -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "layers: no source files in $top"; exit 1; }
# shellcheck disable=SC2086 # names of sources have no blanks
LC_ALL=C awk -v twins="$twins" '
BEGIN {
    words = "exit _exit _Exit quick_exit abort printf vprintf puts putchar perror stderr stdout"
    forbidden_count = split(words, forbidden, " ")
    if (twins != "") bad = split(twins, twin, "\n")
    for (i = 1; i <= bad; i++) print twin[i]
}

function complain(text) {
    print text
    bad++
}

# -- src/MODULES

FILENAME == "src/MODULES" {
    if ($0 ~ /^[ \t]*(#|$)/) next
    cells = split($0, cell, /[ \t]*[|][ \t]*/)
    if ($0 ~ /^[<"]/) read_library()
    else read_module()
    next
}

function read_library(    name, n, i) {
    n = split(cell[1], name, " ")
    for (i = 1; i <= n; i++) users[name[i]] = cell[2]
}

function read_module(    name, n, i, j) {
    if (cells != 5) complain("src/MODULES:" FNR ": " cells " columns, not 5")
    n = split(cell[2], name, " ")
    for (i = 1; i <= n; i++) {
        if (!(name[i] in is_module)) complain("src/MODULES:" FNR ": " name[i] " is no module above " cell[1])
        for (j = 1; j <= modules; j++)
            if (module[j] == name[i] || index(module[j], name[i] "/") == 1) allowed[cell[1] " " module[j]] = 1
    }
    allowed[cell[1] " " cell[1]] = 1
    is_module[cell[1]] = 1
    module[++modules] = cell[1]
    prints[cell[1]] = (" " cell[4] " ") ~ / prints /
}

# The module of a path: its folder, or the nearest folder above that has a row.
function module_of(path) {
    if (path ~ /^include\/statrec\//) {
        sub(/^include\/statrec\//, "", path)
        sub(/\.h$/, "", path)
        return path in is_module ? path : ""
    }
    sub(/^src\//, "", path)
    while (sub(/\/[^\/]*$/, "", path)) if (path in is_module) return path
    return ""
}

# -- sources

FNR == 1 {
    path = FILENAME
    count++
    mine = module_of(path)
    if (mine == "") complain(path ": in no module of src/MODULES")
    in_comment = 0
}

/^[ \t]*#[ \t]*include/ {
    includes++
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "")
    if (match($0, /^(<[^>]*>|"[^"]*")/)) check_include(substr($0, 1, RLENGTH))
    next
}

!prints[mine] { check_words(strip($0)) }

function check_include(header,    name, target) {
    if (header in users && !may_use(users[header]))
        complain(path ":" FNR ": only " users[header] " may include " header)
    if (header !~ /^"/) return
    name = substr(header, 2, length(header) - 2)
    target = (name ~ /^statrec\// ? "include/" : "src/") name
    asked[path ":" FNR] = target
    if (mine != "" && !((mine " " module_of(target)) in allowed))
        complain(path ":" FNR ": " mine " may not include " name)
}

# A user is a file, or a folder with a slash at its end.
function may_use(list,    user, n, i) {
    n = split(list, user, " ")
    for (i = 1; i <= n; i++)
        if (path == user[i] || (user[i] ~ /\/$/ && index(path, user[i]) == 1)) return 1
    return 0
}

# The line without comments and without quoted text.
function strip(line,    out, first) {
    out = ""
    while (line != "") {
        if (in_comment) {
            if (!(first = index(line, "*/"))) return out
            line = substr(line, first + 2)
            in_comment = 0
        } else if (match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/)) {
            out = out substr(line, 1, RSTART - 1) " "
            first = substr(line, RSTART, 2)
            if (first == "//") return out
            if (first == "/*") in_comment = 1
            line = substr(line, RSTART + (first == "/*" ? 2 : RLENGTH))
        } else {
            return out line
        }
    }
    return out
}

function check_words(code,    i) {
    gsub(/format\((printf|__printf__),/, "", code)
    for (i = 1; i <= forbidden_count; i++)
        if (code ~ ("(^|[^A-Za-z0-9_])" forbidden[i] "([^A-Za-z0-9_]|$)"))
            complain(path ":" FNR ": a library may not use " forbidden[i])
}

END {
    for (i = 1; i < ARGC; i++) exists[ARGV[i]] = 1
    for (at in asked)
        if (!(asked[at] in exists)) complain(at ": " asked[at] " does not exist; write the path below src/")
    if (bad) {
        print "layers: " bad (bad == 1 ? " violation in " : " violations in ") count " files"
        exit 1
    }
    print "layers: " count " files and " includes " includes keep the rules of src/MODULES"
}
' src/MODULES $files
