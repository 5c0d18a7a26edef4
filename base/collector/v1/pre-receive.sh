# Confines the collector's credential on the server: whoever else pushes is not looked at here.
# `branch`, `mode`, `next` and `collector` are set above. A self-check of the collector would be no control.

# Anybody may push refs that let git show other content in place of a commit's own.
export GIT_NO_REPLACE_OBJECTS=1

# What the server calls whoever pushes: GitLab, Gitea and Forgejo, GitHub Enterprise, git's own http-backend.
pusher="${GL_USERNAME:-${GITEA_PUSHER_NAME:-${GITHUB_USER_LOGIN:-${REMOTE_USER:-}}}}"
[ "$pusher" = "$collector" ] || exit 0

# The code after the message is explained in docs/problems.md of sweepledger.
refuse() {
  rounds=
  [ "$next" != collector ] || rounds=" and the next round of a search"
  echo "the collector may push nothing but results and the move of a finished batch$rounds: $1 [${2:-push-not-allowed}]" >&2
  exit 1
}

forged() { refuse "$1" batch-forged; }

digit='[0-9a-f]'
four="$digit$digit$digit$digit"

# A batch by its name, which patterns below contain.
named() {
  printf '%s\n' "$1" | LC_ALL=C grep -qx "[a-z][a-z0-9-]*-b[1-9][0-9]*-$four$four" || refuse "$1 is no name of a batch"
}

# The sweep of a batch: of lr-coarse-b2-0a1b2c3d it is lr-coarse.
sweep_of() {
  numbered="${1%-*}"
  echo "${numbered%-b*}"
}

# Whether a folder has each name once, in order, with modes that git writes: of two files with one name, a check may
# read one and a controller the other, and servers accept such folders unless `receive.fsckObjects` is set.
well_formed() {
  listed="$(git rev-parse --quiet --verify "$1")" || return 1
  [ "$(git ls-tree -z "$listed" | git mktree -z --missing 2>/dev/null)" = "$listed" ] || return 1
  [ -z "$(git ls-tree --name-only "$listed" | LC_ALL=C sort | uniq -d)" ]
}

tree() { git rev-parse --quiet --verify "$1" 2>/dev/null || echo none; }

