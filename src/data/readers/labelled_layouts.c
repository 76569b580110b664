/* labelled_layouts.c -- folders of classes, sentiment trees; see labelled_layouts.h. */
#include "data/readers/labelled_layouts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/readers/sentence_lines.h"

static sr_status no_memory(const char *path, sr_failure *why) {
    return sr_fail(why, SR_MEMORY, "%s: out of memory for its texts", path);
}

/* -- folders */

/* Bytes of the longest folder: of the data, a split, a class. */
enum { FOLDER_MOST = 2 * DATA_TEXT + NAME_MAX + 1 };
_Static_assert(FOLDER_MOST + 1 + NAME_MAX < FILE_PATH, "a path is cut");

/* False if the path does not exist, or is something else. */
static sr_status is_folder(const char *path, bool *folder, sr_failure *why) {
    struct stat s;
    const bool there = stat(path, &s) == 0;
    *folder = there && S_ISDIR(s.st_mode);
    if (there || errno == ENOENT || errno == ENOTDIR) return SR_OK;
    return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

static int is_visible(const struct dirent *e) {
    return e->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Sorted, without hidden ones. */
static sr_status list_names(const char *folder, struct dirent ***name, int *names,
                            sr_failure *why) {
    *names = scandir(folder, name, is_visible, by_bytes);
    if (*names >= 0) return SR_OK;
    if (errno == ENOMEM) return no_memory(folder, why);
    return sr_fail(why, SR_IO, "%s: %s", folder, strerror(errno));
}

static void free_names(struct dirent **name, int names) {
    for (int i = 0; i < names; i++) free(name[i]);
    free(name);
}

/* The folders of a split and their contents. */
typedef struct folder_texts {
    dataset *d;
    const data_options *options;
    byte_buffer lines, *names;
    int64_t recoded; /* texts of the class that are not UTF-8 */
} folder_texts;

/* Appends `label TAB text` and a newline; line ends in the text become blanks. */
static sr_status add_text(folder_texts *t, const char *path, const char *label, sr_failure *why) {
    file_bytes f;
    int64_t lines;
    text_decoding how;
    const int encoding = text_encoding_find(t->options->encoding);
    sr_status status = text_read_as(path, (text_encoding)encoding, &f, &lines, &how, why);
    if (status != SR_OK) return status;
    t->recoded += how.recoded;
    dataset_check_encoding(t->d, path, &how);
    for (size_t i = 0; i < f.size; i++)
        if (f.byte[i] == '\n' || f.byte[i] == '\r') f.byte[i] = ' ';
    byte_buffer *out = &t->lines;
    buffer_put(out, label, strlen(label)), buffer_put(out, "\t", 1);
    buffer_put(out, f.byte, f.size);
    const bool done = buffer_put(out, "\n", 1); /* false after any that failed */
    file_free(&f);
    return done ? SR_OK : no_memory(path, why);
}

/* Backup copies, and NAME.gz beside NAME. */
static bool is_spare(const char *path) {
    static const char *const ends[] = {"~", ".bak", ".gz"};
    char plain[FILE_PATH];
    const size_t length = strlen(path);
    for (int i = 0; i < 3; i++) {
        const size_t size = strlen(ends[i]);
        if (length < size || strcmp(path + length - size, ends[i]) != 0) continue;
        snprintf(plain, sizeof plain, "%.*s", (int)(length - size), path);
        return i < 2 || access(plain, F_OK) == 0;
    }
    return false;
}

static sr_status add_class(folder_texts *t, const char *folder, const char *label,
                           sr_failure *why) {
    struct dirent **name;
    char path[FILE_PATH];
    int names, texts = 0;
    if (strpbrk(label, " \t"))
        return sr_fail(why, SR_FORMAT, "%s: a class with a blank in its name", folder);
    sr_status status = list_names(folder, &name, &names, why);
    if (status != SR_OK) return status;
    t->recoded = 0;
    for (int i = 0; status == SR_OK && i < names; i++) {
        snprintf(path, sizeof path, "%.*s/%s", FOLDER_MOST, folder, name[i]->d_name);
        if (is_spare(path)) continue;
        status = add_text(t, path, label, why);
        buffer_put(t->names, label, strlen(label)), buffer_put(t->names, "/", 1);
        const bool done = buffer_put(t->names, name[i]->d_name, strlen(name[i]->d_name) + 1);
        if (status == SR_OK && !done) status = no_memory(path, why);
        texts++;
    }
    free_names(name, names);
    if (status != SR_OK) return status;
    dataset_note(t->d, ", %d texts of %s", texts, label);
    if (t->recoded)
        dataset_note(t->d, ", %lld of them not UTF-8: read as Windows-1252", (long long)t->recoded);
    if (texts < names) dataset_note(t->d, ", %d copies left out", names - texts);
    return SR_OK;
}

static sr_status add_classes(folder_texts *t, const char *folder, sr_failure *why) {
    struct dirent **name;
    char path[FILE_PATH];
    int names;
    bool class;
    sr_status status = list_names(folder, &name, &names, why);
    if (status != SR_OK) return status;
    for (int i = 0; status == SR_OK && i < names; i++) {
        snprintf(path, sizeof path, "%.*s/%s", FOLDER_MOST, folder, name[i]->d_name);
        status = is_folder(path, &class, why); /* not lists of addresses, features */
        if (status != SR_OK || !class) continue;
        if (strcmp(name[i]->d_name, "unsup") == 0)
            dataset_note(t->d, ", unsup left out");
        else
            status = add_class(t, path, name[i]->d_name, why);
    }
    free_names(name, names);
    if (status == SR_OK && t->lines.size == 0)
        status = sr_fail(why, SR_FORMAT, "%s: no folder with texts, one for each class", folder);
    return status;
}

sr_status labelled_folders(dataset *d, const data_options *o, const char *name, file_bytes *f,
                           byte_buffer *names, bool *found, sr_failure *why) {
    folder_texts t = {.d = d, .options = o, .names = names};
    char path[FILE_PATH];
    const char *dot = strchr(name, '.');
    const int stem = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    bool file;
    sr_status status = file_find(o->dir, name, path, &file, why);
    if (status == SR_OK && !file)
        snprintf(path, sizeof path, "%s%s%.*s", o->dir, *o->dir ? "/" : "", stem, name);
    if (status == SR_OK) status = is_folder(path, found, why);
    if (status != SR_OK || !*found) return status; /* a file comes first */
    if (text_encoding_find(o->encoding) < 0)
        return sr_fail(why, SR_USAGE, "encoding '%.40s' is not one of " ENCODING_WORDS,
                       o->encoding);
    dataset_note(d, " %s (folders", path);
    status = add_classes(&t, path, why);
    dataset_note(d, ")");
    if (status != SR_OK) {
        buffer_free(&t.lines);
        return status;
    }
    *f = (file_bytes){.byte = (uint8_t *)t.lines.byte, .size = t.lines.size};
    snprintf(f->path, sizeof f->path, "%s", path);
    return SR_OK;
}

/* -- trees */

/* Appends the root's label, a TAB and the leaves. Returns the fault, or NULL. */
static const char *add_tree(const char *line, size_t length, byte_buffer *out) {
    int depth = 0;
    bool labelled = false; /* the root */
    for (size_t at = 0; at < length;) {
        const char c = line[at];
        if (is_blank(c)) {
            at++;
            continue;
        }
        if (labelled && depth == 0) return "something follows the tree";
        if (c == ')') {
            at++, depth--;
            continue;
        }
        const bool opens = c == '(';
        const size_t from = at += opens;
        while (at < length && !is_blank(line[at]) && line[at] != '(' && line[at] != ')') at++;
        if (at == from) return "a node of the tree has no label";
        if (!opens && depth == 0) return "the line is no tree, but line 1 is one";
        depth += opens;
        if (opens && labelled) continue; /* the end of a phrase */
        buffer_put(out, line + from, at - from);
        buffer_put(out, labelled ? " " : "\t", 1);
        labelled = true;
    }
    return depth ? "parentheses of the tree do not match" : NULL;
}

static bool begins_tree(const file_bytes *f) {
    const char *p = (const char *)f->byte;
    size_t digits = 1;
    if (f->size < 5 || p[0] != '(') return false;
    while (digits < f->size && p[digits] >= '0' && p[digits] <= '9') digits++;
    return digits > 1 && p[digits] == ' ';
}

sr_status labelled_trees(file_bytes *f, bool *trees, sr_failure *why) {
    byte_buffer out = {0};
    line_walk w = {.file = f};
    *trees = begins_tree(f);
    if (!*trees) return SR_OK;
    while (line_walk_next(&w)) {
        const char *wrong = add_tree(w.line, w.length, &out);
        if (wrong) {
            buffer_free(&out);
            return sr_fail(why, SR_FORMAT, "%s:%lld: %s", f->path, (long long)w.number, wrong);
        }
        buffer_put(&out, "\n", 1);
    }
    if (!buffer_put(&out, "", 0)) {
        buffer_free(&out);
        return no_memory(f->path, why);
    }
    free(f->byte);
    f->byte = (uint8_t *)out.byte, f->size = out.size;
    return SR_OK;
}
