#!/bin/sh
# usage: aarch64.sh [FOLDER...]
# Compiles the test programs of these folders of tests/ (default: base engine norm) for aarch64
# and runs them under an emulator (make check-aarch64; 15 minutes). Uses the headers of this
# machine and Debian's libraries for arm64, without oneDNN. If tools or libraries are missing,
# names their packages and skips.
set -eu
cross=aarch64-linux-gnu
packages="gcc-$cross qemu-user libhdf5-103-1:arm64 libopenblas0-openmp:arm64 liblapacke:arm64 libcmocka0:arm64 \
libzip4:arm64 libunistring2:arm64 libpcre2-8-0:arm64 libisal2:arm64 zlib1g:arm64 libgomp1:arm64"

skip() {
    echo "skipped: no $1 (dpkg --add-architecture arm64; apt-get update; apt-get install $packages)"
    exit 0
}

# link_to NAME LIBRARY: links libNAME.so, which the linker wants, to Debian's runtime library.
link_to() {
    for file in "/usr/lib/$cross/lib$2.so".* "/lib/$cross/lib$2.so".*; do
        [ -e "$file" ] || continue
        ln -sf "$file" "$links/lib$1.so"
        return 0
    done
    skip "lib$2 for arm64"
}

command -v $cross-gcc >/dev/null || skip $cross-gcc
command -v qemu-aarch64 >/dev/null || skip qemu-aarch64
links=build/aarch64/link
mkdir -p "$links"
for name in hdf5_serial openblas lapacke cmocka zip unistring pcre2-8 isal z; do link_to $name $name; done
link_to hdf5 hdf5_serial

[ $# -gt 0 ] || set -- base engine norm
programs=
for folder; do
    for test in tests/"$folder"/test_*.c; do programs="$programs build/aarch64/${test%.c}"; done
done
# shellcheck disable=SC2086 # a list of words
{
    ${MAKE:-make} --no-print-directory -j"${JOBS:-$(nproc)}" CC=$cross-gcc ARCH=armv8-a DNNL=0 BUILD=build/aarch64 \
        LDFLAGS="-L$links -Wl,-rpath-link,/usr/lib/$cross" $programs
    RUN_WITH=qemu-aarch64 sh tests/run_unit.sh $programs
}