# The files that the archive may leave out, as `git ls-tree` lists them: those whose ids the lock of a batch names.
omitted() {
  git cat-file blob "$1:batch.yaml" 2>/dev/null | LC_ALL=C awk '
    /^[^ ]/ { named = $0 == "blobs:" }
    named && /^  (job[.]yaml|kustomization[.]yaml|launch[.]json): "[0-9a-f]+"$/ { gsub(/[":]/, ""); print "100644 blob " $2 "\t" $1 }'
}

# A file of a batch, also one that only history has.
content() {
  git cat-file blob "$1/$2" 2>/dev/null && return
  blob="$(omitted "$(tree "$1")" | LC_ALL=C awk -v NAME="$2" -F '\t' '$2 == NAME { split($1, words, " "); print words[3] }')"
  [ -z "$blob" ] || git cat-file blob "$blob"
}

# Whether a person has changed how a batch runs since it was merged.
runs_otherwise() { [ "$(tree "$1:running.yaml")" != none ]; }

# One batch that left overlays/active must be in overlays/archive as it was, to the last byte: all of it, or all but
# the files that its lock names by their ids. These stay in history, where readers fetch them.
moved() {
  batch="$3"
  named "$batch"
  [ "$(tree "$2:overlays/active/$batch")" = none ] || refuse "$batch was changed"
  was="$(tree "$1:overlays/active/$batch")"
  [ "$was" != none ] || refuse "overlays/archive/$batch was no active batch"
  is="$(tree "$2:overlays/archive/$batch")"
  if [ "$is" != "$was" ]; then
    left="$(omitted "$was")"
    [ -n "$left" ] || refuse "$batch was not moved as it is"
    listed="$(git ls-tree "$was")"
    if runs_otherwise "$was"; then
      # History has its kustomization without the reference to running.yaml, and the archive has neither.
      listed="$(printf '%s\n' "$listed" | LC_ALL=C awk -F '\t' '$2 != "running.yaml" && $2 != "kustomization.yaml"')"
      left="$(printf '%s\n' "$left" | LC_ALL=C awk -F '\t' '$2 != "kustomization.yaml"')"
    fi
    # Each named file is in the batch with this id, and none of them is in the archive.
    [ -z "$(printf '%s\n' "$left" | LC_ALL=C grep -vxF "$listed")" ] || refuse "the lock of $batch names other files"
    kept="$(printf '%s\n' "$listed" | LC_ALL=C grep -vxF "$left")"
    [ "$(git ls-tree "$is" 2>/dev/null)" = "$kept" ] || refuse "$batch was not moved as it is"
  fi
  records="results/$(sweep_of "$batch")/records/$batch.jsonl"
  [ "$(tree "$2:$records")" != none ] || refuse "$batch was moved without $records"
  # Otherwise Flux would keep its Jobs: it prunes nothing while a Kustomization leads to a folder that is gone.
  file="$(flux_folder "$2:overlays/archive/$batch")/$batch.yaml"
  [ "$(tree "$2:$file")" = none ] || refuse "$batch was moved and $file stays"
}

# A batch without what its round decides: names and ids, values of parameters, numbers of trials, thresholds, digests of
# its own files. Each such line must have exactly the form that the generator writes, or it stays. All else stays, one
# line a document: what cannot be read so is in no round before, and is refused.
shape='
function times(text, number,    all) { while (number--) all = all text; return all }
function put(line) { document = document line "\036" }
function end() { if (document != "") print FILE ":" document; document = "" }
BEGIN {
  hex = "[0-9a-f]"; id = "t" times(hex, 11); short = "t" times(hex, 9) hex "?" hex "?"; digest = "\"sha256:" times(hex, 64) "\""
  number = "-?[0-9][0-9.]*([eE][+-]?[0-9]+)?"
  text = "\"([^\"\\\\]|\\\\.)*\""; whole = "[0-9]+"
  parents = "\"" SWEEP "-b[0-9]+-" times(hex, 8) "/[0-9]+/checkpoints\""
}
/[\001-\010\013-\037\177]/ { put("a control character"); next } # it would look like the end of a line here
{ gsub(BATCH, "\037") } # which no line has
# The banner names the version and the digest of the spec. Before several documents, it is one of its own.
$0 ~ "^# Generated by sweepledger [0-9][0-9A-Za-z.+]* from sweeps/[a-z0-9-]+[.]yaml [(]sha256:" times(hex, 12) "[)][.]$" { next }
$0 == "# Do not edit: change the spec and run `sweep generate " SWEEP "`." { next }
FILE == "job.yaml" {
  if ($0 == "---") { end(); next }
  if (args) {
    # The launcher starts nothing if these differ from the command in launch.json with the row that it names.
    if ($0 ~ "^ *- " text "$") next
    args = 0
  }
  if (held != "") {
    indent = held; sub(/-.*/, "", indent); rest = held substr($0, length(indent) + 1)
    is_value = $0 ~ "^" indent "  value: " text "$"
    if (held ~ /"SWEEP_PARAM_[A-Z0-9_]+"$/ && is_value) { put(held); held = ""; next }
    if (held ~ /"SWEEP_INDEX"$/ && $0 ~ "^" indent "  value: \"" whole "\"$") { put(held); held = ""; next }
    if (held ~ /"SWEEP_PARENT"$/ && $0 == indent "  value: \"/sweep/parent\"") { held = ""; next }
    if (held ~ /"SWEEP_PARENT_ID"$/ && $0 ~ "^" indent "  value: \"" id "\"$") { held = ""; next }
    if (held ~ /"SWEEP_PARENT_FOLDER"$/ && $0 ~ "^" indent "  value: \"" SWEEP "-b[0-9]+-" times(hex, 8) "/[0-9]+\"$") { held = ""; next }
    if (held ~ /"(results|checkpoints)"$/ && $0 == indent "  mountPath: \"/sweep/parent\"") {
      mount = held "\036" $0; steps = 2; held = ""; next
    }
    put(held); held = ""
  }
  if (steps == 2) { steps = $0 ~ /^ *readOnly: true$/; mount = mount "\036" $0; if (!steps) put(mount); next }
  if (steps == 1) { steps = 0; if ($0 !~ "^ *subPath: " parents "$") put(mount "\036" $0); next }
  if ($0 ~ /^ *- name: "[A-Za-z0-9_.-]+"$/) { held = $0; next }
  if ($0 ~ /^ *args:$/) { put($0); getline; put($0); args = $0 ~ /^ *- "--"$/; next }
  if ($0 ~ "^  name: \"\037-" short "\"$") next
  if ($0 ~ "^ +sweepledger.dev/trial: \"" id "\"$") next
  if ($0 ~ "^ +sweepledger.dev/index: \"" whole "\"$") next
  if ($0 ~ "^ +sweepledger.dev/trial: " digest "$") next
  if ($0 ~ "^ +sweepledger.dev/spec-digest: \"sha256:" SPEC "\"$") next
  if ($0 ~ "^ +sweepledger.dev/generator: \"[0-9][0-9A-Za-z.+]*\"$") next
  # The deadline of a Job grows with the number of its trials.
  if ($0 ~ "^  (activeDeadlineSeconds|completions|parallelism|maxFailedIndexes): " whole "$") next
}
FILE == "launch.json" {
  if ($0 ~ "^ \"generated\": " text ",$") next
  if ($0 == " \"shards\": [") { part = "shards"; next }
  if ($0 == " \"stop\": [" && !stops++) { part = "stop"; level = 0; next }
  if (part != "" && !level && $0 ~ /^ \],?$/) { part = ""; next }
  if (part == "shards" && $0 ~ "^   ?([{}],?|\"(count|first)\": " whole ",?|\"digest\": " digest ",|\"file\": \"hyperparams(-" whole ")?[.]csv\",)$") next
  if (part == "stop") { # a list of rules, and in it of points: at each depth only what belongs there
    if (level == 0 && $0 == "  {") { level = 1; next }
    if (level == 1 && $0 ~ /^  },?$/) { level = 0; next }
    if (level == 1 && $0 ~ "^   \"(goal|rule|value)\": \"[a-z_-]+\",?$") next
    if (level == 1 && $0 ~ "^   \"(from|margin|reach|reports|until)\": " number ",?$") next
    if (level == 1 && $0 ~ /^   "thresholds": \[\],?$/) next
    if (level == 1 && $0 == "   \"thresholds\": [") { level = 2; next }
    if (level == 2 && $0 ~ /^   \],?$/) { level = 1; next }
    if (level == 2 && $0 == "    [") { level = 3; next }
    if (level == 3 && $0 ~ /^    \],?$/) { level = 2; next }
    if (level == 3 && $0 ~ "^     " number ",?$") next
  }
}
FILE == "batch.yaml" {
  if ($0 ~ "^(digest: " digest "|(number|trials|round): " whole "|generator: \"[0-9][0-9A-Za-z.+]*\"|engine: \"[a-z]+ [0-9.]+\")$") next
  if ($0 == "parent: null" || $0 ~ "^parent: \"" SWEEP "-b[0-9]+-" times(hex, 8) "\"$") next
  if ($0 == "after_infrastructure: true") next
  if (REPEATS && $0 ~ "^((method|choice): " text "|ahead: " whole ")$") next # of the round that lost the trials
  if ($0 == "parents:" || $0 ~ "^  \"" whole "\": \"" id "\"$") next
  if ($0 == "  digest: \"sha256:" SPEC "\"") next
  if ($0 ~ "^  (hyperparams(-" whole ")?[.]csv|job[.]yaml|kustomization[.]yaml|launch[.]json): " digest "$") next
  if ($0 ~ "^  (job[.]yaml|kustomization[.]yaml|launch[.]json): \"" times(hex, 40) "\"$") next
}
{ put($0) }
END { if (held != "") put(held); if (steps) put(mount); end() }
'

