/* read_metrics.c -- reads the declarations of metrics below /evals, in their order. */
#include "runfile/read/datasets/read_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/file/damage_list.h"
#include "runfile/read/file/open_file_cache.h"
#include "runfile/read/file/read_column.h"
#include "runfile/read/read_trailer.h"

/* -- files written before metrics were declared ---------------------------------------------- */

/* Only here does a reader depend on the name of a task, since such files have no other description.
 * Order of the metrics and units of losses follow from it. The datasets have unit and definition
 * only.
 *
 * place: the main metric of tables comes first: accuracy for images, perplexity for other tasks.
 * later: newer than the other metrics; a file has all of these or none. */
typedef struct old_metric {
    const char *name;
    sr_better better;
    int place, place_of_images;
    bool later;
} old_metric;

static const old_metric old_metrics[] = {
    {"bleu", SR_BETTER_MORE, 0, 1, false},
    {"f1", SR_BETTER_MORE, 1, 2, false},
    {"uas", SR_BETTER_MORE, 2, 3, false},
    {"las", SR_BETTER_MORE, 3, 4, false},
    {"valid_ppl", SR_BETTER_LESS, 4, 7, false},
    {"valid_accuracy", SR_BETTER_MORE, 5, 0, false},
    {"valid_loss", SR_BETTER_LESS, 6, 5, false},
    {"valid_nll", SR_BETTER_LESS, 7, 6, false},
    {"valid_loss_batch", SR_BETTER_LESS, 8, 8, true},
    {"valid_nll_batch", SR_BETTER_LESS, 9, 9, true},
    {"valid_ppl_batch", SR_BETTER_LESS, 10, 10, true},
    {"valid_accuracy_batch", SR_BETTER_MORE, 11, 11, true},
};
enum { OLD_METRICS = sizeof old_metrics / sizeof old_metrics[0] };

static sr_status use_old(const sr_runfile *f, reader_metric *m, sr_failure *why) {
    const old_metric *old = NULL;
    for (int i = 0; i < OLD_METRICS && !old; i++)
        if (strcmp(old_metrics[i].name, m->name) == 0) old = &old_metrics[i];
    if (!old)
        return sr_fail(why, SR_FORMAT, "%s: /evals/%s: not a metric of a run file", f->path,
                       m->name);
    m->better = old->better;
    m->place = strcmp(f->info.task, "images") == 0 ? old->place_of_images : old->place;
    return SR_OK;
}

/* -- one dataset ----------------------------------------------------------------------------- */

static sr_status find_better(const sr_runfile *f, const char *word, reader_metric *m,
                             sr_failure *why) {
    for (int i = 0; i < 3; i++)
        if (strcmp(run_better_words[i], word) == 0) {
            m->better = (sr_better)(i - 1);
            return SR_OK;
        }
    return sr_fail(why, SR_FORMAT,
                   "%s: /evals/%s attribute better: '%s' is not less, more or empty", f->path,
                   m->name, word);
}

static sr_status read_declaration(const sr_runfile *f, reader_metric *m, sr_failure *why) {
    const h5_path at = h5_path_of("/evals/%s", m->name);
    const char *path = at.text;
    char word[SR_KIND_SIZE];
    sr_status status = reader_line(f, path, "unit", false, m->unit, sizeof m->unit, why);
    if (status == SR_OK)
        status =
            reader_line(f, path, "definition", false, m->definition, sizeof m->definition, why);
    /* Recovered copies of old files declare their metrics and keep this unit. */
    if (status == SR_OK && strcmp(m->unit, "nats per token or image") == 0) {
        if (strcmp(f->info.task, "images") == 0) strcpy(m->unit, "nats per image");
        if (strcmp(f->info.task, "pairs") == 0) strcpy(m->unit, "nats per token");
    }
    if (status == SR_OK && f->declared_metrics < 0) return use_old(f, m, why);
    if (status == SR_OK) status = reader_line(f, path, "better", false, word, sizeof word, why);
    if (status == SR_OK) status = find_better(f, word, m, why);
    if (status == SR_OK)
        status = h5_get_attribute(reader_file(f), path, "place", H5_INT64, NULL, &m->place, why);
    return status;
}

/* Type and shape of its dataset. In an intact file it is opened when it is read, as in
 * count_rows. */
static sr_status check_dataset(const sr_runfile *f, const reader_metric *m, sr_failure *why) {
    const run_column c = {"evals", m->name, "", "", H5_FLOAT64};
    h5_id set;
    h5_shape shape;
    if (reader_is_intact(f)) return SR_OK;
    sr_status status = reader_open_column(f, &c, &set, &shape, why);
    if (status == SR_OK) h5_close_dataset(set);
    return status;
}

static sr_status read_metric(const sr_runfile *f, const char *name, reader_metric *m,
                             sr_failure *why) {
    bool shown = strlen(name) < sizeof m->name;
    for (const char *c = name; *c; c++) shown = shown && (unsigned char)*c >= ' ' && *c != 0x7f;
    if (!shown) return sr_fail(why, SR_FORMAT, "%s: /evals: invalid name of a metric", f->path);
    memcpy(m->name, name, strlen(name) + 1);
    sr_status status = check_dataset(f, m, why);
    return status == SR_OK ? read_declaration(f, m, why) : status;
}

/* -- all of them ----------------------------------------------------------------------------- */

