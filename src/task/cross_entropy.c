/* cross_entropy.c -- shared by tasks: the loss of logits, smoothing, the loss of a model with
 * gives_nll, metrics. */
#include <math.h>

#include "engine/ops/ops.h"
#include "task/task_rows.h"

double task_smoothing(const task_options *o, const task_row *row) {
    return isnan(o->label_smoothing) ? row->label_smoothing : o->label_smoothing;
}

tensor *task_cross_entropy(const task_options *o, const task_row *row, const pass *p,
                           tensor *logits, const int32_t *target, int32_t ignore, int32_t unknown,
                           task_sums *sum) {
    cross_entropy_report report = {0};
    tensor *loss = op_cross_entropy(p->tape, logits, target, ignore, unknown,
                                    task_smoothing(o, row), o->smoothing, &report);
    *sum = (task_sums){.loss = report.loss,
                       .nll = report.nll,
                       .tokens = report.tokens,
                       .correct = report.correct,
                       .unknown = report.unknown};
    return loss;
}

tensor *task_sum_nll(const pass *p, tensor *nll, task_sums *sum) {
    tensor *loss = op_sum(p->tape, nll);
    if (!loss) return NULL;
    *sum = (task_sums){.tokens = nll->count, .correct = -1};
    for (int64_t i = 0; i < nll->count; i++) sum->nll += (double)nll->value[i];
    sum->loss = sum->nll;
    return loss;
}

void task_measure_cross_entropy(const task_sums *sum, double *value) {
    const double n = (double)sum->tokens;
    value[METRIC_LOSS] = sum->loss / n;
    value[METRIC_NLL] = sum->nll / n;
    value[METRIC_PPL] = exp(value[METRIC_NLL]);
    value[METRIC_ACCURACY] = sum->correct < 0 ? NAN : 100 * (double)sum->correct / n;
}
