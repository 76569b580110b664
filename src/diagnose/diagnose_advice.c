/* diagnose_advice.c -- chooses advice for a run from a table of pieces. Each piece has conditions
 * on the run and on the site of a finding. The pieces whose conditions hold are the advice.
 *
 * A condition asks the configuration (run_option), the identity of the run (run_identify) or the
 * properties of the site's method (family, axis, statistics). This table names methods that differ
 * in a parameter only, such as RBN from BN in its penalty. Options are named for runs of statrec
 * train alone.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_identity.h"
#include "base/globs.h"
#include "diagnose/diagnosis.h"

typedef struct advice_context {
    const subject *s;
    const answer *a;
    const sr_run_site *site; /* the worst, else the first with a norm; NULL: none */
    run_identity id;
    /* TID is larger than independent samples could show: their number is not the cause */
    bool alike;
    bool both_ways; /* validated with running and with batch statistics */
} advice_context;

/* -- conditions -------------------------------------------------------------------------------- */

typedef bool condition_fn(const advice_context *p, const char *of);

static bool trained(const advice_context *p, const char *of) {
    (void)of;
    return p->s->trained;
}

/* The statistic is the observer's: the site does not use it. */
static bool observed(const advice_context *p, const char *of) {
    (void)of;
    return p->site && p->site->observed &&
           (!sr_run_over_batch(p->site) || sr_run_only_observed(p->site, p->a->statistic));
}

static bool over_batch(const advice_context *p, const char *of) {
    (void)of;
    return p->site && sr_run_over_batch(p->site);
}

/* The site divides by psi, and the finding is about its own statistics. */
static bool by_psi(const advice_context *p, const char *of) {
    return !observed(p, of) && over_batch(p, of) && sr_run_uses(p->site, "psi2");
}

static bool family(const advice_context *p, const char *of) {
    return p->site && globs_match(of, sr_family_name(p->site->family));
}

static bool method(const advice_context *p, const char *of) {
    return p->site && globs_match(of, p->site->norm);
}

static bool synchronizes(const advice_context *p, const char *of) {
    (void)of;
    return p->site && p->s->synchronizes && p->s->synchronizes(p->site->norm);
}

static bool scaled(const advice_context *p, const char *of) {
    (void)of;
    return p->site && p->site->layer_scale > 0;
}

static bool divides(const advice_context *p, const char *of) {
    (void)of;
    return p->site && p->site->family != SR_FAMILY_NONE && p->site->eps > 0;
}

static bool placed(const advice_context *p, const char *of) {
    return strcmp(p->id.placement, of) == 0;
}

static bool counts(const advice_context *p, const char *of) {
    run_word what;
    run_counts(p->s->run, what);
    return strcmp(what, of) == 0;
}

/* Options of statrec train: another host's may have their names. */
static bool has(const advice_context *p, const char *of) {
    return p->s->trained && run_has_option(p->s->run, of);
}

/* of: an option and its value, "batching=random" */
static bool set_to(const advice_context *p, const char *of) {
    option_text value;
    run_word key;
    const size_t length = strcspn(of, "=");
    snprintf(key, sizeof key, "%.*s", (int)length, of);
    run_option(p->s->run, key, value, sizeof value);
    return p->s->trained && value[0] && strcmp(value, of + length + 1) == 0;
}

/* A number above 0; false too if the run does not record it. */
static bool positive(const advice_context *p, const char *of) {
    return p->s->trained && run_option_number(p->s->run, of) > 0;
}

static bool several(const advice_context *p, const char *of) {
    return p->s->trained && run_option_number(p->s->run, of) > 1;
}

/* There is nothing to validate both ways: the run did, or its finding can have no gap. */
static bool measured(const advice_context *p, const char *of) {
    return p->both_ways || by_psi(p, of);
}

/* True if no piece before applied. */
static bool nothing_else(const advice_context *p, const char *of) {
    (void)of;
    return !p->a->advice[0];
}

static bool alike(const advice_context *p, const char *of) {
    (void)of;
    return p->alike;
}

