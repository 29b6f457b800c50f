package mpsc

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/interleave"
)

// A model of the ring's algorithm: the steps of Claim, Publish, Load, Release
// and Reclaim, for package interleave to run in every order.

const (
	modelSlots     = 2
	modelProducers = 3
)

// rules of one exploration. The mutants show that the checks can fail.
type rules struct {
	messages [modelProducers]uint64 // each producer's
	deaths   int                    // producers that may be killed, each at any step
	tso      bool
	laps     uint64 // that the ring has gone through while the tail stayed at 0

	plainClaim   bool // mutant: claim by load and store
	earlyPublish bool // mutant: publish before the body is written
	earlyRelease bool // mutant: release before the body is read
	noJump       bool // mutant: a stale tail is walked one step at a time
	noReclaim    bool // mutant: slots of the dead are left alone
}

// The words of the model's memory.
const (
	wordTail = interleave.Word(0)
	wordSlot = interleave.Word(1)                         // modelSlots times: sequence word and two words of body
	wordGot  = wordSlot + 3*modelSlots                    // ghost: received from each producer
	wordSent = wordGot + interleave.Word(modelProducers)  // ghost: published by each
	wordEnd  = wordSent + interleave.Word(modelProducers) //
)

func seqOf(pos uint64) interleave.Word { return wordSlot + 3*interleave.Word(pos%modelSlots) }

// sequence makes a sequence word; the fields are narrower than the real ones.
func sequence(lap, owner, state uint64) uint64 { return lap<<8 | owner<<2 | state }

func lapOf(word uint64) uint64 { return word >> 8 }

// claim is Ring.Claim.
func (r *rules) claim(t *interleave.T, owner uint64) (pos uint64, ok bool) {
	pos = t.Load(wordTail)
	for range modelSlots + 1 {
		lap := pos / modelSlots
		free := sequence(lap, 0, hot.SlotFree)
		word := t.Load(seqOf(pos))
		if word == free {
			taken := sequence(lap, owner, hot.SlotTaken)
			if r.plainClaim {
				t.Store(seqOf(pos), taken)
			} else if !t.CAS(seqOf(pos), word, taken) { // C0
				pos++
				continue
			}
			t.Store(wordTail, pos+1)
			return pos, true
		}
		ahead := int64(lapOf(word)) - int64(lap)
		if ahead < 0 {
			return 0, false
		}
		if ahead > 1 && !r.noJump {
			pos += uint64(ahead-1) * modelSlots
		}
		pos++
	}
	return 0, false
}

// produce sends a producer's messages. Message n of producer i is i<<4 | n+1 in
// both words of the body.
func (r *rules) produce(i uint64) func(*interleave.T) {
	return func(t *interleave.T) {
		for n := uint64(0); n < r.messages[i]; {
			t.At(n)
			pos, ok := r.claim(t, i)
			if !ok {
				t.Pause()
				continue
			}
			t.At(n, pos+100)
			publish := func() { t.Store(seqOf(pos), sequence(pos/modelSlots, i, hot.SlotReady)) } // P0
			if r.earlyPublish {
				publish()
			}
			t.Store(seqOf(pos)+1, i<<4|(n+1))
			t.Store(seqOf(pos)+2, i<<4|(n+1))
			if !r.earlyPublish {
				publish()
			}
			n++
			t.Note(wordSent+interleave.Word(i), n)
		}
	}
}

// consume takes messages until all producers have ended and the ring is empty.
func (r *rules) consume(t *interleave.T) {
	var got [modelProducers]uint64
	head, last := r.laps*modelSlots, false
	for {
		at := head<<1 | 1
		if last {
			at = head << 1
		}
		t.At(at, got[0], got[1], got[2])
		lap := head / modelSlots
		word := t.Load(seqOf(head)) // L0
		owner := word >> 2 & 63
		release := func() {
			t.Store(seqOf(head), sequence(lap+1, 0, hot.SlotFree)) // R0
		}
		switch {
		case lapOf(word) == lap && word&3 == hot.SlotReady:
			if r.earlyRelease {
				release()
			}
			a, b := t.Load(seqOf(head)+1), t.Load(seqOf(head)+2)
			t.Check(a == b && a == owner<<4|(got[owner]+1), "position %d: body %#x %#x of owner %d after %d messages",
				head, a, b, owner, got[owner])
			got[owner]++
			t.Note(wordGot+interleave.Word(owner), got[owner])
			if !r.earlyRelease {
				release()
			}
			head++
			continue
		case lapOf(word) == lap && word&3 == hot.SlotTaken && !r.noReclaim && t.Ended(int(owner)):
			if t.CAS(seqOf(head), word, sequence(lap+1, 0, hot.SlotFree)) { // Reclaim
				head++
			}
			continue
		case last:
			return
		}
		if t.Ended(0, 1, 2) {
			last = true // poll once more
			continue
		}
		t.Pause()
	}
}

// explore runs the model in every order.
func explore(r rules) (interleave.Result, error) {
	names := []string{"tail"}
	for s := range modelSlots {
		names = append(names, fmt.Sprintf("seq%d", s), fmt.Sprintf("body%d.0", s), fmt.Sprintf("body%d.1", s))
	}
	names = append(names, "got0", "got1", "got2", "sent0", "sent1", "sent2")
	start := func(words []uint64) {
		for pos := range uint64(modelSlots) {
			words[seqOf(pos)] = sequence(r.laps, 0, hot.SlotFree)
		}
	}
	p := &interleave.Program{Names: names[:wordEnd], Init: start, TSO: r.tso, Deaths: r.deaths,
		Final: func(m interleave.Memory, died []bool) error {
			for i := range interleave.Word(modelProducers) {
				if got, sent := m.Load(wordGot+i), m.Load(wordSent+i); got != sent {
					return fmt.Errorf("producer %d: sent %d, received %d, died %v", i, sent, got, died[i])
				}
			}
			return nil
		}}
	for i := range uint64(modelProducers) {
		p.Threads = append(p.Threads, interleave.Thread{Name: fmt.Sprintf("producer%d", i), Killable: true,
			Body: r.produce(i)})
	}
	p.Threads = append(p.Threads, interleave.Thread{Name: "consumer", Body: r.consume})
	return interleave.Explore(p)
}
