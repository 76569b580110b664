/* read_growing.c -- finds a run file under its two names and reads it while it grows. The file is
 * PATH.part while a process writes it, and PATH afterwards. A fault that a reader finds between two
 * writes, or between the two names, may pass, so it tries again.
 */
#include "runfile/read/file/read_growing.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "journal/trailer.h"
#include "journal/writer_lock.h"
#include "runfile/read/file/superblock.h"

enum { ATTEMPTS = 8 };

static const char ending[] = ".part";

static void pause_before_retry(int attempts) {
    const struct timespec pause = {.tv_nsec = 1000000L << attempts}; /* 1 ms, 2, 4 ... */
    nanosleep(&pause, NULL);
}

/* path.part; or the path without .part if it ends in .part. */
static void other_name(const char *path, char *name) {
    const size_t length = strlen(path), extra = sizeof ending - 1;
    memcpy(name, path, length + 1);
    if (length > extra && strcmp(path + length - extra, ending) == 0)
        name[length - extra] = 0;
    else
        memcpy(name + length, ending, sizeof ending);
}

/* Tries the first name again after the second, since the run may have ended in between. */
char *reader_choose_path(const char *path, sr_failure *why) {
    struct stat s;
    const size_t length = strlen(path);
    char *chosen = malloc(length + sizeof ending);
    if (!chosen) {
        sr_fail(why, SR_MEMORY, "%s: out of memory for its name", path);
        return NULL;
    }
    int missing = ENOENT;
    for (int attempt = 0; attempt < 3 && missing == ENOENT; attempt++) {
        memcpy(chosen, path, length + 1);
        if (attempt == 1) other_name(path, chosen);
        missing = stat(chosen, &s) != 0 ? errno : 0;
    }
    if (missing) sr_fail(why, SR_IO, "%s: %s", path, strerror(missing));
    if (!missing && !S_ISREG(s.st_mode)) sr_fail(why, SR_IO, "%s: not a regular file", chosen);
    if (!missing && S_ISREG(s.st_mode)) return chosen;
    free(chosen);
    return NULL;
}

bool reader_is_live(const char *path) {
    char other[PATH_MAX];
    if (strlen(path) + sizeof ending > sizeof other) return false; /* too long for a file */
    other_name(path, other);
    return writer_lock_is_held(path) || writer_lock_is_held(other);
}

/* Whether the file of the failure has its other name by now: a run ends with a rename. */
static bool was_renamed(const char *path, const sr_failure *why) {
    sr_failure none = {0};
    char *now = reader_choose_path(path, &none);
    const size_t length = now ? strlen(now) : 0;
    const bool other = now && (strncmp(why->text, now, length) != 0 || why->text[length] != ':');
    free(now);
    return other;
}

bool reader_retries(const char *path, bool live, const sr_failure *why, int attempts) {
    const bool passes = why->status == SR_FORMAT || why->status == SR_IO;
    if (!passes || attempts + 1 >= ATTEMPTS) return false;
    if (!live && !reader_is_live(path) && !was_renamed(path, why)) return false;
    pause_before_retry(attempts);
    return true;
}

/* A writer may declare space in the superblock before it extends the file. One that is stopped
 * there is not waited for. */
sr_status reader_check_live_bytes(const char *path, const trailer *e, bool *unfinished,
                                  int64_t *cut_at, sr_failure *why) {
    for (int attempts = 0;; attempts++) {
        const bool live = writer_lock_is_held(path);
        sr_status status = superblock_check(path, e, unfinished, cut_at, why);
        if (status != SR_OK || !*cut_at || !live) return status;
        if (attempts + 1 == ATTEMPTS) return *cut_at = 0, SR_OK;
        pause_before_retry(attempts);
    }
}
