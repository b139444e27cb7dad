# shellcheck shell=sh
export PATH="/opt/slurm/bin:$PATH"
