package provider

import "golang.org/x/sys/unix"

// The kernel pins the pages of the other process, one after the other, when a
// process reads or writes them; the pages of the own process cost next to nothing.
// So what counts is what the target's memory is on. The application may have
// asked for huge pages itself; FI_WEFT_HUGE_REGION_SIZE has weft do so.

// hugePage is the size of a huge page in bytes, where there is but one.
const hugePage = 2 << 20

// ontoHugePages asks the kernel to put memory of this process on huge pages, and
// returns for how many bytes it did so. Only whole huge pages within the memory are
// asked for, and only those of which something has been touched. It copies them;
// who accesses one meanwhile waits.
func ontoHugePages(addr, n uint64) (done uint64) {
	for at := (addr + hugePage - 1) &^ (hugePage - 1); at+hugePage <= addr+n; at += hugePage {
		if unix.Madvise(bytesAt(at, hugePage), unix.MADV_COLLAPSE) == nil {
			done += hugePage
		}
	}
	return done
}
