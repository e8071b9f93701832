// Package perf samples what CPUs execute: kernel and user stacks, the task, and the network namespace of the packet
// that the CPU handled last.
//
// Open makes a Sampler for some CPUs. Start, Stop and Read are called in this order, once. Nothing runs between Start
// and Stop but the kernel, which writes samples to one ring for each CPU; Read takes them out afterwards. ReadKernel
// reads the names of kernel functions and BPF programs.
//
// Samples come from the cycle counter where the machine has one, otherwise from timers (cpu-clock): sixteen for each
// CPU, with different periods. A single timer may synchronize with a path whose transactions all take the same time, so
// that a whole trial samples some functions too often and others never. The cycle counter has one period in a trial, a
// prime number, and another in the next. Each sample has its period, which is its weight. A timer interrupt waits where
// interrupts are off. Such code is charged to the function that switches them on again, so only the innermost frame is
// unreliable.
//
// Two BPF programs find the namespace. The first stores it for each received packet, the second adds it to each sample.
// A sample within these programs is marked as overhead of the measurement.
package perf
