#!/usr/bin/env bash
# Makes, as root, the folders that Enroot and Pyxis keep containers in, and with a user's number those of that user. Their
# names are known to everybody, and what is above may be open to all: what is there and is another's is removed first, so
# that nobody finds in it what somebody else has laid there. Below a user's folder root does nothing. Says what it made.
set -euo pipefail

uid=${1:-}
disk=$(cat /etc/trainium-containers)
case $uid in *[!0-9]*) echo "trainium: $uid is no number of a user" >&2; exit 1 ;; esac
# Slurm drains a node whose prolog fails, and jobs of a user may begin at the same time.
exec 9> /run/trainium-containers.lock
flock 9

# folder PATH OWNER MODE
folder() {
  local new
  for _ in 1 2 3; do
    if [ ! -L "$1" ] && [ -d "$1" ] && [ "$(stat -c %u "$1")" = "$2" ]; then
      [ "$(stat -c %a "$1")" = "$3" ] || chmod "$3" "$1"
      return 0
    fi
    rm -rf "$1"
    # It gets its name when it is its owner's, and only where nobody was quicker; then once more.
    new=$(mktemp -d "${1%/*}/.trainium.XXXXXX")
    chown "$2" "$new"
    if mv -T "$new" "$1" 2> /dev/null; then echo "$1"; else rm -rf "$new"; fi
  done
  echo "trainium: $1 is made by others again and again" >&2
  return 1
}

folder /run/enroot 0 755
folder /run/pyxis 0 755
folder "$disk" 0 755
if [ -n "$uid" ]; then
  folder "/run/enroot/user-$uid" "$uid" 700
  folder "$disk/user-$uid" "$uid" 700
  # As the user, who may have put a link in its place; Enroot makes the others itself.
  setpriv --reuid "$uid" --regid "$(id -g "$uid" 2> /dev/null || echo "$uid")" --clear-groups \
    mkdir -m 0700 "$disk/user-$uid/tmp" 2> /dev/null || true
fi
