/* bleu_bootstrap.c -- bootstrap interval of a score. Texts are drawn sentence by sentence, with
 * replacement, and scored (Koehn, Statistical Significance Tests for Machine Translation
 * Evaluation, EMNLP 2004). floor(N / 40) of N scores are outside the interval on either side. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/sort.h"
#include "score/scorer.h"

sr_status bleu_bootstrap(const bleu_scorer *s, bleu_interval *interval, sr_failure *why) {
    const int64_t count = interval->resamples;
    const rng seed = rng_create(interval->seed);
    if (s->sentences < 1) return sr_fail(why, SR_USAGE, "no sentences to draw from");
    if (count < 1) return sr_fail(why, SR_USAGE, "%lld resamples; at least 1", (long long)count);
    double *score = malloc((size_t)count * sizeof *score);
    if (!score)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld resamples", (long long)count);
    for (int64_t r = 0; r < count; r++) {
        rng draws = rng_split(&seed, (uint64_t)r);
        bleu_counts sum = {0};
        for (int64_t i = 0; i < s->sentences; i++)
            bleu_counts_add(&sum, &s->sentence[rng_below(&draws, (uint64_t)s->sentences)]);
        score[r] = bleu_compute(&s->form, &sum).bleu;
    }
    sort_reals(score, count);
    interval->low = score[count / 40];
    interval->high = score[count - 1 - count / 40];
    free(score);
    return SR_OK;
}
