// Package interleave runs small concurrent programs in every order of their
// steps, to check lock-free algorithms. Tests use it.
//
// # Model
//
// A [Program] has a few words of memory and a few threads. A thread is Go code
// that touches the memory only through its [T]: each call there is one atomic
// step, and between steps the explorer may run any other thread. Everything
// else that the code does must depend on what its steps returned and on nothing
// else, so the same order of steps always gives the same run.
//
// [Explore] goes through all orders, depth first. Each run starts anew and
// repeats the choices of the one before up to the last that has an alternative.
// A state is the memory, the store buffers, and for each thread where it is,
// which what its steps have returned so far determines. A state that was seen
// before is not explored again; [T.At] makes a thread forget what no longer
// matters, so that more states are equal. The idea of checking code by its own
// schedules is that of VeriSoft (Godefroid, POPL 1997); recognising states by
// the threads' histories is that of CHESS (Musuvathi and Qadeer, PLDI 2007).
//
// # Memory
//
// With [Program].TSO each thread has a store buffer, as x86 processors do (Sewell
// and others, "x86-TSO", CACM 53(7), 2010): its plain and release stores become
// visible to others later, in order, at any time; it sees them itself at once.
// [T.Swap], [T.CAS], [T.Add] and [T.Fence] wait until the buffer is empty. So a
// missing fence between a store and a later load shows. Orders that x86 cannot
// show (a load before an earlier load, a store before an earlier store) are not
// modelled; where an algorithm needs acquire or release there, the race
// detector checks that it has them.
//
// Without TSO memory is sequentially consistent.
//
// # Waiting
//
// A loop that spins has no end in a search of all orders. [T.Await] is a step
// that can be taken only when its condition holds, and [T.Pause] one that can be
// taken only when the memory has changed since the loop began. [T.AwaitAdd] takes in an event of a program that has no
// shared memory but queues: the sum that it returns says which event it was. A state
// in which some thread is not at its end and none can take a step is an error:
// a deadlock, or a wake-up that was lost.
//
// # Deaths
//
// With [Program].Deaths threads that are marked killable may die between any two
// steps. What they stored before becomes visible still, as it does when the
// kernel kills a process.
package interleave
