if [ $# -eq 1 ]; then
  origin=shell-$(uname -n)-$$-$(date +%s) node=$(uname -n)
  run_row "$1"
  status=$?
  [ "$status" -ne 43 ] || exit 255 # the sweep itself is wrong: xargs starts no further row
  exit "$status"
fi
seq 0 $((trials - 1)) | xargs -P "${JOBS:-$parallelism}" -n 1 bash "$0"
