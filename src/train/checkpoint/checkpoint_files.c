/* checkpoint_files.c -- names of a run's checkpoints: PREFIX-0000500.ckpt after update 500. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/containers/vector.h"
#include "train/checkpoint/checkpoint.h"

void checkpoint_prefix(const train_config *c, char prefix[CHECKPOINT_PATH]) {
    const char *from = *c->checkpoint ? c->checkpoint : c->output;
    size_t length = strlen(from);
    const bool run_file = !*c->checkpoint && length > 3 && !strcmp(from + length - 3, ".h5");
    snprintf(prefix, CHECKPOINT_PATH, "%.*s", (int)(run_file ? length - 3 : length), from);
}

void checkpoint_path(const char *prefix, int64_t update, char path[CHECKPOINT_PATH]) {
    snprintf(path, CHECKPOINT_PATH, "%s-%07lld.ckpt", prefix, (long long)update);
}

/* The update of "run-0000500.ckpt" after "run"; -1 for other names. */
static int64_t update_of(const char *file, const char *base) {
    const size_t length = strlen(base);
    if (strncmp(file, base, length) != 0 || file[length] != '-') return -1;
    const char *digits = file + length + 1;
    const size_t count = strspn(digits, "0123456789");
    if (count < 7 || count > 18 || strcmp(digits + count, ".ckpt") != 0) return -1;
    return strtoll(digits, NULL, 10);
}

/* Whether it is one of those, or "run-best.ckpt". */
static bool is_of_run(const char *file, const char *base) {
    const size_t length = strlen(base);
    return update_of(file, base) >= 0 ||
           (!strncmp(file, base, length) && !strcmp(file + length, CHECKPOINT_BEST));
}

/* Called with one file: its folder and name, both without the ending. */
typedef sr_status file_fn(const char *directory, const char *name, sr_failure *why);

/* The folder of the files; without a slash in the prefix, the current one. */
static const char *split_prefix(const char *prefix, char directory[CHECKPOINT_PATH]) {
    const char *slash = strrchr(prefix, '/');
    if (!slash) return strcpy(directory, "."), prefix;
    const int length = slash > prefix ? (int)(slash - prefix) : 1;
    snprintf(directory, CHECKPOINT_PATH, "%.*s", length, prefix);
    return slash + 1;
}

/* NULL without failure: there is no such folder, and nothing in it. */
static DIR *open_folder(const char *directory, sr_failure *why) {
    DIR *d = opendir(directory);
    if (!d && errno != ENOENT) sr_fail(why, SR_IO, "%s: %s", directory, strerror(errno));
    return d;
}

/* The next entry. NULL: no more, or *why: a folder that is read in part would hide checkpoints. */
static const struct dirent *next_entry(DIR *d, const char *directory, sr_failure *why) {
    errno = 0;
    const struct dirent *e = readdir(d);
    if (!e && errno) sr_fail(why, SR_IO, "%s: %s", directory, strerror(errno));
    return e;
}

