#!/bin/sh
# usage: lint.sh [FLAG...]
# Checks every C file with clang-format and, with the compiler flags given, with clang; and every shell script
# with shellcheck. Exit status 1 after a finding. A missing tool is skipped, with a message;
# `tests/install_packages.sh lint` installs them.
top=$(dirname "$0")/..
cd "$top" || exit 1
jobs=${JOBS:-$(nproc 2>/dev/null || echo 1)}
format=14 # releases of clang-format differ in their output
faults=0

skip() {
    echo "lint: skipped: $*"
}

# ended STATUS TEXT: what a tool came to.
ended() {
    if [ "$1" -eq 0 ]; then echo "lint: $2"; else
        echo "lint: $2: FAILED"
        faults=1
    fi
}

files_in() {
    find src include analyses bench examples tools tests sample_runs plots -type f "$@" 2>/dev/null | LC_ALL=C sort
}

number_of() {
    printf '%s\n' "$1" | wc -l
}

# The first number with a point in the output of TOOL --version.
version_of() {
    "$1" --version | grep -o '[0-9][0-9]*\.[0-9.]*' | head -n 1
}

check_format() {
    tool=$(command -v clang-format-$format || command -v clang-format) ||
        { skip "clang-format is not installed"; return; }
    version=$(version_of "$tool")
    case $version in
    $format.*) ;;
    *) skip "clang-format $version; the files are in the form of release $format"; return ;;
    esac
    files=$(files_in -name '*.[ch]')
    printf '%s\n' "$files" | xargs -P "$jobs" -n 32 "$tool" --dry-run -Werror
    ended $? "clang-format $version: $(number_of "$files") files"
}

# clang warns of fields that a row of a table leaves out, which gcc does not: they are zero on purpose.
check_clang() {
    [ $# -gt 0 ] || { skip "clang: no flags given; use make lint"; return; }
    command -v clang >/dev/null || { skip "clang is not installed"; return; }
    echo '#include <omp.h>' | clang -fopenmp -E - >/dev/null 2>&1 ||
        { skip "clang has no omp.h (libomp-dev)"; return; }
    files=$(files_in -name '*.c')
    printf '%s\n' "$files" |
        xargs -P "$jobs" -n 16 clang -fsyntax-only -Werror "$@" -Wno-missing-field-initializers
    ended $? "clang $(version_of clang): $(number_of "$files") files"
}

# run_cli.sh reads the cases of tests/cli and sets their variables; many source small.sh first.
check_shell() {
    command -v shellcheck >/dev/null || { skip "shellcheck is not installed"; return; }
    scripts=$(files_in -name '*.sh' ! -path 'tests/cli/*'; echo .ci/run)
    cases=$(files_in -path 'tests/cli/*' \( -name cmd -o -name '*.sh' \))
    status=0
    printf '%s\n' "$scripts" | xargs shellcheck || status=1
    printf '%s\n' "$cases" | xargs shellcheck -s sh -e SC1091,SC2154 || status=1
    ended $status "shellcheck $(version_of shellcheck): $(number_of "$scripts
$cases") scripts"
}

# Lines of sources end at 100 columns; clang-format leaves comments as they are. In tests a line of expected
# text may be longer.
check_width() {
    long=$(files_in \( -path 'src/*' -o -path 'include/*' -o -path 'analyses/*' \) -name '*.[ch]' |
        LC_ALL=C.UTF-8 xargs -n 64 grep -nE '^.{101,}$' /dev/null)
    [ -z "$long" ] || printf '%s\n' "$long"
    [ -z "$long" ]
    ended $? "no line of src, include and analyses is longer than 100 columns"
}

# Annotations of the Python package, everything public among them.
check_types() {
    command -v mypy >/dev/null || { skip "mypy is not installed"; return; }
    (cd python && mypy --config-file ../pyproject.toml --no-incremental --cache-dir=/dev/null -p statrec)
    ended $? "mypy $(mypy --version | cut -d' ' -f2): the Python package"
}

check_architecture() {
    [ -f src/MODULES ] || return
    sh tools/architecture.sh --check
    ended $? "docs/architecture.dot: the modules and includes of today"
}

check_format
check_width
check_architecture
check_clang "$@"
check_shell
check_types
exit $faults
