/* evaluate.c -- a pass forward with its loss, and the sums of a split. */
#include "statnet/task.h"

tensor *task_loss(const task_row *row, const task_options *o, model *m, pass *p,
                  cross_entropy_report *sum) {
    cross_entropy_report unheard;
    if (!sum) sum = &unheard;
    *sum = (cross_entropy_report){0};
    tensor *output = m->row->forward(m, p);
    tensor *loss = m->gives_nll ? row->loss_of_nll(p, output, sum) : row->loss(o, p, output, sum);
    if (loss) sum->loss += p->penalty;
    return loss;
}

static void add(cross_entropy_report *sum, const cross_entropy_report *one) {
    sum->loss += one->loss;
    sum->nll += one->nll;
    sum->tokens += one->tokens;
    sum->correct += one->correct;
    sum->unknown += one->unknown;
}

sr_status task_evaluate(const task_row *row, const task_options *o, model *m, tape *t, dataset *d,
                        data_split split, norm_mode mode, cross_entropy_report *sum,
                        sr_failure *why) {
    const int64_t batches = data_batches(d, split);
    *sum = (cross_entropy_report){0};
    for (int64_t i = 0; i < batches; i++) {
        batch b;
        pass p = {.tape = t, .batch = &b, .mode = mode};
        cross_entropy_report one;
        sr_status status = data_batch(d, split, 0, i, &b, why);
        if (status != SR_OK) return status;
        tape_reset(t, rng_create(0), false, false); /* nothing draws */
        if (!task_loss(row, o, m, &p, &one)) {
            const sr_failure *f = tape_failure(t);
            return sr_fail(why, f->status, "%s: %s", task_split_name(split), f->text);
        }
        add(sum, &one);
    }
    return SR_OK;
}
