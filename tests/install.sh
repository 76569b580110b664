#!/bin/sh
# usage: install.sh BUILDDIR
# Installs the MODE of BUILDDIR into a temporary directory and checks the installed tree:
#   - libraries export sr_* only
#   - each header compiles alone in C and C++
#   - examples build with pkg-config and either library, and run; the programs read their run files
#   - each program has a manual page and a completion
#   - each instruction level has its libraries
#   - `make uninstall` removes every file
# Prints one line, or one line per fault.
[ $# -eq 1 ] || { echo "usage: install.sh BUILDDIR" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
build=$1
mode=$(basename "$build")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
bad=0 looked=0
export LC_ALL=C
unset LD_LIBRARY_PATH
make=${MAKE:-make}
dir=${PREFIX:-/usr/local} # the prefix of the build; another one would rebuild it

fault() {
    echo "install: $*"
    bad=$((bad + 1))
}

# check TEXT COMMAND...: the command must succeed; else prints TEXT and the end of its output.
check() {
    what=$1
    shift
    looked=$((looked + 1))
    "$@" >"$work/said" 2>&1 && return 0
    fault "$what"
    tail -n 20 "$work/said"
    return 1
}

skip() {
    echo "install: skipped: $*"
}

make_there() {
    "$make" --no-print-directory -C "$top" MODE="$mode" DESTDIR="$work/root" PREFIX="$dir" LIBDIR="$dir/lib" "$@"
}

# as root's umask is on some systems: others must be able to read the installed files
install_there() (
    umask 077
    make_there install
)
check "make install fails" install_there || exit 1
closed=$(find "$work/root" -mindepth 1 ! -type l ! -perm -004 -o -type d ! -perm -005 | head -n 3)
[ -z "$closed" ] || fault "under umask 077, others cannot read what is installed: $closed"
looked=$((looked + 1))
prefix=$work/root$dir lib=$work/root$dir/lib

# -- libraries

same() { [ "$1" = "$2" ]; }

check_libraries() {
    nm -D --defined-only "$lib/libstatrec.so" | awk '{ print $NF }' | sort >"$work/names.shared"
    nm -g --defined-only "$lib/libstatrec.a" | awk 'NF == 3 { print $3 }' | sort >"$work/names.static"
    sed -n '/^typedef/d; s/^[a-z].*[ *]\(sr_[a-z_0-9]*\)(.*/\1/p' "$prefix"/include/statrec/*.h | sort -u >"$work/promised"
    looked=$((looked + 3))
    [ "$(wc -l <"$work/promised")" -gt 50 ] || fault "headers declare 50 functions or fewer"
    for kind in shared static; do
        grep -v '^sr_' "$work/names.$kind" >"$work/more"
        comm -23 "$work/promised" "$work/names.$kind" >"$work/less"
        while read -r name; do fault "the $kind library exports $name"; done <"$work/more"
        while read -r name; do fault "the $kind library lacks $name"; done <"$work/less"
    done
    soname=$(readelf -d "$lib/libstatrec.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    check "soname $soname" same "$soname" libstatrec.so.1
    check "libstatrec.so does not link to $soname" same "$(readlink "$lib/libstatrec.so")" "$soname"
    check "$soname is not a link to the release" test -L "$lib/$soname" -a -f "$lib/$soname"
}

check_headers() {
    for header in "$prefix"/include/statrec/*.h; do
        name=statrec/$(basename "$header")
        echo "#include <$name>" >"$work/alone.c"
        check "$name alone is not valid C11" "${CC:-gcc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
            -I"$prefix/include" "$work/alone.c"
        command -v g++ >/dev/null || continue
        check "$name alone is not valid C++" g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only \
            -I"$prefix/include" -x c++ "$work/alone.c"
    done
    command -v g++ >/dev/null || skip "headers in C++: g++ is not installed"
    check "installed headers differ from include/statrec" \
        same "$(cd "$prefix/include" && find . -name '*.h' | sort)" \
        "$(cd "$top/include" && find ./statrec -name '*.h' | sort)"
}

# -- examples

example() { (cd "$work/$1" && shift && exec "$@"); }

build_examples() {
    mkdir "$work/$1" && cp "$top"/examples/*.c "$top"/examples/Makefile "$work/$1"
    PKG_CONFIG_PATH=$lib/pkgconfig check "examples do not build ($1)" "$make" -C "$work/$1" STATIC="$2" \
        CFLAGS='-O2 -Wall -Wextra -Wno-missing-field-initializers -Werror' \
        PKG_CONFIG="pkg-config --define-variable=prefix=$prefix"
}

check_example() {
    check "$1/$2 fails" example "$1" ./"$2" "$2.h5" || return
    check "statrec check $1/$2.h5" "$prefix/bin/statrec" check "$work/$1/$2.h5"
    "$prefix/bin/statrec" info "$work/$1/$2.h5" >"$work/$1/$2.info" || fault "statrec info $1/$2.h5"
    for words in "$3" "$4"; do
        check "statrec info $1/$2.h5 does not say '$words'" grep -Eq "$words" "$work/$1/$2.info"
    done
}

check_examples() {
    build_examples shared 0 || return
    LD_LIBRARY_PATH=$lib
    export LD_LIBRARY_PATH
    check_example shared loop 'valid_accuracy .* 9[0-9]' '^steps  *300: '
    check_example shared vectors '^steps  *200: ' '^scalars .* tid_var g_mu g_sigma2'
    unset LD_LIBRARY_PATH
    build_examples static 1 || return
    ldd "$work/static/loop" | grep libstatrec && fault "the static examples load libstatrec.so"
    check_example static loop 'valid_accuracy .* 9[0-9]' '^steps  *300: '
    check_example static vectors '^steps  *200: ' '^scalars .* tid_var g_mu g_sigma2'
    if command -v gnuplot >/dev/null; then
        check "statplot layers" example shared "$prefix/bin/statplot" layers loop.h5 -o layers.svg
        check "the figure of statplot layers lacks the site" grep -q hidden "$work/shared/layers.svg"
        check "statplot overview" example shared "$prefix/bin/statplot" overview loop.h5 -o overview.svg
    else skip "statplot: gnuplot is not installed"
    fi
}

# Each program has a manual page and a completion.
check_pages() {
    for path in "$prefix"/bin/*; do
        name=$(basename "$path")
        check "no manual page for $name" test -s "$prefix/share/man/man1/$name.1"
        check "no completion for $name" grep -q "complete -F .* $name" "$prefix/share/bash-completion/completions/$name"
    done
    check "statrec train finds no presets" "$prefix/bin/statrec" list sites --model tensorized --preset ptb-mini
    check "presets" same "$(cd "$prefix/share/statrec/presets" && ls)" "$(cd "$top/share/presets" && ls)"
    for page in man1/stat-analyses.1 man1/statrec-train.1 man3/libstatrec.3 man3/sr_create.3 man5/statrec-file.5; do
        check "no manual page $page" test -s "$prefix/share/man/$page"
    done
}

# A build for any x86-64 processor installs libraries for several instruction levels.
check_levels() {
    if [ -d "$prefix/lib/statrec" ]; then check "instruction levels" sh "$top/tests/levels.sh" "$prefix"
    elif [ "$mode" = release ] && [ "$(uname -m)" = x86_64 ] && [ -z "$ARCH" ]; then fault "lib/statrec is missing"
    else skip "instruction levels: this build has one"
    fi
}

check_uninstall() {
    check "make uninstall fails" make_there uninstall
    left=$(cd "$work/root" && find . ! -type d)
    for file in $left; do fault "make uninstall leaves $file"; done
}

check_libraries
check_headers
check_examples
check_pages
check_levels
check_uninstall
[ $bad -eq 0 ] || exit 1
echo "install: $looked checks of the installed tree passed"
