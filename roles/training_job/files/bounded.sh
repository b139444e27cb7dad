# shellcheck shell=sh
# bounded.sh FILE BYTES   prints a log; of one that is longer the beginning and the end, and between them what is left out
set -eu
[ -f "$1" ] || exit 0
# Opened once: its owner may put something else in its place, or write on.
exec 3< "$1"
[ -f /dev/fd/3 ] || exit 0
size=$(stat -L -c %s /dev/fd/3)
if [ "$size" -le "$2" ]; then
  head -c "$2" < /dev/fd/3
  exit
fi
# The beginning has the size of the job, the end its newest steps, or why it failed.
begin=65536
[ "$begin" -le $(($2 / 2)) ] || begin=$(($2 / 2))
head -c "$begin" < /dev/fd/3
printf '\nJOB note: %s bytes of this log are left out here, all of it is in %s on %s.\n' $((size - $2)) "$1" "$(uname -n)"
tail -c $(($2 - begin)) < /dev/fd/3 | head -c $(($2 - begin))
