/* read_growing.c -- which of its two names a run file has, and reading one that somebody writes:
 * PATH.part while it grows, PATH from then on. What a reader meets between two writes, or between
 * the two names, is no fault of the file; it looks again.
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

enum { LOOKS = 8 };

static const char ending[] = ".part";

static void pause_a_little(int looks) {
    const struct timespec pause = {.tv_nsec = 1000000L << looks}; /* 1 ms, 2, 4 ... */
    nanosleep(&pause, NULL);
}

/* path.part; or, where the path itself ends so, the path without it. */
static void other_name(const char *path, char *name) {
    const size_t length = strlen(path), extra = sizeof ending - 1;
    memcpy(name, path, length + 1);
    if (length > extra && strcmp(path + length - extra, ending) == 0)
        name[length - extra] = 0;
    else
        memcpy(name + length, ending, sizeof ending);
}

/* path, or its other name when only that exists. malloc'd. The first name is looked at again:
 * between the two looks the run may have ended. */
char *reader_choose_path(const char *path, sr_failure *why) {
    struct stat s;
    const size_t length = strlen(path);
    char *chosen = malloc(length + sizeof ending);
    if (!chosen) {
        sr_fail(why, SR_MEMORY, "%s: out of memory for its name", path);
        return NULL;
    }
    int missing = ENOENT;
    for (int look = 0; look < 3 && missing == ENOENT; look++) {
        memcpy(chosen, path, length + 1);
        if (look == 1) other_name(path, chosen);
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
    if (strlen(path) + sizeof ending > sizeof other) return false; /* no file has such a name */
    other_name(path, other);
    return writer_lock_is_held(path) || writer_lock_is_held(other);
}

/* Whether the file that the failure is of has the other name by now: a run ends by closing its file
 * and then renaming it. */
static bool was_renamed(const char *path, const sr_failure *why) {
    sr_failure none = {0};
    char *now = reader_choose_path(path, &none);
    const size_t length = now ? strlen(now) : 0;
    const bool other = now && (strncmp(why->text, now, length) != 0 || why->text[length] != ':');
    free(now);
    return other;
}

bool reader_retries(const char *path, bool live, const sr_failure *why, int looks) {
    const bool passes = why->status == SR_FORMAT || why->status == SR_IO;
    if (!passes || looks + 1 >= LOOKS) return false;
    if (!live && !reader_is_live(path) && !was_renamed(path, why)) return false;
    pause_a_little(looks);
    return true;
}

/* A writer that is alive may have told of space before it takes it. */
sr_status reader_check_live_bytes(const char *path, const trailer *e, bool *unfinished,
                                  int64_t *cut_at, sr_failure *why) {
    for (int looks = 0;; looks++) {
        const bool live = writer_lock_is_held(path);
        sr_status status = superblock_check(path, e, unfinished, cut_at, why);
        if (status != SR_OK || !*cut_at || !live) return status;
        if (looks + 1 == LOOKS) *cut_at = 0;
        pause_a_little(looks);
    }
}
