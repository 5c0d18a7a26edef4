origin=slurm-$SLURM_ARRAY_JOB_ID-${SLURM_RESTART_COUNT:-0} node=${SLURMD_NODENAME:-$(uname -n)} worst=0
for ((next = SLURM_ARRAY_TASK_ID; next < trials; next += tasks)); do
  run_row "$next" || worst=$?
  if [ "$worst" -eq 43 ]; then
    scancel "$SLURM_ARRAY_JOB_ID" # the sweep itself is wrong: stop spending
    break
  fi
done
exit "$worst"
