#!/bin/sh
# usage: wheel_hdf5.sh DIRECTORY
# Builds HDF5 as DIRECTORY/lib/libhdf5.a and libhdf5.so: position-independent, of the version whose headers the compiler
# finds, without network drivers, which bring thirty libraries. The source is $HDF5_SOURCE (a .tar.gz) or Debian's
# source package. Does nothing if DIRECTORY has it.
set -eu
[ $# -eq 1 ] || { echo "usage: wheel_hdf5.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
place=$(cd "$1" && pwd -P)
pkg=hdf5
! pkg-config --exists hdf5-serial || pkg=hdf5-serial
version=$(pkg-config --modversion "$pkg")
[ "$(cat "$place/version" 2>/dev/null)" = "$version" ] && exit 0

# fetch: the source package of Debian, with lists of our own, since few systems have deb-src in theirs.
fetch() {
    command -v apt-get >/dev/null || {
        echo "wheel_hdf5: no apt-get; set HDF5_SOURCE to hdf5-$version.tar.gz" >&2
        exit 1
    }
    # shellcheck disable=SC1091
    . /etc/os-release
    mkdir -p apt/lists/partial
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb-src [signed-by=$key] http://deb.debian.org/debian $VERSION_CODENAME main" >apt/sources.list
    set -- -q -o "Dir::Etc::sourcelist=$PWD/apt/sources.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt" -o "APT::Sandbox::User=$(id -un)"
    apt-get "$@" update
    apt-get "$@" --download-only source "hdf5=$(dpkg-query -W -f '${source:Version}' libhdf5-dev)"
    HDF5_SOURCE=$(echo "$PWD"/hdf5_*.orig.tar.*)
}

rm -rf "$place/work" && mkdir "$place/work" && cd "$place/work"
[ -n "${HDF5_SOURCE-}" ] || fetch >fetch.log 2>&1 || { cat fetch.log >&2; exit 1; }
mkdir source && tar xf "$HDF5_SOURCE" -C source --strip-components=1
cd source
{
    ./configure --quiet --prefix="$place" CC="${CC:-gcc}" CFLAGS="-O2 ${HDF5_ARCH--march=x86-64-v2}" \
        --enable-build-mode=production --enable-shared --enable-static --with-pic --disable-hl --disable-cxx \
        --disable-fortran --disable-tests --disable-tools --disable-ros3-vfd --without-libhdfs --without-szlib \
        --disable-dependency-tracking
    make -s -j"${JOBS:-2}" -C src
    make -s -C src install
} >../build.log 2>&1 || { tail -n 20 ../build.log >&2; exit 1; }
built=$(sed -n 's/^#define H5_VERS_INFO .*version: \([0-9.]*\).*/\1/p' "$place/include/H5public.h")
[ "$built" = "$version" ] || {
    echo "wheel_hdf5: $HDF5_SOURCE has version $built, the headers of the system $version" >&2
    exit 1
}
rm -rf "$place/work"
echo "$version" >"$place/version"
