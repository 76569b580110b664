/* bench_step.c -- time of one training step on the models that bench_torch.py trains.
 *
 *   bench_step CASE [THREADS] [ROUNDS] [RUN.h5] [STEPS]
 *   bench_step --schedule P[,P...] CASE [ROUNDS] [GB/S]
 *   bench_step --digests P[,P...] CASE [STEPS]
 *
 * A step is forward, backward and update on a batch made beforehand. With RUN.h5 every site is
 * recorded too (all vectors of every step), and the recorder's part is measured. A round is the
 * median of STEPS (5) steps. With ROUNDS 0 it prints `ready` and runs a round for every line of
 * standard input. So processes can be measured in turn while each keeps its memory. For a line `-`
 * it runs without recorder, hooks and observers, in the same memory.
 *
 * The last lines are the median of the rounds, the largest memory, and the parts of the mean step.
 * Parts: each kind of op, forward and backward; `optimizer` (the norm of all gradients, the update
 * and zeroing); `recorder` (its work after the step); `rest`. The recorder's work at the sites
 * counts in their ops. Cases: the table below.
 *
 * --schedule predicts a step of P threads on a machine with P cores from one core. It runs the
 * threads of every region one after another (region_schedule.h). The longest thread of each phase,
 * with the measured costs of fork, join and barrier, gives the time of each operation. All threads
 * share GB/S, the figure of bench_limits for all threads: no operation is faster than its necessary
 * reads and writes at that rate. ROUNDS (5) steps of each P are interleaved with measured ones of 1
 * thread and of every P, if this machine has P cores.
 *
 * --digests trains STEPS (2) steps with 1 thread and with each P, from the same weights, on any
 * number of cores. It prints a digest of all weights and running statistics twice. Once with real
 * threads, and once with threads that run in turn, each as far ahead of the next as barriers let
 * it. Exit status 1: two differ.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/program/progress.h"
#include "engine/gemm/gemm.h"
#include "observe/hooks.h"
#include "schedule_table.h"
#include "task/task.h"
#include "train/optim/optim.h"
#include "train/trainer.h"

enum { MOST_STEPS = 100, MOST_ROUNDS = 10000, WARM = 3 };

/* count: images, pairs or windows of `length` tokens. Dropout is the preset's if `drops`. */
typedef struct step_case {
    const char *name, *model, *preset, *norm, *optimizer;
    task task;
    int64_t count, length, vocabulary;
    bool drops, observes; /* observes: batch statistics beside a method without any */
} step_case;

static const step_case cases[] = {
    {"resnet20", "resnet20", "", "bn", "sgd", TASK_IMAGES, 128, 0, 0, false, false},
    {"resnet18", "resnet18", "resnet18", "bn", "sgd", TASK_IMAGES, 128, 0, 0, false, false},
    {"transformer", "transformer", "mini", "bn", "adam", TASK_PAIRS, 32, 32, 4000, false, false},
    {"transformer-ln", "transformer", "mini", "ln", "adam", TASK_PAIRS, 32, 32, 4000, false, true},
    {"lm", "transformer_lm", "ptb", "ln", "adam", TASK_LM, 70, 32, 10000, true, false},
    {"tensorized", "tensorized", "ptb", "ln", "adam", TASK_LM, 70, 32, 10000, true, false},
    {"iwslt", "transformer", "transformer_iwslt_de_en", "bn", "adam", TASK_PAIRS, 128, 32, 10000,
     true, false},
};

/* Hooks and observer of a site. */
typedef struct lookers {
    norm_hook_fn *forward, *backward;
    norm_observer_state *observer;
} lookers;

