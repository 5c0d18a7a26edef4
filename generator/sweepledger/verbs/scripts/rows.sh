state=${SWEEP_STATE:-${SLURM_SUBMIT_DIR:-$PWD}/.sweepledger}
if [ ! -d "$state/jobs" ] || [ ! -d "$state/$code" ]; then
  echo "$batch: $state lacks its files: export the batch in this clone, and start this script in its root" >&2
  exit 2
fi
code=$state/$code data=$state/$data
read -r code_state data_state <"$state/jobs/$batch/states" || exit 2
stopped= launcher=
trap 'stopped=1; [ -z "$launcher" ] || kill -TERM "$launcher" 2>/dev/null' TERM INT HUP

# An attempt with a record failed. One without was ended by the machine, which counts as a disruption.
count_attempts() {
  failures=0 disruptions=0
  while read -r earlier; do
    if [ -e "$folder/$earlier.json" ]; then failures=$((failures + 1)); else disruptions=$((disruptions + 1)); fi
  done <"$folder/.starts"
}

# Run one row until it has a result or no attempt is left. Exits with the launcher's code.
run_row() {
  local row=$1 try=0 status=1
  local folder=$state/results/$batch/$row
  mkdir -p "$folder" && touch "$folder/.starts" || return 74
  while [ "$try" -le $((retries + max_disruptions)) ]; do
    [ -z "$stopped" ] || exit 143
    count_attempts
    [ "$failures" -le "$retries" ] || return "$status"
    uid=$origin-$row-$try
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/sweep-XXXXXXXX") || return 74
    echo "$uid" >>"$folder/.starts"
    describe_row
    mkdir -p "${folders[@]}" || return 74
    (cd "$scratch" && exec env -u PYTHONPATH "${variables[@]}" "${words[@]}") </dev/null >/dev/null &
    launcher=$!
    wait "$launcher"; status=$?
    while kill -0 "$launcher" 2>/dev/null; do wait "$launcher"; status=$?; done
    launcher=
    rm -rf "$scratch"
    case $status in
      0 | 42) return 0 ;; # ok, pruned or diverged: no attempt could change it
      43 | 44) return "$status" ;;
    esac
    [ "$status" -ne 143 ] || sleep 1 # the signal may reach the launcher before this script
    if [ -n "$stopped" ]; then
      rm -f "$folder/$uid.json" # the machine ended it: this was no failure of the trial
      exit 143
    fi
    try=$((try + 1))
    sleep "$try"
  done
  return "$status"
}
