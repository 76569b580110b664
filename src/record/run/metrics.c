/* metrics.c -- takes evaluations and their metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/flush_policy.h"
#include "record/recorder_state.h"
#include "runfile/write/writer.h"

static run_metric *find_metric(const sr_recorder *r, const char *name) {
    for (int i = 0; i < r->writer.metrics; i++)
        if (strcmp(r->writer.metric[i].name, name) == 0) return &r->writer.metric[i];
    return NULL;
}

bool recorder_has_metric(const sr_recorder *r, const char *name) {
    return find_metric(r, name) != NULL;
}

/* -- declaring ------------------------------------------------------------------------------- */

static sr_status check_metric(sr_recorder *r, const char *name, const char *unit,
                              const char *definition, sr_better better) {
    sr_failure *why = &r->failure;
    if (recorder_check_label(r, "metric", name, unit, definition) != SR_OK)
        return recorder_check(r);
    if (recorder_has_metric(r, name))
        return sr_fail(why, SR_USAGE, "%s: metric %s declared twice", r->path, name);
    if (better < SR_BETTER_LESS || better > SR_BETTER_MORE)
        return sr_fail(why, SR_USAGE, "%s: metric %s: direction %d, not -1, 0 or 1", r->path, name,
                       (int)better);
    if (r->writer.metrics < SR_METRICS_MAX) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s: metric %s: %d are declared already", r->path, name,
                   SR_METRICS_MAX);
}

sr_status sr_add_metric(sr_recorder *r, const char *name, const char *unit, const char *definition,
                        sr_better better) {
    if (!r || recorder_too_late(r, "sr_add_metric")) return recorder_check(r);
    if (!unit) unit = "";
    if (!definition) definition = "";
    sr_status status = check_metric(r, name, unit, definition, better);
    run_metric *m = status == SR_OK ? writer_add_metric(&r->writer, &r->failure) : NULL;
    if (!m) return recorder_check(r);
    m->better = better;
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->unit, sizeof m->unit, "%s", unit);
    snprintf(m->definition, sizeof m->definition, "%s", definition);
    return SR_OK;
}

/* -- putting --------------------------------------------------------------------------------- */

sr_status sr_begin_eval(sr_recorder *r, int64_t step, double epoch) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (r->in_eval)
        return sr_fail(&r->failure, SR_STATE,
                       "%s: evaluation at step %lld begun inside the one at %lld", r->path,
                       (long long)step, (long long)r->eval_step);
    if (step < 0)
        return sr_fail(&r->failure, SR_USAGE, "%s: evaluation at step %lld: it is negative",
                       r->path, (long long)step);
    if (step < r->eval_step)
        return sr_fail(&r->failure, SR_USAGE, "%s: evaluation at step %lld after one at %lld",
                       r->path, (long long)step, (long long)r->eval_step);
    for (int i = 0; i < r->writer.metrics; i++) {
        r->writer.metric[i].current = NAN;
        r->writer.metric[i].put = false;
    }
    r->eval_step = step, r->eval_epoch = epoch, r->in_eval = true;
    return flush_policy_when_due(r);
}

static sr_status refuse_unknown(sr_recorder *r, const char *name) {
    char known[256] = "";
    size_t used = 0;
    for (int i = 0; i < r->writer.metrics && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 r->writer.metric[i].name);
    sr_fail(&r->failure, SR_USAGE, "%s: no metric '%.80s' was declared", r->path, name ? name : "");
    sr_hint(&r->failure, "declared: %s", known[0] ? known : "none");
    return r->failure.status;
}

sr_status sr_put_metric(sr_recorder *r, const char *name, double value) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (!r->in_eval)
        return sr_fail(&r->failure, SR_STATE, "%s: metric '%.80s' outside an evaluation", r->path,
                       name ? name : "");
    run_metric *m = name ? find_metric(r, name) : NULL;
    if (!m) return refuse_unknown(r, name);
    if (m->put)
        return sr_fail(&r->failure, SR_STATE, "%s: metric %s put twice at step %lld", r->path, name,
                       (long long)r->eval_step);
    m->current = value, m->put = true;
    return SR_OK;
}

sr_status sr_end_eval(sr_recorder *r) {
    if (!r || r->failure.status != SR_OK || recorder_in_fork(r)) return recorder_check(r);
    if (!r->in_eval)
        return sr_fail(&r->failure, SR_STATE, "%s: sr_end_eval outside an evaluation", r->path);
    r->in_eval = false;
    sr_status status = writer_put_eval(&r->writer, r->eval_step, r->eval_epoch, &r->failure);
    return status == SR_OK ? flush_policy_beside(r) : status;
}