typedef struct step_bench {
    const step_case *of;
    int threads, steps_of_round;
    model *model;
    batch batch;
    tape *tape;
    sr_recorder *recorder;
    hooks *hooks;
    lookers *aside; /* [sites] while `bare` */
    bool bare;
    const optim_row *optimizer;
    optim_options optim;
    int64_t steps, measured;                            /* since the start; since the warm-up */
    double optimizer_ms, hooks_ms, recorder_ms, all_ms; /* over all measured steps */
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

static batch make_images(const step_case *c, rng *r) {
    const int64_t numbers = c->count * 32 * 32 * 3;
    real *image = must(malloc((size_t)numbers * sizeof *image));
    int32_t *label = must(malloc((size_t)c->count * sizeof *label));
    for (int64_t i = 0; i < numbers; i++) image[i] = (real)rng_normal(r);
    for (int64_t i = 0; i < c->count; i++) label[i] = (int32_t)rng_below(r, 10);
    return (batch){.task = TASK_IMAGES,
                   .count = c->count,
                   .height = 32,
                   .width = 32,
                   .channels = 3,
                   .image = image,
                   .label = label,
                   .tokens = c->count};
}

/* Full windows or sentences. */
static int32_t *make_tokens(const step_case *c, rng *r) {
    const int64_t count = c->count * c->length;
    int32_t *token = must(malloc((size_t)count * sizeof *token));
    for (int64_t i = 0; i < count; i++)
        token[i] =
            TOKEN_FIRST_WORD + (int32_t)rng_below(r, (uint64_t)c->vocabulary - TOKEN_FIRST_WORD);
    return token;
}

static batch make_texts(const step_case *c, rng *r) {
    const int64_t tokens = c->count * c->length;
    batch b = {.task = c->task, .count = c->count, .tokens = tokens, .unknown = -1};
    b.target_length = c->length;
    b.target_in = make_tokens(c, r), b.target_out = make_tokens(c, r);
    if (c->task == TASK_LM) return b;
    uint8_t *mask = must(malloc((size_t)tokens));
    memset(mask, 1, (size_t)tokens);
    b.source_length = c->length;
    b.source = make_tokens(c, r);
    b.source_mask = b.target_mask = mask;
    return b;
}

static model *make_model(const step_case *c, sr_failure *why) {
    const double dropout = c->drops ? NAN : 0;
    model_options o = {.norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = dropout,
                       .attention_dropout = dropout,
                       .relu_dropout = dropout,
                       .seed = 1};
    data_shape shape = {.task = c->task,
                        .height = 32,
                        .width = 32,
                        .channels = 3,
                        .classes = 10,
                        .vocabulary = c->vocabulary,
                        .longest = c->length};
    strcpy(o.name, c->model);
    strcpy(o.preset, c->preset);
    strcpy(o.norm, c->norm);
    strcpy(o.decoder_norm, "ln");
    if (c->task == TASK_PAIRS) strcpy(o.placement, "pre");
    return model_create(&o, &shape, why);
}

static int open_model(step_bench *s) {
    s->model = make_model(s->of, &s->why);
    for (int i = 0; s->model && s->of->observes && i < s->model->sites; i++)
        if (norm_site_observe_batch(s->model->site[i], 0.95, &s->why) != SR_OK) return 1;
    s->tape = s->model ? tape_create(s->threads, &s->why) : NULL;
    if (!s->tape) return 1;
    s->tape->reuse_activations = true;
    s->optimizer = optim_find(s->of->optimizer);
    s->optim = (optim_options){.momentum = 0.9,
                               .beta1 = 0.9,
                               .beta2 = 0.98,
                               .eps = 1e-8,
                               .weight_decay = s->of->task == TASK_IMAGES ? 1e-4 : 0};
    return params_slots(&s->model->params, s->optimizer->slots, &s->why) != SR_OK;
}

static int open_recorder(step_bench *s, const char *path) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    o.vectors_every = 1;
    s->recorder = sr_create(path, &o, &s->why);
    if (!s->recorder) return 1;
    bool *all = hooks_choose(s->model, "*", s->of->observes, &s->why);
    if (all) s->hooks = hooks_create(s->model, s->recorder, all, true, NULL, &s->why);
    free(all);
    return !s->hooks;
}

static void end_recording(step_bench *s) {
    double start = progress_clock();
    sr_end_step(s->recorder,
                &(sr_step){.size = sizeof(sr_step), .update = s->steps, .tokens = s->batch.tokens});
    s->recorder_ms += 1e3 * (progress_clock() - start);
    s->hooks_ms += 1e3 * hooks_seconds(s->hooks);
}