/* Does it with one entry, if it is one of these. */
static sr_status take_entry(const char *directory, const char *entry, const char *base,
                            const char *ending, file_fn *of, sr_failure *why) {
    char name[256] = "", path[2 * CHECKPOINT_PATH];
    struct stat s;
    const size_t size = strlen(entry), tail = strlen(ending);
    if (size < tail || size >= sizeof name || strcmp(entry + size - tail, ending)) return SR_OK;
    memcpy(name, entry, size - tail);
    if (!is_of_run(name, base)) return SR_OK;
    snprintf(path, sizeof path, "%s/%s", directory, entry);
    if (lstat(path, &s) == 0) return S_ISREG(s.st_mode) ? of(directory, name, why) : SR_OK;
    /* unreached: a file that goes between the two calls */
    return errno == ENOENT ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

/* Regular files PREFIX-UPDATE.ckpt and PREFIX-best.ckpt with this ending. */
static sr_status each_file(const char *prefix, const char *ending, file_fn *of, sr_failure *why) {
    char directory[CHECKPOINT_PATH];
    sr_failure own = {0};
    sr_status status = SR_OK;
    const char *base = split_prefix(prefix, directory);
    DIR *d = open_folder(directory, &own);
    for (const struct dirent *e; d && status == SR_OK && (e = next_entry(d, directory, &own));)
        status = take_entry(directory, e->d_name, base, ending, of, why);
    if (d) closedir(d);
    return own.status == SR_OK ? status : sr_fail(why, SR_IO, "%s", own.text);
}

static sr_status remove_file(const char *directory, const char *name, const char *ending,
                             sr_failure *why) {
    char path[2 * CHECKPOINT_PATH];
    snprintf(path, sizeof path, "%s/%s%s", directory, name, ending);
    /* unreached: a file that goes after lstat */
    if (unlink(path) == 0 || errno == ENOENT) return SR_OK;
    return sr_fail(why, SR_IO, "%s: remove: %s", path, strerror(errno));
}

static sr_status remove_part(const char *directory, const char *name, sr_failure *why) {
    return remove_file(directory, name, ".part", why);
}

sr_status checkpoint_sweep(const char *prefix, sr_failure *why) {
    return each_file(prefix, ".part", remove_part, why);
}

/* -- checkpoints of a run that --force replaces */

static sr_status remove_old(const char *directory, const char *name, sr_failure *why) {
    return remove_file(directory, name, ".old", why);
}

static sr_status remove_new(const char *directory, const char *name, sr_failure *why) {
    return remove_file(directory, name, "", why);
}

static sr_status rename_file(const char *directory, const char *name, bool aside, sr_failure *why) {
    char path[2 * CHECKPOINT_PATH], old[2 * CHECKPOINT_PATH + 8];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    snprintf(old, sizeof old, "%s.old", path);
    if ((aside ? rename(path, old) : rename(old, path)) == 0) return SR_OK;
    return sr_fail(why, SR_IO, "%s: rename: %s", aside ? path : old, strerror(errno));
}

static sr_status set_aside(const char *directory, const char *name, sr_failure *why) {
    return rename_file(directory, name, true, why);
}

static sr_status put_back(const char *directory, const char *name, sr_failure *why) {
    return rename_file(directory, name, false, why);
}

/* Ends the visit at the first file. */
static sr_status is_one(const char *directory, const char *name, sr_failure *why) {
    (void)directory, (void)name, (void)why;
    return SR_EXISTS;
}

sr_status checkpoint_set_aside(const char *prefix, sr_failure *why) {
    sr_status killed = each_file(prefix, ".old", is_one, why);
    if (killed != SR_OK && killed != SR_EXISTS) return killed;
    return each_file(prefix, "", killed == SR_EXISTS ? remove_new : set_aside, why);
}

sr_status checkpoint_put_back(const char *prefix, sr_failure *why) {
    return each_file(prefix, ".old", put_back, why);
}

sr_status checkpoint_drop_old(const char *prefix, sr_failure *why) {
    return each_file(prefix, ".old", remove_old, why);
}

static int newest_first(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

sr_status checkpoint_list(const char *prefix, int64_t **update, int *count, sr_failure *why) {
    char directory[CHECKPOINT_PATH];
    bool whole = true;
    int64_t capacity = 0;
    sr_failure own = {0};
    *update = NULL, *count = 0;
    const char *base = split_prefix(prefix, directory);
    DIR *d = open_folder(directory, &own);
    for (const struct dirent *e; d && whole && (e = next_entry(d, directory, &own));) {
        const int64_t u = update_of(e->d_name, base);
        if (u < 0) continue;
        whole = vector_reserve(update, &capacity, *count + 1, sizeof **update);
        if (whole) (*update)[(*count)++] = u;
    }
    if (d) closedir(d);
    if (!whole) sr_fail(&own, SR_MEMORY, "%s: out of memory for its checkpoints", directory);
    if (*count) qsort(*update, (size_t)*count, sizeof **update, newest_first);
    if (own.status == SR_OK) return SR_OK;
    free(*update);
    *update = NULL, *count = 0;
    return sr_fail(why, own.status, "%s", own.text);
}
