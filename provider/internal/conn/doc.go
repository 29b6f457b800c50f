// Package conn makes and watches the connections of connection-oriented endpoints (FI_EP_MSG): a [Passive] is a
// passive endpoint, whose [Listener] has the requests that come to it, and a [Connection] is one endpoint's. Package cm
// has the messages; the data go elsewhere.
//
// Beside the path that carries the data there is a TCP connection, which a goroutine watches:
//
//	idle → starting → up → leaving → down
//	           └─────┬─┴───────────────↑
//	starting: Connect or Accept was called, the endpoint's Connected or Failed is to come
//	leaving:  Leave was called, the peer has not answered yet
//
// What holds:
//
//   - After Connect or Accept has returned nil, the endpoint is called once with Connected or Failed, and after
//     Connected once with Ended, unless Stop comes before.
//   - A request is answered once: accepted, rejected, or dropped with its listener.
//   - No connection is taken while as many requests as the backlog are unanswered. Of those that were taken before and
//     have not said anything yet there are greetMax at most, for greetTime each, whose requests may come beyond it: so
//     strangers can neither fill the memory nor shut the others out.
//   - What a peer sends is checked by package cm; a peer without the authorisation key is rejected.
//
// The goroutines never touch what the progress lease protects, because an application may have promised that one thread
// at a time does: that is why the end of a connection is reported, and not taken in, here.
package conn
