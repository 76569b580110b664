/* Singular values of the embedding matrix (PowerNorm, ICML 2020, figure 6; norms.md 18.7).
 *
 * For each recorded matrix: sigma_1 >= sigma_2 >= ..., and sigma_i / sigma_1. Default: the last
 * recorded step of every embedding; --all: every recorded step. The values are in the run file;
 * nothing is decomposed here.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

typedef struct settings {
    bool all;
} settings;

#define AT(field) offsetof(settings, field)
static const option rows[] = {
    FLAG_OPTION("Output", "all", AT(all), "no", "every recorded step instead of the last"),
};
static const option_table options = {rows, sizeof rows / sizeof rows[0]};

static void print_help(const void *self) {
    (void)self;
    printf("usage: stat-svd RUN.h5... [--all]\n\n"
           "Singular values of the recorded embedding matrices, and normalised by the largest.\n"
           "Writes a tab-separated table with its definitions in `#` lines.\n\n");
    options_help(options, stdout);
}

static void declare_columns(tsv *t) {
    tsv_column(t, "run", "run file as given");
    tsv_column(t, "embedding", "name of the matrix");
    tsv_column(t, "step", "forward and backward passes before it was decomposed");
    tsv_column(t, "index", "i, from 1, largest singular value first");
    tsv_column(t, "value", "sigma_i");
    tsv_column(t, "relative", "sigma_i / sigma_1");
    tsv_header(t);
}

static void print_values(tsv *t, const char *path, const char *name, int64_t step,
                         const double *value, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        tsv_text(t, path);
        tsv_text(t, name);
        tsv_int(t, step);
        tsv_int(t, i + 1);
        tsv_real(t, value[i]);
        tsv_real(t, value[i] / value[0]);
    }
}

static sr_status print_embedding(const settings *s, const run_set *set, int r, const char *name,
                                 tsv *t, sr_failure *why) {
    sr_run_embedding e;
    int64_t step;
    sr_status status = sr_run_get_embedding(set->run[r], name, &e, why);
    if (status != SR_OK) return status;
    double *value = malloc((size_t)(e.values + 1) * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    const int64_t first = s->all || e.records == 0 ? 0 : e.records - 1;
    for (int64_t i = first; i < e.records && status == SR_OK; i++) {
        status = sr_run_singular_values(set->run[r], name, i, &step, value, why);
        if (status == SR_OK) print_values(t, set->path[r], name, step, value, e.values);
    }
    free(value);
    return status;
}

/* Counts a run's records; how they were computed goes into the head of the table. */
static sr_status count_records(const run_set *set, int r, tsv *t, int64_t *records,
                               sr_failure *why) {
    const char *name;
    *records = 0;
    for (int i = 0; (name = sr_run_name(set->run[r], "embeddings", i)); i++) {
        sr_run_embedding e;
        sr_status status = sr_run_get_embedding(set->run[r], name, &e, why);
        if (status != SR_OK) return status;
        *records += e.records;
        if (e.records)
            tsv_note(t, "method", "%s: %s: %s", set->path[r], name,
                     *e.method ? e.method : "not told by the program that recorded it");
    }
    return SR_OK;
}

/* Notes the runs without any; a failure when there is no other. */
static sr_status find_records(const run_set *set, tsv *t, sr_failure *why) {
    int64_t total = 0;
    for (int r = 0; r < set->count; r++) {
        int64_t records;
        sr_status status = count_records(set, r, t, &records, why);
        if (status != SR_OK) return status;
        if (!records)
            tsv_note(t, "note", "%s: no singular values of an embedding: left out", set->path[r]);
        total += records;
    }
    if (total) return SR_OK;
    sr_fail(why, SR_FORMAT, "%s%s has no singular values of an embedding", set->path[0],
            set->count > 1 ? " (and no other run)" : "");
    sr_hint(why, "`statrec train` records them for models with word embeddings");
    return SR_FORMAT;
}

static sr_status print_runs(const settings *s, const run_set *set, tsv *t, sr_failure *why) {
    for (int r = 0; r < set->count; r++) {
        const char *name;
        for (int i = 0; (name = sr_run_name(set->run[r], "embeddings", i)); i++) {
            sr_status status = print_embedding(s, set, r, name, t, why);
            if (status != SR_OK) return status;
        }
    }
    return SR_OK;
}

static sr_status print_table(const void *self, const run_set *set, const char *command,
                             sr_failure *why) {
    tsv table;
    table_head head;
    sr_status status = table_head_begin(&head, &table, "stat-svd", command, set, why);
    if (status != SR_OK) return status;
    status = find_records(set, &table, why);
    if (status == SR_OK)
        status = table_head_print(&head, &table, why);
    else
        table_head_drop(&head);
    if (status != SR_OK) return status;
    declare_columns(&table);
    return print_runs(self, set, &table, why);
}

int main(int argc, char **argv) {
    settings s;
    const analysis_program p = {"stat-svd", print_help, options, &s, &s, print_table};
    return analysis_program_main(&p, argc, argv);
}