/* Reads the number of declared metrics; -1: the file is older than their declaration. */
static sr_status count_declared(sr_runfile *f, sr_failure *why) {
    f->declared_metrics = -1;
    if (!h5_has_attribute(reader_file(f), "/evals", "metrics")) return SR_OK;
    sr_status status = h5_get_attribute(reader_file(f), "/evals", "metrics", H5_INT64, NULL,
                                        &f->declared_metrics, why);
    if (status == SR_OK && (f->declared_metrics < 0 || f->declared_metrics > SR_METRICS_MAX))
        return sr_fail(why, SR_FORMAT, "%s: /evals declares %lld metrics, not 0 to %d", f->path,
                       (long long)f->declared_metrics, SR_METRICS_MAX);
    return status;
}

static int by_place(const void *x, const void *y) {
    const reader_metric *a = x, *b = y;
    const int order = (a->place > b->place) - (a->place < b->place);
    return order ? order : strcmp(a->name, b->name);
}

/* Members of /evals; 0 if they are more than a run file has. */
static sr_status count_members(sr_runfile *f, int64_t *count, sr_failure *why) {
    sr_status status = count_declared(f, why);
    *count = 0;
    if (status == SR_OK) status = h5_count_members(reader_file(f), "/evals", count, why);
    if (status == SR_OK && *count > SR_METRICS_MAX + 2)
        status = sr_fail(why, SR_FORMAT, "%s: /evals has %lld datasets, at most %d are metrics",
                         f->path, (long long)*count, SR_METRICS_MAX);
    if (status != SR_OK) *count = 0;
    return status;
}

/* Adds member i, unless it is not a metric or is damaged. */
static sr_status take_member(sr_runfile *f, int64_t i, sr_failure *why) {
    char name[2 * SR_NAME_SIZE];
    sr_failure own = {0};
    reader_metric *m = &f->metric[f->metrics];
    if (h5_member(reader_file(f), "/evals", i, name, sizeof name, &own) != SR_OK)
        return damage_list_add(f, &own, why);
    if (strcmp(name, run_eval_step.name) == 0 || strcmp(name, run_eval_epoch.name) == 0)
        return SR_OK;
    if (read_metric(f, name, m, &own) == SR_OK)
        f->metrics++;
    else
        *m = (reader_metric){0};
    return damage_list_add(f, &own, why);
}

/* Reports damaged metrics; lists the others. */
sr_status reader_list_metrics(sr_runfile *f, sr_failure *why) {
    int64_t count;
    sr_failure own = {0};
    count_members(f, &count, &own);
    sr_status status = damage_list_add(f, &own, why);
    if (status != SR_OK) return status;
    f->metric = calloc((size_t)count + 1, sizeof *f->metric);
    if (!f->metric) return sr_fail(why, SR_MEMORY, "%s: %lld metrics", f->path, (long long)count);
    for (int64_t i = 0; i < count && status == SR_OK; i++) status = take_member(f, i, why);
    qsort(f->metric, (size_t)f->metrics, sizeof *f->metric, by_place);
    for (int i = 0; i < f->metrics; i++) { /* the metrics no longer move */
        reader_metric *m = &f->metric[i];
        m->column = (run_column){"evals", m->name, m->unit, m->definition, H5_FLOAT64};
        m->shown = SR_INIT(sr_run_metric, m->name, m->unit, m->definition, m->better);
    }
    return status;
}

static sr_status check_old(const sr_runfile *f, sr_failure *why) {
    bool later = false;
    for (int i = 0; i < OLD_METRICS; i++)
        later = later || (old_metrics[i].later && sr_run_find_metric(f, old_metrics[i].name));
    for (int i = 0; i < OLD_METRICS; i++)
        if ((later || !old_metrics[i].later) && !sr_run_find_metric(f, old_metrics[i].name))
            return sr_fail(why, SR_FORMAT, "%s: /evals/%s: missing", f->path, old_metrics[i].name);
    return SR_OK;
}

sr_status reader_check_metrics(const sr_runfile *f, sr_failure *why) {
    if (f->declared_metrics < 0) return check_old(f, why);
    for (int i = 0; i < f->metrics; i++)
        if (f->metric[i].place != i)
            return sr_fail(
                why, SR_FORMAT,
                "%s: /evals/%s: at place %lld instead of %d: metrics missing or duplicate", f->path,
                f->metric[i].name, (long long)f->metric[i].place, i);
    if (f->metrics == f->declared_metrics) return SR_OK;
    return sr_fail(why, SR_FORMAT, "%s: /evals: %d metrics, %lld were declared", f->path,
                   f->metrics, (long long)f->declared_metrics);
}

/* -- public ---------------------------------------------------------------------------------- */

const sr_run_metric *sr_run_get_metric(const sr_runfile *f, int64_t i) {
    return i >= 0 && i < f->metrics ? &f->metric[i].shown : NULL;
}

const sr_run_metric *sr_run_find_metric(const sr_runfile *f, const char *name) {
    for (int i = 0; i < f->metrics; i++)
        if (strcmp(f->metric[i].name, name) == 0) return &f->metric[i].shown;
    return NULL;
}

const run_column *reader_eval_column(const sr_runfile *f, const char *name) {
    if (strcmp(name, run_eval_epoch.name) == 0) return &run_eval_epoch;
    for (int i = 0; i < f->metrics; i++)
        if (strcmp(f->metric[i].name, name) == 0) return &f->metric[i].column;
    return NULL;
}
