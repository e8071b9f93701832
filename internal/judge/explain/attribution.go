package explain

import (
	"math"
	"slices"
	"strings"
)

// unit is one observation of shares: the sampled trials of an instance, or one trial if there is only one instance.
type unit struct {
	// known has the weight of samples by the id of their part.
	// open has the weight of the samples whose network namespace is unknown.
	known map[string]float64
	open  map[placement]float64
	// followed has the switch's share by receipt, from trials that follow packets.
	followed prefixes
	// weight is the sum of the samples' weights, square the sum of their squares.
	weight, square float64
	samples        int
}

// addSamples adds samples with their common weight. Without a receipt their part is known.
func (u *unit) addSamples(o placement, weight float64, samples int) {
	if o.receipt == "" {
		u.known[o.id] += weight
	} else {
		u.open[o] += weight
	}
	u.weight += weight
	u.square += weight * weight / float64(max(1, samples))
	u.samples += samples
}

// prefixes has the samples of trials that follow packets, by each prefix of their receipts (see receiptOf).
type prefixes map[string]beginning

// beginning sums the samples whose receipts begin with the same prefix. switched is the weight of the switch's samples, all
// the weight of all samples.
type beginning struct {
	switched, all float64
	samples       int
}

func (p prefixes) addReceipt(receipt string, weight float64, samples int, switched bool) {
	for at := receipt; at != ""; at = trimInnermost(at) {
		x := p[at]
		x.all, x.samples = x.all+weight, x.samples+samples
		if switched {
			x.switched += weight
		}
		p[at] = x
	}
}

// join adds the prefixes of another trial.
func (p prefixes) join(o prefixes) {
	for at, y := range o {
		x := p[at]
		p[at] = beginning{x.switched + y.switched, x.all + y.all, x.samples + y.samples}
	}
}

// fewest is the least number of samples of a receipt's prefix from which the switch's share is estimated.
const fewest = 4

// longestPrefix returns the longest prefix of a receipt that has enough samples, and the sum of these samples. It
// subtracts the samples of but. It returns "" if no prefix has any sample.
func (p prefixes) longestPrefix(receipt string, but prefixes) (at string, b beginning) {
	for at = receipt; at != ""; at = trimInnermost(at) {
		x, less := p[at], but[at]
		b = beginning{x.switched - less.switched, x.all - less.all, x.samples - less.samples}
		if b.samples >= fewest || b.samples > 0 && trimInnermost(at) == "" {
			return at, b
		}
	}
	return "", beginning{}
}

// switchShare returns the share of the switch in the samples, 0 without samples.
func (b beginning) switchShare() float64 {
	if b.samples == 0 || !(b.all > 0) {
		return 0
	}
	return min(1, max(0, b.switched/b.all))
}

// switchShareVariance returns the variance of switchShare due to the number of samples, 0 without samples. It is
// above 0 even if all samples agree.
func (b beginning) switchShareVariance() float64 {
	if b.samples == 0 {
		return 0
	}
	n := float64(b.samples)
	near := (b.switchShare()*n + 1) / (n + 2)
	return near * (1 - near) / n
}

// trimInnermost returns a receipt without its innermost function.
func trimInnermost(receipt string) string {
	return receipt[:max(0, strings.LastIndexByte(receipt, '\n'))]
}

// attribution is the sum of several units.
type attribution struct {
	units    []unit
	known    map[string]float64
	open     map[placement]float64
	followed prefixes
	weight   float64
}

func attributionOf(units []unit) attribution {
	a := attribution{units, map[string]float64{}, map[placement]float64{}, prefixes{}, 0}
	for _, u := range units {
		for id, w := range u.known {
			a.known[id] += w
		}
		for o, w := range u.open {
			a.open[o] += w
		}
		a.followed.join(u.followed)
		a.weight += u.weight
	}
	return a
}

// resolvedWeights returns the weights of open by part. It attributes a share of each weight to the switch: the share
// of the switch in samples with the same receipt, in trials that follow packets. It ignores the samples of but.
func (a attribution) resolvedWeights(open map[placement]float64, but prefixes) map[string]float64 {
	out := map[string]float64{}
	for o, w := range open {
		_, b := a.followed.longestPrefix(o.receipt, but)
		share := b.switchShare()
		out[o.id] += w * (1 - share)
		if share > 0 {
			out[switchPart.ID] += w * share
		}
	}
	return out
}

// sharesWithout returns the share of each part in all units except u. all has the weights of all units by part. If u
// follows packets, its receipts are left out, too.
func (a attribution) sharesWithout(u unit, all map[string]float64) map[string]float64 {
	out := map[string]float64{}
	if len(u.followed) == 0 { // the known samples of the switch stay
		mine := a.resolvedWeights(u.open, nil)
		for id, w := range all {
			out[id] = (w - u.known[id] - mine[id]) / (a.weight - u.weight)
		}
		return out
	}
	rest := map[placement]float64{}
	for o, w := range a.open {
		rest[o] = w - u.open[o]
	}
	resolved := a.resolvedWeights(rest, u.followed)
	for id := range all {
		out[id] = (a.known[id] - u.known[id] + resolved[id]) / (a.weight - u.weight)
	}
	return out
}

