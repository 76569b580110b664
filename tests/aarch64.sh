#!/bin/sh
# usage: aarch64.sh [FOLDER...|runs]
# Compiles statrec for aarch64 and runs it under an emulator (make check-aarch64; an hour at most): the test programs of
# these folders of tests/, and with `runs` tests/two_builds.sh, which trains models of every kind, emulated and native,
# and lets each build read the files of the other. Default: the table below. Resumes after an interruption: an item that
# passed and has not changed does not run again. Uses the headers of this machine and Debian's libraries for arm64,
# without oneDNN. If tools or libraries are missing, names their packages and skips.
set -eu
cross=aarch64-linux-gnu
packages="gcc-$cross libc6-dev-arm64-cross qemu-user libhdf5-103-1:arm64 libopenblas0-openmp:arm64 liblapacke:arm64 libcmocka0:arm64 \
libzip4:arm64 libunistring2:arm64 libpcre2-8-0:arm64 zlib1g:arm64 libgomp1:arm64"
# relative to the largest number of a dataset: other processors fuse and order sums in another way
tolerance=1e-4
default='base journal hdf5 runfile record moments engine norm nets runs'
vectors=train/test_model_vectors # with norm/test_vectors: the float64 vectors of $STATREC_SHARED
build=build/aarch64
minutes=${AARCH64_MINUTES:-57}
AARCH64_BEGAN=${AARCH64_BEGAN:-$(date +%s)}
export AARCH64_BEGAN

# one PROGRAM: runs it unless it passed; then prints its earlier output again.
if [ "${1-}" = --one ]; then
    passed=$2.passed
    if [ -n "$(find "$passed" -newer "$2" 2>/dev/null)" ]; then
        cat "$passed"
    elif [ $(($(date +%s) - AARCH64_BEGAN)) -ge $((60 * minutes)) ]; then
        echo 'skipped: the time is up; the next call goes on'
    else
        status=0
        qemu-aarch64 "$2" >"$2.log" 2>&1 || status=$?
        cat "$2.log"
        [ $status -eq 0 ] && mv "$2.log" "$passed"
        exit $status
    fi
    exit 0
fi

skip() {
    echo "check-aarch64: skipped: no $1 (dpkg --add-architecture arm64; apt-get update; apt-get install --no-remove $packages)"
    exit 0
}

# link_to NAME LIBRARY: links libNAME.so, which the linker wants, to Debian's runtime library.
link_to() {
    for file in "$isal/usr/lib/$cross/lib$2.so".* "/usr/lib/$cross/lib$2.so".* "/lib/$cross/lib$2.so".*; do
        [ -e "$file" ] || continue
        ln -sf "$file" "$links/lib$1.so"
        return 0
    done
    skip "lib$2 for arm64"
}

# Debian's libisal2 cannot be installed for two architectures: installing it for arm64 removes this machine's.
fetch_isal() {
    [ -d "$isal" ] && return
    (cd "$links" && apt-get -q download libisal2:arm64 >apt.log 2>&1) || skip "libisal2:arm64 to download"
    dpkg -x "$links"/libisal2_*_arm64.deb "$isal"
}

command -v $cross-gcc >/dev/null || skip $cross-gcc
command -v qemu-aarch64 >/dev/null || skip qemu-aarch64
links=$(pwd -P)/$build/link
isal=$(pwd -P)/$build/isal
mkdir -p "$links"
fetch_isal
for name in hdf5_serial openblas lapacke cmocka zip unistring pcre2-8 isal z; do link_to $name $name; done
link_to hdf5 hdf5_serial

make_all() {
    ${MAKE:-make} --no-print-directory -j"${JOBS:-$(nproc)}" CC=$cross-gcc OBJCOPY=$cross-objcopy LD=$cross-ld \
        ARCH=armv8-a DNNL=0 BUILD=$build \
        LDFLAGS="-L$links -Wl,-rpath,$isal/usr/lib/$cross -Wl,-rpath-link,/usr/lib/$cross" "$@"
}

# Tests and shells start programs of bin/ by their names: a script in each one's place calls the emulator.
emulate_programs() {
    mkdir -p $build/emulated
    for program in "$build"/bin/*; do
        head -c 4 "$program" | grep -q ELF || continue
        mv "$program" $build/emulated/
        printf '#!/bin/sh\nexec qemu-aarch64 "%s" "$@"\n' "$(pwd -P)/$build/emulated/${program##*/}" >"$program"
        chmod +x "$program"
    done
}

# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $default
programs='' runs=0
for folder; do
    [ "$folder" != runs ] || { runs=1; continue; }
    for test in tests/"$folder"/test_*.c; do programs="$programs $build/${test%.c}"; done
    [ "$folder" != norm ] || programs="$programs $build/tests/$vectors"
done
status=0
# shellcheck disable=SC2086 # a list of words
if [ -n "$programs" ]; then
    make_all $programs
    emulate_programs
    RUN_WITH="sh $0 --one" sh tests/run_unit.sh $programs || status=1
fi
if [ $runs -eq 1 ]; then
    make_all $build/bin/statrec $build/bin/stat-tid $build/bin/stat-scalar
    ${MAKE:-make} --no-print-directory -j"${JOBS:-$(nproc)}" MODE=release \
        build/release/bin/statrec build/release/bin/stat-tid build/release/bin/stat-scalar
    emulate_programs
    sh tests/two_builds.sh build/release $build $tolerance || status=1
fi
printf 'check-aarch64: %s minutes\n' $((($(date +%s) - AARCH64_BEGAN + 30) / 60))
exit $status
