/* diagnose_momentum.c -- do the running values move as they should?
 *
 * One update mu' = alpha mu + (1 - alpha) mu_B moves the running mean by the share 1 - alpha of its
 * distance from the batch mean. k updates by the same batch move it by 1 - alpha^k. Over the steps
 *
 *     v = sum mu_moved / sum mu_apart      k = log(1 - v) / log(alpha)
 *
 * with the block bootstrap's interval of v (docs/definitions.md has the two scalars). Steps at rest
 * before the first move and after the last do not count; they make a separate answer.
 *
 * Divisor: some hosts average the variance with the divisor n - 1 and normalize with n. Without any
 * drift sigma_B/sigma is then sqrt((n-1)/n), and tid_var is 1 - sqrt((n-1)/n).
 *
 * Padding: a host program may record statistics of valid rows while its running values cover all
 * rows. They then move towards another mean than mu_B, and v is too small.
 *
 * Running values of another rank: statistics of all ranks are recorded, but each rank averages its
 * own. They move away from the merged batch mean, and TID is large.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/runs/run_config.h"
#include "diagnose/diagnosis.h"

/* A site's case, the worst first; of one severity the earlier. */
typedef enum {
    NOT_FINITE,
    NEVER,
    OTHER_RANK,
    BEGINS,
    STOPS,
    RATE,   /* another number of updates */
    MERGED, /* one for each of the passes that are merged */
    PADDED, /* by rows that the statistics leave out */
    DIVISOR,
    IN_TIME,
    UNASKED
} motion_case;

/* k is off where its interval is outside of these. */
static const double LEAST = 0.9, MOST = 1.1;

/* The divisor's bias is a finding from here on, which is below 11 rows. Own choice. */
static const double BIAS = 0.05;

typedef struct motion {
    int64_t site, step; /* step: first or last step of the case */
    motion_case is;
    severity severity;
    double passes, expected; /* merged passes of a step, else 1; 1 - alpha */
    estimate v, k, tid;      /* tid: for OTHER_RANK and DIVISOR */
    double padding;          /* part of the rows, of PADDED */
    double rows;             /* rows of a batch, for DIVISOR */
} motion;

/* Values of a site at each step of the run. */
typedef struct history {
    int64_t steps;
    int64_t *step;                                   /* [steps] */
    double *loss, *rows, *moved, *apart, *tid, *bad; /* [steps] */
} history;

/* -- reading ---------------------------------------------------------------------------------- */

static void history_free(history *h) {
    free(h->step);
    free(h->loss);
}

static sr_status history_make(history *h, const subject *s, sr_failure *why) {
    const int64_t room = s->info->steps + 1;
    *h = (history){.steps = s->info->steps};
    h->step = malloc((size_t)room * sizeof *h->step);
    h->loss = malloc(6 * (size_t)room * sizeof *h->loss);
    if (!h->step || !h->loss) return sr_fail(why, SR_MEMORY, "out of memory");
    h->rows = h->loss + room, h->moved = h->rows + room, h->apart = h->moved + room;
    h->tid = h->apart + room, h->bad = h->tid + room;
    sr_status status = sr_run_step_ints(s->run, "step", 0, h->steps, h->step, why);
    return status == SR_OK ? sr_run_step_reals(s->run, "loss", 0, h->steps, h->loss, why) : status;
}

/* value [steps] of a custom scalar; NaN where the file has none. */
static sr_status read_custom(const subject *s, int64_t site, const char *name, double *value,
                             sr_failure *why) {
    const int64_t steps = s->info->steps;
    float *raw = malloc((size_t)(steps + 1) * sizeof *raw);
    if (!raw) return sr_fail(why, SR_MEMORY, "out of memory");
    const bool has = sr_run_has_scalar(s->run, name);
    sr_status status = has ? sr_run_scalar(s->run, name, site, 0, steps, raw, why) : SR_OK;
    for (int64_t i = 0; i < steps; i++) value[i] = has && status == SR_OK ? (double)raw[i] : NAN;
    free(raw);
    return status;
}

