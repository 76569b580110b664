# header_page.awk -- libstatrec(3) from the public headers, whose comments are the manual.
# usage: awk -f roff.awk -f header_page.awk -v date=DATE -v version=VERSION -v names=FILE HEADER...
# The comment that opens a header describes it; a comment describes the declarations under it up to the
# next comment or empty line. Names of all functions go to the file `names`. A function whose prototype
# could not be read is an error.

function fail(text) {
    print "header_page: " FILENAME ":" FNR ": " text | "cat 1>&2"
    failed = 1
    exit 1
}

function flush(    text) {
    if (declared != "") {
        text = ".PP\n.nf\n" declared ".fi\n"
        if (comment != "") text = text ".RS 4\n" described(comment) ".RE\n"
        out = out text
    } else if (comment != "") out = out described(comment)
    declared = comment = ""
}

# Paragraphs of a comment; indented lines are an example.
function described(text,    line, n, i, paragraph, done, in_example) {
    n = split(text, line, "\n")
    done = paragraph = ""
    in_example = 0
    for (i = 1; i <= n; i++) {
        if (line[i] ~ /^  /) {
            if (paragraph != "") done = done ".PP\n" fill(prose(paragraph))
            paragraph = ""
            if (!in_example) done = done ".PP\n.RS 4\n.nf\n"
            in_example = 1
            done = done guarded(plain(substr(line[i], 3))) "\n"
            continue
        }
        if (in_example) done = done ".fi\n.RE\n"
        in_example = 0
        if (line[i] == "") {
            if (paragraph != "") done = done ".PP\n" fill(prose(paragraph))
            paragraph = ""
        } else paragraph = paragraph (paragraph == "" ? "" : " ") line[i]
    }
    if (paragraph != "") done = done ".PP\n" fill(prose(paragraph))
    return done
}

function end_header() {
    flush()
    if (header == "") return
    body = body title(".SH", toupper(header)) fill(bold(plain("#include <statrec/" header ">"))) out
    out = ""
}

# One line of a declaration, verbatim.
function declare(text) { declared = declared guarded(plain(text)) "\n" }

FNR == 1 {
    end_header()
    header = FILENAME
    sub(/.*\//, "", header)
    opening = 1
    depth = 0
    in_comment = in_define = in_declaration = skipping = 0
}

# lines for the compiler only
/^#ifdef __cplusplus/ { skipping = 1 }
skipping { if (/^#endif/) skipping = 0; next }
/^#(ifndef|endif|include)|^#define STATREC_[A-Z]*_H$/ { next }

# -- comments between declarations

!in_declaration && !in_define && /^\/\*/ {
    if (!opening) flush_comment()
    in_comment = 1
    sub(/^\/\* ?/, "")
    if (opening && match($0, / -- /)) $0 = toupper(substr($0, RSTART + 4, 1)) substr($0, RSTART + 5)
}
in_comment {
    last = /\*\/$/
    sub(/ *\*\/$/, "")
    sub(/^ \* ?/, "")
    comment = comment (comment == "" ? "" : "\n") $0
    if (last) {
        in_comment = 0
        if (opening) { flush(); opening = 0 }
    }
    next
}

# A comment that follows declarations without an empty line begins the next ones.
function flush_comment() { flush() }

/^$/ && !in_declaration && !in_define { flush(); next }

# -- declarations

/^#define/ || in_define {
    in_define = /\\$/
    sub(/ *\\$/, "")
    declare($0)
    next
}

/^#/ { fail("a directive of no known form: " $0) }

{
    in_declaration = 1
    text = $0
    code = text
    gsub(/\/\*[^*]*\*\//, "", code)
    if (match(code, /(^|[ *])sr_[a-z_0-9]+\(/) && code !~ /^typedef/ && depth == 0) {
        name = substr(code, RSTART, RLENGTH - 1)
        sub(/^[ *]/, "", name)
        function_name[++functions] = name
    }
    # the comment after a prototype
    if (depth == 0 && functions && match(text, /\); *\/\*.*\*\/$/)) {
        told = substr(text, RSTART + 2)
        sub(/^ *\/\* */, "", told)
        sub(/[.]? *\*\/$/, ".", told)
        comment = comment (comment == "" ? "" : "\n\n") "`" function_name[functions] "`: " told
        text = substr(text, 1, RSTART + 1)
    }
    declare(text)
    depth += gsub(/[{(]/, "", code) - gsub(/[})]/, "", code)
    if (depth < 0) fail("a bracket closes what is not open")
    if (depth == 0 && code ~ /;[ \t]*$/) in_declaration = 0
    next
}

END {
    if (failed) exit 1
    end_header()
    if (!functions) fail("no function was found")
    for (i = 1; i <= functions; i++) print function_name[i] >names
    printf "%s", page_head("libstatrec", 3, date, version)
    printf "%s", title(".SH", "NAME")
    printf "%s", fill("libstatrec \\- recorder of normalization statistics for training loops, and reader " \
        "of run files")
    printf "%s.nf\n", title(".SH", "SYNOPSIS")
    for (i = 1; i < ARGC; i++) {
        name = ARGV[i]
        if (name !~ /[.]h$/) continue
        sub(/.*\//, "", name)
        printf "%s\n", bold(plain("#include <statrec/" name ">"))
    }
    printf ".PP\n%s\n.fi\n", bold(plain("cc loop.c $(pkg-config --cflags --libs statrec)"))
    printf "%s", body
    printf "%s%s", title(".SH", "FORMAT.H"), fill("The tables of " bold("statrec\\-file") "(5). Its names make the " \
        "enumerators: " prose("`SR_mu_B` of sr_vector, `SR_SCALAR_dist_mu` of sr_scalar, `SR_SPECTRUM_input` of " \
        "sr_spectrum, `SR_FINAL_tid_mean` of sr_final, `SR_FAMILY_SIGMA` of sr_family."))
    printf "%s.BR statrec (1),\n.BR statrec\\-file (5)\n", title(".SH", "SEE ALSO")
}
