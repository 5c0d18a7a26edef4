# Confines the collector's credential on the server, and nobody else's. It looks at refs, paths and what happens to them,
# not at content: a batch that the collector adds is judged by `sweep check --hook`, which must be installed for that.
# Anybody may push refs that let git show other content in place of a commit's own.
export GIT_NO_REPLACE_OBJECTS=1
# What the server calls whoever pushes: GitLab, Gitea and Forgejo, GitHub Enterprise, git's own http-backend.
pusher="${GL_USERNAME:-${GITEA_PUSHER_NAME:-${GITHUB_USER_LOGIN:-${REMOTE_USER:-}}}}"
[ "$pusher" = "$collector" ] || exit 0

four='[0-9a-f][0-9a-f][0-9a-f][0-9a-f]' tab="$(printf '\t')"
named="[a-z][a-z0-9-]*-b[1-9][0-9]*-$four$four" flux="clusters/([a-z0-9-]+/)?flux/active/"

refuse() {
  echo "the collector may push nothing but results, the move of a finished batch and the next round of a search: $1 [push-not-allowed]" >&2
  exit 1
}

matches() { printf '%s\n' "$1" | LC_ALL=C grep -Eqx "$2"; }
id() { git rev-parse --quiet --verify "$1" || echo none; }
has() { [ "$(id "$1")" != none ]; }

# Servers accept folders with two files of one name, of which a check may read one and a controller the other.
well_formed() {
  { [ "$(git ls-tree -z "$1" | git mktree -z --missing 2>/dev/null)" = "$(id "$1")" ] &&
    [ -z "$(git ls-tree --name-only "$1" | LC_ALL=C sort | uniq -d)" ]; } || refuse "$2 is a folder that git would not write"
}

# Whether a commit moves a batch from overlays/active to overlays/archive and brings its records.
moved() { # parent, commit, batch
  { has "$1:overlays/active/$3" && ! has "$1:overlays/archive/$3"; } || refuse "$3 was no active batch"
  { has "$2:overlays/archive/$3" && ! has "$2:overlays/active/$3"; } || refuse "$3 is not moved to the archive"
  has "$2:results/${3%-b*-*}/records/$3.jsonl" || refuse "$3 was moved without results/${3%-b*-*}/records/$3.jsonl"
  # Otherwise Flux would keep its Jobs: it prunes nothing while a Kustomization leads to a folder that is gone.
  ! git ls-tree -r --name-only "$2" clusters/ | LC_ALL=C grep -Eqx "$flux$3[.]yaml" || refuse "$3 was moved and Flux still reads it"
}

result() { # parent, commit, status, path
  sweep="${4#results/}" sweep="${sweep%%/*}"
  git ls-tree --name-only "$2" overlays/active/ overlays/archive/ | LC_ALL=C grep -Eqx "overlays/[a-z]+/$sweep-b[1-9][0-9]*-$four$four" ||
    refuse "$4 is of no sweep"
  if [ -z "$batch" ]; then
    matches "$3 $4" "([AM] results/$sweep/(README[.]md|summary[.]csv|provenance[.]json|figure[.]svg)|[AMD] results/$sweep/(replicates[.]csv|figures/[a-z0-9_-]+[.]svg))" ||
      refuse "$4"
  elif [ $progress = no ]; then # such a branch is never merged
    [ "$3 $sweep" = "A ${batch%-b*-*}" ] || refuse "$4 is recorded, or of another sweep"
    # A batch in the archive without records is one that a person cancelled.
    ! git ls-tree --name-only "$1" "results/$sweep/records/" | LC_ALL=C grep -Eq "/$batch(-[0-9]{3})?[.]jsonl\$" || refuse "$batch is recorded"
    has "$2:results/$sweep/records/$batch.jsonl" || refuse "$4 comes without the first part"
    has "$1:overlays/archive/$batch" || moved "$1" "$2" "$batch"
  fi
}

