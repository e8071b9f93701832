package sample

import "math"

// Modes of CPU time, as /proc/stat orders them. Guest time is contained in user, guest_nice in nice.
const (
	User      = "user"
	Nice      = "nice"
	System    = "system"
	Idle      = "idle"
	IOWait    = "iowait"
	IRQ       = "irq"
	SoftIRQ   = "softirq"
	Steal     = "steal"
	Guest     = "guest"
	GuestNice = "guest_nice"
)

// Time is CPU time in ns by mode; a missing mode had none.
type Time map[string]int64

// Sum adds up the times of a machine's CPUs, by mode.
func Sum[M ~map[string]int64](cpus map[int]M) Time {
	sum := Time{}
	for _, modes := range cpus {
		for mode, ns := range modes {
			sum[mode] += ns
		}
	}
	return sum
}

// Busy returns the time in which the CPUs worked for this machine: neither idle nor stolen by a hypervisor.
func (t Time) Busy() int64 { return t[User] + t[Nice] + t[System] + t[IRQ] + t[SoftIRQ] }

// Interrupts returns the time accounted to hard and soft interrupts, including ksoftirqd's.
func (t Time) Interrupts() int64 { return t[IRQ] + t[SoftIRQ] }

// Total returns all time that passed on the CPUs.
func (t Time) Total() int64 { return t.Busy() + t[Idle] + t[IOWait] + t[Steal] }

// Share returns part / whole, between 0 and 1; false if whole is not positive. A ratio slightly outside, because of
// ticks, is cut off.
func Share(part, whole int64) (float64, bool) {
	if whole <= 0 {
		return 0, false
	}
	return min(max(float64(part)/float64(whole), 0), 1), true
}

// LessIdle returns part minus the time that the idle machine would have used within whole: idleShare of whole. It is never
// negative.
func LessIdle(part, whole int64, idleShare float64) int64 {
	return max(part-int64(math.Round(idleShare*float64(whole))), 0)
}

// Demand returns ns per unit of work; false if either is not positive.
func Demand(ns int64, units float64) (float64, bool) {
	if ns <= 0 || !(units > 0) {
		return 0, false
	}
	return float64(ns) / units, true
}