static bool one_step(step_bench *s) {
    task_sums report = {0};
    double norm;
    s->steps++;
    if (s->recorder && !s->bare) sr_begin_step(s->recorder, s->steps);
    tape_reset(s->tape, rng_create((uint64_t)s->steps), true, true);
    const task_options o = {.label_smoothing = NAN};
    pass p = {.tape = s->tape, .batch = &s->batch, .mode = NORM_TRAIN};
    tensor *loss = task_loss(task_of(s->batch.task), &o, s->model, &p, &report);
    tape_backward(s->tape, loss, 1);
    params_finalize_grad(&s->model->params);
    schedule_label("rest", true);
    if (tape_failure(s->tape)) s->why = *tape_failure(s->tape);
    double start = progress_clock();
    if (s->why.status != SR_OK ||
        optim_grad_norm(&s->model->params, s->threads, &norm, &s->why) != SR_OK)
        return false;
    optim_step u = {&s->optim, s->steps, s->of->task == TASK_IMAGES ? 0.1 : 1e-4,
                    1.0 / (double)s->batch.tokens, s->threads};
    optim_apply(s->optimizer, &u, &s->model->params);
    params_invalidate_grad(&s->model->params);
    schedule_label("optimizer", true);
    s->optimizer_ms += 1e3 * (progress_clock() - start);
    if (s->recorder && !s->bare) end_recording(s);
    s->loss = report.loss / (double)s->batch.tokens;
    return true;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *value, int count) {
    qsort(value, (size_t)count, sizeof *value, ascending);
    return (value[(count - 1) / 2] + value[count / 2]) / 2;
}

/* Milliseconds; negative after a failure. */
static double one_round(step_bench *s) {
    double ms[MOST_STEPS];
    for (int i = 0; i < s->steps_of_round; i++) {
        double start = progress_clock();
        if (!one_step(s)) return -1;
        ms[i] = 1e3 * (progress_clock() - start);
        s->all_ms += ms[i];
        s->measured++;
    }
    return median(ms, s->steps_of_round);
}

/* Parts without passes are printed under forward. */
static void print_share(const step_bench *s, const char *what, double forward, double backward) {
    const double steps = (double)s->measured;
    printf("%s\t%s\t%.2f\t%.2f\t%.1f\n", s->of->name, what, forward / steps, backward / steps,
           100 * (forward + backward) / s->all_ms);
}

static void print_shares(const step_bench *s) {
    const tape_profile *first = s->tape->profile;
    double rest = s->all_ms - s->optimizer_ms - s->recorder_ms;
    for (const tape_profile *op = first; op < first + PROFILE_OPS && op->op; op++) {
        print_share(s, op->op, 1e3 * op->forward, 1e3 * op->backward);
        rest -= 1e3 * (op->forward + op->backward);
    }
    print_share(s, "optimizer", s->optimizer_ms, 0);
    if (s->recorder) print_share(s, "recorder", s->recorder_ms, 0);
    print_share(s, "rest", rest, 0);
}

static void print_result(const step_bench *s, double ms) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double inside = s->hooks_ms / (double)s->measured;
    if (s->recorder)
        printf("# recording: %.2f ms a step, %.2f of it within the ops\n",
               inside + s->recorder_ms / (double)s->measured, inside);
    printf("# loss %.4f\n# median: %.1f ms\n# peak: %.0f MB\nmodel\top\tforward_ms\tbackward_ms"
           "\tpercent_of_step\n",
           s->loss, ms, (double)used.ru_maxrss / 1024);
    print_shares(s);
}

/* Runs steps until the memory is as large as in later steps. */
static bool warm_up(step_bench *s, bool served) {
    for (int i = 0; i < WARM; i++)
        if (!one_step(s)) return false;
    s->tape->profiling = true;
    s->optimizer_ms = s->hooks_ms = s->recorder_ms = 0;
    if (served) puts("ready");
    return fflush(stdout) == 0;
}

/* Sets the hooks and observers of all sites aside, or restores them. */
static void swap_lookers(step_bench *s) {
    for (int i = 0; i < s->model->sites; i++) {
        norm_site *site = s->model->site[i];
        const lookers now = {site->forward_hook, site->backward_hook, site->observer};
        site->forward_hook = s->aside[i].forward;
        site->backward_hook = s->aside[i].backward;
        site->observer = s->aside[i].observer;
        s->aside[i] = now;
    }
    s->bare = !s->bare;
}

