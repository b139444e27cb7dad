#!/bin/sh
# Builds MUNGE and Slurm from their sources and packs them: build.sh MUNGE SLURM PREFIX OUTPUT
# Both are for a prefix of their own, since neither Amazon Linux has MUNGE, nor other systems one place for its headers; what
# lies in that prefix already is left alone, since daemons may run from it. Only what the role runs is built.
set -eu
umask 022
munge=$1
slurm=$2
prefix=$3
output=$4
folder=$(dirname "$output")
work=

# The reason is for whoever started it; everything else is in the log.
ended() {
  code=$?
  [ -z "$work" ] || rm -rf "$work"
  if [ "$code" != 0 ]; then
    { grep -E 'error:|build\.sh:' "$folder/build.log" || cat "$folder/build.log"; } | tail -n 1 >&3
  fi
  exit "$code"
}

exec 3>&2 > "$folder/build.log" 2>&1
trap ended EXIT
work=$(mktemp -d "$folder/build.XXXXXX")
stage=$work/stage
mkdir -p "$work/munge" "$work/slurm" "$stage"
# As distributions build daemons of root.
flags='-O2 -fno-strict-aliasing -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE'

unpack() {
  tar -x --no-same-owner --strip-components=1 -C "$work/$1" -f "$2"
  cd "$work/$1"
}

configure() {
  ./configure --prefix="$prefix" --libdir="$prefix/lib" --disable-static --disable-dependency-tracking CFLAGS="$flags" "$@"
}

unpack munge "$munge"
[ -x configure ] || ./bootstrap
configure --sysconfdir=/etc --localstatedir=/var --with-runstatedir=/run --with-crypto-lib=openssl LDFLAGS='-pie -Wl,-z,relro,-z,now'
make -j "$(nproc)"
# Not all of it: units of its own would come into the way of the role's.
for part in libmunge munge munged mungekey; do
  make -C "src/$part" install-strip DESTDIR="$stage"
done
# By these libtool would make Slurm look for the library where it lies now, and not where it will be.
find "$stage" -name '*.la' -delete

unpack slurm "$slurm"
# Every library that Slurm would use if it found it: other nodes need not have what this one happens to have. A release ignores
# those that it does not know.
set -- mysql_config json jwt http-parser libhttp-parser llhttp-parser yaml ofed hdf5 hwloc nvml rsmi oneapi pmix freeipmi ucx \
  rdkafka s2n hpe-slingshot lua readline libcurl
for library; do
  set -- "$@" "--without-$library"
  shift
done
# For NUMA it has no such option, and with the one for LZ4 configure of 26.05 fails.
set -- "$@" ac_cv_lib_numa_numa_available=no ac_cv_lib_lz4_LZ4_compress_destSize=no
# Its plugins refer to what only some of its programs have: bound at once, they could not be loaded.
configure "$@" --sysconfdir=/etc/slurm --with-munge="$stage$prefix" --without-rpath \
  --disable-slurmrestd --disable-sview --disable-x11 --disable-debug LDFLAGS="-pie -Wl,-z,relro,-z,lazy -Wl,-rpath,$prefix/lib"
make -C src -j "$(nproc)"
make -C src install-strip DESTDIR="$stage"
# Plugins whose headers are missing are left out silently; without these nobody could submit, or be held to a cgroup.
for plugin in auth_munge cgroup_v2; do
  if [ ! -e "$stage$prefix/lib/slurm/$plugin.so" ]; then
    echo "build.sh: the plugin $plugin was not built; look for the headers of OpenSSL and D-Bus" >&2
    exit 1
  fi
done
find "$stage" -name '*.la' -delete
rm -rf "$stage$prefix/include"
if found=$(grep -rlF "$work" "$stage"); then
  echo "build.sh: $found would look for files in $work, where they were built" >&2
  exit 1
fi
tar -c -z --owner=0 --group=0 --numeric-owner -C "$stage" -f "$work/packed" "${prefix#/}"
mv "$work/packed" "$output"
