/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Backends of NIXL beside each other, in turn: bench BACKEND,... SECONDS [NAMESPACE NAMESPACE].
 *
 * Two processes, each on a processor of its own and without progress threads. Bandwidth: writes of one descriptor, one
 * after the other. Latency: half a round trip of writes with a notification of 32 bytes, each of which is written when
 * the other's notification is there. Medians of rounds, and in brackets the best, which other programs have disturbed
 * least.
 */
#include <algorithm>

#include "pair.h"

static const size_t MOST = 16 << 20;
static const char *const OTHER[] = { "target", "initiator" };

struct Subject {
	std::unique_ptr<Side> side;
	uintptr_t base; /* of the other side */
	std::vector<double> latency, bandwidth;
};

static double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* A value, of which a share are below. */
static double quantile(std::vector<double> v, double share)
{
	std::sort(v.begin(), v.end());
	return v[std::min(v.size() - 1, size_t(double(v.size()) * share))];
}

static void meet(const Road &road)
{
	road.send("");
	road.receive();
}

/* Writes one after the other; the last has a notification, for which the target waits. */
static void stream(Subject &subject, const Road &road, int rank, size_t len, nixlXferReqH *request)
{
	Side &s = *subject.side;
	std::string end = "end";
	size_t count = std::clamp<size_t>((size_t(4) << 20) / len, 1, 100);

	meet(road);
	if (rank) {
		CHECK_THAT(s.take(OTHER[rank]) == end);
		return;
	}
	double begin = now();
	for (size_t i = 0; i < count; i++)
		OK(run(s, request, i + 1 == count ? &end : nullptr));
	subject.bandwidth.push_back(double(count * len) / (now() - begin) / 1e9);
}

static void pingpong(Subject &subject, const Road &road, int rank, size_t len, nixlXferReqH *request)
{
	Side &s = *subject.side;
	std::string note(32, 'n');
	size_t count = std::clamp<size_t>((size_t(1) << 20) / len, 1, 20);

	meet(road);
	double begin = now();
	for (size_t i = 0; i < count; i++) {
		if (rank)
			CHECK_THAT(s.take(OTHER[rank]) == note);
		OK(run(s, request, &note));
		if (!rank)
			CHECK_THAT(s.take(OTHER[rank]) == note);
	}
	subject.latency.push_back((now() - begin) / double(count) / 2 * 1e6);
}

static void rank_main(const Road &road, int rank, const std::vector<std::string> &backends, double seconds,
		      const char *host)
{
	std::vector<Subject> subjects(backends.size());
	cpu_set_t cpus;
	std::string name;

	if (host)
		enter(host);
	CPU_ZERO(&cpus);
	CPU_SET(rank, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	for (size_t i = 0; i < subjects.size(); i++) {
		subjects[i].side = std::make_unique<Side>(OTHER[!rank], backends[i], MOST);
		subjects[i].side->share(0, MOST);
		memset(subjects[i].side->mem.data(), rank, MOST);
		road.send(subjects[i].side->metadata());
		OK(subjects[i].side->agent.loadRemoteMD(road.receive(), name));
		road.send(std::to_string(uintptr_t(subjects[i].side->mem.data())));
		subjects[i].base = std::stoull(road.receive());
	}
	for (size_t len = 4096; len <= MOST; len *= 4) {
		std::vector<nixlXferReqH *> requests(subjects.size());
		for (size_t i = 0; i < subjects.size(); i++) {
			Side &s = *subjects[i].side;
			nixl_opt_args_t a = s.args();
			OK(s.agent.createXferReq(NIXL_WRITE, pieces(uintptr_t(s.mem.data()), len),
						 pieces(subjects[i].base, len), OTHER[rank], requests[i], &a));
			subjects[i].latency.clear();
			subjects[i].bandwidth.clear();
		}
		double end = now() + seconds;
		for (std::string more = "more"; more == "more";) {
			for (size_t i = 0; i < subjects.size(); i++) {
				stream(subjects[i], road, rank, len, requests[i]);
				pingpong(subjects[i], road, rank, len, requests[i]);
			}
			if (rank)
				more = road.receive();
			else
				road.send(more = now() < end ? "more" : "enough");
		}
		if (!rank)
			printf("%8zu B:", len);
		for (size_t i = 0; i < subjects.size(); i++) {
			OK(subjects[i].side->agent.releaseXferReq(requests[i]));
			if (!rank)
				printf("  %s %.2f (%.2f) GB/s, %.2f (%.2f) us", backends[i].c_str(),
				       quantile(subjects[i].bandwidth, 0.5), quantile(subjects[i].bandwidth, 1),
				       quantile(subjects[i].latency, 0.5), quantile(subjects[i].latency, 0));
		}
		if (!rank)
			printf("  (%zu rounds)\n", subjects[0].latency.size());
		fflush(stdout);
	}
	meet(road);
}

int main(int argc, char **argv)
{
	std::vector<std::string> backends;
	int fds[2], status;

	if (argc != 3 && argc != 5) {
		fprintf(stderr, "bench BACKEND,... SECONDS [NAMESPACE NAMESPACE]\n");
		return 2;
	}
	for (char *b = strtok(argv[1], ","); b; b = strtok(nullptr, ","))
		backends.push_back(b);
	CHECK_THAT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	pid_t other = fork();
	rank_main(Road{ fds[other ? 0 : 1] }, other ? 0 : 1, backends, atof(argv[2]),
		  argc == 5 ? argv[other ? 3 : 4] : nullptr);
	if (!other)
		return 0;
	CHECK_THAT(waitpid(other, &status, 0) == other);
	return status ? 1 : 0;
}
