/* file_zip.c -- reads the only file of a ZIP archive by libzip; see file_zip.h. */
#include "text/file_zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zip.h>

#include "text/file_bytes.h"

struct file_zip {
    char path[FILE_PATH];
    zip_t *zip;
    zip_file_t *member;
    size_t size, done, most;
};

enum { INFLATED_LEAST = 64 << 20 };

size_t file_most_inflated(size_t bytes) {
    const size_t most = (SIZE_MAX / 2 - INFLATED_LEAST) / FILE_INFLATED_RATIO;
    return INFLATED_LEAST + (bytes < most ? bytes : most) * FILE_INFLATED_RATIO;
}

/* The file begins as an archive does; its directory is at the end. */
static sr_status fail_truncated(const char *path, sr_failure *why) {
    struct stat archive = {0};
    if (stat(path, &archive) != 0) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    return sr_fail(why, SR_FORMAT, "%s: byte %lld: truncated ZIP archive", path,
                   (long long)archive.st_size);
}

static sr_status fail_zip(const char *path, zip_error_t *error, sr_failure *why) {
    const int code = zip_error_code_zip(error);
    if (code == ZIP_ER_NOZIP || code == ZIP_ER_EOF) return fail_truncated(path, why);
    const sr_status status = code == ZIP_ER_MEMORY ? SR_MEMORY : SR_FORMAT;
    return sr_fail(why, status, "%s: a ZIP archive: %s", path, zip_error_strerror(error));
}

static bool counts(const char *name) {
    const char *slash = strrchr(name, '/');
    return !(slash && !slash[1]) && strncmp(name, "__MACOSX/", 9) != 0 &&
           strcmp(slash ? slash + 1 : name, ".DS_Store") != 0;
}

/* -1: none or several, and *why names them. */
static zip_int64_t find_member(const file_zip *z, sr_failure *why) {
    char names[160] = "";
    zip_int64_t found = -1, members = 0;
    for (zip_int64_t i = 0; i < zip_get_num_entries(z->zip, 0); i++) {
        const char *name = zip_get_name(z->zip, (zip_uint64_t)i, 0);
        if (!name || !counts(name)) continue; /* unreached: an entry without a name */
        const size_t used = strlen(names);
        if (++members <= 3)
            snprintf(names + used, sizeof names - used, "%s%.40s", used ? ", " : "", name);
        found = i;
    }
    if (members == 1) return found;
    sr_fail(why, SR_FORMAT, "%s: a ZIP archive of %lld files%s%s%s; wanted is one file", z->path,
            (long long)members, members ? ": " : "", names, members > 3 ? " ..." : "");
    sr_hint(why, "`unzip FILE` unpacks it; give one of its files");
    return -1;
}

static sr_status open_member(file_zip *z, sr_failure *why) {
    zip_stat_t s;
    struct stat archive;
    int code = 0;
    z->zip = zip_open(z->path, ZIP_RDONLY, &code);
    if (!z->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        fail_zip(z->path, &error, why);
        zip_error_fini(&error);
        return why->status;
    }
    const zip_int64_t i = find_member(z, why);
    if (i < 0) return SR_FORMAT;
    if (stat(z->path, &archive) != 0)
        return sr_fail(why, SR_IO, "%s: %s", z->path, strerror(errno));
    z->most = file_most_inflated((size_t)archive.st_size);
    if (zip_stat_index(z->zip, (zip_uint64_t)i, 0, &s) != 0 ||
        !(z->member = zip_fopen_index(z->zip, (zip_uint64_t)i, 0)))
        return fail_zip(z->path, zip_get_error(z->zip), why);
    /* unreached: an entry without its size */
    z->size = s.valid & ZIP_STAT_SIZE && s.size < z->most ? (size_t)s.size : 0;
    return SR_OK;
}

file_zip *file_zip_open(const char *path, sr_failure *why) {
    file_zip *z = calloc(1, sizeof *z);
    if (!z) {
        sr_fail(why, SR_MEMORY, "%.200s: out of memory", path);
        return NULL;
    }
    snprintf(z->path, sizeof z->path, "%s", path); /* which both callers have checked */
    if (open_member(z, why) == SR_OK) return z;
    file_zip_close(z);
    return NULL;
}

sr_status file_zip_read(file_zip *z, void *to, size_t most, size_t *got, sr_failure *why) {
    const zip_int64_t n = zip_fread(z->member, to, most);
    if (n < 0) return fail_zip(z->path, zip_file_get_error(z->member), why);
    *got = (size_t)n;
    z->done += *got;
    if (z->done <= z->most) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s: unpacks to over %zu bytes", z->path, z->most);
    sr_hint(why, "unzip it to have it read all the same");
    return SR_FORMAT;
}

size_t file_zip_size(const file_zip *z) {
    return z->size;
}

void file_zip_close(file_zip *z) {
    if (!z) return;
    if (z->member) zip_fclose(z->member);
    if (z->zip) zip_discard(z->zip);
    free(z);
}
