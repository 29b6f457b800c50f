package verbs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/mem"
)

// noDeadline is no deadline.
var noDeadline time.Time

// Sizes of the service queue pair.
const (
	serviceRecv   = 128 // receive buffers
	serviceSend   = 32
	serviceStride = 192 // bytes of a buffer: global header, packet
)

// service is the goroutine that makes connections, and its queue pair. It sleeps
// in the runtime's poller until a packet comes, a command, or the time to send a
// packet again.
type service struct {
	i       *Iface
	channel *ibv.Channel
	cq      *ibv.CQ
	qp      *ibv.QP
	file    *os.File
	memory  []byte
	mr      *ibv.MR
	free    []int // send buffers
	// broken: the queue pair has failed, as it does when a packet is sent while the port is down, and is made
	// anew when all its buffers are back; back counts the receive buffers that are.
	broken bool
	back   int
	ahs    map[ibv.Path]*ibv.AH
	active map[*Endpoint]struct{} // with a hand-shake under way
	epoch  uint32                 // of the last hand-shake

	arrived chan struct{} // a completion may have come
	wake    chan struct{} // a command was given
	quit    chan struct{}
	done    sync.WaitGroup

	mu       sync.Mutex // not on the data path: commands of the control path
	commands []func()
}

func newService(i *Iface) (*service, error) {
	s := &service{
		i: i, ahs: map[ibv.Path]*ibv.AH{}, active: map[*Endpoint]struct{}{},
		arrived: make(chan struct{}, 1), wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *service) open() (err error) {
	d := s.i.d
	if s.memory, err = mapPinned(serviceStride * (serviceRecv + serviceSend)); err != nil {
		return fmt.Errorf("verbs: service buffers: %w: %w", err, hw.ErrNoResource)
	}
	if s.mr, err = d.pd.Register(mem.Address(s.memory), uint64(len(s.memory)), ibv.LocalWrite); err != nil {
		s.mr = nil
		return registered(err, uint64(len(s.memory)))
	}
	if s.channel, err = d.ctx.NewChannel(); err != nil {
		s.channel = nil
		return resource(err)
	}
	if s.cq, err = d.ctx.NewCQ(serviceRecv+serviceSend, s.channel, false); err != nil {
		s.cq = nil
		return resource(err)
	}
	if s.qp, err = d.pd.NewQP(ibv.QPConfig{Send: s.cq, Recv: s.cq, Datagram: true, MaxSend: serviceSend,
		MaxRecv: serviceRecv, MaxSGE: 1}); err != nil {
		s.qp = nil
		return resource(err)
	}
	if err = errors.Join(s.ready(), s.cq.Arm()); err != nil {
		return fmt.Errorf("verbs: service: %w", err)
	}
	for n := range serviceSend {
		s.free = append(s.free, serviceRecv+n)
	}
	s.file, err = pollable(s.channel.FD, "service")
	return err
}

// ready brings the queue pair from RESET to where it sends and receives.
func (s *service) ready() error {
	if err := s.qp.Init(s.i.d.port, 0, s.i.addr.qkey); err != nil {
		return err
	}
	for n := range serviceRecv {
		if err := s.qp.PostReceive(s.sge(n, serviceStride), uint64(n)); err != nil {
			return err
		}
	}
	return errors.Join(s.qp.ToReceive(ibv.Receive{}), s.qp.ToSend(ibv.Send{}))
}

// fail has all buffers of the queue pair come back.
func (s *service) fail(why string) {
	if s.broken {
		return
	}
	s.broken, s.back = true, 0
	s.i.logf("service queue pair: %s", why)
	if err := s.qp.ToError(); err != nil {
		s.i.logf("service: %v", err)
	}
}

// renew makes a broken queue pair work again, with the number that peers know,
// once all its buffers are back.
func (s *service) renew() {
	if !s.broken || s.back < serviceRecv || len(s.free) < serviceSend {
		return
	}
	s.broken = false
	if err := errors.Join(s.qp.Reset(), s.ready()); err != nil {
		s.i.logf("service: %v", err)
	}
}

func (s *service) sge(n, length int) ibv.SGE {
	return ibv.SGE{Addr: mem.Address(s.memory) + uint64(n*serviceStride), Len: uint32(length), LKey: s.mr.LKey}
}

// run starts the goroutines.
func (s *service) run() {
	s.done.Go(func() {
		waitReadable(s.file, func() {
			if s.channel.Drain() > 0 {
				notify(s.arrived)
			}
		})
	})
	s.done.Go(s.loop)
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// do has the service call f. Any thread.
func (s *service) do(f func()) {
	s.mu.Lock()
	s.commands = append(s.commands, f)
	s.mu.Unlock()
	notify(s.wake)
}

func (s *service) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-s.quit:
			s.runCommands()
			return
		case <-s.arrived:
			s.poll()
		case <-s.wake:
			s.runCommands()
		case <-timer.C:
		}
		timer.Reset(s.tick(time.Now()))
	}
}