/* True if the finding measured this statistic. */
static bool about(const advice_context *p, const char *of) {
    return strcmp(p->a->statistic, of) == 0;
}

static bool below(const advice_context *p, const char *of) {
    (void)of;
    return p->a->below;
}

static bool still(const advice_context *p, const char *of) {
    (void)of;
    return p->a->e.value == 0;
}

/* -- the table --------------------------------------------------------------------------------- */

typedef struct condition {
    condition_fn *holds;
    const char *of;
    bool no; /* applies if the condition does not hold */
} condition;
/* clang-format off */
#define IF(condition, of)     {condition, of, false}
#define UNLESS(condition, of) {condition, of, true}
#define ALWAYS                {NULL, NULL, false}
/* clang-format on */

/* Two programs that use a checkpoint. */
#define AT_A_CHECKPOINT                                                                            \
    "--checkpoint-every end; then statrec average --recompute-stats, statrec evaluate --each-site"
#define STALE "recomputed running statistics: a gap that they close was of stale averages"
#define PLACE "an evaluation site by site: the first site that closes the gap is where it begins"

enum { CONDITIONS = 3 };
typedef struct advice_rule {
    const char *questions; /* ids, separated by commas */
    const char *words,
        *how; /* how: options of statrec train; {site}, {rest}, {norm=METHOD}: below */
    condition when[CONDITIONS];
} advice_rule;

