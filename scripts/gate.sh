#!/bin/sh
# Measures a base and a change in one interleaved run, and says whether the change keeps its budgets. action.yml calls it; run it
# by hand to try a gate:
#
#   scripts/gate.sh BASE CHANGE ['BUDGET' ...]     default budget: 'service_demand > +5%'
#
# BASE and CHANGE are profiles, variants or profile files. These variables are optional:
#   CNIBENCH  the program (cnibench)          ARGS  further arguments of run
#   OUT       directory of the results (gate) TRIES how often a run that could not decide is extended (1)
#
# OUT gets result.jsonl, summary.md, report.html and log, what the run said. The exit code is that of `cnibench run --fail-on`:
# 0 kept, 3 broken, 4 undecided; anything else is an error, and the summary says which.
set -eu
[ $# -ge 2 ] || { echo "gate.sh: want BASE CHANGE ['BUDGET' ...]" >&2; exit 2; }
base=$1 change=$2
shift 2
[ $# -gt 0 ] || set -- 'service_demand > +5%'
cnibench=${CNIBENCH:-cnibench} out=${OUT:-gate} tries=${TRIES:-1} repetitions=6
[ "$base" != "$change" ] || { echo "gate.sh: base and change are the same: $base" >&2; exit 2; }
for budget; do
	shift
	set -- "$@" --fail-on "$budget"
done
mkdir -p "$out"
measure() {
	{
		code=0
		"$cnibench" run -o "$out/result.jsonl" --format github --no-twin "$@" >"$out/summary.md" || code=$?
		echo $code >"$out/code"
	} 2>&1 | tee "$out/log" >&2
	read -r code <"$out/code"
	rm "$out/code"
}
# shellcheck disable=SC2086
measure --force --profiles "$base,$change" --baseline "$base" --repetitions $repetitions ${ARGS:-} "$@"
while [ "$code" -eq 4 ] && [ "$tries" -gt 0 ]; do
	tries=$((tries - 1)) repetitions=$((repetitions * 2))
	echo "gate.sh: undecided; extending the run to $repetitions repetitions" >&2
	measure --resume --repetitions $repetitions "$@"
done
case $code in
0 | 3 | 4) "$cnibench" report -f html "$out/result.jsonl" >"$out/report.html" ;;
*)
	printf '### :warning: cnibench: no verdict: exit code %d\n\n```\n%s\n```\n' "$code" "$(tail -n 20 "$out/log")" >"$out/summary.md"
	;;
esac
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$out/summary.md" >>"$GITHUB_STEP_SUMMARY"; fi
exit $code