# A file of a batch as it was merged. No new batch has a running.yaml.
merged_content() {
  if [ "$2" = kustomization.yaml ] && [ "$(tree "$1/running.yaml")" != none ]; then
    content "$1" "$2" | sed '/^transformers:$/,$d'
  else
    content "$1" "$2"
  fi
}

bones() {
  for part in batch.yaml job.yaml kustomization.yaml launch.json; do
    merged_content "$1" "$part" | LC_ALL=C awk -v FILE="$part" -v BATCH="$2" -v SPEC="$3" -v SWEEP="$sweep" -v REPEATS="$again" "$shape" | LC_ALL=C sort -u
  done
}

judged= # the commit and the batch that were accepted last

# A whole number of a lock.
lock() { git show "$1/batch.yaml" | sed -n "s/^$2: \([1-9][0-9]\{0,8\}\)\$/\1/p"; }

# The digest of the spec that a batch was made from, and that of the spec of a sweep in a commit.
spec_in() { git show "$1/batch.yaml" | sed -n '/^spec:$/,/^[a-z]/s/^  digest: "sha256:\([0-9a-f]*\)"$/\1/p'; }
spec_of() { git show "$1:sweeps/$2.yaml" 2>/dev/null | sha256sum | cut -d ' ' -f 1; }

