package job

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"
)

// shapes are all patterns in all ways with several numbers of members.
func shapes() []Shape {
	var all []Shape
	for _, p := range patterns {
		for _, via := range append([]string{""}, p.ways...) {
			for _, n := range []int{2, 3, 4, 5, 8, 13, 16, 64} {
				for _, size := range []int{64, 1000, 300_001, 8 << 20} {
					s := Shape{Pattern: p.name, Via: via, Members: n, Size: size}
					if p.name == requests {
						s.Fanout, s.Service = 3, time.Millisecond
					}
					all = append(all, s.WithDefaults())
				}
			}
		}
	}
	return all
}

// moved returns what each member sends and receives.
func moved(s Shape) (sent, received []int) {
	sent, received = make([]int, s.Members), make([]int, s.Members)
	for _, t := range s.Transfers() {
		sent[t.From] += t.Bytes
		received[t.To] += t.Bytes
	}
	return sent, received
}

// TestEveryStepEnds plays the transfers: each can be sent at some time, needs only what its sender got, and keeps the order of
// its connection.
func TestEveryStepEnds(t *testing.T) {
	for _, s := range shapes() {
		if faults := s.Faults(); len(faults) > 0 {
			t.Fatalf("%+v: %v", s, faults)
		}
		all := s.Transfers()
		done := make([]bool, len(all))
		for left := len(all); left > 0; {
			before := left
			blocked := map[[2]int]bool{}
			for i, x := range all {
				way := [2]int{x.From, x.To}
				if done[i] || blocked[way] {
					continue
				}
				if x.From == x.To || x.Bytes < 1 || x.From < 0 || x.To < 0 || x.From >= s.Members || x.To >= s.Members {
					t.Fatalf("%+v: transfer %+v", s, x)
				}
				ready := true
				for _, need := range x.Needs {
					if all[need].To != x.From {
						t.Fatalf("%+v: transfer %d needs %d, which its sender does not get", s, i, need)
					}
					ready = ready && done[need]
				}
				if !ready {
					blocked[way] = true
					continue
				}
				done[i] = true
				left--
			}
			if left == before {
				t.Fatalf("%+v: %d transfers are never sent", s, left)
			}
		}
	}
}

// TestBytesOfMembers: the bytes of every member are those of the definitions.
func TestBytesOfMembers(t *testing.T) {
	for _, s := range shapes() {
		sent, received := moved(s)
		n := s.Members
		power := 1 << (bits.Len(uint(n)) - 1)
		for i := range n {
			var out, in int
			about := 0 // what rounding to whole parts may differ by
			switch s.Pattern + " " + s.Via {
			case "allreduce ring":
				out, about = 2*(n-1)*s.Size/n, 2*n
				in = out
			case "allreduce doubling":
				rounds := bits.Len(uint(power)) - 1
				switch extra := 2 * (n - power); {
				case i < extra && i%2 == 0:
					out = s.Size
				case i < extra:
					out = (rounds + 1) * s.Size
				default:
					out = rounds * s.Size
				}
				in = out
			case "broadcast flat":
				in = s.Size
				if i == 0 {
					in, out = 0, (n-1)*s.Size
				}
			case "broadcast tree":
				in = s.Size
				if i == 0 {
					in = 0
				}
				for child := 1; child < n; child++ {
					if child != i && child&^(1<<(bits.Len(uint(child))-1)) == i {
						out += s.Size
					}
				}
			case "shuffle ":
				out, about = (n-1)*s.Size/n, n
				in = out
			case "replicate chain":
				out, in = s.Size+ackSize, s.Size+ackSize
				if i == 0 {
					out, in = s.Size, ackSize
				}
				if i == n-1 {
					out, in = ackSize, s.Size
				}
			case "replicate fan-out":
				out, in = ackSize, s.Size
				if i == 0 {
					out, in = (n-1)*s.Size, (n-1)*ackSize
				}
			case "incast ":
				out, in = s.Size, requestSize
				if i == 0 {
					out, in = (n-1)*requestSize, (n-1)*s.Size
				}
			case "microservice ":
				children := max(0, min(n-1, 3*i+3)-3*i)
				out, in = children*requestSize+s.Size, requestSize+children*s.Size
				if i == 0 {
					out, in = children*requestSize, children*s.Size
				}
			}
			if d := sent[i] - out; d > about || -d > about {
				t.Errorf("%+v: member %d sends %d, want %d", s, i, sent[i], out)
			}
			if d := received[i] - in; d > about || -d > about {
				t.Errorf("%+v: member %d receives %d, want %d", s, i, received[i], in)
			}
		}
	}
}

// TestSkew: by skew the first member gets more, and as much is sent as without.
func TestSkew(t *testing.T) {
	s := Shape{Pattern: shuffles, Members: 4, Size: 1 << 20, Skew: 0.5}.WithDefaults()
	sent, received := moved(s)
	if want := 3 * (1<<18/2 + 1<<19); received[0] < want-8 || received[0] > want+8 {
		t.Errorf("the first gets %d, want %d", received[0], want)
	}
	if sent[1] < 1<<20-1<<17-8 || sent[1] > 1<<20-1<<17+8 {
		t.Errorf("the second sends %d", sent[1])
	}
	if _, ok := s.BusFactor(); ok {
		t.Error("a skewed shuffle has a bus bandwidth")
	}
}

func TestBusFactor(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		n       int
		want    float64
	}{{allReduces, 2, 1}, {allReduces, 4, 1.5}, {allReduces, 8, 1.75}, {broadcasts, 8, 1}, {shuffles, 4, 0.75}, {incasts, 4, 0}, {requests, 4, 0}} {
		got, _ := Shape{Pattern: tt.pattern, Members: tt.n}.WithDefaults().BusFactor()
		if got != tt.want {
			t.Errorf("%s of %d members: %v, want %v", tt.pattern, tt.n, got, tt.want)
		}
	}
}

func TestFaultsAreAllNamed(t *testing.T) {
	s := Shape{Pattern: incasts, Via: viaRing, Skew: 0.1, Fanout: 2, Service: time.Second}.WithDefaults()
	got := strings.Join(s.Faults(), "; ")
	for _, want := range []string{"via ring is not a way of incast: it has none", "skew is for shuffle", "fanout is for microservice", "service is for microservice"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
	deep := Shape{Pattern: requests, Members: 16, Fanout: 1}.WithDefaults()
	if got := fmt.Sprint(deep.Faults()); !strings.Contains(got, "tree of depth 15: want at most 6") {
		t.Error(got)
	}
	for _, s := range []Shape{{Members: 2, Lost: lostContinues}, {Pattern: requests, Lost: lostContinues}} {
		if got := s.WithDefaults().Faults(); len(got) != 1 {
			t.Errorf("%+v without a member: %q", s, got)
		}
	}
	small := Shape{Members: 8, Size: 7}.WithDefaults()
	if got := fmt.Sprint(small.Faults()); !strings.Contains(got, "less than a byte for each of 8 members") {
		t.Error(got)
	}
}

func TestDepth(t *testing.T) {
	s := Shape{Pattern: requests, Members: 8, Fanout: 2}.WithDefaults()
	var got []int
	for i := range s.Members {
		got = append(got, s.Depth(i))
	}
	if !slices.Equal(got, []int{0, 1, 1, 2, 2, 2, 2, 3}) {
		t.Error(got)
	}
	if (Shape{Members: 8}).WithDefaults().Depth(7) != 0 {
		t.Error("an all-reduce has depth")
	}
}
