/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Backends of NIXL beside each other: bench BACKEND[:PARAMETER=VALUE]...,... SECONDS [NAMESPACE NAMESPACE].
 *
 * Two processes, each on a processor of its own and without progress threads. The backends take turns in short rounds,
 * in an order that changes with each. Latency: half a round trip of writes with a notification of 32 bytes, each of
 * which is written when the other's notification is there. Bandwidth: writes until they have succeeded, of which some
 * are under way at once; one more has a notification, for which the target polls meanwhile, and behind which it looks
 * at the first and last bytes. That it sleeps between its polls is measured on one host alone: elsewhere it has to take
 * part.
 *
 * Prints a table: medians of the rounds (quartiles), and those of the first backend's ratio to each other in the same
 * round.
 */
#include <algorithm>
#include <ctime>
#include <sstream>

#include <sys/prctl.h>

#include "pair.h"

static const size_t MOST = 32 << 20;
static const char *const OTHER[] = { "target", "initiator" };

/* A figure: writes of count pieces, len bytes each and stride bytes apart, of which some are under way at once; none
 * where it is a latency. */
struct Figure {
	const char *what;
	size_t len, stride, count, window;
	bool asleep = false; /* the target, which polls once a millisecond */
};

static const Figure FIGURES[] = {
	{ "write of 4 KiB with a notification, us", 4 << 10, 4 << 10, 1, 0 },
	{ "write of 64 KiB with a notification, us", 64 << 10, 64 << 10, 1, 0 },
	{ "64 KiB, one at a time, GB/s", 64 << 10, 64 << 10, 1, 1 },
	{ "64 KiB, 16 at a time, GB/s", 64 << 10, 64 << 10, 1, 16 },
	{ "1 MiB, one at a time, GB/s", 1 << 20, 1 << 20, 1, 1 },
	{ "1 MiB, 4 at a time, GB/s", 1 << 20, 1 << 20, 1, 4 },
	{ "16 MiB, GB/s", 16 << 20, 16 << 20, 1, 1 },
	{ "64 KiB to a target that polls once a ms, GB/s", 64 << 10, 64 << 10, 1, 1, true },
	{ "1 MiB to a target that polls once a ms, GB/s", 1 << 20, 1 << 20, 1, 1, true },
	{ "16 MiB to a target that polls once a ms, GB/s", 16 << 20, 16 << 20, 1, 1, true },
	{ "1024 pieces of 16 KiB, apart, GB/s", 16 << 10, 32 << 10, 1024, 1 },
};

struct Subject {
	std::string backend;
	std::unique_ptr<Side> side;
	uintptr_t base; /* of the other side */
	std::vector<nixlXferReqH *> requests;
	std::vector<double> results; /* of each round */
};

static double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/* The median and the quartiles. */
static std::string quartiles(std::vector<double> v)
{
	char text[64];

	std::sort(v.begin(), v.end());
	auto at = [&](size_t quarter) { return v[(v.size() - 1) * quarter / 4]; };
	snprintf(text, sizeof(text), "%.3g (%.3g–%.3g)", at(2), at(1), at(3));
	return text;
}

static void meet(const Road &road)
{
	road.send("");
	road.receive();
}

/* Writes for some milliseconds, and returns the bytes of each second divided by 10^9. The other side returns 0. */
static double stream(Subject &subject, const Road &road, int rank, const Figure &figure, char mark)
{
	Side &s = *subject.side;
	char *first = s.mem.data(), *last = first + (figure.count - 1) * figure.stride + figure.len - 1;
	size_t bytes = figure.len * figure.count, writes = std::clamp<size_t>((8 << 20) / bytes, 2, 64);
	std::string end = "end";

	if (!rank)
		*first = *last = mark;
	meet(road);
	if (rank) {
		while (figure.asleep && s.notes.empty()) {
			usleep(1000);
			OK(s.agent.getNotifs(s.notes));
		}
		CHECK_THAT(s.take(OTHER[rank]) == end);
		CHECK_THAT(*first == mark && *last == mark);
		return 0;
	}
	std::vector<nixl_status_t> status(figure.window, NIXL_SUCCESS);
	nixl_opt_args_t none;
	double begin = now();
	for (size_t i = 0; i < writes; i++) {
		size_t at = i % figure.window;
		OK(complete(s, subject.requests[at], status[at]));
		status[at] = s.agent.postXferReq(subject.requests[at], &none);
	}
	for (size_t at = 0; at < figure.window; at++)
		OK(complete(s, subject.requests[at], status[at]));
	double spent = now() - begin;
	OK(run(s, subject.requests[0], &end));
	return double(writes * bytes) / spent / 1e9;
}

/* Returns half a round trip in us. */
static double pingpong(Subject &subject, const Road &road, int rank, const Figure &figure)
{
	Side &s = *subject.side;
	std::string note(32, 'n');
	size_t count = std::clamp<size_t>((1 << 20) / figure.len, 1, 50);

	meet(road);
	double begin = now();
	for (size_t i = 0; i < count; i++) {
		if (rank)
			CHECK_THAT(s.take(OTHER[rank]) == note);
		OK(run(s, subject.requests[0], &note));
		if (!rank)
			CHECK_THAT(s.take(OTHER[rank]) == note);
	}
	return (now() - begin) / double(count) / 2 * 1e6;
}

