// Package each transforms and searches lists, and calls a function for each value of a list.
package each

import (
	"errors"
	"slices"
	"sync"
)

// Of returns of(v) for each value v of a list, in order. The result is never nil.
func Of[T, U any](all []T, of func(T) U) []U {
	list := make([]U, len(all))
	for i, v := range all {
		list[i] = of(v)
	}
	return list
}

// Where returns the values v of a list with is(v) == true, in order; nil for none.
func Where[T any](all []T, is func(T) bool) (list []T) {
	for _, v := range all {
		if is(v) {
			list = append(list, v)
		}
	}
	return list
}

// Once returns the values of a list without repetitions, in the order of their first occurrence; nil for none.
func Once[T comparable](all []T) (list []T) {
	seen := make(map[T]bool, len(all))
	for _, v := range all {
		if !seen[v] {
			seen[v] = true
			list = append(list, v)
		}
	}
	return list
}

// First returns the first value v of a list with is(v) == true. ok is false, and v the zero value, if there is none.
func First[T any](all []T, is func(T) bool) (v T, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return v, false
}

// AtMost calls do for every index and value of a list, n of them concurrently. It returns when all calls have returned.
func AtMost[T any](n int, all []T, do func(i int, v T)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, n)
	for i, v := range all {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			do(i, v)
		})
	}
	running.Wait()
}

// AtOnce calls do for every index and value of a list, concurrently. It returns when all calls have returned, with
// their errors joined in the order of the list.
func AtOnce[T any](all []T, do func(i int, v T) error) error {
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, v := range all {
		running.Go(func() { errs[i] = do(i, v) })
	}
	running.Wait()
	return errors.Join(errs...)
}
