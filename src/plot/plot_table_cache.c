/* plot_table_cache.c -- a cache of tables: figures of a report, and the next report, need the same
 * tables of the same runs. A file in the report's folder has a table and its key: the program, the
 * words of the command, and the identity of each run file. A table counts only where the whole key
 * is equal and the table has its checksum. Processes write under a temporary name and rename: a
 * file is complete when it appears.
 */
#include "plot/plot_table_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/containers/hash.h"
#include "base/program/install_files.h"
#include "plot/template/plot_sizes.h"

typedef struct key {
    char *text; /* owned; NULL: nothing to keep */
    size_t size;
} key;

typedef struct header {
    char magic[16];
    uint64_t key, table, checksum; /* bytes of both, and hash of the table */
} header;

static const char magic[16] = "statplot table1";

/* -- keys ------------------------------------------------------------------------------------ */

/* Its version, and size and time of its file, which another build changes. The analyses are part of
 * this program; statrec is beside it. */
static bool write_program(FILE *out, const char *name) {
    char path[PLOT_PATH + 64] = "/proc/self/exe";
    struct stat st;
    if (strcmp(name, "statrec") == 0) {
        install_files_program_directory(path);
        const size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "%s", name);
    }
    if (stat(path, &st) != 0) return false;
    fprintf(out, "%s %lld %lld.%09ld", STATREC_VERSION, (long long)st.st_size,
            (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return true;
}

static const plot_run *run_of(const plot_table_cache *c, const char *word) {
    for (int i = 0; i < c->runs; i++)
        if (c->run[i].path == word) return &c->run[i];
    return NULL;
}

static key key_make(const plot_table_cache *c, char *const *argv) {
    key k = {NULL, 0};
    FILE *out = open_memstream(&k.text, &k.size);
    bool known = out && write_program(out, argv[0]);
    int files = 0;
    for (int i = 0; argv[i] && known; i++) {
        const plot_run *run = run_of(c, argv[i]);
        fwrite("\n", 1, 2, out); /* with the zero byte, which no word has */
        fputs(argv[i], out);
        if (!run) continue;
        known = run->known, files++;
        fputc(0, out);
        fwrite(run->identity, sizeof run->identity, 1, out);
    }
    if (out && fclose(out) == 0 && known && files) return k;
    free(k.text);
    return (key){NULL, 0};
}

static void path_of(const char *folder, const key *k, char path[2 * PLOT_PATH]) {
    snprintf(path, 2 * PLOT_PATH, "%s/" PLOT_TABLE_PREFIX "%016llx", folder,
             (unsigned long long)hash_bytes(k->text, k->size));
}

/* -- files ----------------------------------------------------------------------------------- */

/* malloc'd; NULL if it is not the table of this key. */
static char *read_table(const char *path, const key *k, uint64_t *size) {
    header h;
    struct stat st;
    char *text = NULL;
    FILE *in = fopen(path, "r");
    bool good = in && fstat(fileno(in), &st) == 0 && fread(&h, sizeof h, 1, in) == 1 &&
                memcmp(h.magic, magic, sizeof magic) == 0 && h.key == k->size &&
                (uint64_t)st.st_size - sizeof h - h.key == h.table;
    if (good) good = (text = malloc(h.key + h.table + 1)) != NULL;
    if (good)
        good = fread(text, 1, h.key + h.table, in) == h.key + h.table &&
               memcmp(text, k->text, k->size) == 0 &&
               hash_bytes(text + h.key, h.table) == h.checksum;
    if (in) fclose(in);
    if (good) return memmove(text, text + h.key, h.table), *size = h.table, text;
    free(text);
    return NULL;
}

static bool write_file(const char *path, const header *h, const key *k, const char *table,
                       uint64_t size) {
    FILE *out = fopen(path, "w");
    if (!out) return false;
    bool good = !h || (fwrite(h, sizeof *h, 1, out) == 1 && fwrite(k->text, k->size, 1, out) == 1);
    good = good && (!size || fwrite(table, size, 1, out) == 1);
    if (fclose(out) == 0 && good) return true;
    unlink(path);
    return false;
}

static void keep(const plot_table_cache *c, const key *k, const char *table, uint64_t size) {
    char path[2 * PLOT_PATH], part[2 * PLOT_PATH + 24];
    header h = {.key = k->size, .table = size, .checksum = hash_bytes(table, size)};
    memcpy(h.magic, magic, sizeof magic);
    path_of(c->folder, k, path);
    snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    if (write_file(part, &h, k, table, size) && rename(part, path) != 0) unlink(part);
}

static void keep_output(const plot_table_cache *c, const key *k, const char *output) {
    char *text = NULL;
    struct stat st;
    FILE *in = k->text ? fopen(output, "r") : NULL;
    if (!in) return;
    if (fstat(fileno(in), &st) == 0 && (text = malloc((size_t)st.st_size + 1)) &&
        fread(text, 1, (size_t)st.st_size, in) == (size_t)st.st_size)
        keep(c, k, text, (uint64_t)st.st_size);
    free(text);
    fclose(in);
}

static bool take(const plot_table_cache *c, const key *k, const char *output) {
    char path[2 * PLOT_PATH];
    uint64_t size = 0;
    if (!k->text) return false;
    path_of(c->folder, k, path);
    char *table = read_table(path, k, &size);
    const bool here = table != NULL;
    if (!here) path_of(c->earlier, k, path), table = read_table(path, k, &size);
    if (!table) return false;
    if (!here) keep(c, k, table, size);
    const bool good = write_file(output, NULL, NULL, table, size);
    free(table);
    return good;
}

/* -- a list ---------------------------------------------------------------------------------- */

typedef struct rest {
    key *key; /* [count] */
    plot_process *p;
    sr_failure *each;
    int *at; /* [left] places in the list */
    int left;
} rest;

static void rest_free(rest *r, int count) {
    for (int i = 0; r->key && i < count; i++) free(r->key[i].text);
    free(r->key), free(r->p), free(r->each), free(r->at);
}

/* Those that the cache does not answer. */
static sr_status rest_make(rest *r, const plot_table_cache *c, const plot_process *p, int count,
                           sr_failure *why) {
    const size_t n = (size_t)count + 1;
    *r = (rest){.key = calloc(n, sizeof *r->key),
                .p = calloc(n, sizeof *r->p),
                .each = calloc(n, sizeof *r->each),
                .at = calloc(n, sizeof *r->at)};
    if (!r->key || !r->p || !r->each || !r->at) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count; i++) {
        r->key[i] = key_make(c, p[i].argv);
        if (take(c, &r->key[i], p[i].output)) continue;
        r->p[r->left] = p[i];
        r->at[r->left++] = i;
    }
    return SR_OK;
}

sr_status plot_table_cache_run(const plot_table_cache *c, const plot_process *p, int count,
                               sr_failure *each, sr_failure *why) {
    rest r;
    if (!c) return plot_process_run_all(p, count, each, why);
    sr_status status = rest_make(&r, c, p, count, why);
    if (status == SR_OK) status = plot_process_run_all(r.p, r.left, r.each, why);
    for (int k = 0; k < r.left && status == SR_OK; k++) {
        each[r.at[k]] = r.each[k];
        if (r.each[k].status == SR_OK) keep_output(c, &r.key[r.at[k]], r.p[k].output);
    }
    rest_free(&r, count);
    return status;
}
