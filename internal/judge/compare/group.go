package compare

// Groups cuts standings, in the order of Rank, into runs of neighbours of which no two differ, the longest ones
// from the front; a run may have one standing. All comparisons between two of them are one family. It asks for as many
// comparisons as there are pairs.
func (a *Analysis) Groups(ranks []Standing) [][]Standing {
	var all []pending
	at := map[[2]int]int{}
	for i := range ranks {
		for j := range i {
			at[[2]int{j, i}] = len(all)
			all = append(all, a.compare(&ranks[i].Cell, &ranks[j].Cell))
		}
	}
	settle(all, a.rules(together))
	var out [][]Standing
	from := 0
	for i := range ranks {
		for j := from; j < i; j++ {
			if v := all[at[[2]int{j, i}]].x.Verdict; v == Better || v == Worse {
				out = append(out, ranks[from:i])
				from = i
				break
			}
		}
	}
	if from < len(ranks) {
		out = append(out, ranks[from:])
	}
	return out
}
