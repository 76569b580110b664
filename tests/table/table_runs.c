#include "table_runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"

/* Three evaluations of a translation run, one site in its encoder. */
typedef struct toy {
    const char *path, *norm, *settings; /* configuration keys beyond the common ones */
    uint64_t seed;
    double loss[3], bleu[3];
    double tid_mean, tid_var;
} toy;

static const toy toys[] = {
    {"ln1.h5", "ln", "lr = 0.1\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 20, 30}, NAN, NAN},
    {"ln2.h5", "ln", "lr = 0.1\nplacement = pre\n", 2, {3, 2, 2.5}, {10, 24, 31}, NAN, NAN},
    {"unbiased.h5",
     "ln",
     "lr = 0.1\nplacement = pre\nnorm-unbiased = 1\n",
     1,
     {3, 2, 2.5},
     {10, 25, 32},
     NAN,
     NAN},
    {"bn.h5", "bn", "lr = 0.1\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 18, 9}, 0.02, 0.05},
    {"bn-lr.h5", "bn", "lr = 0.2\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 19, 9}, 0.04, 0.01},
    {"post.h5", "bn", "lr = 0.1\nplacement = post\n", 1, {3, 2, 2.5}, {10, 17, 9}, 0.5, 0.25},
    {"pnls.h5",
     "pn+ls",
     "lr = 0.1\nplacement = pre\n",
     1,
     {NAN, NAN, NAN},
     {NAN, NAN, NAN},
     NAN,
     NAN},
    {"mixed.h5",
     "ln",
     "lr = 0.1\nplacement = pre\nnorm-at = encoder.0.*=bn\n",
     1,
     {3, 2, 2.5},
     {10, 22, 9},
     NAN,
     NAN},
    {"half.h5", "ln", "lr = 0.1\nplacement = pre\n", 3, {3, 2, NAN}, {10, 26, NAN}, NAN, NAN},
    {"ln-lr.h5", "ln", "lr = 0.2\nplacement = pre\n", 1, {3, 2, 2.5}, {10, 40, 9}, NAN, NAN},
    {"simple.h5",
     "ln-simple",
     "placement = pre\ndecoder-norm = ln-simple\n",
     1,
     {3, 2, 2.5},
     {10, 35, 9},
     NAN,
     NAN},
    {"simple-ln.h5", "ln-simple", "placement = pre\n", 1, {3, 2, 2.5}, {10, 36, 9}, NAN, NAN},
    {"all.h5", "bn", "record-sites = *\n", 1, {3, 2, 2.5}, {10, 11, 9}, NAN, NAN},
    {"some.h5", "bn", "record-sites = encoder.0.*\n", 1, {3, 2, 2.5}, {10, 12, 9}, NAN, NAN},
    {"final.h5", "bn", "record-sites = *.final\n", 1, {3, 2, 2.5}, {10, 13, 9}, NAN, NAN},
    {"peri.h5", "bn", "placement = peri\n", 1, {3, 2, 2.5}, {10, 14, 9}, NAN, NAN},
    {"scaled.h5", "bn", "placement = scaled\n", 1, {3, 2, 2.5}, {10, 15, 9}, NAN, NAN},
    {"brn-2.h5",
     "brn(r_max=2;d_max=1)",
     "placement = pre\n",
     1,
     {3, 2, 2.5},
     {10, 16, 9},
     NAN,
     NAN},
    {"brn-4.h5",
     "brn(d_max=1;r_max=4)",
     "placement = pre\n",
     1,
     {3, 2, 2.5},
     {10, 17, 9},
     NAN,
     NAN},
    {"ln-param.h5",
     "ln(unbiased=1)",
     "lr = 0.1\nplacement = pre\n",
     1,
     {3, 2, 2.5},
     {10, 25, 32},
     NAN,
     NAN},
    {"pn-param.h5",
     "pn(alpha_bwd=0.5)+ls",
     "lr = 0.1\nplacement = pre\ndecoder-norm = ln(eps=1e-6)\n",
     1,
     {3, 2, 2.5},
     {10, 26, 32},
     NAN,
     NAN},
};
enum { TOYS = sizeof toys / sizeof toys[0] };

static sr_recorder *create(const char *path, const char *config, const char *data, const char *task,
                           uint64_t seed) {
    sr_options o = run_options();
    o.config = config, o.program = "statrec train";
    o.data = data;
    o.task = task;
    o.seed = seed;
    sr_recorder *r = run_create(path, o);
    run_add_metrics(r);
    return r;
}

static void write_toy(const toy *t) {
    char config[1024];
    snprintf(config, sizeof config,
             "norm = %s\n%sdata-dir = /data/multi30k-de-en/\nsource = de\ntarget = en\nseed = %d\n"
             "output = %s\n%s",
             t->norm, strstr(t->settings, "decoder-norm") ? "" : "decoder-norm = ln\n",
             (int)t->seed, t->path, t->settings);
    sr_recorder *r = create(program_file(t->path), config, "parallel", "pairs", t->seed);
    const char *site = strstr(t->settings, "final") ? "encoder.final" : "encoder.0.norm1";
    run_add_bn(r, site, 2, 1, 1e-5);
    for (int step = 1; step <= 3; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4);
        sr_put_scalar(r, 0, SR_SCALAR_tid_mean, step == 3 ? t->tid_mean : 9);
        sr_put_scalar(r, 0, SR_SCALAR_tid_var, step == 3 ? t->tid_var : 9);
        run_end_step(r, step);
        run_put_eval(r, step, step, "valid_loss bleu", t->loss[step - 1], t->bleu[step - 1]);
    }
    run_finish(r);
}

/* Writes a run whose evaluations have a perplexity, not BLEU. A '-' in `data` makes it a
 * translation. */
static void write_perplexity(const char *path, const char *data, double value) {
    char config[256];
    const bool pairs = strstr(data, "-") != NULL;
    snprintf(config, sizeof config,
             "norm = ln\ndecoder-norm = ln\nplacement = pre\ndata-dir = /data/%s\n%s", data,
             pairs ? "source = de\ntarget = en\n" : "");
    sr_recorder *r = create(program_file(path), config, "parallel", pairs ? "pairs" : "text", 1);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "encoder.0.norm1",
                              .norm = "ln",
                              .kind = "encoder",
                              .width = 2,
                              .depth = 1,
                              .eps = 1e-5,
                              .alpha = NAN});
    sr_begin_step(r, 1);
    run_end_step(r, 1);
    run_put_eval(r, 1, 1, "valid_loss valid_ppl", 3.0, value);
    run_finish(r);
}

