/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The provider as each libfabric of the process sees it.
 *
 * Each has a slot: libfabric writes into struct fi_provider, and calls its functions
 * without saying which. A slot is free again when its libfabric ends (cleanup), which
 * may then be unloaded; one that has used the core stays its libfabric's, which is
 * not unloaded any more: objects, threads and messages of the log may outlast it.
 */
#include <pthread.h>
#include <strings.h>

#include "loader.h"

#define SLOTS 8

struct slot {
	struct fi_provider provider; /* what libfabric has */
	struct fi_provider self;     /* of weft's own name, where provider has another */
	struct weft_host host;
	const void *library;	      /* what weft_host_find returned */
	const struct weft_core *core; /* NULL: not attached */
	unsigned registered;	      /* how often fi_prov_ini returned it, less cleanups */
};

static struct slot slots[SLOTS]; /* under the lock, but for what host may read by itself */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loading;	 /* under the lock */
static bool interrupted; /* this process was forked while a thread, which it does not have, loaded the core */

/* The lock may be another thread's, which the child does not have. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	interrupted |= loading;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* attach returns the core for the libfabric of a slot, which it loads if it must.
 * named: the application named weft, and the log says at a higher level why it cannot have it. */
static int attach(struct slot *s, bool named, const struct weft_core **core)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	enum fi_log_level level = named ? FI_LOG_WARN : FI_LOG_INFO;
	int rc = 0;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	if (!s->core && interrupted) {
		WEFT_LOG(&s->host, level,
			 "this process was forked while another thread loaded weft, which it cannot use\n");
		rc = -FI_EOTHER;
	} else if (!s->core) {
		loading = true;
		rc = weft_core_load(&s->host, level, core);
		loading = false;
		if (!rc && weft_host_hold(s->library)) {
			WEFT_LOG(&s->host, level, "the library that called weft cannot be kept\n");
			rc = -FI_EOTHER;
		}
		if (!rc)
			s->core = *core;
	}
	*core = s->core;
	pthread_mutex_unlock(&lock);
	return rc;
}

/* The answer to FI_PROV_ATTR_ONLY; libfabric puts the names in. */
static int attributes(const struct slot *s, struct fi_info **info)
{
	*info = s->host.dupinfo(NULL);
	if (!*info)
		return -FI_ENOMEM;
	(*info)->fabric_attr->prov_version = s->provider.version;
	return 0;
}

static int getinfo(struct slot *s, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	const struct weft_core *core;
	int rc;

	if (!info)
		return -FI_EINVAL;
	if (flags & ~WEFT_GETINFO_FLAGS) {
		WEFT_LOG(&s->host, FI_LOG_INFO, "fi_getinfo: flags %#llx are unknown\n",
			 (unsigned long long)(flags & ~WEFT_GETINFO_FLAGS));
		return -FI_EBADFLAGS;
	}
	if ((flags & FI_PROV_ATTR_ONLY) && !(flags & WEFT_GETINFO_UTILITY))
		return attributes(s, info);
	if (weft_unwanted(&s->host, version, flags, hints))
		return -FI_ENODATA;
	rc = attach(s, weft_named(&s->host, hints), &core);
	return rc ? rc : core->getinfo(&s->host, version, node, service, flags, hints, info);
}

static int fabric(struct slot *s, struct fi_fabric_attr *attr, struct fid_fabric **object, void *context)
{
	const struct weft_core *core;
	int rc = attach(s, true, &core);

	return rc ? rc : core->fabric(&s->host, attr, object, context);
}

static void cleanup(struct slot *s)
{
	const struct weft_core *core = NULL;

	pthread_mutex_lock(&lock);
	if (s->registered && !--s->registered)
		core = s->core;
	pthread_mutex_unlock(&lock);
	if (core)
		core->detach(&s->host);
}

/* A slot's functions. */
#define FUNCTIONS(n) \
	static int getinfo_##n(uint32_t version, const char *node, const char *service, uint64_t flags, \
			       const struct fi_info *hints, struct fi_info **info) \
	{ \
		return getinfo(&slots[n], version, node, service, flags, hints, info); \
	} \
	static int fabric_##n(struct fi_fabric_attr *attr, struct fid_fabric **object, void *context) \
	{ \
		return fabric(&slots[n], attr, object, context); \
	} \
	static void cleanup_##n(void) \
	{ \
		cleanup(&slots[n]); \
	}

/* clang-format off */
#define PROVIDER(n) { .getinfo = getinfo_##n, .fabric = fabric_##n, .cleanup = cleanup_##n }

FUNCTIONS(0) FUNCTIONS(1) FUNCTIONS(2) FUNCTIONS(3) FUNCTIONS(4) FUNCTIONS(5) FUNCTIONS(6) FUNCTIONS(7)

static const struct fi_provider providers[SLOTS] = {
	PROVIDER(0), PROVIDER(1), PROVIDER(2), PROVIDER(3),
	PROVIDER(4), PROVIDER(5), PROVIDER(6), PROVIDER(7),
};
/* clang-format on */

/* The slot of a library: the one that it has, else a free one. NULL: there is none. */
static struct slot *slot_of(const void *library)
{
	struct slot *unused = NULL;

	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		bool taken = s->registered || s->core;

		if (taken && s->library == library)
			return s;
		if (!taken && !unused)
			unused = s;
	}
	return unused;
}

/* The name that weft has under the variable's value, NULL for none: its own for what is no
 * name, which fails fi_getinfo with the rest of the configuration. */
static const char *name_of(const char *value)
{
	for (size_t i = 0; value && i < count_of(weft_aliases); i++)
		if (!strcasecmp(weft_aliases[i].name, value))
			return weft_aliases[i].name;
	return WEFT_NAME;
}

/* fi_version must not be below the version that an application asks for, or
 * the host passes this provider over. The variables have weft's name, which the provider
 * has until then. weft says what the host says: it fills
 * structures through the host's allocator, and tables carry their size. */
static int register_with(struct slot *s, const struct weft_host *host, const void *library)
{
	char *name = NULL;
	int rc = 0;

	s->library = library;
	s->provider = providers[s - slots];
	s->provider.name = WEFT_NAME;
	s->provider.version = WEFT_PROV_VERSION;
	s->provider.fi_version = host->version();
	s->host = *host;
	s->self = s->provider;
	s->host.provider = &s->provider;
	for (size_t i = 0; !rc && i < count_of(weft_params); i++)
		rc = host->param_define(&s->provider, weft_params[i].name, FI_PARAM_STRING, "%s", weft_params[i].help);
	if (rc)
		return rc;
	s->host.reported = name_of(host->param_get(&s->provider, "name", &name) ? NULL : name);
	s->host.logger = strcmp(s->host.reported, WEFT_NAME) ? &s->self : &s->provider;
	s->provider.name = weft_top_of(s->host.reported);
	return 0;
}

FI_EXT_INI
{
	struct weft_host host = { 0 };
	const void *library = weft_host_find(&host, __builtin_return_address(0));
	struct slot *s;
	int rc = 0;

	if (!library)
		return NULL;
	pthread_mutex_lock(&lock);
	s = slot_of(library);
	if (s && !s->registered)
		rc = register_with(s, &host, library);
	if (s && !rc)
		s->registered++;
	pthread_mutex_unlock(&lock);
	return s && !rc ? &s->provider : NULL;
}
