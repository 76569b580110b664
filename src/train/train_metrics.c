/* train_metrics.c -- the metrics of a run's evaluations: names, definitions, which of them it
   has. */
#include <stdio.h>
#include <string.h>

#include "train/trainer.h"

void train_metric_make(const task_row *row, int metric, data_split split, bool of_batch,
                       train_metric *m) {
    const task_metric *of = &row->metric[metric];
    const char *in = split == SPLIT_VALID   ? "validation"
                     : split == SPLIT_TRAIN ? "training"
                                            : data_split_name(split);
    snprintf(m->name, sizeof m->name, "%s_%s%s", data_split_name(split), of->name,
             of_batch ? "_batch" : "");
    snprintf(m->definition, sizeof m->definition, "%s %s, %s%s%s%s", in, of->definition,
             of_batch ? "statistics of each " : "running statistics", of_batch ? in : "",
             of_batch ? " batch" : "",
             split == SPLIT_TRAIN ? ", the same batches each time, without dropout" : "");
    m->unit = of->unit;
    m->better = of->better;
}

int train_metrics_shown(const train_config *c, const task_row *row) {
    return c->bleu_every || !row->decode_asked ? task_all_metrics(row) : task_metrics(row);
}

bool train_metric_find(const train_config *c, const task_row *row, const char *name,
                       train_metric_place *place) {
    const int metrics = train_metrics_shown(c, row);
    const bool both = c->validate_batch || c->validate_batch_open;
    for (int i = 0; i < metrics + (both ? task_metrics(row) : 0); i++) {
        train_metric m;
        const task_metric *of = &row->metric[i % metrics];
        *place = (train_metric_place){i % metrics, i >= metrics, of->decoded, of->better};
        train_metric_make(row, place->index, SPLIT_VALID, place->of_batch, &m);
        if (!strcmp(m.name, name)) return true;
    }
    return false;
}

double train_metric_value(const train_eval *e, const train_metric_place *place) {
    return (place->of_batch ? e->batch_value : e->value)[place->index];
}

void train_metric_hint(const task_row *row, const char *name, sr_failure *why) {
    train_metric m;
    for (int i = task_metrics(row); i < task_all_metrics(row); i++) {
        train_metric_make(row, i, SPLIT_VALID, false, &m);
        if (!strcmp(m.name, name)) sr_hint(why, "it takes --bleu-every");
    }
}

int train_metrics_make(const train_config *c, const task_row *row, train_metric m[TRAIN_METRICS]) {
    const int metrics = train_metrics_shown(c, row);
    int count = 0;
    train_metric_make(row, row->leading, SPLIT_VALID, false, &m[count++]);
    for (int i = 0; i < metrics; i++)
        if (i != row->leading) train_metric_make(row, i, SPLIT_VALID, false, &m[count++]);
    for (int i = 0; i < task_metrics(row) && c->validate_batch; i++)
        train_metric_make(row, i, SPLIT_VALID, true, &m[count++]);
    for (int i = 0; i < task_metrics(row) && c->validate_train; i++)
        train_metric_make(row, i, SPLIT_TRAIN, true, &m[count++]);
    for (int i = 0; i < metrics && c->test; i++)
        train_metric_make(row, i, SPLIT_TEST, false, &m[count++]);
    return count;
}
