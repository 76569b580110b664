/* diagnose_questions.c -- the table of questions; docs/diagnose.md explains each. */
#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "diagnose/diagnosis.h"

const question diagnose_questions[] = {
    {"divergence", "Divergence", "Did it diverge, when, and at which site first?",
     "loss of /steps, nonfinite, dx_norm, validation",
     "a loss or a value of a site that is not finite, status diverged, validation that is not "
     "finite at its end, or a loss whose median over the last tenth of the steps is above that "
     "over the first",
     "own criterion", "statplot overview", look_divergence, true, false},
    {"would-bn", "Would BN work here?",
     "Would BN's running statistics stand for its batches, where they are observed?",
     "tid_mean, tid_var of the observer; rows, samples, g_mu, g_sigma2",
     "TID of statistics that are only the observer's beyond the limit of TID",
     "TID: Wang, Wu and Huang, NeurIPS 2022, section 3; limits own", "statplot tid", look_would_bn,
     false, true},
    {"inference", "Good in training, bad in evaluation",
     "Do running statistics stand for those of batches?",
     "tid_mean, tid_var, rel_psi; validation with and without batch statistics",
     "a metric that is worse with running than with batch statistics in the second half of "
     "training, by 0.01 nats or 0.2 % (severe: 0.1 nats or 2 %), interval above zero; without such "
     "a gap TID, or where psi divides rel_psi, beyond the usual",
     "TID: Wang, Wu and Huang, NeurIPS 2022, section 3; rel_psi and limits own", "statplot tid",
     look_inference, false, false},
    {"outliers", "Outliers in time", "Do single batches stray far from the running statistics?",
     "dist_mu, dist_sigma2, dist_psi2",
     "99 % quantile of (v - median)/mad, median and mad of its part of 50 to 99 steps, beyond its "
     "limit",
     "Shen et al., ICML 2020, section 3 and figure 2; rule of stat-outlier, limit own",
     "statplot layers --stat dist_mu", look_outliers, false, false},
    {"gradient", "Gradient through the batch statistics",
     "What part of the gradient do the batch statistics contribute?",
     "g_mu, g_sigma2 or g_psi2, dx_norm, rows", "median fraction of ||dx||_F beyond its limit",
     "Shen et al., ICML 2020, equation 3 and figure 3; fraction and limit own",
     "statplot layers --stat g_mu_share", look_gradient, false, false},
    {"nu", "PN's nu", "Does the backward estimate of PN stay bounded?", "Gamma_max",
     "a step with Gamma_max > 1/(1 - alpha_bwd), where nu changes sign; severe above 2/(1 - "
     "alpha_bwd), "
     "where it grows",
     "Shen et al., ICML 2020, Definition 3 and equation 13; bounds own (docs/definitions.md)",
     "statplot layers --stat Gamma_max", look_nu, false, false},
    {"dead", "Dead features", "Are there features that are the same for every row?",
     "vectors sigma2_B or psi2_B",
     "median fraction of features whose variance over the batch is below eps, beyond its limit",
     "eps: Ioffe and Szegedy, ICML 2015; criterion own", "statplot features --quantity dead",
     look_dead, false, false},
    {"growth", "Exploding features", "Does the variance of a feature grow without end?",
     "vectors sigma2_B or psi2_B",
     "largest variance of a feature, last third of the recorded steps over first third, beyond its "
     "limit",
     "own criterion", "statplot features --quantity largest", look_growth, false, false},
    {"padding", "Padding", "How much of a batch is padding?", "padded, rows",
     "more than half of the rows are padding", "own criterion", "statplot layers --stat padded",
     look_padding, true, false},
    {"rows", "Batch too small", "Are there enough rows for a batch statistic?", "rows; alpha",
     "the TID that independent rows would have, sqrt(2/((1 + alpha) rows)), beyond the limit of "
     "TID",
     "variance of a mean of independent rows; limit own", "statplot layers --stat rows", look_rows,
     false, false},
    {"alike", "Samples of a batch alike", "Are batches random samples of the data?",
     "tid_mean, samples; alpha",
     "tid_mean over what random samples with equal rows would have, sqrt(2/((1 + alpha) samples)), "
     "beyond its limit",
     "variance of a mean of independent samples; limit own",
     "statplot compare --stat dist_mu_excess", look_alike, false, false},
    {"alpha", "Running average", "Is the running average too slow or too fast?",
     "alpha; vectors mu_B and mu at every step",
     "a start value that weighs more than 1 % at the end; distance with the run's alpha over that "
     "with "
     "the best alpha, beyond its limit",
     "re-analysis of stat-alpha; limit own", "statplot alpha", look_alpha, false, false},
    {"momentum", "Momentum of the running values", "Do the running values move as they should?",
     "mu_moved, mu_apart; alpha, tid_mean, tid_var, rows; ranks",
     "updates a step, log(1 - v)/log(alpha) with v = sum mu_moved/sum mu_apart, outside of 0.9 to "
     "1.1; running values that never move, begin to move or are not finite",
     "own criterion", "statplot layers --stat mu_moved", look_momentum, false, false},
    {"embedding", "Collapse of the embedding", "Do few directions carry all words?",
     "singular values of an embedding, at three steps",
     "effective rank over number of values below two thirds of the least usual value",
     "spectrum: Shen et al., ICML 2020, figure 6; rank: Roy and Vetterli, EUSIPCO 2007; limit own",
     "statplot fig6", look_embedding, true, false},
};
const int diagnose_question_count = sizeof diagnose_questions / sizeof diagnose_questions[0];