static sr_status history_read(history *h, const subject *s, int64_t site, sr_failure *why) {
    sr_status status = subject_history(s, site, "rows", h->rows, why);
    if (status == SR_OK) status = read_custom(s, site, "mu_moved", h->moved, why);
    if (status == SR_OK) status = read_custom(s, site, "mu_apart", h->apart, why);
    if (status == SR_OK) status = subject_history(s, site, "tid_mean", h->tid, why);
    return status == SR_OK ? subject_history(s, site, "nonfinite", h->bad, why) : status;
}

static bool present(const history *h, int64_t i) {
    return h->rows[i] > 0;
}

/* Near the batch mean a running mean of float32 rests by rounding. */
static bool at_rest(const history *h, int64_t i) {
    return present(h, i) && h->moved[i] == 0 && h->apart[i] > 0 && !(h->tid[i] < 1e-4);
}

static bool moves(const history *h, int64_t i) {
    return present(h, i) && isfinite(h->moved[i]) && h->moved[i] != 0;
}

/* -- not finite ------------------------------------------------------------------------------- */

static bool unknown(const history *h, int64_t i) {
    return !isfinite(h->moved[i]) && !isfinite(h->tid[i]);
}

/* A run without losses does not contradict. */
static bool loss_is_fine(const history *h) {
    bool any = false;
    for (int64_t i = 0; i < h->steps; i++) any = any || isfinite(h->loss[i]);
    return !any || isfinite(h->loss[h->steps - 1]);
}

/* The row whose batch made the running mean other than a number, as it is to the end; `steps`:
 * none. Values that were never there are no evidence. */
static int64_t broken_at(const history *h) {
    int64_t first = h->steps, rows = 0;
    bool before = false;
    for (int64_t i = h->steps; i-- > 0;) {
        if (!present(h, i)) continue;
        if (!unknown(h, i)) {
            before = true;
            break;
        }
        first = i;
        rows++;
    }
    if (rows < 2 || !loss_is_fine(h)) return h->steps;
    return before || h->bad[first] > 0 ? first : h->steps;
}

sr_status momentum_broken(const subject *s, int64_t site, bool *broken, sr_failure *why) {
    history h;
    sr_status status = history_make(&h, s, why);
    if (status == SR_OK) status = history_read(&h, s, site, why);
    *broken = status == SR_OK && broken_at(&h) < h.steps;
    history_free(&h);
    return status;
}

/* -- the divisor ------------------------------------------------------------------------------ */

/* *e: tid_var, if the divisor alone explains it. */
static sr_status look_at_divisor(const subject *s, int64_t site, bool *is, estimate *e,
                                 double *rows, sr_failure *why) {
    estimate mean, n;
    *is = false;
    sr_status status = measure_own_median(s, site, "tid_mean", &mean, why);
    if (status == SR_OK) status = measure_own_median(s, site, "tid_var", e, why);
    if (status == SR_OK) status = measure_own_median(s, site, "rows", &n, why);
    if (status != SR_OK || !(n.value > 1)) return status;
    const double bias = 1 - sqrt((n.value - 1) / n.value);
    *rows = n.value;
    *is = mean.high < 0.1 * bias && e->low > 0.98 * bias && e->high < 1.02 * bias;
    return SR_OK;
}

sr_status measure_discrepancy(const subject *s, int64_t site, const void *what, estimate *e,
                              sr_failure *why) {
    bool divisor = false;
    double rows;
    estimate of;
    if (strcmp(what, "tid_var") == 0) {
        const sr_status status = look_at_divisor(s, site, &divisor, &of, &rows, why);
        if (status != SR_OK) return status;
    }
    *e = NO_ESTIMATE;
    return divisor ? SR_OK : measure_own_median(s, site, what, e, why);
}

/* -- a site ----------------------------------------------------------------------------------- */

