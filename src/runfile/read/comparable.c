/* comparable.c -- which statistics may be compared between runs, and alternatives for the others.
 *
 * A statistic may depend on these properties of a run:
 * - the width d;
 * - the scale of the activations;
 * - the reduction of the loss (sum or mean) and its number of tokens;
 * - the rows of a batch, the composition of batches, and the weight alpha of the running value.
 * Every form depends on the last three. The noise of a batch mean falls with the root of its
 * independent rows, whose number is unknown for images and sentences. The table omits statistics
 * without dependence.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "runfile/abi_struct.h"
#include "runfile/read/file/open_file_cache.h"
#include "statrec/runfile.h"

/* Statistics with this prefix and suffix; a prefix that ends in _ allows any text between them. */
typedef struct comparability {
    const char *begin, *end;
    unsigned depends;
    const char *instead; /* suffix of a statistic to compare instead; NULL: none */
    const char *reason;
} comparability;

#define SCALAR_NAME(name, ...) #name,

#define BATCH                  (SR_DEPENDS_ROWS | SR_DEPENDS_BATCHES)
#define RUNNING                (BATCH | SR_DEPENDS_ALPHA)
#define SUM                    (SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS)
static const char SAMPLING[] =
    "holds sampling noise, which falls with the root of the rows that are independent";

static const comparability rows[] = {
    {"dist_", "_excess", RUNNING, NULL,
     "is against independent rows: where rows of a sample are alike it grows with their number"},
    {"g_", "_excess", BATCH, NULL,
     "is against independent rows: where rows of a sample are alike it grows with their number"},
    {"dist_", "_relative", RUNNING, NULL, SAMPLING},
    {"dist_", "_per_root", RUNNING | SR_DEPENDS_SCALE, "_relative",
     "carries the scale of the activations"},
    {"dist_", "", RUNNING | SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE, "_relative",
     "is divided by d and carries the scale of the activations"},
    {"g_", "_share", BATCH, NULL, SAMPLING},
    {"g_", "_mean", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE, "_share",
     "is divided by d and carries the scale of the gradient"},
    {"g_", "_sum", SUM, "_share", "is of the summed loss, divided by d"},
    {"g_", "", SUM, "_share", "is of the loss as the run reduced it, divided by d"},
    {"tid_", "", RUNNING, NULL, SAMPLING},
    {"rel_", "", RUNNING, NULL, SAMPLING},
    {"mu_shift", "", RUNNING, NULL, SAMPLING},
    {"sigma_ratio", "", RUNNING, NULL, SAMPLING},
    {"psi_ratio", "", RUNNING, NULL, SAMPLING},
    {"row_", "", SUM, NULL, "is of the loss as the run reduced it, for single rows"},
    {"dx_norm_", "", SUM, NULL, "is of the loss as the run reduced it, over rows and features"},
    {"dx_norm", "", SUM, NULL, "is of the loss as the run reduced it, over rows and features"},
    {"direct_norm_", "", SUM, NULL, "is of the loss as the run reduced it, over rows and features"},
    {"direct_norm", "", SUM, NULL, "is of the loss as the run reduced it, over rows and features"},
};

/* Only names of format.h, and those that analyses derive, have forms. A custom scalar g_NAME does
 * not. */
static bool is_known(const char *name, size_t length) {
    static const char *const names[] = {SR_SCALARS(SCALAR_NAME) "tid_total", "mu_shift",
                                        "sigma_ratio", "psi_ratio"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0) return true;
    return false;
}

static bool fits(const comparability *c, const char *name) {
    const size_t begin = strlen(c->begin), end = strlen(c->end), length = strlen(name);
    const bool open = c->begin[begin - 1] == '_';
    return (open ? length >= begin + end : length == begin + end) &&
           strncmp(name, c->begin, begin) == 0 && strcmp(name + length - end, c->end) == 0 &&
           is_known(name, length - end);
}

unsigned sr_depends(const char *statistic, sr_instead *instead) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const comparability *c = &rows[i];
        if (!fits(c, statistic)) continue;
        const size_t stem = strlen(statistic) - strlen(c->end);
        sr_instead ours = SR_INIT(sr_instead, .reason = c->reason);
        if (c->instead)
            snprintf(ours.name, sizeof ours.name, "%.*s%s", (int)stem, statistic, c->instead);
        abi_struct_give(instead, &ours, sizeof ours, "sr_instead", NULL);
        return c->depends;
    }
    return 0;
}

/* -- two runs -------------------------------------------------------------------------------- */

enum { LOOKS = 64, SHORT_RUN = 4096 }; /* steps, spread over the run; steps read at once */

/* Mean of the finite values; NaN without any. */
static double mean_of(const double *value, int count) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (isfinite(value[i])) sum += value[i], n++;
    return n ? sum / n : NAN;
}

/* Tokens of a pass and valid rows of a site at some steps. */
typedef struct run_sample {
    int count;
    double tokens[LOOKS], rows[LOOKS];
} run_sample;

/* One value at a time: a long run. */
static void look_at_steps(const sr_runfile *f, int64_t site, run_sample *s) {
    const int64_t steps = sr_run_get_info(f)->steps;
    for (int i = 0; i < s->count; i++) {
        float raw = NAN;
        int64_t n;
        const bool read = sr_run_step_ints(f, "tokens", i * steps / s->count, 1, &n, NULL) == SR_OK;
        s->tokens[i] = read ? (double)n : NAN;
        sr_run_scalar(f, "rows", site, i * steps / s->count, 1, &raw, NULL);
        s->rows[i] = (double)raw;
    }
}

