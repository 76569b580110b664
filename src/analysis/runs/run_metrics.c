/* run_metrics.c -- the metrics that runs declare below /evals. */

#include "analysis/runs/run_metrics.h"

#include <math.h>
#include <string.h>

#include "analysis/runs/run_config.h"

/* The first that is declared and was measured. One that cannot be read is it, too: its reader gives
 * the reason. */
static const sr_run_metric *first_with_values(const sr_runfile *run) {
    const sr_run_metric *m;
    double value = NAN;
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)); i++)
        if (metric_read_last(run, m->name, &value, NULL) != SR_OK || isfinite(value)) return m;
    return NULL;
}

const sr_run_metric *metric_named(const sr_runfile *run, const char *word, size_t length) {
    const sr_run_metric *m;
    if (length == strlen(METRIC_LEADING) && !strncmp(word, METRIC_LEADING, length))
        return first_with_values(run);
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)); i++)
        if (strlen(m->name) == length && strncmp(m->name, word, length) == 0) return m;
    return NULL;
}

const sr_run_metric *metric_find(const run_set *set, const char *word, size_t length) {
    const sr_run_metric *m = NULL;
    for (int r = 0; r < set->count && !m; r++) m = metric_named(set->run[r], word, length);
    return m;
}

const char *metric_direction(const sr_run_metric *m) {
    static const char *const text[] = {"less is better", "", "more is better"};
    return text[m->better + 1];
}

const char *metric_better(const sr_run_metric *m) {
    static const char *const words[] = SR_BETTER_WORDS;
    return m->better == SR_BETTER_NEITHER ? "-" : words[m->better + 1];
}

/* -- rejecting a name ------------------------------------------------------------------------ */

enum { NAMES_SHOWN = 32 };

static int declared_names(const run_set *set, const char *names[NAMES_SHOWN]) {
    const sr_run_metric *m;
    int count = 0;
    for (int r = 0; r < set->count; r++)
        for (int64_t i = 0; count < NAMES_SHOWN && (m = sr_run_get_metric(set->run[r], i)); i++) {
            bool seen = false;
            for (int k = 0; k < count; k++) seen = seen || strcmp(names[k], m->name) == 0;
            if (!seen) names[count++] = m->name;
        }
    return count;
}

static sr_status refuse(const run_set *set, const char *words, const char *usual, sr_failure *why) {
    const char *names[NAMES_SHOWN] = {NULL};
    char text[200] = "";
    const int count = declared_names(set, names);
    const char *nearest = tool_nearest(words, names, count);
    if (!count)
        return sr_fail(why, SR_FORMAT, "%s%s declares no metric of evaluations", set->path[0],
                       set->count > 1 ? " (and no other run)" : "");
    sr_fail(why, SR_USAGE, "--metric%s: no run declares '%.80s'",
            strcmp(words, usual) == 0 ? " (the default)" : "", words);
    for (int i = 0; i < count; i++) text_append(text, sizeof text, ", ", names[i]);
    if (nearest && strcmp(words, usual) != 0)
        sr_hint(why, "did you mean '%s'?", nearest);
    else
        sr_hint(why, "declared: %s", text);
    return SR_USAGE;
}

sr_status metric_check(const run_set *set, const char *words, const char *usual, tsv *table,
                       sr_failure *why) {
    bool any = false;
    for (const char *at = words; *at; at += *at == ',')
        any = metric_find(set, at, strcspn(at, ",")) || any, at += strcspn(at, ",");
    if (!any) return refuse(set, words, usual, why);
    for (const char *at = words; *at; at += *at == ',') {
        const int length = (int)strcspn(at, ",");
        if (!metric_find(set, at, (size_t)length))
            tsv_note(table, "note", "no run declares the metric %.*s", length, at);
        metric_warn(set, at, (size_t)length, table);
        at += length;
    }
    return SR_OK;
}

void metric_warn(const run_set *set, const char *word, size_t length, tsv *table) {
    const sr_run_metric *first = NULL;
    int of = 0;
    for (int r = 0; r < set->count; r++) {
        const sr_run_metric *m = metric_named(set->run[r], word, length);
        if (!m) continue;
        if (!first) first = m, of = r;
        if (strcmp(m->name, first->name) != 0) return; /* leading, of several tasks */
        if (strcmp(m->unit, first->unit) != 0) {
            tsv_note(table, "warning", "%s: in %s in %s, in %s in %s", m->name, first->unit,
                     set->path[of], m->unit, set->path[r]);
            return;
        }
        if (m->better != first->better) {
            tsv_note(table, "warning", "%s: %s and %s declare different directions", m->name,
                     set->path[of], set->path[r]);
            return;
        }
    }
}

/* -- values ---------------------------------------------------------------------------------- */

sr_status metric_read_last(const sr_runfile *run, const char *name, double *value,
                           sr_failure *why) {
    sr_status status = SR_OK;
    *value = NAN;
    if (!sr_run_has_eval(run, name)) return SR_OK;
    for (int64_t i = sr_run_get_info(run)->evals - 1; i >= 0 && status == SR_OK; i--) {
        status = sr_run_eval(run, name, i, 1, value, why);
        if (isfinite(*value)) break;
    }
    return status;
}