static double updates_of(double v, double alpha) {
    return v >= 1 ? INFINITY : log1p(-v) / log(alpha);
}

/* Measures v over the rows first .. end - 1, and k from it if alpha is known. */
static sr_status measure_rate(const history *h, int64_t first, int64_t end, double alpha, motion *m,
                              sr_failure *why) {
    sr_status status = estimate_ratio(h->moved + first, h->apart + first, end - first, &m->v, why);
    m->k = (estimate){NAN, NAN, NAN, m->v.steps};
    if (!(alpha > 0 && alpha < 1)) return status;
    m->expected = 1 - alpha;
    m->k.value = updates_of(m->v.value, alpha);
    m->k.low = updates_of(m->v.low, alpha);
    m->k.high = updates_of(m->v.high, alpha);
    return status;
}

static sr_status read_passes(const subject *s, int64_t site, motion *m, sr_failure *why) {
    double *passes = subject_room(s, 1, why);
    summary of;
    if (!passes) return why->status;
    sr_status status = read_custom(s, site, "passes", passes, why);
    int64_t n = 0;
    for (int64_t i = 0; i < s->info->steps; i++)
        if (isfinite(passes[i])) passes[n++] = passes[i];
    if (status == SR_OK) summary_range(passes, n, &of);
    if (status == SR_OK && n > 0) m->passes = of.median;
    if (n == 0 && sr_run_get_site(s->run, site)->merged == 1) m->passes = fmax(1, m->k.value);
    free(passes);
    return status;
}

/* The worst discrepancy of the mean; *far: beyond its limit. */
static sr_status is_far(const subject *s, int64_t site, bool *far, estimate *tid, sr_failure *why) {
    const sr_status status = measure_own_median(s, site, "tid_mean", tid, why);
    *far = status == SR_OK && tid->low > healthy_limit(s, "tid_mean");
    return status;
}

/* True for statistics of all ranks if each rank has its own running values. */
static bool merges_ranks(const subject *s) {
    return s->info->ranks && strncmp(s->info->ranks, "all of ", 7) == 0;
}

/* The file says that they are not averaged over the ranks. */
static bool keeps_own_buffers(const subject *s) {
    return merges_ranks(s) && strstr(s->info->ranks, "buffers of rank 0");
}

/* Frozen by an option: --freeze-stats. */
static bool freezes(const subject *s) {
    return s->trained && run_option_number(s->run, "freeze-stats") < 1;
}

/* Running values of statrec train cover valid rows. */
static sr_status judge_padding(const subject *s, motion *m, sr_failure *why) {
    estimate padding;
    const sr_status status = measure_padding(s, m->site, NULL, &padding, why);
    if (status != SR_OK || s->trained || !(padding.value > 0)) return status;
    m->is = PADDED, m->severity = MINOR;
    m->padding = padding.value;
    return SR_OK;
}

static sr_status judge_rate(const subject *s, bool far, motion *m, sr_failure *why) {
    if (isnan(m->k.low)) return SR_OK;
    m->is = IN_TIME;
    if (m->k.low <= MOST && m->k.high >= LEAST) return SR_OK;
    const sr_status status = read_passes(s, m->site, m, why);
    const bool merged = m->passes > 1.5 && fabs(m->k.value / m->passes - 1) < 0.25;
    m->is = merged ? MERGED : RATE;
    m->severity = merged ? MINOR : NOTABLE;
    if (status != SR_OK || merged || m->k.high >= LEAST) return status;
    if (!(far && merges_ranks(s)) && !keeps_own_buffers(s)) return judge_padding(s, m, why);
    m->is = OTHER_RANK, m->severity = far ? NOTABLE : MINOR;
    return SR_OK;
}

