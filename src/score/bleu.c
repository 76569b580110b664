/* bleu.c -- BLEU as multi-bleu.perl (Moses) and sacreBLEU (Post, WMT 2018) compute it. Source:
 * Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, ACL 2002.
 *
 * With the counts of all sentences added up first, orders n = 1 .. 4:
 *
 *     p_n  = correct_n / total_n                        clipped n-gram precision
 *     BP   = 1 if hyp_len >= ref_len else exp(1 - ref_len / hyp_len)
 *     BLEU = 100 BP exp((ln p_1 + ... + ln p_4) / 4)
 *
 * ln 0 is -9999999999 in both programs, which gives 0. hyp_len 0 has BP 0 (multi-bleu.perl divides
 * by zero there). If any word is correct, smoothing replaces correct_n = 0 (Chen and Cherry, A
 * Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU, WMT 2014):
 *
 *     exp     p_n = 1 / (2^k total_n) for the k-th zero
 *     floor   p_n = value / total_n
 *     add-k   p_n = (correct_n + value) / (total_n + value) for n > 1, zero or not
 *
 * The first order with total_n = 0 ends the sum: BLEU and all further p_n are 0.
 * The two programs round percentages differently, 100 (c / t) and (100 c) / t. Both forms are kept,
 * since they decide printed digits.
 */
#include <math.h>
#include <string.h>

#include "score/score.h"
#include "text/text.h"

static const double LOG_OF_ZERO = -9999999999.0;

double bleu_smooth_default(bleu_smoothing smoothing) {
    return smoothing == BLEU_SMOOTH_FLOOR ? 0.1 : smoothing == BLEU_SMOOTH_ADD_K ? 1 : 0;
}

bool bleu_seems_tokenized(bleu_text line) {
    while (line.size && text_separates(line.byte[line.size - 1])) line.size--;
    return line.size >= 2 && memcmp(line.byte + line.size - 2, " .", 2) == 0;
}

void bleu_counts_add(bleu_counts *sum, const bleu_counts *more) {
    for (int n = 0; n < BLEU_ORDER; n++) {
        sum->correct[n] += more->correct[n];
        sum->total[n] += more->total[n];
    }
    sum->hyp_len += more->hyp_len;
    sum->ref_len += more->ref_len;
}

static double brevity_penalty(const bleu_counts *c) {
    if (c->hyp_len >= c->ref_len) return 1;
    return c->hyp_len ? exp(1 - (double)c->ref_len / (double)c->hyp_len) : 0;
}

static double floored_log(double x) {
    return x == 0 ? LOG_OF_ZERO : log(x);
}

static bleu_value compute_smoothed(const bleu_form *form, const bleu_counts *c) {
    bleu_value v = {.bp = brevity_penalty(c)};
    double logs = 0;
    int zeros = 0; /* orders without a match */
    bool any = false;
    for (int n = 0; n < BLEU_ORDER; n++) any = any || c->correct[n];
    if (!any) return v;
    for (int n = 0; n < BLEU_ORDER; n++) {
        const double more = form->smoothing == BLEU_SMOOTH_ADD_K && n ? form->smooth_value : 0;
        const double total = (double)c->total[n] + more;
        if (total == 0) break;
        const double correct = (double)c->correct[n] + more;
        if (correct > 0)
            v.precision[n] = 100. * correct / total;
        else if (form->smoothing == BLEU_SMOOTH_EXP)
            v.precision[n] = 100. / (ldexp(1, ++zeros) * total);
        else if (form->smoothing == BLEU_SMOOTH_FLOOR)
            v.precision[n] = 100. * form->smooth_value / total;
    }
    for (int n = 0; n < BLEU_ORDER; n++) logs += floored_log(v.precision[n]);
    v.bleu = v.bp * exp(logs / BLEU_ORDER);
    return v;
}

static bleu_value compute_multi(const bleu_counts *c) {
    bleu_value v = {.bp = brevity_penalty(c)};
    double logs = 0;
    for (int n = 0; n < BLEU_ORDER; n++) {
        const double p = c->total[n] ? (double)c->correct[n] / (double)c->total[n] : 0;
        logs += floored_log(p);
        v.precision[n] = 100 * p;
    }
    v.bleu = 100 * (v.bp * exp(logs / BLEU_ORDER));
    return v;
}

bleu_value bleu_compute(const bleu_form *form, const bleu_counts *sum) {
    return form->multi ? compute_multi(sum) : compute_smoothed(form, sum);
}
