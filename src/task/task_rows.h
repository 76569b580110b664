/* task_rows.h -- the rows of the task table, and functions that they share. */
#ifndef TASK_TASK_ROWS_H
#define TASK_TASK_ROWS_H

#include "task/task.h"

#define TASKS(X)                                                                                   \
    X(images)                                                                                      \
    X(pairs)                                                                                       \
    X(lm)                                                                                          \
    X(sentences)                                                                                   \
    X(tags)                                                                                        \
    X(trees)

#define TASK_DECLARE(name) extern const task_row task_##name;
TASKS(TASK_DECLARE)
#undef TASK_DECLARE

/* cross_entropy.c: the smoothing of the options or the task. */
double task_smoothing(const task_options *o, const task_row *row);

/* The loss of logits against the targets (op_cross_entropy); fills *sum except its counts. */
tensor *task_cross_entropy(const task_options *o, const task_row *row, const pass *p,
                           tensor *logits, const int32_t *target, int32_t ignore, int32_t unknown,
                           task_sums *sum);

/* The summed loss of nll [tokens]; fills *sum except its counts, `correct` unknown. */
tensor *task_sum_nll(const pass *p, tensor *nll, task_sums *sum);

/* Metrics of every task with logits: loss, nll, ppl, accuracy, in this order. what: the unit
 * "token", "image" or "sentence". */
#define CROSS_ENTROPY_METRICS(what)                                                                \
    {"loss", "nats per " what, "loss with smoothing", BETTER_LESS},                                \
        {"nll", "nats per " what, "negative log-likelihood without smoothing", BETTER_LESS},       \
        {"ppl", "1", "perplexity, exp(nll)", BETTER_LESS}, {                                       \
        "accuracy", "percent", "targets with the largest logit", BETTER_MORE                       \
    }
enum { METRIC_LOSS, METRIC_NLL, METRIC_PPL, METRIC_ACCURACY };

void task_measure_cross_entropy(const task_sums *sum, double *value);

#endif
