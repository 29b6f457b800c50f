// Package memwatch reports when memory that was registered with a device is
// unmapped, moved or given back to the kernel, so that the registration stands
// for pages that are no longer the process's. It needs no cooperation of what
// does that: not of the application, not of its allocator.
//
// # How
//
// userfaultfd(2) reports unmap, remap and remove (madvise) in ranges that are
// registered with it. Ranges are registered for write protection, which is never
// asked for: so no page fault ever waits for us, only threads that change a mapping
// do, until a thread of C has read of it. One descriptor and one thread serve the
// process until it ends. They are started when the first registration is kept.
//
// # Alternatives
//
// Replacing munmap and its kin in the application's loaded code, as other
// libraries do, cannot see what is linked statically or called directly, and
// patches code that is not ours. Kernel drivers' notifiers are not within reach
// of a process. Where userfaultfd is refused, Start says so and registrations
// are not to be kept.
//
// # Limits
//
// Only private anonymous memory may be watched: of shared memory the pages can
// go without an event (shmdt, truncation). The caller sees to that.
package memwatch