static void print(const Figure &figure, const std::vector<Subject> &subjects)
{
	const std::vector<double> &first = subjects[0].results;

	printf("| %s |", figure.what);
	for (const Subject &subject : subjects)
		printf(" %s |", quartiles(subject.results).c_str());
	for (size_t i = 1; i < subjects.size(); i++) {
		std::vector<double> ratio(first);
		for (size_t round = 0; round < ratio.size(); round++)
			ratio[round] /= subjects[i].results[round];
		printf(" %s |", quartiles(ratio).c_str());
	}
	printf(" %zu |\n", first.size());
	fflush(stdout);
}

/* Rounds of a figure for some seconds, two at least. The first is not counted. */
static void measure(std::vector<Subject> &subjects, const Road &road, int rank, const Figure &figure, double seconds)
{
	for (Subject &subject : subjects) {
		Side &s = *subject.side;
		nixl_opt_args_t a = s.args();
		uintptr_t base = uintptr_t(s.mem.data());

		subject.results.clear();
		subject.requests.resize(std::max<size_t>(figure.window, 1));
		for (nixlXferReqH *&request : subject.requests)
			OK(s.agent.createXferReq(NIXL_WRITE, pieces(base, figure.len, figure.stride, figure.count),
						 pieces(subject.base, figure.len, figure.stride, figure.count),
						 OTHER[rank], request, &a));
	}
	double end = now() + seconds;
	std::string more = "more";
	for (size_t round = 0; round < 3 || more == "more"; round++) {
		for (size_t i = 0; i < subjects.size(); i++) {
			Subject &subject = subjects[(i + round) % subjects.size()];
			double result = figure.window ? stream(subject, road, rank, figure, char(round))
						      : pingpong(subject, road, rank, figure);
			if (round)
				subject.results.push_back(result);
		}
		if (rank)
			more = road.receive();
		else
			road.send(more = now() < end ? "more" : "enough");
	}
	for (Subject &subject : subjects)
		for (nixlXferReqH *request : subject.requests)
			OK(subject.side->agent.releaseXferReq(request));
}

/* What a reader of the table has to know, and its head. */
static void head(const std::vector<Subject> &subjects)
{
	double load = 0;
	char date[16];
	time_t t = time(nullptr);

	getloadavg(&load, 1);
	strftime(date, sizeof(date), "%F", gmtime(&t));
	printf("Load %.2f, %s.\n\n| write |", load, date);
	for (const Subject &subject : subjects)
		printf(" %s |", subject.backend.c_str());
	for (size_t i = 1; i < subjects.size(); i++)
		printf(" %s / %s |", subjects[0].backend.c_str(), subjects[i].backend.c_str());
	printf(" rounds |\n|");
	for (size_t i = 0; i < 2 * subjects.size() + 1; i++)
		printf(" --- |");
	printf("\n");
}

/* An agent with a backend, which parameters may follow. */
static std::unique_ptr<Side> open(const char *agent, const std::string &backend)
{
	std::stringstream text(backend);
	std::string type, parameter;
	nixl_b_params_t parameters;

	std::getline(text, type, ':');
	while (std::getline(text, parameter, ':')) {
		size_t equals = parameter.find('=');
		CHECK_THAT(equals != std::string::npos);
		parameters[parameter.substr(0, equals)] = parameter.substr(equals + 1);
	}
	return std::make_unique<Side>(agent, type, MOST, false, parameters);
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
		subjects[i].backend = backends[i];
		subjects[i].side = open(OTHER[!rank], backends[i]);
		subjects[i].side->share(0, MOST);
		memset(subjects[i].side->mem.data(), rank, MOST);
		road.send(subjects[i].side->metadata());
		OK(subjects[i].side->agent.loadRemoteMD(road.receive(), name));
		road.send(std::to_string(uintptr_t(subjects[i].side->mem.data())));
		subjects[i].base = std::stoull(road.receive());
	}
	if (!rank)
		head(subjects);
	for (const Figure &figure : FIGURES) {
		if (figure.asleep && host)
			continue;
		measure(subjects, road, rank, figure, seconds);
		if (!rank)
			print(figure, subjects);
	}
	meet(road);
}

int main(int argc, char **argv)
{
	std::vector<std::string> backends;
	int fds[2], status;

	if (argc != 3 && argc != 5) {
		fprintf(stderr, "bench BACKEND[:PARAMETER=VALUE]...,... SECONDS [NAMESPACE NAMESPACE]\n");
		return 2;
	}
	for (char *b = strtok(argv[1], ","); b; b = strtok(nullptr, ","))
		backends.push_back(b);
	CHECK_THAT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	pid_t other = fork();
	CHECK_THAT(other >= 0);
	if (!other)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[other ? 1 : 0]); /* the other's: the end of one side is read by the other */
	rank_main(Road{ fds[other ? 0 : 1] }, other ? 0 : 1, backends, atof(argv[2]),
		  argc == 5 ? argv[other ? 3 : 4] : nullptr);
	if (!other)
		return 0;
	CHECK_THAT(waitpid(other, &status, 0) == other);
	return status ? 1 : 0;
}
