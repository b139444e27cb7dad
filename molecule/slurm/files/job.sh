#!/usr/bin/env bash
# What the jobs of this scenario do: job.sh WHAT [WORD...]
case $1 in
  train)
    printf '<%s>\n' "${@:2}" "$WORDS"
    for step in 1 2 3 4; do
      LC_ALL=C date "+LOG %a %b %d %H:%M:%S %Y - (0, $step) step_loss : 10.$((9 - step)) learning_rate : 2.80e-06 throughput : 64.36"
      sleep 1
    done
    ;;
  fail)
    echo "the last words"
    # Each task expands it.
    # shellcheck disable=SC2016
    srun bash -c 'exit $((3 + SLURM_PROCID))'
    ;;
  requeue)
    other=$(scontrol show hostnames | tail -n 1)
    echo "on $SLURM_JOB_NUM_NODES nodes, restart ${SLURM_RESTART_COUNT:-0}"
    if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
      # Slurm would wait two minutes.
      sudo systemd-run --quiet --on-active=5 --timer-property=AccuracySec=100ms \
        scontrol update "jobid=$SLURM_JOB_ID" starttime=now
      sudo scontrol update "nodename=$other" state=down reason=test
      sleep 60
    fi
    ;;
  array) exit $((SLURM_ARRAY_TASK_ID == 1)) ;;
  sleep) sleep 300 ;;
esac