# What a batch takes of the cluster: trials, objects, and the most that a Job of it asks for.
amounts() {
  { content "$1" batch.yaml; content "$1" job.yaml; } | LC_ALL=C awk '
    /^apiVersion: / { objects++ }
    /^(trials|  (completions|parallelism|maxFailedIndexes)): [0-9]+$/ { if ($2 + 0 > most[$1]) most[$1] = $2 + 0 }
    END { print most["trials:"] + 0, objects + 0, most["completions:"] + 0, most["parallelism:"] + 0, most["maxFailedIndexes:"] + 0 }'
}

# Whether no amount is larger than in some recorded batch of the sweep: a person asks for more by a round of their own.
bounded() {
  asks="$(amounts "$1:overlays/active/$2")"
  {
    amounts "$1:$place"
    git ls-tree --name-only "$1" overlays/archive/ | grep "^overlays/archive/$sweep-b[0-9]*-$four$four\$" |
      while read -r folder; do amounts "$1:$folder"; done
  } | LC_ALL=C awk -v ASKS="$asks" '
    BEGIN { fields = split(ASKS, ask, " "); missing = fields }
    { for (field = 1; field <= fields; field++) if (!(field in has) && ask[field] <= $field + 0) { has[field]; missing-- } }
    !missing { exit } # the one before is nearly always enough
    END { exit missing != 0 }'
}

# Where the batch before is in a commit: archived, or active if rounds of its search overlap.
place_of() {
  for where in "overlays/archive/$2" "overlays/active/$2"; do
    [ "$(tree "$1:$where")" = none ] || echo "$where"
  done
}

# Whether a batch requests trials again because infrastructure ended them.
repeats() { git cat-file blob "$1/batch.yaml" 2>/dev/null | grep -qx 'after_infrastructure: true'; }

# The ids of the trials of a batch, one on a line.
trials_of() {
  git ls-tree --name-only "$1" | grep '^hyperparams.*[.]csv$' | while read -r table; do
    git cat-file blob "$1/$table" | sed 1d
  done | cut -d , -f 1
}

# Each trial of a batch that repeats trials is in a recorded batch and in no other active one, and in fewer batches of
# its kind than the lock allows. The lock is like the one that a person merged; why a trial failed is not looked at.
repeated() {
  own="$2:overlays/active/$3"
  asks="$(trials_of "$own" | LC_ALL=C sort)"
  [ -n "$asks" ] || forged "$3 has no trials"
  [ -z "$(lock "$own" round)" ] || forged "$3 is a round"
  [ -z "$(printf '%s\n' "$asks" | uniq -d)" ] || forged "$3 requests a trial twice"
  most="$(git cat-file blob "$own/batch.yaml" | sed -n '/^infrastructure:$/,/^[a-z]/s/^  retries: \([1-9][0-9]\{0,1\}\)$/\1/p')"
  for folder in archive active; do
    git ls-tree --name-only "$2" "overlays/$folder/" | grep "^overlays/$folder/$sweep-b[0-9]*-$four$four\$" |
      grep -vx "overlays/active/$3" | while read -r other; do
        kind="$folder"
        ! repeats "$2:$other" || kind="$folder repeat"
        trials_of "$2:$other" | sed "s/\$/ $kind/"
      done
  done | LC_ALL=C awk -v ASKS="$(printf '%s\n' "$asks" | tr '\n' ' ')" -v MOST="${most:-0}" '
    { if ($2 == "archive") recorded[$1]; else active[$1]; if ($3 == "repeat") count[$1]++ }
    END {
      asked = split(ASKS, ask)
      for (place = 1; place <= asked; place++) {
        id = ask[place]
        if (!(id in recorded) || id in active || count[id] + 0 >= MOST + 0) exit 1
      }
    }' || forged "$3 requests a trial that may not be repeated"
}

