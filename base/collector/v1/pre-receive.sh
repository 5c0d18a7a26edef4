# Confines the collector's credential on the server: whoever else pushes is not looked at here.
# `branch`, `mode`, `next` and `collector` are set above. A self-check of the collector would be no control.

# What the server calls whoever pushes: GitLab, Gitea and Forgejo, GitHub Enterprise, git's own http-backend.
pusher="${GL_USERNAME:-${GITEA_PUSHER_NAME:-${GITHUB_USER_LOGIN:-${REMOTE_USER:-}}}}"
[ "$pusher" = "$collector" ] || exit 0

refuse() {
  rounds=
  [ "$next" != collector ] || rounds=" and the next round of a search"
  echo "the collector may push nothing but results and the move of a finished batch$rounds: $1" >&2
  exit 1
}

digit='[0-9a-f]'
four="$digit$digit$digit$digit"

# The sweep of a batch: of lr-coarse-b2-0a1b2c3d it is lr-coarse.
sweep_of() {
  numbered="${1%-*}"
  echo "${numbered%-b*}"
}

tree() { git rev-parse --quiet --verify "$1" 2>/dev/null || echo none; }

# One batch that left overlays/active must stand in overlays/archive as it was, to the last byte.
moved() {
  batch="$3"
  [ "$(tree "$2:overlays/active/$batch")" = none ] || refuse "$batch was changed"
  was="$(tree "$1:overlays/active/$batch")"
  [ "$was" != none ] || refuse "overlays/archive/$batch was no active batch"
  [ "$(tree "$2:overlays/archive/$batch")" = "$was" ] || refuse "$batch was not moved as it is"
}

# A trial that goes on from another of its sweep may read its checkpoints: the one thing that not every round has.
without_parents() {
  there="$(sweep_of "$1")-b[0-9]*-$four$four\/[0-9]*\/checkpoints"
  sed "/^ *mountPath: \"\/sweep\/parent\"\$/{
    N
    N
    /\n *readOnly: true\n *subPath: \"$there\"\$/d
  }
  /^ *- name: \"SWEEP_PARENT\"\$/d
  /^ *- name: \"SWEEP_PARENT_ID\"\$/d"
}

# What of a batch is the same in every round of its search: program, image, accounts, volumes, command.
bones() {
  mask="s/$2/BATCH/g;s/t$four$four$digit$digit$digit/TRIAL/g;s/SWEEP_PARAM_[A-Z0-9_]*/PARAMETER/g"
  keys='apiVersion|kind|name|namespace|image|serviceAccountName|claimName|secretName|mountPath|path|privileged'
  git show "$1/batch.yaml" | sed -n '/^sweep:/p;/^program:/,/^seed_base:/p'
  git show "$1/job.yaml" "$1/kustomization.yaml" | without_parents "$2" | sed "$mask" | grep -E "^ *-? *($keys):"
  git show "$1/job.yaml" "$1/kustomization.yaml" | sed -n 's/^ *-* *\([A-Za-z]*\):.*/\1:/p'
  git show "$1/launch.json" | sed -n '/^ "command"/,/^ ]/p'
  git rev-parse "$1/launch.py"
}

# One new batch may come where all others of its sweep are archived, made as the one before it was.
asked() {
  batch="$3"
  sweep="$(sweep_of "$batch")"
  [ "$next" = collector ] || refuse "overlays/active/$batch is new"
  for place in "$1:overlays/active" "$1:overlays/archive" "$2:overlays/archive"; do
    [ "$(tree "$place/$batch")" = none ] || refuse "$batch is not new"
  done
  others="$(git ls-tree --name-only "$2" overlays/active/ | grep -c "^overlays/active/$sweep-b[0-9]*-$four$four\$")"
  [ "$others" = 1 ] || refuse "$batch is not the only active batch of $sweep"
  before="$(git show "$2:overlays/active/$batch/batch.yaml" | sed -n 's/^parent: "\([a-z0-9-]*\)"$/\1/p')"
  [ "$(tree "$2:overlays/archive/${before:-none}")" != none ] || refuse "$batch follows no recorded batch"
  git show "$2:overlays/active/$batch/batch.yaml" | grep -q '^round: [1-9]' || refuse "$batch is no round"
  is="$(bones "$2:overlays/active/$batch" "$batch")"
  was="$(bones "$2:overlays/archive/$before" "$before")"
  [ -z "$(printf '%s\n' "$is" | grep -vxF "$was")" ] || refuse "$batch is not made as $before was"
}

# With Flux it is announced as the one before it was, when that was active.
announced() {
  batch="$3"
  file="clusters/flux/active/$batch.yaml"
  asked "$1" "$2" "$batch"
  gone="$(git rev-list -1 "$2" -- "clusters/flux/active/$before.yaml")"
  was="$(git show "$gone^:clusters/flux/active/$before.yaml" | sed "s/$before/BATCH/g")"
  [ "$(git show "$2:$file" | sed "s/$batch/BATCH/g")" = "$was" ] || refuse "$file"
}

allowed() {
  status="$3"
  path="$4"
  case "$path" in
    *\"* | *\\*) refuse "$path" ;; # git quotes what is no plain name
    results/*/*) ;;
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
    clusters/flux/active/*.yaml)
      name="${path#clusters/flux/active/}"
      case "$status" in
        D) moved "$1" "$2" "${name%.yaml}" ;;
        A) announced "$1" "$2" "${name%.yaml}" ;;
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
    git diff-tree -r --no-renames --raw --no-abbrev "$parent" "$commit" |
      while IFS="$(printf '\t')" read -r change path; do
        # :old-mode new-mode old-id new-id status
        set -- $change
        case "$2" in 100644 | 000000) ;; *) refuse "$path has mode $2" ;; esac
        allowed "$parent" "$commit" "$5" "$path"
      done || exit 1
  done
done
