/* plot_table_cache.c -- analyses whose words have been run before are answered with what they said
 * then.
 *
 * Figures of a report ask the same of the same runs: again for every run that an earlier attempt
 * refused, and again for another figure. An answer is two files of a directory that processes may
 * share: ask-HASH, which holds the words and how it went, and names the table. Both are whole
 * before ask-HASH appears, and the first to appear stays.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/containers/hash.h"
#include "plot/plot_process.h"
#include "plot/template/plot_sizes.h"

typedef struct answer {
    sr_failure end;
    char table[64]; /* name of the file; "" after a failure */
    uint64_t words, bytes;
} answer;

/* The words of a command, each with its zero byte. */
typedef struct question {
    char *text; /* owned */
    uint64_t words, bytes;
    uint64_t hash;
} question;

/* -- a question ------------------------------------------------------------------------------ */

static sr_status question_make(question *q, char *const *argv, sr_failure *why) {
    *q = (question){0};
    for (; argv[q->words]; q->words++) q->bytes += strlen(argv[q->words]) + 1;
    char *to = q->text = malloc(q->bytes + 1);
    if (!to) return sr_fail(why, SR_MEMORY, "out of memory");
    for (uint64_t i = 0; i < q->words; i++) {
        const size_t size = strlen(argv[i]) + 1;
        memcpy(to, argv[i], size);
        to += size;
    }
    q->hash = hash_bytes(q->text, q->bytes);
    return SR_OK;
}

static bool question_same(const question *a, const question *b) {
    return a->hash == b->hash && a->words == b->words && a->bytes == b->bytes &&
           memcmp(a->text, b->text, a->bytes) == 0;
}

/* -- files ----------------------------------------------------------------------------------- */

static void path_of(const char *directory, const question *q, char path[2 * PLOT_PATH]) {
    snprintf(path, 2 * PLOT_PATH, "%s/ask-%016llx", directory, (unsigned long long)q->hash);
}

/* Whether the file is an answer to just these words. */
static bool read_answer(const char *path, const question *q, answer *a) {
    FILE *in = fopen(path, "r");
    if (!in) return false;
    char *text = malloc(q->bytes + 1);
    const bool same = text && fread(a, sizeof *a, 1, in) == 1 && a->words == q->words &&
                      a->bytes == q->bytes && fread(text, 1, q->bytes, in) == q->bytes &&
                      memcmp(text, q->text, q->bytes) == 0;
    free(text);
    fclose(in);
    return same;
}

/* The table stands under the name `output`, or the failure in *end; false: it has to be run. */
static bool take(const char *directory, const question *q, const char *output, sr_failure *end) {
    char path[2 * PLOT_PATH], table[2 * PLOT_PATH];
    answer a;
    path_of(directory, q, path);
    if (!read_answer(path, q, &a)) return false;
    if (a.end.status != SR_OK) return *end = a.end, true;
    snprintf(table, sizeof table, "%s/%s", directory, a.table);
    unlink(output);
    return link(table, output) == 0;
}

static bool write_answer(const char *path, const question *q, const answer *a) {
    FILE *out = fopen(path, "w");
    if (!out) return false;
    const bool whole =
        fwrite(a, sizeof *a, 1, out) == 1 && fwrite(q->text, 1, q->bytes, out) == q->bytes;
    return (fclose(out) == 0) && whole;
}

/* What cannot be kept is run again. Only what an analysis says of its runs would be the same
 * another time: no signal to us, no program that is missing. */
static void keep(const char *directory, const question *q, const char *output,
                 const sr_failure *end) {
    char path[2 * PLOT_PATH], part[2 * PLOT_PATH + 24], table[2 * PLOT_PATH];
    answer a = {.end = *end, .words = q->words, .bytes = q->bytes};
    if (end->status != SR_OK && end->status != SR_LIBRARY) return;
    const bool good = end->status == SR_OK;
    path_of(directory, q, path);
    snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    if (good)
        snprintf(a.table, sizeof a.table, "table-%016llx.%ld", (unsigned long long)q->hash,
                 (long)getpid());
    snprintf(table, sizeof table, "%s/%s", directory, a.table);
    if (good && link(output, table) != 0) return;
    const bool kept = write_answer(part, q, &a) && link(part, path) == 0;
    unlink(part);
    if (good && !kept) unlink(table);
}

/* -- a list ---------------------------------------------------------------------------------- */

typedef struct asked {
    question *q; /* [count] */
    plot_process *begin;
    sr_failure *end;
    int *at; /* [begun] places in the list */
    int begun;
    bool *done;
} asked;

static sr_status asked_create(asked *a, const plot_process *p, int count, sr_failure *why) {
    const size_t n = (size_t)count + 1;
    *a = (asked){.q = calloc(n, sizeof *a->q),
                 .begin = calloc(n, sizeof *a->begin),
                 .end = calloc(n, sizeof *a->end),
                 .at = calloc(n, sizeof *a->at),
                 .done = calloc(n, sizeof *a->done)};
    sr_status status = a->q && a->begin && a->end && a->at && a->done
                           ? SR_OK
                           : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && status == SR_OK; i++)
        status = question_make(&a->q[i], p[i].argv, why);
    return status;
}

static void asked_free(asked *a, int count) {
    for (int i = 0; a->q && i < count; i++) free(a->q[i].text);
    free(a->q), free(a->begin), free(a->end), free(a->at), free(a->done);
}

/* Those without an answer; one of several alike. */
static void asked_choose(asked *a, const char *directory, const plot_process *p, int count,
                         sr_failure *each) {
    a->begun = 0;
    for (int i = 0; i < count; i++) {
        if (!a->done[i]) a->done[i] = take(directory, &a->q[i], p[i].output, &each[i]);
        bool alike = false;
        for (int k = 0; k < a->begun && !alike; k++)
            alike = question_same(&a->q[i], &a->q[a->at[k]]);
        if (a->done[i] || alike) continue;
        a->end[a->begun] = (sr_failure){0};
        a->begin[a->begun] = p[i];
        a->at[a->begun++] = i;
    }
}

static sr_status asked_run(asked *a, const char *directory, sr_failure *each, sr_failure *why) {
    const sr_status status = plot_process_run_all(a->begin, a->begun, a->end, why);
    for (int k = 0; k < a->begun && status == SR_OK; k++) {
        const int i = a->at[k];
        each[i] = a->end[k];
        a->done[i] = true;
        keep(directory, &a->q[i], a->begin[k].output, &each[i]);
    }
    return status;
}

sr_status plot_table_cache_run(const char *directory, const plot_process *p, int count,
                               sr_failure *each, sr_failure *why) {
    asked a;
    if (!directory) return plot_process_run_all(p, count, each, why);
    sr_status status = asked_create(&a, p, count, why);
    if (status == SR_OK) asked_choose(&a, directory, p, count, each);
    while (status == SR_OK && a.begun) {
        status = asked_run(&a, directory, each, why);
        if (status == SR_OK) asked_choose(&a, directory, p, count, each);
    }
    asked_free(&a, count);
    return status;
}