# The last round before a new one may have batches after it that repeat trials: `like` and `place` become those of the
# round, which the new one has to follow.
follows_round() {
  like="$before"
  while repeats "$2:$place"; do
    like="$(git show "$2:$place/batch.yaml" | sed -n 's/^parent: "\([a-z0-9-]*\)"$/\1/p')"
    place="$(place_of "$2" "${like:-none}")"
    [ -n "$like" ] && [ -n "$place" ] || refuse "$3 follows no batch"
  done
  ahead="$(lock "$2:$place" ahead)"
  running="$(git ls-tree --name-only "$2" overlays/active/ | grep -c "^overlays/active/$sweep-b[0-9]*-$four$four\$")"
  [ "$running" -le "${ahead:-1}" ] || refuse "$running batches of $sweep would be active, and ${ahead:-1} may be"
  round="$(lock "$2:$place" round)"
  [ "$(lock "$2:overlays/active/$3" round)" = "$((${round:-0} + 1))" ] && [ -n "$round" ] || refuse "$3 is not the round after $like"
}

# One new batch may come, made as the one before it was, if its sweep then has no more active batches than the lock of
# the one before allows; or one that repeats trials.
asked() {
  batch="$3"
  [ "$judged" != "$2 $batch" ] || return 0 # by another of its files
  named "$batch"
  sweep="$(sweep_of "$batch")"
  [ "$next" = collector ] || repeats "$2:overlays/active/$batch" || refuse "overlays/active/$batch is new"
  for place in "$1:overlays/active" "$1:overlays/archive" "$2:overlays/archive"; do
    [ "$(tree "$place/$batch")" = none ] || refuse "$batch is not new"
  done
  before="$(git show "$2:overlays/active/$batch/batch.yaml" | sed -n 's/^parent: "\([a-z0-9-]*\)"$/\1/p')"
  place="$(place_of "$2" "${before:-none}")"
  [ -n "$before" ] && [ -n "$place" ] || refuse "$batch follows no batch"
  number="$(lock "$2:$place" number)"
  [ "$(lock "$2:overlays/active/$batch" number)" = "$((${number:-0} + 1))" ] || refuse "$batch has not the number after $before"
  for folder in archive active; do
    later="$(git ls-tree --name-only "$2" "overlays/$folder/" | grep "^overlays/$folder/$sweep-b$((number + 1))-" | grep -vx "overlays/active/$batch")"
    [ -z "$later" ] || refuse "$before is not the newest batch of $sweep"
  done
  if repeats "$2:overlays/active/$batch"; then
    like="$before" again=1
    repeated "$1" "$2" "$batch"
  else
    again=0
    follows_round "$1" "$2" "$batch"
  fi
  for part in batch.yaml job.yaml kustomization.yaml launch.json; do
    git cat-file -e "$2:overlays/active/$batch/$part" 2>/dev/null || forged "$batch has no $part"
  done
  git cat-file -e "$2:sweeps/$sweep.yaml" 2>/dev/null || refuse "$sweep has no spec"
  spec="$(spec_of "$2" "$sweep")"
  [ "$(spec_in "$2:overlays/active/$batch")" = "$spec" ] || forged "$batch is not made from sweeps/$sweep.yaml"
  is="$(bones "$2:overlays/active/$batch" "$batch" "$spec")"
  was="$(bones "$2:$place" "$like" "$(spec_in "$2:$place")")"
  [ -z "$(printf '%s\n' "$is" | LC_ALL=C grep -vxF "$was")" ] || forged "$batch is not made as $like was"
  for part in batch.yaml job.yaml kustomization.yaml launch.json; do
    printf '%s\n' "$is" | grep -q "^$part:" || forged "$batch has an empty $part"
  done
  bounded "$2" "$batch" || forged "$batch asks for more at once than any recorded batch of $sweep"
  judged="$2 $batch"
}

# Where Flux reads of a batch: its lock names the cluster if there are several.
flux_folder() {
  cluster="$(git cat-file blob "$1/batch.yaml" 2>/dev/null | sed -n 's/^cluster: "\([a-z0-9-]*\)"$/\1/p')"
  echo "clusters/${cluster:+$cluster/}flux/active"
}

# With Flux it is announced as the one before it is, or was when that was active.
announced() {
  batch="$3"
  asked "$1" "$2" "$batch"
  folder="$(flux_folder "$2:overlays/active/$batch")"
  file="$folder/$batch.yaml"
  [ "$file" = "$4" ] || refuse "$4"
  holder="$2"
  [ "$(tree "$2:$folder/$before.yaml")" != none ] || holder="$(git rev-list -1 "$2" -- "$folder/$before.yaml")^"
  was="$(git show "$holder:$folder/$before.yaml" | sed "s/$before/BATCH/g")"
  [ "$(git show "$2:$file" | sed "s/$batch/BATCH/g")" = "$was" ] || refuse "$file"
}

