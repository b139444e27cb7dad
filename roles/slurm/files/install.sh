#!/bin/sh
# What packages of a distribution would bring beside the programs: install.sh [PREFIX ARCHIVE CHECKSUM]
# The user of Slurm and its folders; with a prefix that of MUNGE too, the programs in that prefix from the archive, and links
# to them where all find them. Where anything else has one of their names, nothing is done.
set -eu
umask 022
prefix=${1:-}
archive=${2:-}
checksum=${3:-}

add_user() {
  getent group "$1" > /dev/null || groupadd --system ${2:+--gid "$2"} "$1"
  getent passwd "$1" > /dev/null ||
    useradd --system ${2:+--uid "$2"} --gid "$1" --no-create-home --home-dir "/var/lib/$1" --shell /usr/sbin/nologin "$1"
}

if [ -n "$prefix" ]; then
  # It came by way of machines where others may be root.
  if ! echo "$checksum  $archive" | sha256sum --check --status; then
    echo "$archive is not what was built, whose SHA-256 is $checksum; delete it here and on the node that has built it" >&2
    exit 1
  fi
  for program in $(tar -t -f "$archive" | sed -n "s|^${prefix#/}/\(s\{0,1\}bin/[^/]\{1,\}\)\$|\1|p"); do
    link=/usr/$program
    [ -e "$link" ] || [ -L "$link" ] || continue
    case $(readlink "$link") in
      /opt/slurm/*) ;;
      *)
        echo "$link is there already, of a package; remove the packages of Slurm and MUNGE, or take slurm_source packages" >&2
        exit 1
        ;;
    esac
  done
fi

# The number that Debian keeps for it: it must be the same on all nodes.
add_user slurm 64030
mkdir -p /etc/slurm /var/lib/slurm
install -d -o slurm -g slurm -m 0755 /var/lib/slurm/slurmctld /var/log/slurm
install -d -o root -g root -m 0755 /var/lib/slurm/slurmd
[ -n "$prefix" ] || exit 0

add_user munge
install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge
# In one step, since daemons may run from it.
mkdir -p /opt/slurm
stage=$(mktemp -d /opt/slurm/new.XXXXXX)
tar -x --no-same-owner -C "$stage" -f "$archive"
[ ! -e "$prefix" ] || mv "$prefix" "$stage/old"
mv "$stage$prefix" "$prefix"
rm -rf "$stage"
for folder in bin sbin; do
  for program in "$prefix/$folder"/*; do
    ln -sfn "$program" "/usr/$folder/${program##*/}"
  done
done
# What was unpacked has the label of its folder, by which SELinux lets no service start it.
if command -v restorecon > /dev/null; then
  restorecon -R "$prefix"
fi
printf %s "$prefix" > /opt/slurm/active