/* A table follows. */
/* clang-format off */
static const advice_rule pieces[] = {
    {"would-bn,outliers,gradient,rows,alike", "{method}, unchanged, at these sites", "",
     {IF(observed, "")}},
    {"divergence,dead", "a lower learning rate", "--lr", {ALWAYS}},
    {"outliers", "a lower learning rate where loss jumps at the same steps", "--lr", {ALWAYS}},
    {"overflow", "nothing, if a loss scaler skipped the step; else a look at its batch", "",
     {ALWAYS}},
    {"validation", "the running values of its sites, and validation with batch statistics",
     "--validate-batch", {IF(trained, "")}},
    {"validation", "the running values of its sites, and validation with batch statistics", "",
     {UNLESS(trained, "")}},
    {"divergence", "a warm-up", "--warmup-updates",
     {IF(trained, ""), UNLESS(positive, "warmup-updates")}},
    {"divergence", "a longer warm-up", "--warmup-updates", {IF(positive, "warmup-updates")}},
    {"divergence", "a warm-up or a longer one", "", {UNLESS(trained, "")}},
    {"divergence,growth", "a bound on the gradient norm", "--clip-norm",
     {IF(trained, ""), UNLESS(positive, "clip-norm")}},
    {"divergence,growth", "a lower bound on the gradient norm", "--clip-norm",
     {IF(positive, "clip-norm")}},
    {"divergence,growth", "a bound on the gradient norm, or a lower one", "",
     {UNLESS(trained, "")}},
    {"divergence,growth", "norms before each sublayer", "--placement pre",
     {IF(trained, ""), IF(placed, "post")}},
    {"divergence,growth", "a layer scale before normalizations", "--layer-scale",
     {IF(over_batch, ""), UNLESS(scaled, "")}},
    {"divergence", "a larger eps", "--norm-eps", {IF(divides, "")}},
    {"growth,embedding", "weight decay", "--weight-decay",
     {IF(trained, ""), UNLESS(positive, "weight-decay")}},
    {"growth,embedding", "more weight decay", "--weight-decay", {IF(positive, "weight-decay")}},
    {"growth,embedding", "weight decay or more of it", "", {UNLESS(trained, "")}},
    {"inference", "validation with running and with batch statistics", "--validate-batch",
     {IF(trained, ""), UNLESS(measured, "")}},
    {"inference", "validation with running and with batch statistics, as NAME and NAME_batch", "",
     {UNLESS(trained, ""), UNLESS(measured, "")}},
    {"inference", STALE, "statrec average X.ckpt --recompute-stats",
     {IF(has, "checkpoint-every"), UNLESS(set_to, "checkpoint-every=none"), UNLESS(family, "pn")}},
    {"inference", PLACE, "statrec evaluate X.ckpt --each-site",
     {IF(has, "checkpoint-every"), UNLESS(set_to, "checkpoint-every=none"), UNLESS(family, "pn")}},
    {"inference", "a checkpoint, to recompute running statistics and judge sites",
     AT_A_CHECKPOINT, {IF(trained, ""), UNLESS(has, "checkpoint-every"), UNLESS(family, "pn")}},
    {"inference", "a checkpoint, to recompute running statistics and judge sites",
     AT_A_CHECKPOINT, {IF(set_to, "checkpoint-every=none"), UNLESS(family, "pn")}},
    {"inference", STALE, "", {UNLESS(trained, ""), UNLESS(family, "pn")}},
    {"inference", "batches drawn at random: a gap that they close was of batches of one length",
     "--batching random", {IF(set_to, "batching=bucketed"), UNLESS(family, "pn")}},
    {"inference,would-bn", "RBN, whose penalty draws the two together",
     "{norm=rbn}, lambda by --rbn-lambda-mean and --rbn-lambda-std",
     {UNLESS(method, "rbn*"), UNLESS(by_psi, "")}},
    {"inference", "a larger weight of the penalty that draws the two together",
     "--rbn-lambda-mean, --rbn-lambda-std", {IF(method, "rbn*")}},
    {"inference,would-bn,outliers,gradient",
     "PN, which divides by running statistics in training too", "{norm=pn+ls}",
     {UNLESS(family, "pn"), UNLESS(method, "pn-released")}},
    {"nu", "a layer scale, which bounds Gamma", "--layer-scale", {UNLESS(scaled, "")}},
    {"gradient", "a layer scale before the site", "--layer-scale",
     {IF(family, "pn"), UNLESS(scaled, "")}},
    {"nu", "a warm-up with batch statistics", "{norm=pn-released}, --norm-warmup",
     {UNLESS(method, "pn-released")}},
    {"nu", "a longer warm-up with batch statistics", "--norm-warmup", {IF(method, "pn-released")}},
    {"nu", "a larger alpha_bwd", "--pn-alpha-bkw", {ALWAYS}},
    {"inference,would-bn,outliers,gradient,rows", "more rows in a pass", "--max-tokens",
     {IF(has, "max-tokens"), UNLESS(set_to, "batch-by=sentences"), UNLESS(alike, "")}},
    {"inference,would-bn,outliers,gradient,rows", "more rows in a pass", "--batch-size",
     {IF(has, "batch-size"), UNLESS(set_to, "batch-by=tokens"), UNLESS(alike, "")}},
    {"inference,would-bn,outliers,gradient,rows", "more rows in a batch", "",
     {UNLESS(trained, ""), UNLESS(alike, "")}},
    {"inference,would-bn,outliers,gradient,rows", "fewer, larger passes for an update",
     "--update-freq", {IF(several, "update-freq"), UNLESS(alike, "")}},
    {"inference,outliers,gradient,rows", "statistics over all shards of a batch", "--sync-norm",
     {IF(several, "shards"), UNLESS(set_to, "sync-norm=yes"), IF(synchronizes, "")}},
    {"inference,outliers,gradient,rows", "statistics over several processes", "",
     {UNLESS(trained, ""), IF(over_batch, "")}},
    {"would-bn,outliers,alike", "batches drawn at random", "--batching random",
     {IF(has, "batching"), UNLESS(set_to, "batching=random")}},
    {"outliers", "batches of mixed lengths", "", {UNLESS(trained, ""), IF(counts, "token")}},
    {"alike", "data in another order, batches of several sources", "", {ALWAYS}},
    {"alike", "where the running average lags, a smaller alpha", "--norm-alpha", {ALWAYS}},
    {"padding", "batches of similar length", "--batching bucketed",
     {IF(set_to, "batching=random")}},
    {"padding", "batches of similar length", "", {UNLESS(trained, "")}},
    {"padding", "batch sizes without padding, for equal numbers of rows",
     "--max-tokens-of valid", {IF(set_to, "max-tokens-of=padded")}},
    {"inference,gradient,rows", "LN or RMSNorm at these sites", "--norm-at '{site}=ln{rest}'",
     {IF(over_batch, ""), UNLESS(observed, "")}},
    {"alpha", "the better alpha above, which changes evaluation alone", "--norm-alpha",
     {IF(family, "sigma"), UNLESS(method, "rbn*")}},
    {"alpha", "the better alpha above", "--norm-alpha", {UNLESS(family, "sigma")}},
    {"alpha", "the better alpha above", "--norm-alpha", {IF(method, "rbn*")}},
    {"momentum", "running values set anew: buffers reset, then batches in training mode",
     "statrec average X.ckpt --recompute-stats", {IF(about, "running values not finite")}},
    {"momentum", "a momentum above 0 (PyTorch: 0.1, or None for the plain mean)", "",
     {UNLESS(trained, ""), IF(about, "updates a step"), IF(still, "")}},
    {"momentum", "an alpha below 1, or running values set anew", "--norm-alpha",
     {IF(trained, ""), IF(still, "")}},
    {"momentum", "a second forward pass that leaves running values alone (momentum 0 in it)", "",
     {IF(about, "updates a step"), UNLESS(below, "")}},
    {"momentum", "a check of the momentum in use, and of which batches reach the site", "",
     {IF(about, "updates a step"), IF(below, ""), UNLESS(still, "")}},
    {"momentum", "a norm that leaves padding out, or batches of similar length", "",
     {IF(about, "updates with padding")}},
    {"momentum", "alpha's root by the number of passes, if it should be of an update", "",
     {IF(about, "moves an update")}},
    {"momentum", "synchronized batch norms (SyncBatchNorm), or buffers averaged over the ranks", "",
     {IF(about, "tid_mean")}},
    {"momentum", "eval() of frozen norms after each model.train(), if they were to stay frozen", "",
     {IF(about, "running values begin")}},
    {"momentum", "a check of what set momentum to 0 or the site to evaluation", "",
     {IF(about, "running values stop")}},
    {"momentum", "larger batches, or a running variance with the divisor n", "",
     {IF(about, "tid_var")}},
    {"embedding", "another initial standard deviation", "--embed-std", {IF(has, "embed-std")}},
    {"embedding", "another initialization", "", {UNLESS(trained, "")}},
    {"embedding", "a check of tied output weights", "", {ALWAYS}},
    {"dead,growth", "a check of the layers before the site (ReLU, masks, unused inputs)", "",
     {ALWAYS}},
    {"*", "a check of the batches of these steps: do their rows or samples resemble each other?",
     "", {IF(nothing_else, "")}},
};
/* clang-format on */

