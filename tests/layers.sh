#!/bin/sh
# usage: layers.sh [CHECKOUT]
# Checks the dependency rule on the #include lines of src/, include/ and analyses/, the words that
# libraries must not use, that file names are unique, and that every operation is among the gradient checks. One line when all is well; otherwise one
# line per violation, and exit status 1. The tables are at the top of the awk program.
top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
# statplot has every analysis in itself.
for analysis in analyses/stat-*.c; do
    [ -f "$analysis" ] || continue
    name=$(basename "$analysis" .c)
    grep -Eq "^    DO\\(${name#stat-}\\)" src/cli/statplot.c && continue
    echo "$analysis: not among the ANALYSES of src/cli/statplot.c"
    exit 1
done
# Every operation has a row among the gradient checks.
cases=tests/engine/gradcheck_cases.c
for op in $([ -f $cases ] && sed -n 's/^\(tensor \*\|bool \)\(op_[a-z0-9_]*\)(.*/\2/p' include/statnet/ops.h); do
    grep -q "[^a-z0-9_]$op(" $cases && continue
    echo "include/statnet/ops.h: $op has no row in $cases"
    exit 1
done
# Tests, benchmarks and tools may include what they like, but have names of their own too.
twins=$(find src include analyses bench tools tests -name '*.[ch]' 2>/dev/null | LC_ALL=C sort |
    awk -F/ '$NF in place { print $0 ": another file has this name: " place[$NF]; next } { place[$NF] = $0 }')
