package match_test

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/match"
)

func Example() {
	e, err := match.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	// arrive is what the holder of the progress lease does with a message.
	arrive := func(source uint32, tag uint64, data string) {
		if r := e.Arrive(source, tag); r != nil {
			fmt.Printf("%q goes to receive %d\n", data, r.Context)
			e.Release(r)
			return
		}
		m := e.Hold(source, tag)
		if m == nil {
			fmt.Println("not taken:", e.Err())
			return
		}
		m.Len = uint64(len(data))
		fmt.Printf("%q is kept\n", data)
	}
	// post is what it does with a receive.
	post := func(context uint64, source uint32, tag, ignore uint64) {
		switch r, m := e.Post(source, tag, ignore); {
		case m != nil:
			fmt.Printf("receive %d gets %d bytes from %d\n", context, m.Len, m.Source())
			e.ReleaseMessage(m)
		case r != nil:
			r.Context = context
			fmt.Printf("receive %d waits\n", context)
		default:
			fmt.Println("not posted:", e.Err())
		}
	}

	post(1, match.AnySource, 7, 0)
	post(2, 4, 0, ^uint64(0))
	arrive(4, 7, "both match, the first was posted first")
	arrive(5, 9, "none matches")
	arrive(4, 9, "any tag from 4")
	post(3, match.AnySource, 8, 1)
	// Output:
	// receive 1 waits
	// receive 2 waits
	// "both match, the first was posted first" goes to receive 1
	// "none matches" is kept
	// "any tag from 4" goes to receive 2
	// receive 3 gets 12 bytes from 5
}
