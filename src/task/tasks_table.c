/* tasks_table.c -- the table of tasks and lookups in it. */
#include "task/task_rows.h"

static const task_row *const rows[] = {
#define TASK_ROW(name) &task_##name,
    TASKS(TASK_ROW)
#undef TASK_ROW
};

enum { ROWS = sizeof rows / sizeof rows[0] };

const task_row *task_at(int i) {
    return i >= 0 && i < ROWS ? rows[i] : NULL;
}

const task_row *task_of(task id) {
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->id == id) return rows[i];
    return NULL;
}

int task_metrics(const task_row *row) {
    int count = 0;
    while (count < TASK_METRICS && row->metric[count].name && !row->metric[count].decoded) count++;
    return count;
}

int task_all_metrics(const task_row *row) {
    int count = task_metrics(row);
    while (count < TASK_METRICS && row->metric[count].name) count++;
    return count;
}

sr_status task_check(const model_row *m, const data_shape *shape, sr_failure *why) {
    if (m->task == shape->task) return SR_OK;
    return sr_fail(why, SR_USAGE, "model %s takes %s, the data are %s", m->name,
                   task_of(m->task)->takes, task_of(shape->task)->takes);
}

sr_status task_check_loss(const task_row *row, const task_options *o, const model *m,
                          sr_failure *why) {
    if (!m->gives_nll && row->loss) return SR_OK;
    if (!m->gives_nll)
        return sr_fail(why, SR_USAGE, "model %s gives task %s no likelihood of whole sentences",
                       m->row->name, row->name);
    if (!row->loss_of_nll)
        return sr_fail(why, SR_USAGE, "model %s gives no logits to task %s", m->row->name,
                       row->name);
    if (!(task_smoothing(o, row) > 0)) return SR_OK;
    sr_fail(why, SR_USAGE, "--label-smoothing: model %s gives no probabilities of all classes",
            m->row->name);
    if (model_obeys(m->row->name, "adaptive-cutoffs")) sr_hint(why, "--adaptive-cutoffs none");
    return SR_USAGE;
}
