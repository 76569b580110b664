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

sr_status checkpoint_path(const char *prefix, int64_t update, char path[CHECKPOINT_PATH],
                          sr_failure *why) {
    int length = snprintf(path, CHECKPOINT_PATH, "%s-%07lld.ckpt", prefix, (long long)update);
    if (length > 0 && length < CHECKPOINT_PATH) return SR_OK;
    return sr_fail(why, SR_USAGE, "%.80s...: too long for the name of a checkpoint", prefix);
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

sr_status checkpoint_sweep(const char *prefix, sr_failure *why) {
    const char *slash = strrchr(prefix, '/'), *base = slash ? slash + 1 : prefix;
    const int length = slash == prefix ? 1 : slash ? (int)(slash - prefix) : 1;
    char directory[CHECKPOINT_PATH], path[2 * CHECKPOINT_PATH];
    struct stat s;
    sr_status status = SR_OK;
    snprintf(directory, sizeof directory, "%.*s", length, slash ? prefix : ".");
    DIR *d = opendir(directory);
    for (const struct dirent *e; d && status == SR_OK && (e = readdir(d));) {
        char name[256] = "";
        const size_t size = strlen(e->d_name), tail = sizeof ".part" - 1;
        if (size < tail || size >= sizeof name || strcmp(e->d_name + size - tail, ".part"))
            continue;
        memcpy(name, e->d_name, size - tail);
        if (update_of(name, base) < 0) continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (lstat(path, &s) != 0 || !S_ISREG(s.st_mode)) continue;
        if (unlink(path) != 0 && errno != ENOENT)
            status = sr_fail(why, SR_IO, "%s: remove: %s", path, strerror(errno));
    }
    if (d) closedir(d);
    return status;
}

static int newest_first(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

sr_status checkpoint_list(const char *prefix, int64_t **update, int *count, sr_failure *why) {
    const char *slash = strrchr(prefix, '/'), *base = slash ? slash + 1 : prefix;
    const int length = slash == prefix ? 1 : slash ? (int)(slash - prefix) : 1;
    char directory[CHECKPOINT_PATH];
    bool whole = true;
    int64_t capacity = 0;
    *update = NULL, *count = 0;
    snprintf(directory, sizeof directory, "%.*s", length, slash ? prefix : ".");
    DIR *d = opendir(directory);
    if (!d && errno == ENOENT) return SR_OK;
    if (!d) return sr_fail(why, SR_IO, "%s: %s", directory, strerror(errno));
    for (const struct dirent *e; (e = readdir(d));) {
        const int64_t u = update_of(e->d_name, base);
        if (u < 0) continue;
        whole = vector_reserve(update, &capacity, *count + 1, sizeof **update);
        if (!whole) break;
        (*update)[(*count)++] = u;
    }
    closedir(d);
    if (*count) qsort(*update, (size_t)*count, sizeof **update, newest_first);
    if (whole) return SR_OK;
    free(*update);
    *update = NULL, *count = 0;
    return sr_fail(why, SR_MEMORY, "%s: out of memory for its checkpoints", directory);
}