const char *question_figure(const question *q, const answer *a) {
    return a->figure[0] ? a->figure : q->figure;
}

static void rank(const answer *answers, int *order, int found) {
    for (int i = 1; i < found; i++)
        for (int k = i; k > 0; k--) {
            if (answer_weight(&answers[order[k]]) <= answer_weight(&answers[order[k - 1]])) break;
            const int swap = order[k];
            order[k] = order[k - 1], order[k - 1] = swap;
        }
}

/* A finding at a site whose own method is another's. */
static void tell_observer(const subject *s, answer *a) {
    const sr_run_site *at = a->shown && a->asked ? sr_run_get_site(s->run, a->top[0].site) : NULL;
    if (at && at->observed && !sr_run_over_batch(at) && !strstr(a->says, "the observer's"))
        answer_says(a,
                    " The statistics are the observer's: this is what BN would meet here, with the "
                    "x and g of %s.",
                    method_of(at, "a tensor without normalization"));
}

const neighbour *diagnosis_neighbour(const run_set *set, int self, neighbour *other) {
    const int which = self ? 0 : 1;
    if (which >= set->count) return NULL;
    *other = (neighbour){set->run[which], set->path[which]};
    return other;
}

int diagnosis_worst(const diagnosis *d) {
    int worst = 0;
    for (int i = 0; i < d->found; i++)
        if ((int)d->answers[d->order[i]].severity > worst)
            worst = (int)d->answers[d->order[i]].severity;
    return worst;
}

sr_status diagnosis_make(diagnosis *d, const sr_runfile *run, const char *path,
                         diagnose_synchronizes_fn *synchronizes, sr_failure *why) {
    return diagnosis_make_beside(d, run, path, NULL, synchronizes, why);
}

sr_status diagnosis_make_beside(diagnosis *d, const sr_runfile *run, const char *path,
                                const neighbour *beside, diagnose_synchronizes_fn *synchronizes,
                                sr_failure *why) {
    const size_t count = (size_t)diagnose_question_count;
    answer *answers = calloc(count, sizeof *answers);
    *d = (diagnosis){.answers = answers, .order = calloc(count, sizeof *d->order)};
    const subject *s = &d->s;
    const sr_status opened = subject_open(&d->s, run, path, why);
    d->s.synchronizes = synchronizes;
    d->s.beside = beside;
    if (opened != SR_OK) return opened;
    if (!answers || !d->order) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < diagnose_question_count; i++) {
        sr_failure unread = {0};
        answers[i] = (answer){.e = NO_ESTIMATE};
        const sr_status status = s->info->steps
                                     ? diagnose_questions[i].look(s, &answers[i], &unread)
                                     : answer_not_asked(&answers[i], "no step");
        if (status == SR_MEMORY) return *why = unread, status;
        if (status != SR_OK) answer_not_asked(&answers[i], "%.200s", unread.text);
        if (answers[i].verdict != FOUND) continue;
        if (!diagnose_questions[i].general) tell_observer(s, &answers[i]);
        if (advice_write(s, &diagnose_questions[i], &answers[i], &unread) == SR_MEMORY)
            return *why = unread, SR_MEMORY;
        d->order[d->found++] = i;
    }
    rank(answers, d->order, d->found);
    return SR_OK;
}

void diagnosis_free(diagnosis *d) {
    subject_free(&d->s);
    free(d->answers);
    free(d->order);
}

void diagnose_list(FILE *out) {
    for (int i = 0; i < diagnose_question_count; i++)
        fprintf(out, "  %-12s %s\n", diagnose_questions[i].id, diagnose_questions[i].asks);
}