/* Judges single steps; false: no case. */
static bool judge_events(const subject *s, const history *h, int64_t first, int64_t end, bool far,
                         motion *m) {
    int64_t rest = 0, late = 0, there = 0, begin = 0;
    for (int64_t i = 0; i < h->steps; i++) {
        rest += at_rest(h, i), there += present(h, i);
        late += i >= end && at_rest(h, i);
    }
    while (begin < h->steps && !present(h, begin)) begin++;
    const int64_t bad = broken_at(h);
    if (bad < h->steps) {
        m->is = NOT_FINITE, m->severity = SEVERE;
        m->step = h->step[bad];
    } else if (rest > 1 && first == h->steps && !freezes(s)) {
        m->is = NEVER, m->severity = far ? NOTABLE : MINOR;
    } else if (first < h->steps && first > 0 &&
               (at_rest(h, begin) || (begin == first && 10 * there >= 9 * (h->steps - first)))) {
        m->is = BEGINS, m->severity = NOTABLE;
        m->step = h->step[first];
    } else if (late > 1 && at_rest(h, end) && !freezes(s)) {
        m->is = STOPS, m->severity = NOTABLE;
        m->step = h->step[end];
    }
    return m->is != UNASKED;
}

/* Files without moves show it by TID alone. */
static sr_status judge_rest(const subject *s, bool far, motion *m, sr_failure *why) {
    double rows = NAN;
    bool divisor;
    estimate tid = NO_ESTIMATE;
    const sr_status status = look_at_divisor(s, m->site, &divisor, &tid, &rows, why);
    if (status != SR_OK || (m->is != IN_TIME && m->is != UNASKED)) return status;
    if (m->is == UNASKED && far && merges_ranks(s)) {
        m->is = OTHER_RANK, m->severity = NOTABLE;
    } else if (divisor) {
        m->is = DIVISOR;
        if (tid.low > BIAS) m->severity = MINOR;
        m->tid = tid;
        m->rows = rows;
    }
    return SR_OK;
}

static sr_status measure_site(const subject *s, history *h, motion *m, sr_failure *why) {
    bool far;
    int64_t first = 0, end = h->steps;
    sr_status status = history_read(h, s, m->site, why);
    if (status == SR_OK) status = is_far(s, m->site, &far, &m->tid, why);
    if (status != SR_OK) return status;
    while (first < h->steps && !moves(h, first)) first++;
    while (end > first && !moves(h, end - 1)) end--;
    const double alpha = sr_run_get_site(s->run, m->site)->alpha;
    status = measure_rate(h, first, end, alpha, m, why);
    if (status != SR_OK || judge_events(s, h, first, end, far, m)) return status;
    status = judge_rate(s, far, m, why);
    return status == SR_OK ? judge_rest(s, far, m, why) : status;
}

/* -- all sites -------------------------------------------------------------------------------- */

/* In steps that are worth telling apart. */
static double distance(const motion *m) {
    const bool by_tid = m->is == DIVISOR || m->is == OTHER_RANK;
    return round(50 * (by_tid ? m->tid.value : fabs(log(fmax(m->k.value, 1e-9)))));
}

static bool comes_before(const motion *a, const motion *b) {
    if (a->severity != b->severity) return a->severity > b->severity;
    if (a->is != b->is) return a->is < b->is;
    if (a->is == NOT_FINITE || a->is == BEGINS || a->is == STOPS) return a->step < b->step;
    return distance(a) > distance(b);
}

/* all [sites] becomes *count motions, the worst first; equal ones in the order of the forward
 * pass. */
static sr_status measure_all(const subject *s, motion *all, int64_t *count, sr_failure *why) {
    history h;
    sr_status status = history_make(&h, s, why);
    *count = 0;
    for (int64_t i = 0; i < s->info->sites && status == SR_OK; i++) {
        const sr_run_site *at = sr_run_get_site(s->run, i);
        if (subject_is_replica(s, i) || !sr_run_over_batch(at) || !sr_run_uses(at, "mu")) continue;
        motion m = {.site = i, .is = UNASKED, .passes = 1, .expected = NAN};
        m.v = m.k = m.tid = NO_ESTIMATE;
        status = measure_site(s, &h, &m, why);
        if (m.is == UNASKED) continue;
        int64_t to = (*count)++;
        for (; to > 0 && comes_before(&m, &all[to - 1]); to--) all[to] = all[to - 1];
        all[to] = m;
    }
    history_free(&h);
    return status;
}

