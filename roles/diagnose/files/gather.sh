# shellcheck shell=sh
# Prints the ends of logs, each after its name, and what Slurm says. It changes nothing.
# Arguments: lines and bytes of each log, number of job logs, whether to ask Slurm, patterns of logs, --, of job logs.
lines=$1 bytes=$2 newest=$3 slurm=$4
shift 4

show() {
  from=1
  # Anybody can lay a link beside a job's log; it need not lead to one.
  if [ -f "$1" ] && [ ! -L "$1" ] && [ -r "$1" ]; then
    printf '==> %s <==\n' "$1"
    # Half a line may be half of a secret, without the name by which it would be masked.
    [ "$(tail -n "$lines" -- "$1" | wc -c)" -le "$bytes" ] || from=2
    tail -n "$lines" -- "$1" | tail -c "$((bytes + from - 1))" | tr '\r' '\n' | sed -n "$from,\$p" |
      tr -d '\000-\010\013-\037' | iconv -c -f UTF-8 -t UTF-8
    printf '\n'
  fi
}

ask() {
  printf '==> %s <==\n' "$1"
  shift
  timeout 20 "$@" 2>&1
}

while [ $# -gt 0 ] && [ "$1" != -- ]; do
  for log in $1; do
    show "$log"
  done
  shift
done
shift

# The patterns are meant to be expanded here, and ls puts the newest first.
# shellcheck disable=SC2068,SC2012
ls -t -d -- $@ 2> /dev/null | head -n "$newest" | while IFS= read -r log; do
  show "$log"
done

PATH=$PATH:/opt/slurm/bin
if [ "$slurm" = yes ] && command -v sinfo > /dev/null; then
  ask 'sinfo -R' sinfo -R --format='%80E %12u %19H %N'
  ask sinfo sinfo
  ask squeue squeue
fi
exit 0
