// Package each makes one list of another, and finds what is in one.
package each

import "slices"

// Of returns what of returns for every value of a list, in its order; never nil.
func Of[T, U any](all []T, of func(T) U) []U {
	list := make([]U, len(all))
	for i, v := range all {
		list[i] = of(v)
	}
	return list
}

// Where returns the values of a list for which is is true, in its order; nil for none.
func Where[T any](all []T, is func(T) bool) (list []T) {
	for _, v := range all {
		if is(v) {
			list = append(list, v)
		}
	}
	return list
}

// Once returns every value of a list at its first place; nil for none.
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

// First returns the first value of a list for which is is true; ok is false, and the value zero, if there is none.
func First[T any](all []T, is func(T) bool) (v T, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return v, false
}
