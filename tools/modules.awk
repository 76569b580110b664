# modules.awk -- src/MODULES as definitions for make, one word per line, '+' in place of blanks:
#   MODULES       names of all rows, lowest first
#   CLOSURE_x     the module x and all that it needs, in the order of a linker: callers first
#   TESTED_x      the same for the test programs of the folder tests/x
BEGIN { FS = "[ \t]*[|][ \t]*" }
/^[ \t]*($|[#<"])/ { next }
{
    row[++rows] = $1
    includes[$1] = $2
    tests[$1] = $3
}
END {
    all = ""
    for (i = 1; i <= rows; i++) {
        all = all "+" row[i]
        split("", need)
        add(row[i], i)
        print "CLOSURE_" row[i] ":=" in_order()
        top = row[i]
        sub(/\/.*/, "", top)
        folder[top] = 1
    }
    for (top in folder) {
        split("", need)
        for (i = 1; i <= rows; i++)
            if (row[i] == top || index(row[i], top "/") == 1) {
                add(row[i], i)
                add_list(tests[row[i]], rows + 1)
            }
        print "TESTED_" top ":=" in_order()
    }
    print "MODULES:=" all
}
function add(name, below) {
    if (name in need) return
    need[name] = 1
    add_list(includes[name], below)
}
# Adds the rows above number `below` that the list names, the rows in their folders, and the modules that they need.
function add_list(list, below,    word, n, i, j) {
    n = split(list, word, " ")
    for (i = 1; i <= n; i++)
        for (j = 1; j < below; j++)
            if (row[j] == word[i] || index(row[j], word[i] "/") == 1) add(row[j], j)
}
function in_order(    i, list) {
    for (i = rows; i >= 1; i--) if (row[i] in need) list = list "+" row[i]
    return list
}
