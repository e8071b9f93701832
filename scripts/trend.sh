#!/bin/sh
# Adds a result to those of a branch, and makes their history a page of that branch. action.yml calls it:
#
#   scripts/trend.sh RESULT BRANCH
#
# Run it in a clone. The branch has results/ and index.html, and no history of the code. These variables are optional:
#   CNIBENCH  the program (cnibench)    KEEP  how many results stay (200)    REMOTE  where the branch is pushed (origin)
set -eu
[ $# -eq 2 ] || { echo "trend.sh: want RESULT BRANCH" >&2; exit 2; }
result=$1 branch=$2 cnibench=${CNIBENCH:-cnibench} keep=${KEEP:-200} remote=${REMOTE:-origin}
[ -s "$result" ] || { echo "trend.sh: there is no result $result" >&2; exit 2; }
[ "$branch" != "$(git symbolic-ref --short -q HEAD || true)" ] || { echo "trend.sh: $branch is checked out; name a branch for results alone" >&2; exit 2; }
commit=$(git rev-parse HEAD)
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree" 2>/dev/null || true; rm -rf "$tree"' EXIT
if git fetch --quiet --depth 1 "$remote" "$branch" 2>/dev/null; then
	git worktree add --quiet --force --detach "$tree" FETCH_HEAD
elif git show-ref --quiet --verify "refs/heads/$branch"; then
	git worktree add --quiet --force --detach "$tree" "$branch"
else
	empty=$(git -c user.name=cnibench -c user.email=cnibench@localhost commit-tree -m "results of cnibench" "$(git hash-object -t tree --stdin -w </dev/null)")
	git worktree add --quiet --force --detach "$tree" "$empty"
fi
mkdir -p "$tree/results"
cp "$result" "$tree/results/$(date -u +%Y%m%dT%H%M%SZ)-$commit.jsonl"
(
	cd "$tree"
	find results -name '*.jsonl' | sort -r | tail -n +$((keep + 1)) | xargs -r rm
	if [ "$(find results -name '*.jsonl' | wc -l)" -gt 1 ]; then
		"$cnibench" compare --history -f html results/*.jsonl >index.html
	else
		"$cnibench" report -f html results/*.jsonl >index.html
	fi
	git add --all
	git -c user.name=cnibench -c user.email=cnibench@localhost commit --quiet -m "result of $commit"
)
new=$(git -C "$tree" rev-parse HEAD)
if git remote get-url "$remote" >/dev/null 2>&1; then
	git push --quiet "$remote" "$new:refs/heads/$branch" || {
		echo "trend.sh: cannot push $branch: the token needs contents: write, and no other job may push at the same time" >&2
		exit 1
	}
else
	git update-ref "refs/heads/$branch" "$new"
fi
echo "trend.sh: $branch has $(find "$tree/results" -name '*.jsonl' | wc -l) results; the page is its index.html" >&2
