#!/usr/bin/env bash
# Makes, as root, the folders that Enroot and Pyxis keep containers in, and with a user's number those of that user. Their
# names are known to everybody, and what is above may be open to all: what is there and is another's is removed first, so
# that nobody finds in it what somebody else has laid there. Says what it made.
set -euo pipefail

uid=${1:-}
disk=$(cat /etc/trainium-containers)
case $uid in *[!0-9]*) echo "trainium: $uid is no number of a user" >&2; exit 1 ;; esac

# folder PATH OWNER MODE
folder() {
  if [ -L "$1" ] || [ ! -d "$1" ] || [ "$(stat -c %u "$1")" != "$2" ]; then
    rm -rf "$1"
    # Fails where somebody was quicker, and so does the job.
    mkdir -m 0700 "$1"
    chown "$2" "$1"
    echo "$1"
  fi
  [ "$(stat -c %a "$1")" = "$3" ] || chmod "$3" "$1"
}

folder /run/enroot 0 755
folder /run/pyxis 0 755
folder "$disk" 0 755
if [ -n "$uid" ]; then
  folder "/run/enroot/user-$uid" "$uid" 700
  folder "$disk/user-$uid" "$uid" 700
  # Enroot makes these itself; they are below a folder of the user's alone.
  install -d -m 0700 -o "$uid" "$disk/user-$uid/tmp"
fi
