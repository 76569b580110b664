/* clock.c -- for LD_PRELOAD: the time of day is set back by a day after CLOCK_AFTER questions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static time_t back(void) {
    static long asked;
    const char *after = getenv("CLOCK_AFTER");
    return after && ++asked > atol(after) ? 86400 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    union {
        void *symbol;
        int (*call)(clockid_t, struct timespec *);
    } original = {.symbol = dlsym(RTLD_NEXT, "clock_gettime")};
    const int result = original.call(clock, t);
    if (clock == CLOCK_REALTIME) t->tv_sec -= back();
    return result;
}

time_t time(time_t *at) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (at) *at = t.tv_sec;
    return t.tv_sec;
}
