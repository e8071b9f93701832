package proc

import "testing"

func TestSpent(t *testing.T) {
	before := Spent()
	n := 0
	for range 50_000_000 {
		n++
	}
	if after := Spent(); n == 0 || after.CPU <= before.CPU || after.KernelMemory == 0 {
		t.Errorf("before %+v, after work %+v", before, after)
	}
}

func TestParseKernelMemory(t *testing.T) {
	const text = "MemTotal:       24000000 kB\nSlab:               10 kB\nSReclaimable:        7 kB\nVmallocTotal:   999 kB\nVmallocUsed:       200 kB\nPercpu:     3 kB\n"
	if got, err := ParseKernelMemory([]byte(text)); got != 213<<10 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := ParseKernelMemory([]byte("Slab: x kB\n")); err == nil {
		t.Error("no number is read as one")
	}
}
