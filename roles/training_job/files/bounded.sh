# shellcheck shell=sh
# bounded.sh FILE BYTES   prints a log; of one that is longer the beginning and the end, and between them what is left out
set -eu
[ -e "$1" ] || exit 0
size=$(wc -c < "$1")
if [ "$size" -le "$2" ]; then
  cat < "$1"
  exit
fi
# The beginning has the size of the job, the end its newest steps, or why it failed.
begin=65536
[ "$begin" -le $(($2 / 2)) ] || begin=$(($2 / 2))
head -c "$begin" < "$1"
printf '\nJOB note: %s bytes of this log are left out here, all of it is in %s on %s.\n' $((size - $2)) "$1" "$(uname -n)"
tail -c $(($2 - begin)) < "$1"