/* A run of another program: no configuration, names that would break a table. */
static const char hostile[] = "a%b_$c`d`\n\\end{document}\t|<x>~^#&{*}";

static void write_foreign(const char *path, const char *data, const char *norm, double accuracy) {
    sr_recorder *r = create(program_file(path), "", data, "images", 1);
    sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                              .name = "stem",
                              .norm = norm,
                              .kind = "conv",
                              .family = SR_FAMILY_SIGMA,
                              .width = 2,
                              .depth = 1,
                              .layer_scale = 4,
                              .eps = 1e-5,
                              .alpha = 0.9});
    sr_begin_step(r, 1);
    run_end_step(r, 1);
    run_put_eval(r, 1, 1, "valid_loss valid_accuracy", 1.0, accuracy);
    run_finish(r);
}

int table_runs(void **state) {
    (void)state;
    for (int i = 0; i < TOYS; i++) write_toy(&toys[i]);
    write_perplexity("ppl.h5", "multi30k-de-en", 33);
    write_perplexity("ptb.h5", "ptb", 44);
    write_foreign("cv.h5", "cifar10", "bn", 80);
    write_foreign("evil.h5", hostile, "x$`y`&\n|\\z", 70);
    return 0;
}

void check_rows(const char *command, const char *want) {
    program_result r = program_run("%s", command);
    const char *at = r.out;
    while (*at == '#') at += strcspn(at, "\n") + 1;
    if (r.status || r.err[0] || strcmp(at, want) != 0)
        fail_msg("%s: exit %d: %s\n%s\ninstead of\n%s", command, r.status, r.err, at, want);
    program_free(&r);
}
