/* copy_anonymous.c -- which texts of a run may stay in an anonymous copy.
 *
 * Texts that describe the machine, the user or the time are left out. Names that the analyses need
 * are checked for paths and for three words: the host, the revision, and the user. The user is NAME
 * of a directory /home/NAME or /Users/NAME in the command or the configuration.
 */
#include "runfile/repair/copy_anonymous.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"

enum { LEAST = 3 }; /* shorter words are in too many names */

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether the text contains the word, whatever its case; neighbouring letters make it another. */
static bool has_word(const char *text, const char *word, size_t length) {
    if (length < LEAST) return false;
    for (const char *at = text; *at; at++) {
        if (at > text && is_word(at[-1])) continue;
        size_t same = 0;
        while (same < length && at[same] &&
               tolower((unsigned char)at[same]) == tolower((unsigned char)word[same]))
            same++;
        if (same == length && !is_word(at[length])) return true;
    }
    return false;
}

/* "/home/ann/x", "~/x" and "C:\x" are paths; "g / s" and "sum_g/n" are not. */
static bool has_path(const char *text) {
    for (const char *at = text; *at; at++) {
        if (at > text && !isspace((unsigned char)at[-1]) && !strchr("\"'=:,(;[", at[-1])) continue;
        const size_t length = strcspn(at, " \t\n\"',;)]");
        if (*at == '~' && at[1] == '/') return true;
        if (isalpha((unsigned char)*at) && at[1] == ':' && at[2] == '\\') return true;
        if (*at == '/' && length > 2 && at[1] != '/' && memchr(at + 1, '/', length - 1))
            return true;
    }
    return false;
}

/* Whether the text names the owner of a directory /home/NAME in `from`. */
static bool names_user(const char *text, const char *from) {
    static const char *const begin[] = {"/home/", "/Users/", "/users/"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        for (const char *at = from; (at = strstr(at, begin[i]));) {
            at += strlen(begin[i]);
            if (has_word(text, at, strcspn(at, "/ \t\n\"',;:"))) return true;
        }
    return false;
}

/* An identifying part of the text, as a word; NULL: none. */
static const char *identifies(const sr_run_info *info, const char *text) {
    if (has_path(text)) return "a path";
    if (has_word(text, info->host, strlen(info->host)) ||
        has_word(text, info->host, strcspn(info->host, ".")))
        return "the host";
    if (has_word(text, info->git, strlen(info->git))) return "the revision";
    if (names_user(text, info->command) || names_user(text, info->config) ||
        names_user(text, info->parent) || names_user(text, info->reason))
        return "the user";
    return NULL;
}

void copy_anonymous_info(const sr_runfile *f, sr_run_info *info) {
    const bool own = strcmp(info->program, "statrec train") == 0;
    if (identifies(&f->info, info->model)) info->model = "";
    if (identifies(&f->info, info->data)) info->data = "";
    if (identifies(&f->info, info->task)) info->task = "";
    if (identifies(&f->info, info->loss_reduction)) info->loss_reduction = "";
    if (identifies(&f->info, info->ranks)) info->ranks = "";
    if (!own || identifies(&f->info, info->version)) info->program = info->version = "";
    if (identifies(&f->info, info->weights_digest)) info->weights_digest = "";
    info->host = info->git = info->command = info->parent = "";
    info->created = info->finished = info->reason = "";
}

/* The key of a line `key = value`, cut to size; "" of another line. */
static void key_of(const char *line, size_t length, char *key, size_t size) {
    const char *equals = memchr(line, '=', length);
    size_t end = equals ? (size_t)(equals - line) : 0;
    while (end > 0 && line[end - 1] == ' ') end--;
    snprintf(key, size, "%.*s", (int)end, line);
}

char *copy_anonymous_config(const sr_runfile *f, bool (*shares)(const char *key)) {
    char *text = calloc(strlen(f->info.config) + 1, 1), *line = strdup(f->info.config), *to = text;
    const bool own = text && line && strcmp(f->info.program, "statrec train") == 0 && shares;
    for (const char *at = f->info.config; own && *at;) {
        const size_t length = strcspn(at, "\n"), whole = length + (at[length] == '\n');
        char key[SR_NAME_SIZE];
        memcpy(line, at, length), line[length] = '\0';
        key_of(line, length, key, sizeof key);
        if ((*line == '#' || (*key && shares(key))) && !identifies(&f->info, line))
            memcpy(to, at, whole), to += whole;
        at += whole;
    }
    if (!line) free(text), text = NULL;
    free(line);
    return text;
}

/* Replaces each line by "-". */
static void hide_lines(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        const size_t length = strcspn(at, "\n");
        if (length > 0) *to++ = '-', at += length;
        if (!*at) break;
        *to++ = '\n';
    }
    *to = '\0';
}

void copy_anonymous_texts(const sr_runfile *f, char *text[COPY_TEXTS]) {
    const bool known = text[COPY_CHECKSUMS] && (identifies(&f->info, text[COPY_CHECKSUMS]) ||
                                                identifies(&f->info, text[COPY_OPTIONS]));
    for (int i = 0; i < COPY_TEXTS && known; i++) *text[i] = '\0';
    if (text[COPY_SOURCES]) hide_lines(text[COPY_SOURCES]);
}

static sr_status check(const sr_runfile *f, const char *what, const char *name, const char *text,
                       sr_failure *why) {
    const char *found = identifies(&f->info, text);
    if (!found) return SR_OK;
    sr_fail(why, SR_USAGE, "%s: --anonymous: %s %s contains %s: '%.80s'", f->path, what, name,
            found, text);
    sr_hint(why, "leave it out by --site or --stat, or record the run with another name");
    return SR_USAGE;
}

sr_status copy_anonymous_check(const sr_runfile *f, const copy_choice *choice, sr_failure *why) {
    const int64_t sites = choice->site ? choice->sites : f->info.sites;
    const char *name;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < sites && status == SR_OK; i++) {
        const sr_run_site *s = &f->site[copy_source_of(choice, i)];
        status = check(f, "the name of site", s->name, s->name, why);
        if (status == SR_OK) status = check(f, "the method of site", s->name, s->norm, why);
        if (status == SR_OK) status = check(f, "the kind of site", s->name, s->kind, why);
    }
    for (int i = 0; i < f->metrics && status == SR_OK; i++) {
        const reader_metric *m = &f->metric[i];
        status = check(f, "metric", m->name, m->name, why);
        if (status == SR_OK) status = check(f, "the unit of metric", m->name, m->unit, why);
        if (status == SR_OK)
            status = check(f, "the definition of metric", m->name, m->definition, why);
    }
    for (int i = 0; i < f->declared_count && status == SR_OK; i++) {
        const sr_run_declared *d = &f->declared[i].shown;
        if (!copy_keeps(choice, d->name)) continue;
        status = check(f, "scalar", d->name, d->name, why);
        if (status == SR_OK) status = check(f, "the unit of scalar", d->name, d->unit, why);
        if (status == SR_OK)
            status = check(f, "the definition of scalar", d->name, d->definition, why);
    }
    for (int i = 0; (name = sr_run_name(f, "embeddings", i)) && status == SR_OK; i++) {
        sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
        status = check(f, "embedding", name, name, why);
        if (status == SR_OK) status = sr_run_get_embedding(f, name, &e, why);
        if (status == SR_OK) status = check(f, "the method of embedding", name, e.method, why);
    }
    return status;
}
