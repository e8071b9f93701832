// Package each makes one list of another.
package each

// Of returns what of returns for every value of a list, in its order; never nil.
func Of[T, U any](all []T, of func(T) U) []U {
	list := make([]U, len(all))
	for i, v := range all {
		list[i] = of(v)
	}
	return list
}
