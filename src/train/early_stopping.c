/* early_stopping.c -- early stopping: a run ends after --patience evaluations in a row whose
 * --patience-metric was not better than the best before them. The first evaluation is better than
 * none; NaN is never better. Evaluations that did not compute the metric (--bleu-every) do not
 * count. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

static bool find_metric(const train_config *c, train_metric_place *place) {
    const task_row *row = task_of(model_find(c->model.name)->task);
    return train_metric_find(c, row, c->patience_metric, place);
}

sr_status trainer_check_patience(const train_config *c, sr_failure *why) {
    train_metric_place place;
    if (!c->patience) return SR_OK;
    if (!find_metric(c, &place)) {
        sr_fail(why, SR_USAGE, "--patience-metric: '%s' is no metric of this validation",
                c->patience_metric);
        train_metric_hint(task_of(model_find(c->model.name)->task), c->patience_metric, why);
        return SR_USAGE;
    }
    if (place.better == BETTER_NEITHER)
        return sr_fail(why, SR_USAGE, "--patience-metric: neither less nor more %s is better",
                       c->patience_metric);
    return SR_OK;
}

bool trainer_out_of_patience(const trainer *r) {
    return r->config->patience && r->patience_waited >= r->config->patience;
}

void trainer_see_patience(trainer *r, const train_eval *e) {
    const train_config *c = r->config;
    train_metric_place place;
    if (!c->patience || !find_metric(c, &place)) return;
    if (place.decoded && !e->decodes) return;
    const double value = train_metric_value(e, &place);
    const bool better =
        isnan(r->patience_best) ? !isnan(value) : (value - r->patience_best) * place.better > 0;
    r->patience_waited = better ? 0 : r->patience_waited + 1;
    if (better) r->patience_best = value;
}

sr_status trainer_check_resumed_patience(const trainer *r, sr_failure *why) {
    if (!trainer_out_of_patience(r)) return SR_OK;
    sr_fail(why, SR_USAGE, "%s: the run stopped early, after %lld updates", r->from->rows,
            (long long)r->result->updates);
    sr_hint(why, "increase --patience to continue");
    return SR_USAGE;
}

void trainer_tell_patience(const trainer *r) {
    if (!trainer_out_of_patience(r) || r->result->updates >= r->updates) return;
    const int n = snprintf(r->result->stopped, sizeof r->result->stopped,
                           "%lld evaluations in a row without a better %.60s",
                           (long long)r->patience_waited, r->config->patience_metric);
    if (isnan(r->patience_best)) return; /* every one was NaN */
    snprintf(r->result->stopped + n, sizeof r->result->stopped - (size_t)n, " than %.6g",
             r->patience_best);
}
