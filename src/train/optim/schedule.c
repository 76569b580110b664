/* schedule.c -- learning rate of update u + 1 (docs/models.md 9.2).
 *
 *   warm-up          u < W:  init + u (peak - init)/W, for every kind; peak = lr
 *   fixed            lr
 *   step             lr factor^(milestones passed)
 *   cosine           lowest + (lr - lowest) (1 + cos(pi u/total))/2, u not shifted by the warm-up
 *   linear           lr (total - u)/(total - W): TENER's, from the warm-up's end to 0
 *   inverse_sqrt     lr sqrt(W/u); without warm-up lr/sqrt(u)
 *   inverse_sqrt_xl  lr/sqrt(u), whatever W: the curve of the Transformer-XL and tensorized
 *   scripts,
 *                    whose warm-up lr u/W^1.5 ends at its peak = lr/sqrt(W)
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "train/optim/optim.h"

/* 1 + 9/25 is below 1.36 by rounding. */
static double step_lr(const schedule *s, int64_t u, double epoch) {
    double at = s->milestone_updates ? (double)u : epoch, lr = s->lr;
    for (int i = 0; i < s->milestones; i++)
        if (at >= s->milestone[i] * (1 - 4 * DBL_EPSILON)) lr *= s->factor;
    return lr;
}

static double over_sqrt(double lr, int64_t u) {
    return lr / sqrt(fmax(1, (double)u));
}

double schedule_lr(const schedule *s, int64_t u, double epoch) {
    if (u < s->warmup) {
        double peak = s->kind == SCHEDULE_INVERSE_SQRT_XL ? over_sqrt(s->lr, s->warmup) : s->lr;
        return s->warmup_init + (double)u * (peak - s->warmup_init) / (double)s->warmup;
    }
    const double part = s->total > 0 ? fmin(1, (double)u / (double)s->total) : 0;
    switch (s->kind) {
    case SCHEDULE_STEP:
        return step_lr(s, u, epoch);
    case SCHEDULE_COSINE:
        return s->lowest + 0.5 * (s->lr - s->lowest) * (1 + cos(acos(-1.0) * part));
    case SCHEDULE_LINEAR:
        return u < s->total ? s->lr * (double)(s->total - u) / (double)(s->total - s->warmup) : 0;
    case SCHEDULE_INVERSE_SQRT:
        return s->lr * sqrt((double)(s->warmup ? s->warmup : 1) / fmax(1, (double)u));
    case SCHEDULE_INVERSE_SQRT_XL:
        return over_sqrt(s->lr, u);
    case SCHEDULE_FIXED:
        break;
    }
    return s->lr;
}

sr_status schedule_read_milestones(schedule *s, const char *text, sr_failure *why) {
    for (const char *at = text; *at;) {
        char *end;
        double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(value > 0))
            return sr_fail(why, SR_USAGE,
                           "--lr-steps: '%s' is not a list of positive numbers as in 6,9", text);
        if (s->milestones == SCHEDULE_STEPS_MAX)
            return sr_fail(why, SR_USAGE, "--lr-steps: '%s' has more than %d milestones", text,
                           SCHEDULE_STEPS_MAX);
        if (s->milestones && value <= s->milestone[s->milestones - 1])
            return sr_fail(why, SR_USAGE, "--lr-steps: '%s' does not ascend", text);
        s->milestone[s->milestones++] = value;
        at = *end ? end + 1 : end;
    }
    return SR_OK;
}