// sumByGroup sums weights by the group of each part.
func sumByGroup(weights map[string]float64, of func(string) string) map[string]float64 {
	out := map[string]float64{}
	for id, w := range weights {
		out[of(id)] += w
	}
	return out
}

// ownGroup returns id. As a grouping, it puts each part into a group of its own.
func ownGroup(id string) string { return id }

// sharesByGroup returns the share of each group of parts in units, nil if the units have no weight. of returns the
// group of a part. The errors are jackknife estimates: each unit is left out in turn. Units that follow packets have
// an estimate of their own, because only they show the switch's share.
func sharesByGroup(units []unit, of func(string) string) map[string]Share {
	a := attributionOf(units)
	if !(a.weight > 0) {
		return nil
	}
	all := a.resolvedWeights(a.open, nil)
	for id, w := range a.known {
		all[id] += w
	}
	var groups [2][]map[string]float64 // the latter show the switch's share
	for _, u := range units {
		if u.weight >= a.weight {
			continue // no unit remains without it
		}
		group := 0
		if len(u.followed) > 0 && len(a.open) > 0 {
			group = 1
		}
		groups[group] = append(groups[group], sumByGroup(a.sharesWithout(u, all), of))
	}
	all = sumByGroup(all, of)
	drawn, told, following := a.sampleVariances(all), a.switchVariances(of), a.followingShare()
	whole := slices.Concat(groups[:]...)
	// Trials scatter more than samples do. How much more is estimated from all parts together.
	var scatter, expected float64
	for id := range all {
		v, free := jackknifeVariance(groups[0], id)
		scatter, expected = scatter+v*free, expected+(1-following)*drawn[id]*free
	}
	factor := 1.0
	if expected > 0 {
		factor = max(1, scatter/expected)
	}
	out := map[string]Share{}
	for id, w := range all {
		p, least := Share{Share: w / a.weight}, factor*drawn[id]
		if factor*told[id] <= negligible*least { // both are 0 of a part that has all samples
			p.variance, p.free = jackknifeVariance(whole, id)
			if !(p.variance >= least) {
				p.variance, p.free = least, max(p.free, float64(len(units)))
			}
		} else {
			p.variance, p.free = shareVariance(groups, id, (1-following)*least, math.Pow(math.Sqrt(factor*told[id])+math.Sqrt(following*least), 2))
		}
		out[id] = p
	}
	return out
}

// negligible is the share of a variance below which the uncertainty of the switch's share does not matter.
const negligible = 0.05

// shareVariance returns the variance of a share and its degrees of freedom. It adds the variance of units that do not
// follow packets, or least if that is larger, and the variance of units that do. There are few units that follow packets,
// so their scatter is combined with told, the variance expected from their samples.
func shareVariance(groups [2][]map[string]float64, id string, least, told float64) (variance, free float64) {
	one, freeOne := jackknifeVariance(groups[0], id)
	if one < least {
		one, freeOne = least, max(freeOne, float64(len(groups[0])))
	}
	two, freeTwo := jackknifeVariance(groups[1], id)
	two, freeTwo = (two*freeTwo+told*guessed)/(freeTwo+guessed), freeTwo+guessed
	squares := two * two / freeTwo
	if freeOne > 0 {
		squares += one * one / freeOne
	}
	return one + two, (one + two) * (one + two) / squares
}

// guessed is the number of degrees of freedom that told counts for in shareVariance.
const guessed = 3

// followingShare returns the share of the sampling error that comes from units that follow packets.
func (a attribution) followingShare() float64 {
	var following, all float64
	for _, u := range a.units {
		if all += u.square; len(u.followed) > 0 && len(a.open) > 0 {
			following += u.square
		}
	}
	return following / all
}

// jackknifeVariance returns the variance of a share by leaving out each unit of a group in turn, with its degrees of
// freedom. Both are 0 for fewer than two units.
func jackknifeVariance(group []map[string]float64, id string) (variance, free float64) {
	n, mean := float64(len(group)), 0.0
	if n < 2 {
		return 0, 0
	}
	for _, x := range group {
		mean += x[id] / n
	}
	for _, x := range group {
		variance += (x[id] - mean) * (x[id] - mean) * (n - 1) / n
	}
	return variance, n - 1
}

// sampleVariances returns the variances of shares due only to the number of samples.
func (a attribution) sampleVariances(all map[string]float64) map[string]float64 {
	var squares float64
	for _, u := range a.units {
		squares += u.square
	}
	out := map[string]float64{}
	for id, w := range all {
		share := w / a.weight
		out[id] = share * (1 - share) * squares / (a.weight * a.weight)
	}
	return out
}

// switchVariances returns the variances of shares due to the number of samples that show the switch's share.
func (a attribution) switchVariances(of func(string) string) map[string]float64 {
	by := map[string]map[string]float64{} // the weight of parts by the prefix that decides
	for o, w := range a.open {
		at, _ := a.followed.longestPrefix(o.receipt, nil)
		if by[at] == nil {
			by[at] = map[string]float64{}
		}
		if part, other := of(o.id), of(switchPart.ID); part != other {
			by[at][part] += w
			by[at][other] += w
		}
	}
	out := map[string]float64{}
	for at, parts := range by {
		v := a.followed[at].switchShareVariance()
		for id, w := range parts {
			out[id] += v * math.Pow(w/a.weight, 2)
		}
	}
	return out
}
