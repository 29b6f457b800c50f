// Package pending keeps operations that progress steps until each is ended.
package pending

// List holds operations of type T, in order. One thread at a time uses it. The zero List is empty.
type List[T any] []T

// Add puts an operation behind the others.
func (l *List[T]) Add(op T) { *l = append(*l, op) }

// Step calls ended for each operation in order, and takes out those for which it reports true. What it changes of an
// operation that stays is kept. The pointer is good for the one call. ended may add operations, which are stepped
// the next time, and takes none out. Nothing is allocated.
func (l *List[T]) Step(ended func(op *T) bool) {
	all, kept := *l, 0
	for i := range all {
		if ended(&all[i]) {
			continue
		}
		if kept != i {
			all[kept] = all[i]
		}
		kept++
	}
	now := *l // which is all, unless operations were added
	copy(now, all[:kept])
	kept += copy(now[kept:], now[len(all):])
	clear(now[kept:])
	*l = now[:kept]
}
