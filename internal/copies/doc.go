// Package copies chooses how payload is copied to and from memory that another process uses: one way, or another where
// that is measured to be faster.
//
// Which way is faster depends on the processor, and on where the lines of that memory are: in the caches of the peer,
// which has written or read them, or in memory. How far the peer is is not known, and changes as threads and virtual
// machines move. So copies are timed. Once a period some go the way that is not taken, a trial. Those that begin a
// trial, and those behind it, find lines where the way before has left them, and do not count: one of each way among
// those of the other would cost about the same.
//
// A sender (rule [In]) goes past the caches where string moves take several times as long, as they do where the lines
// of its buffer are in the cache of a receiver that shares none with it. What a near receiver reads then is in memory,
// so less than that is no gain. A receiver (rule [Out]) copies by vectors, because string moves there make the sender's
// next copy slower on some processors, and by string moves only where these take much less time themselves.
// The first copies, which find pages and buffers that nothing has touched yet, do not count either.
//
// Its functions need nothing of the Go runtime (package direct says what that means).
package copies
