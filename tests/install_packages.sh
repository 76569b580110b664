#!/bin/sh
# usage: install_packages.sh build|check|lint|mpi|browser
#        install_packages.sh missing [lib]
# Installs the Debian packages that are missing for building, for that and `make check`, or for that and `make lint` or
# `make MPI=1 check-mpi`. Names them first and asks nothing. NO_INSTALL=1 only names them. Silent when nothing is
# missing. `missing` prints on standard error the packages that the compiler does not find for a build (lib: of the
# recorder library alone), and the command that installs them.
build="gcc make pkg-config libc6-dev libhdf5-dev libopenblas-dev liblapacke-dev libdnnl-dev libisal-dev zlib1g-dev libzip-dev libunistring-dev libpcre2-dev gnuplot-nox help2man"
check="libcmocka-dev hdf5-tools python3 python3-h5py python3-venv mandoc groff-base"
lint="clang-format clang libomp-dev shellcheck mypy"
mpi="openmpi-bin libopenmpi-dev procps"
browser="chromium chromium-driver" # for the page of statrec view

case ${1-} in
build) wanted=$build ;;
check) wanted="$build $check" ;;
lint) wanted="$build $check $lint" ;;
mpi) wanted="$build $check $mpi" ;;
missing) wanted=$(echo "$build" | sed 's/ gnuplot.*//') ;;
browser) wanted="$build $check $browser" ;;
*)
    echo "usage: install_packages.sh build|check|lint|mpi|browser" >&2
    exit 2
    ;;
esac

# Alternatives to the wanted package.
stand_ins() {
    case $1 in
    gnuplot-nox) echo "gnuplot-qt gnuplot-x11" ;;
    pkg-config) echo "pkgconf" ;;
    clang-format) echo "clang-format-14" ;;
    libomp-dev) echo "libomp-14-dev" ;;
    openmpi-bin) echo "mpich" ;;
    libopenmpi-dev) echo "libmpich-dev" ;;
    esac
}

is_installed() {
    for name in "$1" $(stand_ins "$1"); do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && return 0
    done
    return 1
}

# A command or a file of each package that the compiler must find.
is_there() {
    case $1 in
    gcc) command -v "${CC:-gcc}" ;;
    make) command -v make ;;
    pkg-config) command -v pkg-config ;;
    libc6-dev) has_header stdio.h ;;
    libhdf5-dev) pkg-config --exists hdf5-serial ;;
    libopenblas-dev) has_header cblas.h || { [ -z "${CPPFLAGS-}" ] && pkg-config --exists openblas; } ;;
    liblapacke-dev) has_header lapacke.h ;;
    libdnnl-dev) has_header dnnl.h ;;
    libisal-dev) has_header isa-l/crc.h ;;
    zlib1g-dev) has_header zlib.h ;;
    libzip-dev) pkg-config --exists libzip || has_header zip.h ;;
    libunistring-dev) has_header unictype.h ;;
    libpcre2-dev) pkg-config --exists libpcre2-8 || has_header pcre2.h ;;
    gnuplot-nox) command -v gnuplot ;;
    help2man) command -v help2man ;;
    chromium) command -v chromium ;;
    chromium-driver) command -v chromedriver ;;
    libcmocka-dev) pkg-config --exists cmocka ;;
    hdf5-tools) command -v h5dump ;;
    python3) command -v python3 ;;
    mandoc) command -v mandoc ;;
    groff-base) command -v groff ;;
    python3-h5py) python3 -c 'import h5py' ;;
    mypy) command -v mypy ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    clang-format) command -v clang-format-14 || command -v clang-format ;;
    clang) command -v clang ;;
    libomp-dev) CC=clang has_header omp.h ;;
    shellcheck) command -v shellcheck ;;
    openmpi-bin) command -v mpirun ;;
    libopenmpi-dev) command -v mpicc ;;
    procps) command -v pgrep ;;
    esac >/dev/null 2>&1
}

has_header() {
    # shellcheck disable=SC2086 # a list of words
    printf '#include <%s>\n' "$1" | "${CC:-gcc}" ${CPPFLAGS-} -E -
}

if [ "$1" = missing ]; then
    [ "${2-}" = lib ] && wanted="gcc make pkg-config libc6-dev libhdf5-dev libisal-dev"
    missing=
    for package in $wanted; do is_there "$package" || missing="$missing $package"; done
    echo "make: the compiler does not find what these Debian packages hold:${missing:- (all are there: see CPPFLAGS)}" >&2
    [ -z "$missing" ] || echo "make: hint: sudo apt-get install$missing" >&2
    exit 1
fi

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    missing=
    for package in $wanted; do is_there "$package" || missing="$missing $package"; done
    [ -z "$missing" ] && exit 0
    echo "install_packages: not a Debian system; install what these Debian packages hold:$missing" >&2
    exit 1
fi

missing=
for package in $wanted; do is_installed "$package" || missing="$missing $package"; done
[ -z "$missing" ] && exit 0
if [ "${NO_INSTALL:-0}" = 1 ]; then
    echo "missing Debian packages, not installed (NO_INSTALL=1):$missing"
    exit 0
fi

sudo=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "install_packages: missing packages:$missing; as root: apt-get install$missing" >&2
        exit 1
    fi
    sudo="sudo -n" # a password prompt would wait
fi
echo "installing Debian packages:$missing"
set -e
# shellcheck disable=SC2086 # lists of words
{
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
} </dev/null