/* Columns of a short run: false if one is unreadable, which single values may be not. */
static bool look_at_columns(const sr_runfile *f, int64_t site, run_sample *s) {
    int64_t tokens[SHORT_RUN];
    float valid[SHORT_RUN];
    const int64_t steps = sr_run_get_info(f)->steps;
    if (steps > SHORT_RUN || sr_run_step_ints(f, "tokens", 0, steps, tokens, NULL) != SR_OK ||
        sr_run_scalar(f, "rows", site, 0, steps, valid, NULL) != SR_OK)
        return false;
    for (int i = 0; i < s->count; i++) {
        s->tokens[i] = (double)tokens[i * steps / s->count];
        s->rows[i] = (double)valid[i * steps / s->count];
    }
    return true;
}

/* Estimates tokens of a pass and valid rows of the site. Keeps the answer: a run is compared once
 * for each statistic, and the first run with all others. */
static reader_looks sample_run(const sr_runfile *f, int64_t site) {
    reader_shelf *shelf = f->shelf;
    const int places = sizeof shelf->looks / sizeof shelf->looks[0];
    for (int i = 0; i < places; i++)
        if (shelf->looks[i].known && shelf->looks[i].site == site) return shelf->looks[i];
    const int64_t steps = sr_run_get_info(f)->steps;
    run_sample s = {.count = steps < LOOKS ? (int)steps : LOOKS};
    if (!look_at_columns(f, site, &s)) look_at_steps(f, site, &s);
    reader_looks *kept = &shelf->looks[shelf->next_looks];
    shelf->next_looks = (shelf->next_looks + 1) % places;
    *kept = (reader_looks){true, site, mean_of(s.tokens, s.count), mean_of(s.rows, s.count)};
    return *kept;
}

static bool differ(const char *a, const char *b) {
    return strcmp(a, b) != 0;
}

/* True if they differ by more than a tenth. */
static bool apart(double a, double b) {
    return a > 1.1 * b || b > 1.1 * a;
}

/* The line `key = value` of a run's configuration, its end excluded; length 0: none. */
static const char *config_line(const sr_runfile *f, const char *key, size_t *length) {
    const char *at = sr_run_get_info(f)->config;
    const size_t size = strlen(key);
    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        *length = strcspn(at, "\n");
        if (*length > size && strncmp(at, key, size) == 0 && at[size] == ' ') return at;
    }
    *length = 0;
    return "";
}

/* Compares the options for batches; a missing line is no difference. */
static bool batches_differ(const sr_runfile *a, const sr_runfile *b) {
    static const char *const keys[] = {"batching", "max-tokens-of", "count-padding",
                                       "shuffle-sources"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        size_t m, n;
        const char *x = config_line(a, keys[i], &m), *y = config_line(b, keys[i], &n);
        if (m && n && (m != n || strncmp(x, y, m) != 0)) return true;
    }
    return false;
}

unsigned sr_differences(const sr_runfile *a, int64_t site_a, const sr_runfile *b, int64_t site_b) {
    const sr_run_info *x = sr_run_get_info(a), *y = sr_run_get_info(b);
    const sr_run_site *at = sr_run_get_site(a, site_a), *other = sr_run_get_site(b, site_b);
    unsigned found = 0;
    if (a == b && site_a == site_b) return 0;
    const reader_looks here = sample_run(a, site_a), there = sample_run(b, site_b);
    if (at->width != other->width) found |= SR_DEPENDS_WIDTH;
    if (differ(x->model, y->model) || differ(x->data, y->data)) found |= SR_DEPENDS_SCALE;
    if (differ(x->loss_reduction, y->loss_reduction) || apart(here.tokens, there.tokens))
        found |= SR_DEPENDS_LOSS;
    if (apart(here.rows, there.rows)) found |= SR_DEPENDS_ROWS;
    if (batches_differ(a, b)) found |= SR_DEPENDS_BATCHES;
    if (at->alpha < other->alpha || at->alpha > other->alpha) found |= SR_DEPENDS_ALPHA;
    return found;
}

static const struct {
    unsigned bit;
    const char *name;
} causes[] = {{SR_DEPENDS_WIDTH, "width"},
              {SR_DEPENDS_SCALE, "model or data"},
              {SR_DEPENDS_LOSS, "loss reduction or tokens of a pass"},
              {SR_DEPENDS_ROWS, "rows of a batch"},
              {SR_DEPENDS_BATCHES, "batching"},
              {SR_DEPENDS_ALPHA, "alpha"}};

/* "width, rows of a batch" */
static void list_causes(unsigned bits, char *text, size_t size) {
    text[0] = 0;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        const size_t used = strlen(text);
        if (bits & causes[i].bit)
            snprintf(text + used, size - used, "%s%s", used ? ", " : "", causes[i].name);
    }
}

bool sr_comparable(const char *statistic, unsigned differences, char *text, size_t size) {
    sr_instead instead = SR_INIT(sr_instead, .reason = ""), unused = instead;
    char why[128], rest[256] = "";
    const unsigned wrong = sr_depends(statistic, &instead) & differences;
    if (!wrong) return true;
    list_causes(wrong, why, sizeof why);
    const unsigned left = instead.name[0] ? sr_depends(instead.name, &unused) & differences : 0;
    if (instead.name[0] && !left) snprintf(rest, sizeof rest, "; comparable: %s", instead.name);
    if (instead.name[0] && left) {
        char still[128];
        list_causes(left, still, sizeof still);
        snprintf(rest, sizeof rest, "; better: %s (still different: %s)", instead.name, still);
    }
    snprintf(text, size, "%s is not comparable between these runs (different %s): it %s%s",
             statistic, why, instead.reason, rest);
    return false;
}
