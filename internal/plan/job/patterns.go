package job

import "math/bits"

// list collects the transfers of a step.
type list []transfer

// addTransfer adds a transfer and returns its number.
func (l *list) addTransfer(from, to, bytes int, needs ...int) int {
	*l = append(*l, transfer{From: from, To: to, Bytes: bytes, Needs: needs})
	return len(*l) - 1
}

// partSize returns the size of part i, counted from 0, of size bytes that are cut into n parts. The parts differ by at
// most one byte.
func partSize(size, n, i int) int { return size*(i+1)/n - size*i/n }

// blockSizes returns the sizes of the blocks in which members forward size bytes of data.
func blockSizes(size int) []int {
	n := min(max(size/leastBlock, 1), mostBlocks)
	var all []int
	for i := range n {
		all = append(all, partSize(size, n, i))
	}
	return all
}

// allReduceTransfers returns the transfers of an all-reduce, after which every member has received what it needs for the sum of
// all vectors. The members do not compute the sum, because that costs the same on every network.
func allReduceTransfers(s Shape) []transfer {
	if s.Via == viaDoubling {
		return doublingTransfers(s)
	}
	return ringTransfers(s)
}

// ringTransfers returns the transfers of an all-reduce around a ring of n members. In n-1 rounds each member adds its
// own part to the received part, and n-1 more rounds distribute the sums. Each member sends 2(n-1)/n of the vector, the
// minimum.
func ringTransfers(s Shape) []transfer {
	n := s.Members
	var l list
	came := make([]int, n) // the transfer that each member received last
	for round := range 2 * (n - 1) {
		next := make([]int, n)
		for i := range n {
			chunk := ((i-round)%n + n) % n
			if round >= n-1 { // member i has the sum of part i+1
				chunk = ((i+1-(round-(n-1)))%n + n) % n
			}
			var needs []int
			if round > 0 {
				needs = []int{came[i]}
			}
			next[(i+1)%n] = l.addTransfer(i, (i+1)%n, partSize(s.Size, n, chunk), needs...)
		}
		came = next
	}
	return l
}

// doublingTransfers returns the transfers of an all-reduce that exchanges whole vectors at distances 1, 2, 4 and so on.
// It has fewer rounds than ringTransfers and sends more bytes. If the number of members is not a power of two, the
// extra members first send their vector to a neighbour, and receive the sum from it at the end.
func doublingTransfers(s Shape) []transfer {
	n := s.Members
	power := 1 << (bits.Len(uint(n)) - 1)
	extra := n - power
	var l list
	member := func(rank int) int {
		if rank < extra {
			return 2*rank + 1
		}
		return rank + extra
	}
	came := make([][]int, power)
	for rank := range extra {
		came[rank] = []int{l.addTransfer(2*rank, 2*rank+1, s.Size)}
	}
	for distance := 1; distance < power; distance *= 2 {
		next := make([][]int, power)
		for rank := range power {
			to := rank ^ distance
			next[to] = []int{l.addTransfer(member(rank), member(to), s.Size, came[rank]...)}
		}
		came = next
	}
	for rank := range extra {
		l.addTransfer(2*rank+1, 2*rank, s.Size, came[rank]...)
	}
	return l
}

// broadcastTransfers returns the transfers of the first member's data to all others: directly, or along a binomial tree.
func broadcastTransfers(s Shape) []transfer {
	var l list
	cut := blockSizes(s.Size)
	came := make([][]int, s.Members) // the blocks that each member got
	for to := 1; to < s.Members; to++ {
		from := 0
		if s.Via == viaTree {
			from = to &^ (1 << (bits.Len(uint(to)) - 1))
		}
		for b, size := range cut {
			var needs []int
			if from > 0 {
				needs = []int{came[from][b]}
			}
			came[to] = append(came[to], l.addTransfer(from, to, size, needs...))
		}
	}
	return l
}

// shuffleTransfers returns the transfers of a shuffle: each member sends a part of its data to every other member. With skew,
// the first member gets more.
func shuffleTransfers(s Shape) []transfer {
	var l list
	n := s.Members
	for turn := 1; turn < n; turn++ { // each begins with its neighbour, so that no member receives from all at once
		for from := range n {
			to := (from + turn) % n
			size := int(float64(partSize(s.Size, n, to)) * (1 - s.Skew))
			if to == 0 {
				size += int(s.Skew * float64(s.Size))
			}
			l.addTransfer(from, to, max(size, 1))
		}
	}
	return l
}

// replicateTransfers returns the transfers of a replication: the first member's data go to all others, and acknowledgements
// return. The data go along a chain of members that forward them, or from the first member to each other member.
func replicateTransfers(s Shape) []transfer {
	var l list
	cut := blockSizes(s.Size)
	var above []int
	last := make([][]int, s.Members)
	for to := 1; to < s.Members; to++ {
		from := to - 1
		if s.Via == viaFanOut {
			from, above = 0, nil
		}
		var mine []int
		for b, size := range cut {
			var needs []int
			if above != nil {
				needs = []int{above[b]}
			}
			mine = append(mine, l.addTransfer(from, to, size, needs...))
		}
		last[to], above = mine[len(mine)-1:], mine
	}
	var below []int
	for from := s.Members - 1; from > 0; from-- {
		to := 0
		if s.Via == viaChain {
			to = from - 1
		} else {
			below = nil
		}
		below = []int{l.addTransfer(from, to, ackSize, append(last[from], below...)...)}
	}
	return l
}

// incastTransfers returns the transfers of an incast: the first member sends a request to all others, and all answer at once.
func incastTransfers(s Shape) []transfer {
	var l list
	for to := 1; to < s.Members; to++ {
		l.addTransfer(0, to, requestSize)
	}
	for from := 1; from < s.Members; from++ {
		l.addTransfer(from, 0, s.Size, from-1)
	}
	return l
}

// requestTransfers returns the transfers of a tree of requests. A member sends requests to s.Fanout others, and answers when
// it has all their answers.
func requestTransfers(s Shape) []transfer {
	var l list
	asked := make([][]int, s.Members)
	for to := 1; to < s.Members; to++ {
		from := (to - 1) / s.Fanout
		asked[to] = []int{l.addTransfer(from, to, requestSize, asked[from]...)}
		if from > 0 {
			l[len(l)-1].After = s.Service
		}
	}
	answers := make([][]int, s.Members)
	for from := s.Members - 1; from > 0; from-- {
		needs := answers[from]
		leaf := len(needs) == 0
		if leaf {
			needs = asked[from]
		}
		to := (from - 1) / s.Fanout
		answers[to] = append(answers[to], l.addTransfer(from, to, s.Size, needs...))
		if leaf {
			l[len(l)-1].After = s.Service
		}
	}
	return l
}