static bool wants_round(step_bench *s, int rounds, int done) {
    char line[16] = "";
    if (done == (rounds ? rounds : MOST_ROUNDS) || (!rounds && !fgets(line, sizeof line, stdin)))
        return false;
    if ((*line == '-') != s->bare) swap_lookers(s);
    return true;
}

static int run(step_bench *s, int rounds) {
    static double ms[MOST_ROUNDS];
    int done = 0;
    if (!warm_up(s, !rounds)) return give_up(s);
    for (; wants_round(s, rounds, done); done++) {
        ms[done] = one_round(s);
        if (ms[done] < 0) return give_up(s);
        printf("# round %d: %.1f ms\n", done + 1, ms[done]);
        fflush(stdout);
    }
    if (s->bare) swap_lookers(s); /* whose they are frees them */
    if (done) print_result(s, median(ms, done));
    return 0;
}

/* -- schedule -------------------------------------------------------------------------------------- */

static void label_forward(const char *op) {
    schedule_label(op, false);
}

static void label_backward(void *context, const tape_node *node) {
    (void)context;
    schedule_label(node->op, true);
}

static void set_threads(step_bench *s, int threads) {
    s->threads = s->tape->threads = threads;
}

static bool predicted_step(step_bench *s, schedule_table *table, int plan, int round) {
    set_threads(s, table->threads[plan]);
    schedule_begin(&table->log[plan][round]);
    const bool good = one_step(s);
    schedule_end();
    return good;
}

static bool measured_step(step_bench *s, schedule_table *table, int plan, int round) {
    set_threads(s, table->threads[plan]);
    memset(s->tape->profile, 0, sizeof s->tape->profile);
    s->tape->profiling = true;
    const double start = progress_clock();
    const bool good = one_step(s);
    schedule_table_measured(table, plan, round, s->tape->profile, progress_clock() - start);
    s->tape->profiling = false;
    return good;
}

static bool schedule_round(step_bench *s, schedule_table *table, int round) {
    for (int i = 0; i < table->plans; i++) {
        if (!predicted_step(s, table, i, round)) return false;
        if (table->threads[i] <= table->cores && !measured_step(s, table, i, round)) return false;
    }
    if (round == 0) schedule_table_bytes(table, s->tape);
    return true;
}

static int run_schedule(step_bench *s, schedule_table *table) {
    s->tape->pushed = label_forward;
    s->tape->passed = label_backward;
    bool good = true;
    set_threads(s, 1);
    for (int i = 0; i < WARM && good; i++) good = one_step(s);
    const schedule_costs costs = schedule_measure_costs(table->cores);
    for (int r = 0; r < table->rounds && good; r++) good = schedule_round(s, table, r);
    if (!good) return give_up(s);
    if (schedule_table_print(table, s->of->name, &costs)) return 0;
    fprintf(stderr, "bench_step: steps with one number of threads had different regions\n");
    return 1;
}

/* 1, then "2,4,8"; their count, 0 unless they rise from 2 to at most SCHEDULE_MOST_THREADS. */
static int read_threads(const char *list, int threads[TABLE_MOST_PLANS]) {
    int count = 0;
    threads[count++] = 1;
    for (char *end; count < TABLE_MOST_PLANS; list = end + 1) {
        const long next = strtol(list, &end, 10);
        if (next <= threads[count - 1] || next > SCHEDULE_MOST_THREADS) return 0;
        threads[count++] = (int)next;
        if (*end != ',') return *end ? 0 : count;
    }
    return 0;
}

static const step_case *find_case(const char *name) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, name) == 0) return &cases[i];
    return NULL;
}

static int usage(void) {
    fprintf(stderr, "usage: bench_step CASE [THREADS] [ROUNDS] [RUN.h5, or -] [STEPS]\n"
                    "       bench_step --schedule P[,P...] CASE [ROUNDS] [GB/S]\n"
                    "       bench_step --digests P[,P...] CASE [STEPS]\ncases:");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) fprintf(stderr, " %s", cases[i].name);
    fputc('\n', stderr);
    return 2;
}