/* -- in words --------------------------------------------------------------------------------- */

/* "four", "3.2" */
static const char *number_word(double number, char text[32]) {
    static const char *const words[] = {"no",  "one",   "two",   "three", "four", "five",
                                        "six", "seven", "eight", "nine",  "ten"};
    const double whole = round(number);
    if (whole >= 0 && whole <= 10 && fabs(number - whole) < 0.15) return words[(int)whole];
    snprintf(text, 32, "%.3g", number);
    return text;
}

static const char *times_word(double number, char text[32]) {
    if (fabs(number - 2) < 0.15) return "twice";
    char own[32];
    snprintf(text, 32, "%.20s times", number_word(number, own));
    return text;
}

static void tell_rate(const char *site, const motion *m, answer *a) {
    char text[32], passes[32];
    const double k = m->k.value;
    if (m->is == MERGED)
        answer_says(a,
                    "At %s the running values make %s moves an update, one for each of the %s "
                    "passes that are merged: alpha counts passes",
                    site, number_word(k, text), number_word(m->passes, passes));
    else if (m->is == PADDED)
        answer_says(a,
                    "At %s the running values move as by %.3g updates a step: %.3g %% of the rows "
                    "are padding, which they contain and the recorded statistics do not",
                    site, k, 100 * m->padding);
    else if (k > 1)
        answer_says(a,
                    "At %s the running values are updated %s a step: a second forward pass, as "
                    "of checkpointing, moves them again",
                    site, times_word(k, text));
    else
        answer_says(a,
                    "At %s the running values move as by %.3g updates a step: their alpha is "
                    "not the recorded one, or other batches move them",
                    site, k);
    answer_says(a, " (v %.3g [%.3g, %.3g], of one update %.3g).", m->v.value, m->v.low, m->v.high,
                m->expected);
}

static void tell(const subject *s, const motion *m, answer *a) {
    const char *site = sr_run_get_site(s->run, m->site)->name;
    const long long step = m->step;
    if (a->says[0]) answer_says(a, " ");
    if (m->is == NOT_FINITE)
        answer_says(a,
                    "At %s the batch of step %lld left running values that are not finite: "
                    "evaluation is NaN from step %lld on; the weights are not.",
                    site, step, step + 1);
    else if (m->is == NEVER)
        answer_says(a,
                    "At %s the running values never move (v 0), and batches are apart from "
                    "them: evaluation uses what was there before.",
                    site);
    else if (m->is == OTHER_RANK)
        answer_says(a,
                    "At %s the running values are those of one rank and the statistics of %.*s: "
                    "tid_mean %.3g is the distance of that rank's data.",
                    site, (int)strcspn(s->info->ranks, ";"), s->info->ranks, m->tid.value);
    else if (m->is == BEGINS)
        answer_says(a, "At %s the running values begin to move at step %lld.", site, step);
    else if (m->is == STOPS)
        answer_says(a, "At %s the running values stop moving at step %lld.", site, step);
    else if (m->is == DIVISOR)
        answer_says(a,
                    "At %s tid_var %.4g is the divisor's bias, 1 - sqrt((n-1)/n) of n = %.4g "
                    "rows, and no drift: the running variance is divided by n - 1.",
                    site, m->tid.value, m->rows);
    else
        tell_rate(site, m, a);
}

/* SITES_SHOWN of each case; the numbers of others. */
static void tell_all(const subject *s, const motion *all, int64_t count, answer *a) {
    for (int64_t i = 0, same; i < count && all[i].is != IN_TIME; i += same) {
        for (same = 0; i + same < count && all[i + same].is == all[i].is; same++)
            if (same < SITES_SHOWN) tell(s, &all[i + same], a);
        if (same > SITES_SHOWN)
            answer_says(a, " The same at %lld more sites.", (long long)(same - SITES_SHOWN));
    }
}