allowed() { # parent, commit, status, path
  batch="$(printf '%s\n' "$4" | LC_ALL=C sed -En -e "s:^overlays/(active|archive)/($named)/[^/]+\$:\2:p" -e "s:^$flux($named)[.]yaml\$:\2:p" \
    -e "s:^results/[a-z0-9-]+/records/($named)(-[0-9]{3})?[.]jsonl\$:\1:p")"
  [ -n "$batch" ] || matches "$4" 'results/[a-z][a-z0-9-]*/([^/]+|figures/[^/]+)' || refuse "$4"
  most=64000000
  case "$4" in *.jsonl) most=25000000 ;; esac # the collector splits records before this
  [ "$3" = D ] || [ "$(git cat-file -s "$2:$4")" -le $most ] || refuse "$4 has more than $most bytes"
  case "$progress $3 $4" in
    *\ results/*) result "$@" ;;
    "no A overlays/archive/"*)
      moved "$1" "$2" "$batch"
      was="$1:overlays/active/$batch"
      [ "$(id "$2:$4")" = "$(id "$was/${4##*/}")" ] || [ "${4##*/} $(has "$was/running.yaml" && echo paused)" = 'kustomization.yaml paused' ] || refuse "$batch was not moved as it is"
      ;;
    "no D overlays/active/"*)
      moved "$1" "$2" "$batch"
      # History keeps what the archive may leave out, by the ids in the lock: these three, or none of them.
      is="$2:overlays/archive/$batch"
      has "$is/${4##*/}" || matches "${4##*/}" running[.]yaml || { matches "${4##*/}" '(job|kustomization)[.]yaml|launch[.]json' && ! has "$is/launch.json"; } || refuse "$batch was not moved as it is"
      ;;
    "no D clusters/"*) moved "$1" "$2" "$batch" ;;
    "no A overlays/active/"* | "no A clusters/"*)
      matches "$4" "overlays/active/$batch/((job|kustomization)[.]yaml|hyperparams(-[0-9]{3})?[.]csv|(batch|launch)[.]json|launch[.]py)|$flux$batch[.]yaml" || refuse "$4"
      { has "$2:overlays/active/$batch/batch.json" && ! has "$1:overlays/active/$batch" && ! has "$1:overlays/archive/$batch"; } || refuse "$batch is not new"
      # Where people request rounds, only trials that infrastructure ended are requested again, if the spec says so.
      [ "$next" = collector ] || git cat-file blob "$1:sweeps/${batch%-b*-*}.yaml" | grep -q infrastructure || refuse "$4 is new"
      ;;
    *) refuse "$4" ;;
  esac
}

while read -r old new ref; do
  proposal=no progress=no
  case "$mode $ref" in
    "push refs/heads/$branch") ;;
    *" refs/heads/progress/"*) proposal=yes progress=yes ;;
    *) matches "$mode $ref" "branch refs/heads/(results|next)/[a-z0-9-]+/$four$four$four" && proposal=yes || refuse "$ref" ;;
  esac
  if matches "$new" 0+; then
    [ $proposal = yes ] && continue # the branch has moved on, and the next one takes its place
    refuse "$ref would be deleted"
  fi
  if matches "$old" 0+; then old="refs/heads/$branch"; else git merge-base --is-ancestor "$old" "$new" || refuse "$ref would be forced"; fi
  # Every commit counts, also what a later one takes back, and what other refs hold: anybody may have pushed it there.
  commits="$(git rev-list --reverse --parents "$new" "^$old")" || refuse "the commits of $ref cannot be listed"
  printf '%s\n' "$commits" | while read -r commit parent more; do
    [ -n "$commit" ] || continue
    { [ -n "$parent" ] && [ -z "$more" ]; } || refuse "$commit is a merge, or has no parent"
    well_formed "$commit^{tree}" "$commit"
    changes="$(git diff-tree -r -t --no-renames --raw --no-abbrev "$parent" "$commit")" || refuse "$commit cannot be read"
    printf '%s\n' "$changes" | while IFS="$tab" read -r change path; do
      set -- $change # :old-mode new-mode old-id new-id status
      case "${1:-} ${2:-}" in
        *" 040000") well_formed "$4" "$path" ;;
        ":040000 000000" | " ") ;; # its files are listed
        *" 100644" | *" 000000") allowed "$parent" "$commit" "$5" "$path" ;;
        *) refuse "$path has mode $2" ;;
      esac
    done || exit 1
    # A person merges a proposal; what comes to the branch runs.
    [ $proposal = yes ] || ! printf '%s\n' "$changes" | LC_ALL=C grep -q " A${tab}overlays/active/" ||
      printf '%s\n' "$parent $commit $ref" | PATH="$PATH:/usr/local/bin" sweep check --hook >&2 || refuse "it adds a batch, and \`sweep check --hook\` does not accept it"
  done || exit 1
done
