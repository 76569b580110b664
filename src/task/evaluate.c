/* evaluate.c -- a pass forward with its loss, and the sums of a split. */
#include "task/task.h"

tensor *task_loss(const task_row *row, const task_options *o, model *m, pass *p, task_sums *sum) {
    task_sums unheard;
    if (!sum) sum = &unheard;
    *sum = (task_sums){0};
    tensor *output = m->row->forward(m, p), *loss = NULL;
    if (output)
        loss = m->gives_nll ? row->loss_of_nll(p, output, sum) : row->loss(o, p, output, sum);
    if (!loss && !tape_failure(p->tape)) /* else it would count as 0 */
        return tape_fail(p->tape, SR_USAGE, "model %s gave no loss", m->row->name);
    if (loss) sum->loss += p->penalty;
    return loss;
}

sr_status task_memory(model_memory *k, const model *m, const dataset *d, data_split split,
                      bool training, sr_failure *why) {
    return model_memory_init(k, m, training, data_sequences(d, split), why);
}

/* The first `batches` of the split. */
static sr_status evaluate_batches(const task_row *row, const task_options *o, model *m, tape *t,
                                  dataset *d, data_split split, int64_t batches, norm_mode mode,
                                  model_memory *memory, task_sums *sum, sr_failure *why) {
    *sum = (task_sums){0};
    for (int64_t i = 0; i < batches; i++) {
        batch b;
        pass p = {.tape = t, .batch = &b, .mode = mode, .memory = memory};
        task_sums one;
        sr_status status = data_batch(d, split, 0, i, &b, why);
        if (status != SR_OK) return status;
        tape_reset(t, rng_create(0), false, false); /* nothing draws */
        if (!task_loss(row, o, m, &p, &one)) {
            const sr_failure *f = tape_failure(t);
            return sr_fail(why, f->status, "%s: %s", data_split_name(split), f->text);
        }
        sum->loss += one.loss;
        sum->nll += one.nll;
        sum->tokens += one.tokens;
        sum->correct += one.correct;
        sum->unknown += one.unknown;
        for (int k = 0; k < TASK_COUNTS; k++) sum->count[k] += one.count[k];
    }
    return SR_OK;
}

sr_status task_evaluate(const task_row *row, const task_options *o, model *m, tape *t, dataset *d,
                        data_split split, norm_mode mode, task_sums *sum, sr_failure *why) {
    model_memory k;
    sr_status status = task_memory(&k, m, d, split, false, why);
    if (status == SR_OK)
        status =
            evaluate_batches(row, o, m, t, d, split, data_batches(d, split), mode, &k, sum, why);
    model_memory_free(&k);
    return status;
}

sr_status task_evaluate_training(const task_row *row, const task_options *o, model *m, tape *t,
                                 dataset *d, int64_t count, task_sums *sum, sr_failure *why) {
    const int64_t all = data_batches(d, SPLIT_TRAIN);
    model_memory k;
    sr_status status = task_memory(&k, m, d, SPLIT_TRAIN, true, why);
    if (status == SR_OK)
        status = evaluate_batches(row, o, m, t, d, SPLIT_TRAIN, count < all ? count : all,
                                  NORM_BATCH, &k, sum, why);
    model_memory_free(&k);
    return status;
}
