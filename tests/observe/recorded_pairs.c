/* recorded_pairs.c -- see recorded_pairs.h. */
#include "recorded_pairs.h"

#include <math.h>
#include <stdio.h>

#include "testing/check.h"
#include "thread_ranks.h"

const char *pairs_path(const char *name) {
    static char path[4][600];
    static int used;
    char *p = path[used++ % 4];
    snprintf(p, 600, "%s/%s", check_temporary(), name);
    return p;
}

pairs_model pairs_make(const char *norm) {
    return pairs_make_batches(norm, 128);
}

pairs_model pairs_make_batches(const char *norm, int64_t tokens) {
    const data_options wanted = {
        .name = "synth-pairs", .max_tokens = tokens, .limit = 40, .seed = 1};
    sr_failure why = {0};
    pairs_model f = {.data = data_open(&wanted, &why)};
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = 0,
                       .attention_dropout = 0,
                       .relu_dropout = 0,
                       .encoder_layers = 1,
                       .decoder_layers = 1};
    snprintf(o.norm, sizeof o.norm, "%s", norm);
    f.m = f.data ? model_create(&o, data_get_shape(f.data), &why) : NULL;
    f.t = f.m ? tape_create(2, &why) : NULL;
    if (!f.t) fail_msg("%s", why.text);
    assert_int_equal(f.m->sites, SITES);
    return f;
}

void pairs_free(pairs_model *f) {
    tape_free(f->t);
    model_free(f->m);
    data_close(f->data);
}

batch pairs_batch(pairs_model *f, int64_t number) {
    sr_failure why = {0};
    batch b;
    check_ok(data_batch(f->data, SPLIT_TRAIN, 0, number % 2, &b, &why), &why);
    return b;
}

void pairs_pass(pairs_model *f, const batch *b) {
    static const task_options plain = {.label_smoothing = NAN};
    pass p = {.tape = f->t, .batch = b, .mode = NORM_TRAIN};
    tape_reset(f->t, rng_create(3), true, true);
    tape_backward(f->t, task_loss(task_of(b->task), &plain, f->m, &p, NULL), 1);
    if (tape_failure(f->t)) fail_msg("%s", tape_failure(f->t)->text);
}

static sr_status exchange(void *process, const run_exchange *x, sr_failure *why) {
    return run_record_exchange(process, x, why);
}

void pairs_exchange(run_record *const *r, int ranks, const int *first) {
    thread_ranks_call(ranks, first, exchange, (void *const *)(void *)r);
}

void pairs_end_step(run_record *r, int64_t number) {
    run_record_end_step(r, &(run_step){10 + number, 20 + number, 0.5, 2.5, 0.25, 8});
}

void pairs_step(pairs_model *f, run_record *r, int64_t number, bool spectra) {
    const batch b = pairs_batch(f, number);
    run_record_begin_step(r, number, spectra);
    pairs_pass(f, &b);
    pairs_exchange(&r, 1, (const int[]){0, 1});
    pairs_end_step(r, number);
}

const run_metric_declaration pairs_metric[] = {
    {"valid_a", "nats", "the first", SR_BETTER_LESS},
    {"valid_b", "percent", "the second", SR_BETTER_MORE},
    {"valid_c", "1", "the third", SR_BETTER_NEITHER},
};

run_record_options pairs_options(const char *name) {
    return (run_record_options){.path = pairs_path(name),
                                .force = true,
                                .parent = "before.h5 step 7",
                                .command = "the command",
                                .config = "key = value\n",
                                .git = "v1-2-gabc",
                                .data = "synth-pairs",
                                .task = "pairs",
                                .seed = 18446744073709551557u,
                                .threads = 3,
                                .scalars = true,
                                .vectors = true,
                                .sites = "*",
                                .vectors_every = 1,
                                .size_limit = 1000000000,
                                .flush_steps = 1,
                                .flush_seconds = 5,
                                .metric = pairs_metric,
                                .metrics = 3};
}

run_record *pairs_begin(const pairs_model *f, const run_record_options *o) {
    sr_failure why = {0};
    run_record *r = run_record_create(f->m, o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

sr_runfile *pairs_end(run_record *r, const char *status, const char *name) {
    sr_failure why = {0};
    check_ok(run_record_close(r, status, "why it ended", "0123456789abcdef", &why), &why);
    sr_runfile *f = sr_run_open(pairs_path(name), &why);
    if (!f) fail_msg("%s", why.text);
    return f;
}