/* -- in words ---------------------------------------------------------------------------------- */

bool advice_norm_at(const subject *s, const int64_t *site, int64_t sites, const char *norm,
                    char *text, size_t size) {
    option_text rest;
    size_t used = 0;
    run_option(s->run, "norm-at", rest, sizeof rest);
    text[0] = 0;
    for (int64_t i = 0; i < sites; i++) {
        const int more = snprintf(text + used, size - used, "%s%s=%s", i ? "," : "",
                                  sr_run_get_site(s->run, site[i])->name, norm);
        if (more < 0 || (used += (size_t)more) >= size) return false;
    }
    const int more = snprintf(text + used, size - used, "%s%s", rest[0] ? "," : "", rest);
    return more >= 0 && used + (size_t)more < size;
}

static void append(char *text, size_t size, const char *more, size_t length) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%.*s", (int)length, more);
}

/* The option that gives the site this method: --norm for all sites, the decoder's, or --norm-at for
 * this one. --norm-at wins over both, so it is used in runs that have it. */
static void append_norm(const advice_context *p, const char *norm, size_t length, char *text,
                        size_t size) {
    option_text at;
    char words[256];
    run_option(p->s->run, "norm-at", at, sizeof at);
    const bool decoder = p->site && strcmp(p->site->kind, "decoder") == 0;
    if (at[0] && p->site)
        snprintf(words, sizeof words, "--norm-at '%s=%.*s,", p->site->name, (int)length, norm);
    else
        snprintf(words, sizeof words, "%s %.*s",
                 decoder && has(p, "decoder-norm") ? "--decoder-norm" : "--norm", (int)length,
                 norm);
    append(text, size, words, sizeof words);
    if (!at[0] || !p->site) return;
    append(text, size, at, sizeof at);
    append(text, size, "'", 1);
}

