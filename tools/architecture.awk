# architecture.awk -- usage: awk -f architecture.awk src/MODULES SOURCE...
# Writes the modules of src/MODULES as a graph for dot, with an arrow from each module to the modules that its #include
# lines use. Folders of a module are in its box. Arrows that follow from others are left out (transitive reduction), for
# a readable picture.
BEGIN { FS = "[ \t]*[|][ \t]*" }

# The box of a module: its first folder's, unless it has its own.
function box_of(name) {
    while (!(name in is_box) && sub(/\/[^\/]*$/, "", name)) continue
    return name
}

# A folder has its own box if it may include a module above the one that contains it.
function has_own_box(name, list,    top, word, n, i) {
    top = name
    sub(/\/.*/, "", top)
    if (!(top in is_box)) return top == name
    n = split(list, word, " ")
    for (i = 1; i <= n; i++) if (word[i] in number && number[word[i]] > number[top]) return 1
    return 0
}

FILENAME ~ /MODULES$/ {
    if ($0 ~ /^[ \t]*($|[#<"])/) next
    top = $1
    if (!sub(/\/.*/, "", top) || has_own_box($1, $2)) {
        top = $1
        contents[$1] = $5
    } else {
        folders[top] = folders[top] (folders[top] == "" ? "" : ", ") substr($1, length(top) + 2)
    }
    if (!(top in is_box)) {
        is_box[top] = 1
        box[++boxes] = top
        number[top] = boxes
    }
    next
}

FNR == 1 {
    mine = FILENAME
    sub(/^(src|include\/statrec)\//, "", mine)
    sub(/\.h$/, "", mine)
    mine = box_of(mine)
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    name = $0
    sub(/^[^"]*"/, "", name)
    sub(/".*/, "", name)
    sub(/^statrec\//, "", name)
    sub(/\.h$/, "", name)
    name = box_of(name)
    if (name != mine && name in is_box) uses[mine " " name] = 1
}

# Whether `from` reaches `to`; through another box if `far`.
function reaches(from, to, far,    i) {
    if (!far && (from " " to) in known) return known[from " " to]
    for (i = 1; i <= boxes; i++) {
        if (!((from " " box[i]) in uses) || (far && box[i] == to)) continue
        if (box[i] == to || reaches(box[i], to, 0)) return far ? 1 : known[from " " to] = 1
    }
    return far ? 0 : known[from " " to] = 0
}

# Words in lines of about `width` characters.
function wrapped(text, width,    word, n, i, line, out) {
    n = split(text, word, " ")
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line " " word[i]) > width) {
            out = out line "\\n"
            line = word[i]
        } else {
            line = line (line == "" ? "" : " ") word[i]
        }
    }
    return out line
}

END {
    print "// Written by `make architecture` from src/MODULES and the #include lines."
    print "digraph architecture {"
    print "    rankdir = TB; nodesep = 0.25; ranksep = 0.45;"
    print "    node [shape = box, style = filled, fillcolor = \"#f4f6f8\", color = \"#7a8794\", fontname = \"Helvetica\", fontsize = 11];"
    print "    edge [color = \"#7a8794\", arrowsize = 0.6];"
    for (i = boxes; i >= 1; i--) {
        inside = box[i] in folders ? "\\n(" wrapped(folders[box[i]], 26) ")" : ""
        printf "    \"%s\" [label = \"%s%s\\n%s\"];\n", box[i], box[i], inside, wrapped(contents[box[i]], 26)
    }
    for (i = boxes; i >= 1; i--)
        for (j = boxes; j >= 1; j--)
            if ((box[i] " " box[j]) in uses && !reaches(box[i], box[j], 1))
                print "    \"" box[i] "\" -> \"" box[j] "\";"
    print "}"
}