files=$(find src include analyses -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
[ -n "$files" ] || { echo "layers: no source files in $top"; exit 1; }
# shellcheck disable=SC2086 # names of sources hold no blanks; that is checked too
LC_ALL=C awk -v twins="$twins" '
BEGIN {
    if (twins != "") bad = split(twins, twin, "\n")
    for (i = 1; i <= bad; i++) print twin[i]

    # layer of every header that crosses a folder
    own("base", "statrec/base.h")
    own("base", "statnet/bf16_number.h statnet/arena.h statnet/rng.h statnet/options.h statnet/tool.h statnet/tsv.h statnet/share.h")
    own("base", "statnet/buckets.h statnet/progress.h statnet/svd.h statnet/globs.h statnet/sort.h statnet/npz.h statnet/utf8.h statnet/hash.h statnet/digits.h")
    own("format", "statrec/format.h")
    own("record", "statrec/record.h")
    own("runfile", "statrec/runfile.h")
    own("moments", "statrec/moments.h")
    own("arrays", "statnet/array_file.h")
    own("plain", "statnet/real.h statnet/batch.h")
    own("engine", "statnet/tape.h statnet/ops.h statnet/gemm.h statnet/gradcheck.h statnet/params.h")
    own("engine", "statnet/conv.h statnet/row_ops.h statnet/bf16.h statnet/scratch.h")
    own("norm", "statnet/norm.h")
    own("ranks", "statnet/ranks.h")
    own("nets", "statnet/models.h statnet/layers.h statnet/pass.h")
    own("text", "statnet/file_bytes.h statnet/text.h statnet/vocab.h statnet/unicode.h statnet/text_codec.h statnet/bpe_step.h")
    own("text", "statnet/bpe.h statnet/text_lines.h statnet/line_step.h statnet/tags.h")
    own("score", "statnet/score.h statnet/conll_score.h")
    own("parse", "statnet/arc_standard.h statnet/trees.h")
    own("data", "statnet/data.h statnet/batch_plan.h statnet/tree_data.h")
    own("decode", "statnet/decode.h")
    own("plain", "statnet/state.h")
    own("task", "statnet/task.h statnet/translator.h")
    own("observe", "statnet/observe.h")
    own("train", "statnet/train.h statnet/optim.h statnet/trained.h")
    own("analysis", "statnet/analysis.h statnet/analysis_forms.h statnet/column_summary.h statnet/batchmix.h statnet/compare_sample.h")
    own("diagnose", "statnet/diagnose.h")
    own("table", "statnet/table.h")
    own("plot", "statnet/plot.h")

    # what each layer may include; "plain" are structs without code, "format" names without code,
    # "moments" formulas on plain arrays
    allow["base"] = "base"
    allow["format"] = ""
    allow["arrays"] = "base"
    allow["record"] = allow["runfile"] = allow["moments"] = "record runfile moments arrays format base"
    allow["plain"] = "plain base"
    allow["engine"] = "engine plain base"
    allow["ranks"] = "ranks plain base"
    allow["norm"] = "norm engine plain base"
    allow["nets"] = "nets norm engine plain base"
    allow["text"] = "text plain base"
    allow["score"] = "score text base"
    allow["parse"] = "parse text base"
    allow["decode"] = "decode nets norm engine plain base"
    allow["data"] = "data parse text plain base"
    allow["task"] = "task decode nets norm engine data score parse text plain base"
    allow["observe"] = "observe nets norm engine plain record runfile moments format base"
    allow["train"] = "train task observe decode nets norm engine ranks data score parse text arrays plain base"
    allow["plot"] = "plot table analysis runfile moments format base"
    allow["analysis"] = "analysis runfile moments format base"
    allow["diagnose"] = "diagnose " allow["analysis"]
    allow["table"] = "table " allow["analysis"]
    allow["analyses"] = allow["table"]
    allow["cli"] = allow["train"] " diagnose plot record runfile moments format"

    # libraries with one door each, and the headers that let them out
    door["hdf5.h"] = door["hdf5_hl.h"] = "src/record/h5_inner.h"
    door["h5_inner.h"] = "src/record/h5.c src/record/h5_declare.c src/record/h5_driver.c src/record/h5_end_driver.c src/record/h5_errors.c src/record/h5_guard.c src/record/h5_types.c"
    door["cblas.h"] = door["openblas_config.h"] = door["f77blas.h"] = "src/engine/gemm.c"
    door["dnnl.h"] = door["oneapi/dnnl/dnnl.h"] = door["dnnl_config.h"] = "src/engine/dnnl.c"
    door["uniname.h"] = door["unictype.h"] = door["unicase.h"] = "src/text/unicode.c"
    door["zip.h"] = "src/base/npz.c"
    door["mpi.h"] = "src/ranks/ranks_mpi.c"
    door["lapacke.h"] = door["lapack.h"] = "src/base/svd.c"

    # the only room that may name the recorder and the engine side by side
    bridge = "observe"
    engine_side = "engine norm nets"

    # libraries never print and never exit, but for these two and what programs are made of
    programs = "cli plot analysis table analyses"
    speaks["src/base/tool.c"] = speaks["src/base/progress.c"] = 1
    words = "exit _exit _Exit quick_exit abort printf vprintf puts putchar perror stderr stdout"
    forbidden_count = split(words, forbidden, " ")
}

function own(layer, headers,    name, n, i) {
    n = split(headers, name, " ")
    for (i = 1; i <= n; i++) layer_of_header[name[i]] = layer
}

function complain(text) {
    print text
    bad++
}

function layer_of_file(path,    part) {
    split(path, part, "/")
    if (part[1] == "analyses") return "analyses"
    if (part[1] == "include") {
        sub(/^include\//, "", path)
        return path in layer_of_header ? layer_of_header[path] : ""
    }
    return path == "src/cli/statplot.c" ? "plot" : part[2] # a program of its own beside statrec
}

function has(list, word) {
    return index(" " list " ", " " word " ") > 0
}

FNR == 1 {
    path = FILENAME
    count++
    layer = layer_of_file(path)
    if (layer == "") complain(path ": this header belongs to no layer; add it to tests/layers.sh")
    else if (!(layer in allow)) complain(path ": " layer " is no layer; see tests/layers.sh")
    in_comment = 0
    quiet = !has(programs, layer) && !(path in speaks)
}

/^[ \t]*#[ \t]*include/ {
    includes++
    name = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", name)
    mark = substr(name, 1, 1)
    name = substr(name, 2)
    sub(/[">].*/, "", name)
    check_include()
    next
}

quiet { check_words(strip($0)) }

function check_include(    target, folder) {
    if (name in door && !has(door[name], path))
        complain(path ":" FNR ": only " door[name] " may include " name)
    if (name in layer_of_header) {
        target = layer_of_header[name]
        if (name == "statrec/record.h") recorder[path] = FNR
        if (has(engine_side, target)) engine[path] = FNR
        if ((layer in allow) && !has(allow[layer], target))
            complain(path ":" FNR ": " layer " may not include " name ", a header of " target)
    } else if (name ~ /^(statrec|statnet)\//) {
        complain(path ":" FNR ": " name " belongs to no layer; add it to tests/layers.sh")
    } else if (mark == "\"") {
        folder = path
        sub(/[^\/]*$/, "", folder)
        local[path " " FNR] = folder name
    }
}

# The line without comments and without what is between quotes.
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
    for (l in local) {
        split(l, at, " ")
        if (!(local[l] in exists))
            complain(at[1] ":" at[2] ": " local[l] " is not there; other folders are reached through include/")
    }
    for (file in recorder)
        if ((file in engine) && layer_of_file(file) != bridge)
            complain(file ":" recorder[file] ": only src/observe may include both the recorder and the engine")
    if (bad) {
        print "layers: " bad (bad == 1 ? " violation in " : " violations in ") count " files"
        exit 1
    }
    print "layers: " count " files and " includes " includes keep the rules"
}
' $files