func (s *service) runCommands() {
	s.mu.Lock()
	list := s.commands
	s.commands = nil
	s.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// poll takes all completions and arms the queue for the next.
func (s *service) poll() {
	for armed := false; ; {
		n := s.takeCompletions()
		if n == 0 && armed {
			return
		}
		if n == 0 {
			if err := s.cq.Arm(); err != nil {
				s.i.logf("service: %v", err)
				return
			}
			armed = true // and poll once more: one may have come in between
		}
	}
}

func (s *service) takeCompletions() int {
	var done [32]ibv.Done // each call's own: what a packet leads to may come here again
	list, err := s.cq.Poll(done[:])
	if err != nil {
		s.i.logf("service: %v", err)
		return 0
	}
	for k := range list {
		d := &list[k]
		n := int(d.ID)
		if d.Status != ibv.StatusOK {
			s.fail(ibv.StatusText(d.Status))
		}
		if n >= serviceRecv {
			s.free = append(s.free, n)
			continue
		}
		if d.Status == ibv.StatusOK && d.Bytes == ibv.GRHBytes+packetBytes {
			s.packet(s.memory[n*serviceStride+ibv.GRHBytes:][:packetBytes])
		} else if d.Status == ibv.StatusOK {
			s.i.rx.malformed.Add(1)
		}
		if s.broken {
			s.back++
		} else if err := s.qp.PostReceive(s.sge(n, serviceStride), uint64(n)); err != nil {
			s.fail(err.Error())
			s.back++
		}
	}
	s.renew()
	return len(list)
}

// send sends a packet. A packet that cannot be sent counts as lost.
func (s *service) send(to *address, p *packet) {
	p.nonce, p.from = to.nonce, s.i.addr
	if len(s.i.cfg.Name) > 0 {
		p.nameN = uint8(copy(p.name[:], s.i.name))
	}
	if len(s.free) == 0 {
		s.takeCompletions()
	}
	if len(s.free) == 0 || s.broken {
		return
	}
	path := s.i.path(to)
	ah := s.ahs[path]
	if ah == nil {
		var err error
		if ah, err = s.i.d.pd.NewAH(path); err != nil {
			s.i.logf("no way to %s: %v", to, err)
			return
		}
		s.ahs[path] = ah
	}
	n := s.free[len(s.free)-1]
	p.appendTo(s.memory[n*serviceStride:][:0])
	if err := s.qp.SendDatagram(ah, to.qp, to.qkey, s.sge(n, packetBytes), uint64(n)); err != nil {
		s.i.logf("service: to %s: %v", to, err)
		return
	}
	s.free = s.free[:len(s.free)-1]
}

// forgetPath has the path to a silent peer resolved again.
func (s *service) forgetPath(to *address) {
	path := s.i.path(to)
	if ah := s.ahs[path]; ah != nil {
		delete(s.ahs, path)
		if err := ah.Close(); err != nil {
			s.i.logf("service: %v", err)
		}
	}
}

// stop ends the goroutines after the commands given so far.
func (s *service) stop() {
	close(s.quit)
	_ = s.file.Close()
	s.done.Wait()
}

// release gives everything back; the goroutines have ended or were never started.
func (s *service) release() error {
	var errs []error
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.qp != nil {
		errs = append(errs, s.qp.Close())
	}
	for _, ah := range s.ahs {
		errs = append(errs, ah.Close())
	}
	if s.cq != nil {
		errs = append(errs, s.cq.Close())
	}
	if s.channel != nil {
		errs = append(errs, s.channel.Close())
	}
	if s.mr != nil {
		errs = append(errs, s.mr.Close())
	}
	return errors.Join(append(errs, mem.Unmap(s.memory))...)
}
