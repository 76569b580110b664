/* diagnose_verdict.c -- from the estimates of sites to a verdict. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnosis.h"

/* The nearer end, so that a wide interval does not rank first. */
static double nearest(const answer *a, const estimate *e) {
    if (a->once) return e->value;
    return a->below ? e->high : e->low;
}

bool answer_is_beyond(const answer *a, const estimate *e) {
    return a->below ? nearest(a, e) < a->limit : nearest(a, e) > a->limit;
}

static double badness(const answer *a, const estimate *e) {
    return a->below ? -nearest(a, e) : nearest(a, e);
}

static void insert(answer *a, int64_t site, const estimate *e) {
    int at = a->shown;
    while (at > 0 && badness(a, e) > badness(a, &a->top[at - 1].e)) at--;
    if (at == SITES_SHOWN) return;
    if (a->shown < SITES_SHOWN) a->shown++;
    memmove(a->top + at + 1, a->top + at, (size_t)(a->shown - 1 - at) * sizeof *a->top);
    a->top[at] = (site_estimate){site, *e};
}

void answer_judge(answer *a) {
    if (isnan(a->e.low) || isnan(a->e.high))
        a->verdict = NOT_ASKED;
    else
        a->verdict = answer_is_beyond(a, &a->e) ? FOUND : IN_ORDER;
}

site_count *answer_counts(const subject *s, sr_failure *why) {
    site_count *at = calloc((size_t)s->info->sites + 1, sizeof *at);
    if (!at) sr_fail(why, SR_MEMORY, "out of memory");
    return at;
}

void answer_count(const subject *s, const site_count *at, answer *a) {
    const int64_t own = a->beyond;
    a->asked = a->beyond = 0;
    for (int64_t i = 0; i < s->info->sites; i++) a->asked += at[i].asked, a->beyond += at[i].beyond;
    a->by_others = a->beyond > own;
}

sr_status answer_rank(const subject *s, measure_fn *measure, const void *what, answer *a,
                      sr_failure *why) {
    return answer_rank_of_several(s, measure, what, a, NULL, why);
}

sr_status answer_rank_of_several(const subject *s, measure_fn *measure, const void *what, answer *a,
                                 site_count *at, sr_failure *why) {
    int64_t most = -1;
    const int64_t judged = subject_judged(s, a->statistic);
    a->from = judged < s->count ? s->step[judged] : 0;
    a->to = judged < s->count ? s->step[s->count - 1] : 0;
    if (a->whole) a->from = s->begin, a->to = s->window.end;
    for (int64_t i = 0; i < s->info->sites; i++) {
        estimate e = NO_ESTIMATE;
        if (subject_is_replica(s, i)) continue;
        sr_status status = measure(s, i, what, &e, why);
        if (status != SR_OK) return status;
        if (e.steps > most) most = e.steps;
        if (isnan(e.low)) continue;
        const bool beyond = answer_is_beyond(a, &e);
        a->asked++;
        a->beyond += beyond;
        if (at) at[i] = (site_count){true, at[i].beyond || beyond};
        insert(a, i, &e);
    }
    if (a->asked) a->e = a->top[0].e;
    if (a->asked) answer_judge(a);
    if (!a->asked && s->count == 0 && !a->whole)
        return answer_not_asked(a, "no step after the burn-in of running statistics, %lld steps",
                                (long long)s->window.startup);
    if (!a->asked && most > 0)
        answer_not_asked(a, "an interval needs %d steps%s%s, there are %lld", LEAST_STEPS,
                         a->vectors ? " with vectors" : "",
                         a->whole ? ""
                         : judged ? " in the second half"
                                  : " after the burn-in",
                         (long long)most);
    return SR_OK;
}

double answer_weight(const answer *a) {
    if (a->verdict != FOUND) return 0;
    const double near = nearest(a, &a->e), room = fabs(a->limit);
    const double far = fabs(near - a->limit);
    return a->severity + (isfinite(far) && far + room > 0 ? 0.999 * far / (far + room) : 0.999);
}

void answer_says(answer *a, const char *format, ...) {
    const size_t used = strlen(a->says);
    va_list args;
    va_start(args, format);
    vsnprintf(a->says + used, sizeof a->says - used, format, args);
    va_end(args);
}

const char *method_of(const sr_run_site *site, const char *without) {
    return strcmp(site->called, "none") == 0 ? without : site->called;
}

void answer_figure(answer *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(a->figure, sizeof a->figure, format, args);
    va_end(args);
}

sr_status answer_not_asked(answer *a, const char *format, ...) {
    va_list args;
    a->verdict = NOT_ASKED;
    va_start(args, format);
    vsnprintf(a->reason, sizeof a->reason, format, args);
    va_end(args);
    return SR_OK;
}

const char *answer_site(const subject *s, const answer *a, int i) {
    return i < a->shown ? sr_run_get_site(s->run, a->top[i].site)->name : "";
}

sr_status measure_median(const subject *s, int64_t site, const void *what, estimate *e,
                         sr_failure *why) {
    const bool merged = sr_run_get_site(s->run, site)->merged == 1;
    if (merged && strcmp(what, "rows") == 0) what = "pass_rows"; /* rows of a batch */
    *e = NO_ESTIMATE;
    if (!subject_has(s, what)) return SR_OK;
    return columns_median(s, site, what, e, why);
}

sr_status measure_own_median(const subject *s, int64_t site, const void *what, estimate *e,
                             sr_failure *why) {
    *e = NO_ESTIMATE;
    if (!sr_run_over_batch(sr_run_get_site(s->run, site))) return SR_OK;
    if (sr_run_only_observed(sr_run_get_site(s->run, site), what)) return SR_OK;
    return measure_median(s, site, what, e, why);
}

sr_status measure_observed_median(const subject *s, int64_t site, const void *what, estimate *e,
                                  sr_failure *why) {
    *e = NO_ESTIMATE;
    if (!sr_run_only_observed(sr_run_get_site(s->run, site), what)) return SR_OK;
    return measure_median(s, site, what, e, why);
}

sr_status answer_nowhere(answer *a, const char *otherwise) {
    return a->reason[0] ? SR_OK : answer_not_asked(a, "%s", otherwise);
}