static int make_step(step_bench *s) {
    gemm_setup(s->threads);
    rng r = rng_create(1);
    s->batch = s->of->task == TASK_IMAGES ? make_images(s->of, &r) : make_texts(s->of, &r);
    return open_model(s);
}

/* argv: P[,P...] CASE [ROUNDS] [GB/S] */
static int schedule_main(int argc, char **argv) {
    static schedule_table table;
    table.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    table.rounds = argc > 2 ? atoi(argv[2]) : 5;
    table.bandwidth = argc > 3 ? 1e9 * atof(argv[3]) : 0;
    step_bench s = {.of = argc > 1 ? find_case(argv[1]) : NULL, .threads = table.cores};
    table.plans = read_threads(argv[0], table.threads);
    if (!s.of || !table.plans || table.rounds < 1 || table.rounds > SCHEDULE_MOST_LOGS ||
        table.bandwidth < 0)
        return usage();
    if (!schedule_possible()) {
        fprintf(stderr, "bench_step: --schedule needs a build by gcc, whose regions it runs\n");
        return 1;
    }
    const int status = make_step(&s) ? give_up(&s) : run_schedule(&s, &table);
    schedule_table_free(&table);
    return status;
}

static bool digest_of(step_bench *s, int steps, bool in_turn, char digest[32]) {
    schedule_log log = {0};
    bool good = make_step(s) == 0;
    if (in_turn) schedule_begin(&log);
    for (int i = 0; i < steps && good; i++) good = one_step(s);
    if (in_turn) schedule_end();
    schedule_free(&log);
    if (good) trainer_digest(s->model, digest);
    tape_free(s->tape);
    model_free(s->model);
    return good;
}

/* argv: P[,P...] CASE [STEPS] */
static int digests_main(int argc, char **argv) {
    const step_case *of = argc > 1 ? find_case(argv[1]) : NULL;
    int threads[TABLE_MOST_PLANS], count = read_threads(argv[0], threads), different = 0;
    const int steps = argc > 2 ? atoi(argv[2]) : 2;
    char first[32], digest[32];
    if (!of || !count || steps < 1) return usage();
    printf("model\tthreads\trun\tsteps\tloss\tdigest\n");
    for (int i = 0; i < 2 * count; i++) {
        const bool in_turn = i % 2;
        step_bench s = {.of = of, .threads = threads[i / 2]};
        if (in_turn && !schedule_possible()) continue;
        if (!digest_of(&s, steps, in_turn, digest)) return give_up(&s);
        if (i == 0) memcpy(first, digest, sizeof first);
        different += strcmp(first, digest) != 0;
        printf("%s\t%d\t%s\t%d\t%.9g\t%s\n", of->name, s.threads, in_turn ? "in turn" : "together",
               steps, s.loss, digest);
    }
    if (different) fprintf(stderr, "bench_step: %s: %d digests differ\n", of->name, different);
    return different > 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--digests") == 0) return digests_main(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "--schedule") == 0) return schedule_main(argc - 2, argv + 2);
    step_bench s = {.of = argc > 1 ? find_case(argv[1]) : NULL,
                    .threads = argc > 2 ? atoi(argv[2]) : 2,
                    .steps_of_round = argc > 5 ? atoi(argv[5]) : 5};
    const int rounds = argc > 3 ? atoi(argv[3]) : 9;
    const bool records = argc > 4 && strcmp(argv[4], "-") != 0;
    if (!s.of || s.threads < 1 || rounds < 0 || rounds > MOST_ROUNDS || s.steps_of_round < 1 ||
        s.steps_of_round > MOST_STEPS)
        return usage();
    if (make_step(&s)) return give_up(&s);
    s.aside = must(calloc((size_t)s.model->sites, sizeof *s.aside));
    if (records && open_recorder(&s, argv[4])) return give_up(&s);
    int status = run(&s, rounds);
    if (s.recorder &&
        sr_close(s.recorder, &(sr_finish){.size = sizeof(sr_finish), .status = "complete"},
                 &s.why) != SR_OK)
        return give_up(&s);
    return status;
}
