/* How many sites a run file has, and how many shares of each batch they were recorded of (globs.h). */
#include <stdio.h>

#include "statnet/globs.h"
#include "writing.h"

static int64_t shares_of_site(const sr_runfile *f, const char *name) {
    char replica[SR_NAME_SIZE + 24];
    int64_t shares = 0;
    do snprintf(replica, sizeof replica, "%s@%lld", name, (long long)++shares);
    while (sr_run_find_site(f, replica) >= 0);
    return shares;
}

void info_print_site_count(const sr_runfile *f) {
    int64_t sites = 0, replicas = 0, least = INT64_MAX, most = 0;
    const sr_run_site *s;
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        if (globs_is_replica(s->name)) {
            replicas++;
            continue;
        }
        const int64_t shares = shares_of_site(f, s->name);
        least = shares < least ? shares : least;
        most = shares > most ? shares : most;
        sites++;
    }
    printf("%lld", (long long)sites);
    if (replicas && least == most && replicas == sites * (most - 1))
        printf(" site%s, each of %lld shares (NAME@1 ...)", sites == 1 ? "" : "s", (long long)most);
    else if (replicas)
        printf(" site%s, and %lld of other shares (NAME@1 ...)", sites == 1 ? "" : "s",
               (long long)replicas);
    putchar('\n');
}
