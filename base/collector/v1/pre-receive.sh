# Confines the collector's credential on the server: whoever else pushes is not looked at here.
# `branch`, `mode` and `collector` are set above. A self-check of the collector would be no control.

# What the server calls whoever pushes: GitLab, Gitea and Forgejo, GitHub Enterprise, git's own http-backend.
pusher="${GL_USERNAME:-${GITEA_PUSHER_NAME:-${GITHUB_USER_LOGIN:-${REMOTE_USER:-}}}}"
[ "$pusher" = "$collector" ] || exit 0

refuse() {
  echo "the collector may push nothing but results and the move of a finished batch: $1" >&2
  exit 1
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

allowed() {
  status="$3"
  path="$4"
  case "$path" in
    *\"* | *\\*) refuse "$path" ;; # git quotes what is no plain name
    results/*/*) ;;
    overlays/active/*/* | overlays/archive/*/*)
      rest="${path#overlays/}"
      rest="${rest#*/}"
      moved "$1" "$2" "${rest%%/*}"
      ;;
    clusters/flux/active/*.yaml)
      [ "$status" = D ] || refuse "$path"
      name="${path#clusters/flux/active/}"
      moved "$1" "$2" "${name%.yaml}"
      ;;
    *) refuse "$path" ;;
  esac
}

digit='[0-9a-f]'
four="$digit$digit$digit$digit"

while read -r old new ref; do
  proposal=no
  case "$mode $ref" in
    "push refs/heads/$branch") ;;
    "branch refs/heads/results/"*/$four$four$four) proposal=yes ;; # called by the commit that it stands on
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
  # Every commit counts, not only the last: what is undone again is in the history all the same.
  for commit in $(git rev-list --reverse "$new" --not --all); do
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
