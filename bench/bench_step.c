/* bench_step.c -- time of one training step on the two models that bench_torch.py trains.
 *
 *   bench_step resnet20|transformer [THREADS] [ROUNDS] [RUN.h5]
 *
 * A step is forward, backward and update on a batch made beforehand; with RUN.h5 every site is
 * recorded too (all vectors of every step) and the recorder's share is measured. A round is the
 * median of STEPS steps; the last lines are the median of the rounds and the share of each kind of
 * op.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/observe/hooks.h"
#include "statnet/gemm.h"
#include "statnet/optim.h"
#include "statnet/progress.h"
#include "statnet/task.h"

enum { STEPS = 5, WARM = 3, IMAGES = 128, PAIRS = 32, LENGTH = 32, VOCABULARY = 4000 };

typedef struct step_bench {
    bool images;
    int threads;
    model *model;
    batch batch;
    tape *tape;
    sr_recorder *recorder;
    hooks *hooks;
    const optim_row *optimizer;
    optim_options optim;
    int64_t steps;
    double recorder_ms; /* of all steps */
    double loss;
    sr_failure why;
} step_bench;

static int give_up(const step_bench *s) {
    fprintf(stderr, "bench_step: %s\n", s->why.text);
    return 1;
}

static void *must(void *p) {
    if (p) return p;
    fprintf(stderr, "bench_step: out of memory\n");
    exit(1);
}

static void make_images(batch *b, rng *r) {
    int64_t count = (int64_t)IMAGES * 32 * 32 * 3;
    real *image = must(malloc((size_t)count * sizeof *image));
    int32_t *label = must(malloc(IMAGES * sizeof *label));
    for (int64_t i = 0; i < count; i++) image[i] = (real)rng_normal(r);
    for (int i = 0; i < IMAGES; i++) label[i] = (int32_t)rng_below(r, 10);
    *b = (batch){.task = TASK_IMAGES,
                 .count = IMAGES,
                 .height = 32,
                 .width = 32,
                 .channels = 3,
                 .image = image,
                 .label = label,
                 .tokens = IMAGES};
}

/* Full sentences of LENGTH tokens. */
static int32_t *make_tokens(rng *r) {
    int32_t *token = must(malloc(PAIRS * LENGTH * sizeof *token));
    for (int i = 0; i < PAIRS * LENGTH; i++)
        token[i] = TOKEN_FIRST_WORD + (int32_t)rng_below(r, VOCABULARY - TOKEN_FIRST_WORD);
    return token;
}

static void make_pairs(batch *b, rng *r) {
    uint8_t *mask = must(malloc(PAIRS * LENGTH));
    memset(mask, 1, PAIRS * LENGTH);
    *b = (batch){.task = TASK_PAIRS,
                 .count = PAIRS,
                 .source_length = LENGTH,
                 .target_length = LENGTH,
                 .source = make_tokens(r),
                 .target_in = make_tokens(r),
                 .target_out = make_tokens(r),
                 .source_mask = mask,
                 .target_mask = mask,
                 .tokens = PAIRS * LENGTH};
}

static int open_model(step_bench *s) {
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = 0,
                       .attention_dropout = 0,
                       .relu_dropout = 0,
                       .seed = 1};
    data_shape shape = {.task = s->images ? TASK_IMAGES : TASK_PAIRS,
                        .height = 32,
                        .width = 32,
                        .channels = 3,
                        .classes = 10,
                        .vocabulary = VOCABULARY,
                        .longest = LENGTH};
    strcpy(o.name, s->images ? "resnet20" : "transformer");
    strcpy(o.preset, s->images ? "" : "mini");
    strcpy(o.norm, s->images ? "bn" : "ln");
    strcpy(o.decoder_norm, "ln");
    s->model = model_create(&o, &shape, &s->why);
    s->tape = s->model ? tape_create(s->threads, &s->why) : NULL;
    if (!s->tape) return 1;
    s->optimizer = optim_find(s->images ? "sgd" : "adam");
    s->optim = (optim_options){.momentum = 0.9,
                               .beta1 = 0.9,
                               .beta2 = 0.98,
                               .eps = 1e-8,
                               .weight_decay = s->images ? 1e-4 : 0};
    return params_slots(&s->model->params, s->optimizer->slots, &s->why) != SR_OK;
}

static int open_recorder(step_bench *s, const char *path) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    o.vectors_every = 1;
    s->recorder = sr_create(path, &o, &s->why);
    if (!s->recorder) return 1;
    bool *all = hooks_choose(s->model, "*", false, &s->why);
    if (all) s->hooks = hooks_create(s->model, s->recorder, all, true, NULL, &s->why);
    free(all);
    return !s->hooks;
}

