// SPDX-License-Identifier: BSD-2-Clause

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A JVM as a host of the provider, through JNI. Arguments: the JNI library, the provider, a folder
 * for names, rank, number of ranks. Meanwhile the JVM collects garbage and throws exceptions that it
 * finds by SIGSEGV: references to null in compiled code, and the end of a stack.
 */
public final class Host {
	static final int THREADS = 3, ROUNDS = 40;
	static final int[] SIZES = {1, 100, 4000, 20000, 300000};
	static volatile boolean stop;
	static volatile Object sink;
	static volatile long nulls, overflows;

	static native long open(String provider);
	static native byte[] name(long host);
	static native int peer(long host, byte[] name);
	static native int send(long host, long peer, long tag, ByteBuffer data, long size);
	static native long receive(long host, long peer, long tag, ByteBuffer data, long size);
	static native void close(long host);

	static byte at(int sender, int thread, int turn, int i) {
		return (byte) ((sender * 7 + thread * 13 + turn * 31 + i) % 251);
	}

	/** Exchanges names with the others through files. */
	static void meet(long host, Path folder, int rank, int ranks) throws IOException, InterruptedException {
		Path hidden = folder.resolve("." + rank);
		Files.write(hidden, name(host));
		Files.move(hidden, folder.resolve("" + rank));
		for (int peer = 0; peer < ranks; peer++) {
			Path its = folder.resolve("" + peer);
			while (!Files.exists(its))
				Thread.sleep(20);
			if (peer(host, Files.readAllBytes(its)) != 0)
				throw new IOException("peer " + peer + " is refused");
		}
	}

	static void exchange(long host, int rank, int ranks, int thread, List<String> wrong) {
		ByteBuffer data = ByteBuffer.allocateDirect(SIZES[SIZES.length - 1]);
		for (int turn = 0; turn < ROUNDS; turn++)
			for (int peer = 0; peer < ranks; peer++) {
				if (peer == rank)
					continue;
				if (rank < peer)
					send(host, rank, peer, thread, turn, data, wrong);
				receive(host, peer, thread, turn, data, wrong);
				if (rank > peer)
					send(host, rank, peer, thread, turn, data, wrong);
			}
	}

	static void send(long host, int rank, int peer, int thread, int turn, ByteBuffer data, List<String> wrong) {
		int size = SIZES[turn % SIZES.length];
		for (int i = 0; i < size; i++)
			data.put(i, at(rank, thread, turn, i));
		int status = send(host, peer, (long) thread << 32 | turn, data, size);
		if (status != 0)
			wrong.add("send " + turn + " to " + peer + ": " + status);
	}

	static void receive(long host, int peer, int thread, int turn, ByteBuffer data, List<String> wrong) {
		int size = SIZES[turn % SIZES.length];
		long n = receive(host, peer, (long) thread << 32 | turn, data, data.capacity());
		int bad = 0;
		for (int i = 0; i < n; i++)
			if (data.get(i) != at(peer, thread, turn, i))
				bad++;
		if (n != size || bad != 0)
			wrong.add("receive " + turn + " from " + peer + ": " + n + " bytes, " + bad + " wrong");
	}

	static int length(String s) {
		return s.length();
	}

	static int deep(int n) {
		return deep(n + 1) + 1;
	}

	/** Garbage, nulls and the ends of stacks. */
	static void disturb() {
		for (int i = 0; !stop; i++) {
			sink = new byte[1 << 16];
			try {
				length(i % 100 == 99 ? null : "word");
			} catch (NullPointerException e) {
				nulls++;
			}
			if (i % 5000 == 4999)
				try {
					deep(0);
				} catch (StackOverflowError e) {
					overflows++;
				}
		}
	}

	public static void main(String[] args) throws Exception {
		System.load(args[0]);
		int rank = Integer.parseInt(args[3]), ranks = Integer.parseInt(args[4]);
		Thread noise = new Thread(null, Host::disturb, "noise", 256 << 10);
		noise.start();
		long host = open(args[1]);
		if (host == 0)
			System.exit(1);
		meet(host, Path.of(args[2]), rank, ranks);
		List<String> wrong = Collections.synchronizedList(new ArrayList<>());
		List<Thread> threads = new ArrayList<>();
		for (int t = 0; t < THREADS; t++) {
			int thread = t;
			threads.add(new Thread(() -> exchange(host, rank, ranks, thread, wrong)));
		}
		for (Thread t : threads)
			t.start();
		for (Thread t : threads)
			t.join();
		while (nulls == 0 || overflows == 0)
			Thread.sleep(10);
		stop = true;
		noise.join();
		close(host);
		if (!wrong.isEmpty()) {
			System.err.println("java: " + wrong.subList(0, Math.min(5, wrong.size())));
			System.exit(1);
		}
		System.out.println("java: passed as " + rank + " of " + ranks);
	}
}