/* {site}: the site's name; {method}: its method; {norm=METHOD}: the option for another; {rest}: the
 * run's value of --norm-at, after a comma. */
static void append_word(const advice_context *p, const char *word, char *text, size_t size) {
    static const char norm[] = "{norm=";
    option_text rest;
    run_option(p->s->run, "norm-at", rest, sizeof rest);
    if (strncmp(word, norm, sizeof norm - 1) == 0)
        append_norm(p, word + sizeof norm - 1, strcspn(word, "}") - (sizeof norm - 1), text, size);
    else if (strncmp(word, "{site}", 6) == 0)
        append(text, size, p->site ? p->site->name : "SITE", SR_NAME_SIZE);
    else if (strncmp(word, "{method}", 8) == 0)
        append(text, size, p->site ? method_of(p->site, "no normalization") : "the method",
               SR_NAME_SIZE);
    else if (rest[0]) {
        append(text, size, ",", 1);
        append(text, size, rest, sizeof rest);
    }
}

static void expand(const advice_context *p, const char *from, char *text, size_t size) {
    while (*from) {
        const size_t plain = strcspn(from, "{");
        append(text, size, from, plain);
        from += plain;
        if (!*from) return;
        append_word(p, from, text, size);
        from += strcspn(from, "}") + 1;
    }
}

static bool applies(const advice_rule *m, const advice_context *p, const char *id) {
    if (!globs_match(m->questions, id)) return false;
    for (int i = 0; i < CONDITIONS && m->when[i].holds; i++)
        if (m->when[i].holds(p, m->when[i].of) == m->when[i].no) return false;
    return true;
}

static void add(const advice_rule *m, const advice_context *p, char *text, size_t size) {
    append(text, size, text[0] ? "; " : "", 2);
    expand(p, m->words, text, size);
    if (!m->how[0] || !p->s->trained) return;
    append(text, size, " (", 2);
    expand(p, m->how, text, size);
    append(text, size, ")", 1);
}

static sr_status look_alike_at(advice_context *p, sr_failure *why) {
    estimate like = NO_ESTIMATE;
    if (!p->a->shown || !globs_match("tid_*", p->a->statistic)) return SR_OK;
    sr_status status = measure_alike(p->s, p->a->top[0].site, NULL, &like, why);
    p->alike = status == SR_OK && like.low > 1;
    return status;
}

/* Training that stays or became finite again needs no advice against divergence. */
static const char *case_of(const question *q, const answer *a) {
    if (strcmp(a->statistic, "nonfinite_evaluations") == 0) return "validation";
    const bool went_on = strcmp(q->id, "divergence") == 0 && a->severity < SEVERE;
    return went_on ? "overflow" : q->id;
}

sr_status advice_write(const subject *s, const question *q, answer *a, sr_failure *why) {
    advice_context p = {.s = s, .a = a, .site = sr_run_main_site(s->run)};
    if (a->shown) p.site = sr_run_get_site(s->run, a->top[0].site);
    run_identify(&p.id, s->run, s->path);
    const sr_run_metric *metric = NULL;
    sr_status status = look_alike_at(&p, why);
    if (status == SR_OK) status = gap_metric(s, &metric, why);
    p.both_ways = metric;
    a->advice[0] = 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        if (applies(&pieces[i], &p, case_of(q, a)))
            add(&pieces[i], &p, a->advice, sizeof a->advice);
    return status;
}