/* -- the answer ------------------------------------------------------------------------------- */

static const struct {
    const char *statistic, *unit, *figure;
} shown[] = {
    [NOT_FINITE] = {"running values not finite", "after step", "statplot overview"},
    [NEVER] = {"updates a step", "", ""},
    [OTHER_RANK] = {"tid_mean", "", "statplot tid"},
    [BEGINS] = {"running values begin", "at step", ""},
    [STOPS] = {"running values stop", "at step", ""},
    [RATE] = {"updates a step", "", ""},
    [MERGED] = {"moves an update", "", ""},
    [PADDED] = {"updates with padding", "", ""},
    [DIVISOR] = {"tid_var", "", "statplot tid"},
    [IN_TIME] = {"updates a step", "", ""},
};

static estimate estimate_of(const motion *m) {
    const double step = (double)m->step;
    if (shown[m->is].unit[0]) return (estimate){step, step, step, 1};
    if (m->is == NEVER) return (estimate){0, 0, 0, m->k.steps};
    return m->is == OTHER_RANK || m->is == DIVISOR ? m->tid : m->k;
}

static void fill(const subject *s, const motion *all, int64_t count, answer *a) {
    const motion *worst = &all[0];
    a->statistic = shown[worst->is].statistic;
    a->e = estimate_of(worst);
    snprintf(a->unit, sizeof a->unit, "%s", shown[worst->is].unit);
    if (shown[worst->is].figure[0]) answer_figure(a, "%s", shown[worst->is].figure);
    const bool by_rate = worst->is == RATE || worst->is == MERGED;
    a->below = worst->is == NEVER || worst->is == PADDED || (by_rate && worst->k.value < 1);
    if (worst->is == RATE || worst->is == IN_TIME) a->limit_low = LEAST, a->limit_high = MOST;
    if (a->unit[0]) a->at[a->steps_shown++] = worst->step;
    a->from = s->begin, a->to = s->window.end, a->asked = count;
    for (int64_t i = 0; i < count; i++) {
        a->beyond += all[i].severity > 0;
        if (a->shown < SITES_SHOWN && all[i].is == worst->is)
            a->top[a->shown++] = (site_estimate){all[i].site, estimate_of(&all[i])};
    }
    a->verdict = worst->severity ? FOUND : IN_ORDER;
    a->severity = worst->severity;
}

/* Why no site was judged. */
static sr_status not_judged(const subject *s, answer *a) {
    const sr_run_site *at;
    const bool recorded = sr_run_has_scalar(s->run, "mu_moved");
    for (int64_t i = 0; recorded && (at = sr_run_get_site(s->run, i)); i++)
        if (sr_run_over_batch(at) && sr_run_uses(at, "mu") && (at->alpha <= 0 || at->alpha >= 1))
            return answer_not_asked(a,
                                    "alpha is %g at %s, and the number of updates, log(1 - v)/"
                                    "log(alpha), needs one between 0 and 1",
                                    at->alpha, at->name);
    return answer_not_asked(a, "no mu_moved and mu_apart of %d steps at a site with a running mean",
                            LEAST_STEPS);
}

sr_status look_momentum(const subject *s, answer *a, sr_failure *why) {
    int64_t count = 0;
    motion *all = malloc((size_t)(s->info->sites + 1) * sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = measure_all(s, all, &count, why);
    if (status == SR_OK && count) {
        fill(s, all, count, a);
        a->limit = a->unit[0]                ? 0
                   : all[0].is == DIVISOR    ? BIAS
                   : all[0].is == OTHER_RANK ? healthy_limit(s, "tid_mean")
                   : a->below                ? LEAST
                                             : MOST;
        tell_all(s, all, count, a);
    } else if (status == SR_OK) {
        status = not_judged(s, a);
    }
    free(all);
    return status;
}