allowed() {
  status="$3"
  path="$4"
  case "$path" in
    *[!A-Za-z0-9._/-]* | */.*) refuse "$path" ;; # git quotes other names
    results/*/figures/*/* | results/*/records/*/*) refuse "$path" ;;
    results/*/figures/*.svg | results/*/records/*.jsonl) ;;
    results/*/*/*) refuse "$path" ;;
    results/*/README.md | results/*/summary.csv | results/*/replicates.csv) ;;
    results/*/provenance.json | results/*/figure.svg) ;;
    overlays/active/*/*/*) refuse "$path" ;;
    overlays/active/*/*)
      name="${path#overlays/active/}"
      if [ "$status" = D ]; then
        moved "$1" "$2" "${name%%/*}"
        return
      fi
      [ "$status" = A ] || refuse "$path"
      case "$name" in
        */batch.yaml | */hyperparams.csv | */hyperparams-[0-9][0-9][0-9].csv | */job.yaml) ;;
        */kustomization.yaml | */launch.json | */launch.py) ;;
        *) refuse "$path" ;;
      esac
      asked "$1" "$2" "${name%%/*}"
      ;;
    overlays/archive/*/*)
      rest="${path#overlays/}"
      rest="${rest#*/}"
      moved "$1" "$2" "${rest%%/*}"
      ;;
    clusters/*/*/flux/active/*.yaml) refuse "$path" ;;
    clusters/flux/active/*.yaml | clusters/*/flux/active/*.yaml)
      name="${path#*/flux/active/}"
      case "$status" in
        D) moved "$1" "$2" "${name%.yaml}" ;;
        A) announced "$1" "$2" "${name%.yaml}" "$path" ;;
        *) refuse "$path" ;;
      esac
      ;;
    *) refuse "$path" ;;
  esac
}

while read -r old new ref; do
  proposal=no
  case "$mode $ref" in
    "push refs/heads/$branch") ;;
    "branch refs/heads/results/"*/$four$four$four) proposal=yes ;; # called by the commit that it stands on
    "branch refs/heads/next/"*/$four$four$four) proposal=yes ;;    # likewise
    *" refs/heads/progress/"*) proposal=yes ;; # in either mode, and never merged
    *) refuse "$ref" ;;
  esac
  if [ -n "${new##*[!0]*}" ]; then
    [ $proposal = yes ] && continue # the branch has moved on, and the next one takes its place
    refuse "$ref would be deleted"
  fi
  if [ -z "${old##*[!0]*}" ]; then
    git merge-base --is-ancestor "$old" "$new" || refuse "$ref would be forced"
  fi
  # Every commit that the ref gets counts, not only the last: what is undone again is in the history all the same.
  # What other refs hold counts too, since anybody may have pushed it there: only `$old` was let in here before.
  was="$old"
  [ -z "${old##*[!0]*}" ] || was="refs/heads/$branch"
  commits="$(git rev-list --reverse "$new" "^$was")" || refuse "the commits of $ref cannot be listed"
  for commit in $commits; do
    parent="$(git rev-parse --quiet --verify "$commit^1")" || refuse "$commit has no parent"
    git rev-parse --quiet --verify "$commit^2" >/dev/null && refuse "$commit is a merge"
    well_formed "$commit^{tree}" || refuse "$commit has a folder that git would not write"
    changes="$(git diff-tree -r -t --no-renames --raw --no-abbrev "$parent" "$commit")" || refuse "$commit cannot be read"
    [ -n "$changes" ] || continue
    printf '%s\n' "$changes" |
      while IFS="$(printf '\t')" read -r change path; do
        # :old-mode new-mode old-id new-id status
        set -- $change
        case "$1 $2" in
          *" 040000")
            well_formed "$4" || refuse "$path is a folder that git would not write"
            continue
            ;;
          ":040000 000000") continue ;; # its files are listed
        esac
        case "$2" in 100644 | 000000) ;; *) refuse "$path has mode $2" ;; esac
        allowed "$parent" "$commit" "$5" "$path"
      done || exit 1
  done
done
