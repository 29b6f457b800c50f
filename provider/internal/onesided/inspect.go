package onesided

// TargetLeft is what a target keeps, for tests.
type TargetLeft struct {
	Replies  int // that wait for room
	Elements int // of those
	Helps    int // operations of others
}

// Left is what the target keeps.
func (t *Target[O]) Left() TargetLeft {
	return TargetLeft{Replies: len(t.replies), Elements: t.elements.kept, Helps: len(t.helps)}
}
