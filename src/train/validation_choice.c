/* validation_choice.c -- whether a run validates both ways, with running and with batch statistics,
 * if --validate-batch is not given.
 *
 * It does if --patience-metric or --keep-best is a metric with batch statistics. It also does if a
 * site normalizes with batch statistics in training and with running ones in validation, and its
 * validations read at most READS of the tokens that training reads. Both are counted before the
 * first step, from the planned updates, never timed: the same options give the same file on any
 * machine.
 */
#include <stdlib.h>
#include <string.h>

#include "train/config/config_rows.h"
#include "train/trainer.h"

static const double READS = 0.1;

/* Methods of the family pn normalize with running statistics in training too. */
static bool differs(const norm_site *s) {
    return !strcmp(s->method->axis, "batch") && s->method->family != NORM_FAMILY_PN &&
           norm_site_has_running(s) && !s->never_running;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* Updates 1 .. updates that are multiples of a or of b, and the last one; b 0: of a alone. */
int64_t trainer_count_validations(int64_t updates, int64_t a, int64_t b) {
    int64_t count = updates / a;
    bool last = updates % a == 0;
    if (b) {
        const int64_t part = a / greatest_common_divisor(a, b);
        count += updates / b - updates / b / part; /* multiples of part * b count once */
        last = last || updates % b == 0;
    }
    return count + !last;
}

static double validation_tokens(const trainer *r) {
    const train_config *c = r->config;
    const int64_t epoch = (r->batches + c->update_freq - 1) / c->update_freq;
    const int64_t times =
        trainer_count_validations(r->updates, epoch * c->validate_epochs, c->validate_updates);
    return (double)times * (double)data_tokens(r->data, SPLIT_VALID);
}

static double training_tokens(const trainer *r) {
    const int64_t epoch = (r->batches + r->config->update_freq - 1) / r->config->update_freq;
    return (double)data_tokens(r->data, SPLIT_TRAIN) * ((double)r->updates / (double)epoch);
}

/* Running text alone validates in batches of another size. Their statistics cover other numbers of
 * rows than in training, which also affects the loss by them. */
static void tell_rows(const trainer *r) {
    const data_options *o = &r->config->data;
    if (!config_data_lists(r->config, "eval-batch-size")) return;
    const int64_t window = o->eval_window ? o->eval_window : o->window;
    const int64_t rows = o->eval_batch_size * window, training = o->batch_size * o->window;
    if (rows == training) return;
    trainer_note(r,
                 "validation with batch statistics: batches of %lld rows, in training of %lld "
                 "(--eval-batch-size %lld has as many)",
                 (long long)rows, (long long)training,
                 (long long)((training + window / 2) / window));
}

static bool wants_batch_metric(const trainer *r) {
    const train_config *c = r->config;
    const char *const name[] = {c->patience ? c->patience_metric : "", c->keep_best};
    train_metric_place place;
    for (int i = 0; i < 2; i++)
        if (train_metric_find(c, r->task, name[i], &place) && place.of_batch) return true;
    return false;
}

static bool any_differs(const trainer *r) {
    for (int i = 0; i < r->model->sites; i++)
        if (differs(r->model->site[i])) return true;
    return false;
}

static sr_status choose(trainer *r, sr_failure *why) {
    if (!r->config->validate_batch_open) return SR_OK;
    const double reads = validation_tokens(r) / training_tokens(r);
    if (!wants_batch_metric(r) && !(any_differs(r) && reads <= READS)) return SR_OK;
    r->chosen = malloc(sizeof *r->chosen);
    if (!r->chosen) return sr_fail(why, SR_MEMORY, "out of memory for the options");
    *r->chosen = *r->config;
    r->chosen->validate_batch = true;
    r->chosen->validate_batch_open = false;
    r->config = r->chosen;
    trainer_note(r,
                 "validation: with batch statistics, too; each way reads %.2g %% of the tokens of "
                 "training (--no-validate-batch: running statistics alone)",
                 100 * reads);
    return SR_OK;
}

sr_status trainer_choose_validation(trainer *r, sr_failure *why) {
    if (!data_has_split(r->data, SPLIT_VALID)) return SR_OK;
    const sr_status status = choose(r, why);
    if (status == SR_OK && r->config->validate_batch && any_differs(r)) tell_rows(r);
    return status;
}