/* Milliseconds in the recorder around the step; hooks_seconds has what is inside. */
static double end_recording(step_bench *s, double start) {
    sr_end_step(s->recorder,
                &(sr_step){.size = sizeof(sr_step), .update = s->steps, .tokens = s->batch.tokens});
    return 1e3 * (progress_clock() - start + hooks_seconds(s->hooks));
}

static bool one_step(step_bench *s) {
    task_sums report = {0};
    double norm;
    s->steps++;
    if (s->recorder) sr_begin_step(s->recorder, s->steps);
    tape_reset(s->tape, rng_create((uint64_t)s->steps), true, true);
    const task_options o = {.label_smoothing = NAN};
    pass p = {.tape = s->tape, .batch = &s->batch, .mode = NORM_TRAIN};
    tensor *loss = task_loss(task_of(s->batch.task), &o, s->model, &p, &report);
    tape_backward(s->tape, loss, 1);
    if (tape_failure(s->tape)) s->why = *tape_failure(s->tape);
    if (s->why.status != SR_OK ||
        optim_grad_norm(&s->model->params, s->threads, &norm, &s->why) != SR_OK)
        return false;
    optim_step u = {&s->optim, s->steps, s->images ? 0.1 : 1e-4, 1.0 / (double)s->batch.tokens,
                    s->threads};
    optim_apply(s->optimizer, &u, &s->model->params);
    params_zero_grad(&s->model->params);
    if (s->recorder) s->recorder_ms += end_recording(s, progress_clock());
    s->loss = report.loss / (double)s->batch.tokens;
    return true;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, int count) {
    qsort(value, (size_t)count, sizeof *value, ascending);
    return value[count / 2];
}

/* Milliseconds; negative after a failure. */
static double one_round(step_bench *s) {
    double ms[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double start = progress_clock();
        if (!one_step(s)) return -1;
        ms[i] = 1e3 * (progress_clock() - start);
    }
    return median(ms, STEPS);
}

static void print_shares(const step_bench *s) {
    const tape_profile *first = s->tape->profile;
    double sum = 0, steps = (double)s->steps;
    for (const tape_profile *op = first; op < first + PROFILE_OPS && op->op; op++)
        sum += op->forward + op->backward;
    for (const tape_profile *op = first; op < first + PROFILE_OPS && op->op; op++)
        printf("%s\t%s\t%.2f\t%.2f\t%.1f\n", s->images ? "resnet20" : "transformer", op->op,
               1e3 * op->forward / steps, 1e3 * op->backward / steps,
               100 * (op->forward + op->backward) / sum);
    if (s->recorder)
        printf("%s\trecorder\t%.2f\t\t%.1f\n", s->images ? "resnet20" : "transformer",
               s->recorder_ms / steps, 0.1 * s->recorder_ms / sum);
}

static int run(step_bench *s, int rounds) {
    double *ms = must(malloc((size_t)rounds * sizeof *ms));
    for (int i = 0; i < WARM; i++)
        if (!one_step(s)) return give_up(s);
    s->tape->profiling = true;
    s->steps = 0;
    s->recorder_ms = 0;
    if (s->recorder) s->steps = WARM;
    for (int i = 0; i < rounds; i++) {
        ms[i] = one_round(s);
        if (ms[i] < 0) return give_up(s);
        printf("# round %d: %.1f ms\n", i + 1, ms[i]);
    }
    printf("# loss %.4f\n# median: %.1f ms\nmodel\top\tforward_ms\tbackward_ms\tpercent_of_ops\n",
           s->loss, median(ms, rounds));
    print_shares(s);
    free(ms);
    return 0;
}

int main(int argc, char **argv) {
    step_bench s = {.threads = argc > 2 ? atoi(argv[2]) : 2};
    int rounds = argc > 3 ? atoi(argv[3]) : 9;
    if (argc < 2 || (strcmp(argv[1], "resnet20") && strcmp(argv[1], "transformer")) ||
        s.threads < 1 || rounds < 1) {
        fprintf(stderr, "usage: bench_step resnet20|transformer [THREADS] [ROUNDS] [RUN.h5]\n");
        return 2;
    }
    s.images = !strcmp(argv[1], "resnet20");
    gemm_setup(s.threads);
    rng r = rng_create(1);
    if (s.images)
        make_images(&s.batch, &r);
    else
        make_pairs(&s.batch, &r);
    if (open_model(&s)) return give_up(&s);
    if (argc > 4 && open_recorder(&s, argv[4])) return give_up(&s);
    int status = run(&s, rounds);
    if (s.recorder &&
        sr_close(s.recorder, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"},
                 &s.why) != SR_OK)
        return give_up(&s);
    return status;
}
