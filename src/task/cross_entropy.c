/* cross_entropy.c -- what tasks with logits share: smoothing in use, metrics. */
#include <math.h>

#include "task_rows.h"

double task_smoothing(const task_options *o, const task_row *row) {
    return isnan(o->label_smoothing) ? row->label_smoothing : o->label_smoothing;
}

void task_measure_cross_entropy(const cross_entropy_report *sum, double *value) {
    const double n = (double)sum->tokens;
    value[METRIC_LOSS] = sum->loss / n;
    value[METRIC_NLL] = sum->nll / n;
    value[METRIC_PPL] = exp(value[METRIC_NLL]);
    value[METRIC_ACCURACY] = sum->correct < 0 ? NAN : 100 * (double)sum->correct / n;
}
