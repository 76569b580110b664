/* folder_files.c -- the files of a folder; see folder_files.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "data/find/folder_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"

/* -- roles */

static const struct {
    const char *word;
    file_role role;
} role_words[] = {{"train", ROLE_TRAIN}, {"training", ROLE_TRAIN},   {"valid", ROLE_VALID},
                  {"val", ROLE_VALID},   {"validation", ROLE_VALID}, {"dev", ROLE_VALID},
                  {"devel", ROLE_VALID}, {"testa", ROLE_VALID},      {"test", ROLE_TEST},
                  {"tst", ROLE_TEST},    {"testb", ROLE_TEST},       {"t10k", ROLE_TEST}};

/* A word of a name, digits after it left out: "dev2010". */
static file_role role_of_word(const char *word, size_t length) {
    for (size_t i = 0; i < sizeof role_words / sizeof *role_words; i++) {
        const size_t size = strlen(role_words[i].word);
        if (size > length || strncmp(word, role_words[i].word, size) != 0) continue;
        if (strspn(word + size, "0123456789") >= length - size) return role_words[i].role;
    }
    return ROLE_NONE;
}

file_role folder_role(const char *name, char rest[FOLDER_NAME]) {
    snprintf(rest, FOLDER_NAME, "%s", name);
    for (const char *at = name; *at;) {
        const size_t length = strcspn(at, "._-");
        const file_role role = role_of_word(at, length);
        if (role != ROLE_NONE) {
            snprintf(rest, FOLDER_NAME, "%.*s*%s", (int)(at - name), name, at + length);
            return role;
        }
        at += length + (at[length] != 0);
    }
    return ROLE_NONE;
}

/* -- the list */

void folder_files_free(folder_files *f) {
    free(f->file);
    *f = (folder_files){0};
}

folder_file *folder_files_find(const folder_files *f, const char *name) {
    for (int i = 0; i < f->count; i++)
        if (!strcmp(f->file[i].name, name)) return &f->file[i];
    return NULL;
}

static bool is_shown(const char *name) {
    for (int n; *name; name += n)
        if ((n = utf8_shown(name)) <= 0) return false;
    return true;
}

/* A link leads to something that is not below the folder. */
static bool leads_out(const char *folder, const char *path) {
    char *inside = realpath(folder, NULL), *target = realpath(path, NULL);
    const size_t length = inside ? strlen(inside) : 0;
    const bool below = inside && target && strncmp(inside, target, length) == 0 &&
                       (target[length] == '/' || length == 1);
    free(inside), free(target);
    return !below;
}

_Static_assert(NAME_MAX < FOLDER_NAME, "a name is cut");

/* A file that went away is one of the others. */
static sr_status fail_at(folder_files *f, const char *path, sr_failure *why) {
    f->others++;
    if (errno == ENOENT) return SR_OK; /* unreached: a file that goes after readdir */
    return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

static sr_status add_file(folder_files *f, const char *entry, sr_failure *why) {
    char path[FILE_PATH + FOLDER_NAME];
    struct stat s;
    folder_file own = {0};
    const size_t length = strlen(entry);
    const bool packed = length > 3 && strcmp(entry + length - 3, ".gz") == 0;
    snprintf(path, sizeof path, "%s/%s", f->path, entry);
    if (!is_shown(entry)) {
        f->others++;
        return SR_OK;
    }
    if (lstat(path, &s) != 0) return fail_at(f, path, why);
    if (S_ISLNK(s.st_mode) && leads_out(f->path, path)) {
        f->links++;
        return SR_OK;
    }
    if (stat(path, &s) != 0) return fail_at(f, path, why);
    if (!S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode)) {
        f->others++;
        return SR_OK;
    }
    own.folder = S_ISDIR(s.st_mode);
    snprintf(own.name, sizeof own.name, "%.*s", (int)(length - (packed && !own.folder ? 3 : 0)),
             entry);
    if (folder_files_find(f, own.name)) return SR_OK; /* plain and .gz */
    own.role = folder_role(own.name, own.rest);
    f->file[f->count++] = own;
    return SR_OK;
}

static sr_status add_files(folder_files *f, sr_failure *why) {
    DIR *folder = opendir(f->path);
    if (!folder) return sr_fail(why, SR_IO, "%s: %s", f->path, strerror(errno));
    sr_status status = SR_OK;
    const struct dirent *e;
    while (errno = 0, status == SR_OK && !f->more && (e = readdir(folder))) {
        if (*e->d_name == '.') continue;
        f->more = f->count == FOLDER_FILES_MOST;
        if (!f->more) status = add_file(f, e->d_name, why);
    }
    const int reason = errno; /* errno of readdir */
    closedir(folder);
    if (!reason) return status;
    return sr_fail(why, SR_IO, "%s: %s", f->path, strerror(reason));
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const folder_file *)a)->name, ((const folder_file *)b)->name);
}

sr_status folder_files_read(const char *path, const char *only, folder_files *f, sr_failure *why) {
    *f = (folder_files){.file = calloc(FOLDER_FILES_MOST, sizeof *f->file)};
    snprintf(f->path, sizeof f->path, "%s", path);
    if (!f->file) return sr_fail(why, SR_MEMORY, "%s: out of memory for its files", path);
    if (only) {
        const sr_status status = add_file(f, only, why);
        if (status != SR_OK || f->count == 1) return status;
        return sr_fail(why, SR_IO, "%s/%s: not a regular file, or a link out of its folder", path,
                       only);
    }
    const sr_status status = add_files(f, why);
    if (status != SR_OK) return status;
    qsort(f->file, (size_t)f->count, sizeof *f->file, by_name);
    return SR_OK;
}

/* -- looks */

static bool ends_with(const char *name, const char *end) {
    const size_t a = strlen(name), b = strlen(end);
    return a > b && strcmp(name + a - b, end) == 0;
}

/* Descriptions, programs and binary data, which the readers find by their names. */
static bool is_no_text(const char *name) {
    static const char *const begin[] = {"README", "LICEN", "COPYING", "CHANGELOG", "_about"};
    static const char *const end[] = {".md",   ".json", ".yml",   ".yaml", ".py",      ".sh",
                                      ".html", ".bin",  "-ubyte", "-int",  ".meta.txt"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (!strncmp(name, begin[i], strlen(begin[i]))) return true;
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        if (ends_with(name, end[i])) return true;
    return false;
}

/* Notes a kind of file that no reader of texts takes. */
static void name_kind(folder_file *file, const char *path) {
    const file_kind *kind = file_kind_of_path(path);
    if (kind && kind->id != KIND_GZIP && kind->id != KIND_IDX)
        sr_fail(&file->why, SR_FORMAT, "%s: %s", file->name, kind->name);
}

static void look_at(const folder_files *f, folder_file *file) {
    char path[FILE_PATH];
    bool found;
    file_bytes text;
    sr_failure *why = &file->why;
    if (file->folder || file_find(f->path, file->name, path, &found, why) != SR_OK || !found)
        return;
    if (is_no_text(file->name)) {
        name_kind(file, path);
        return;
    }
    if (file_read(path, &text, why) == SR_OK) {
        file->looks = text_look(&text, ends_with(file->name, ".csv"));
        file_free(&text);
    }
}

void folder_files_look(folder_files *f) {
    for (int i = 0; i < f->count; i++) look_at(f, &f->file[i]);
}
