/* Run files that stay open. Opening one takes longer than many an analysis: a program that is going
 * to fork processes for its analyses opens each run once, and they find it open.
 */

#include "analysis/runs/run_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Whether a name is still that of the file that was opened. */
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
    bool lent; /* to one at a time: he may read it as if it were his own */
} kept;

static struct {
    bool on;
    kept *row;
    int count, capacity;
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

/* A run that grows is another one every time. */
static bool is_still(const sr_runfile *run, const char *path) {
    const sr_run_info *info = sr_run_get_info(run);
    return strcmp(info->status, "running") != 0 && strcmp(info->path, path) == 0;
}

/* What cannot be kept is open for its reader alone. */
static void keep(sr_runfile *run, const char *path, const identity *of) {
    if (!is_still(run, path) || find(path)) return;
    if (all.count == all.capacity) {
        const int capacity = 2 * all.capacity + 16;
        kept *grown = realloc(all.row, (size_t)capacity * sizeof *grown);
        if (!grown) return;
        all.row = grown;
        all.capacity = capacity;
    }
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
