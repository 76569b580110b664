/* diagnose_embedding.c -- does the embedding collapse?
 *
 * Effective rank (Roy and Vetterli, EUSIPCO 2007) of the recorded singular values s_i, exp(-sum p_i
 * ln p_i) with p_i = s_i/sum s, over their number. It is 1 for a flat spectrum. The singular values
 * are exact; the interval is about their movement. It is Student's for the mean over the last third
 * of the records, at least three. (Shen et al., ICML 2020, figure 6, print the values.)
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap.h"
#include "base/effective_rank.h"
#include "diagnose/diagnosis.h"

enum { LEAST_RECORDS = 3 };

/* rank, step [records] of the embedding; NULL without memory. */
static sr_status read_ranks(const subject *s, const char *name, const sr_run_embedding *m,
                            double *rank, int64_t *step, sr_failure *why) {
    double *value = malloc((size_t)(m->values + 1) * sizeof *value);
    sr_status status = value ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0; i < m->records && status == SR_OK; i++) {
        status = sr_run_singular_values(s->run, name, i, &step[i], value, why);
        if (status == SR_OK) rank[i] = effective_rank(value, m->values) / (double)m->values;
    }
    free(value);
    return status;
}

typedef struct collapse {
    int64_t records, from, to;
    double first;
    estimate last;
} collapse;

static sr_status look_at(const subject *s, const char *name, collapse *c, sr_failure *why) {
    sr_run_embedding m = SR_INIT(sr_run_embedding, .rows = 0);
    *c = (collapse){.last = NO_ESTIMATE};
    sr_status status = sr_run_get_embedding(s->run, name, &m, why);
    if (status != SR_OK || m.records == 0) return status;
    double *rank = malloc((size_t)m.records * sizeof *rank);
    int64_t *step = malloc((size_t)m.records * sizeof *step);
    status = rank && step ? read_ranks(s, name, &m, rank, step, why)
                          : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) {
        const int64_t third = m.records / 3, n = third > LEAST_RECORDS ? third : LEAST_RECORDS;
        const int64_t begin = m.records > n ? m.records - n : 0;
        double mean = 0;
        for (int64_t i = begin; i < m.records; i++) mean += rank[i] / (double)(m.records - begin);
        *c = (collapse){m.records,
                        step[begin],
                        step[m.records - 1],
                        rank[0],
                        {mean, NAN, NAN, m.records - begin}};
        if (m.records >= LEAST_RECORDS)
            student_interval(rank + begin, (int)(m.records - begin), &c->last.low, &c->last.high);
    }
    free(rank);
    free(step);
    return status;
}

/* Number `which` of the embeddings, in place of a site. A single record gives the value alone. */
sr_status measure_embedding(const subject *s, int64_t which, const void *what, estimate *e,
                            sr_failure *why) {
    collapse c;
    const char *name = sr_run_name(s->run, "embeddings", (int)which);
    (void)what;
    *e = NO_ESTIMATE;
    if (!name) return SR_OK;
    sr_status status = look_at(s, name, &c, why);
    *e = c.last;
    return status;
}

sr_status look_embedding(const subject *s, answer *a, sr_failure *why) {
    const char *name;
    healthy_range healthy;
    int64_t most = 0;
    bool any = false;
    *a = (answer){.statistic = "effective rank/values",
                  .range_of = "embedding_rank",
                  .severity = NOTABLE,
                  .below = true,
                  .e = NO_ESTIMATE};
    a->limit = healthy_find(s, a->range_of, &healthy) ? healthy.low / HEALTHY_MARGIN : 0.5;
    for (int i = 0; (name = sr_run_name(s->run, "embeddings", i)); i++) {
        collapse c;
        sr_status status = look_at(s, name, &c, why);
        if (status != SR_OK) return status;
        if (c.records > most) most = c.records;
        if (isnan(c.last.low) || (any && c.last.high >= a->e.high)) continue;
        any = true;
        a->e = c.last, a->from = c.from, a->to = c.to;
        a->says[0] = 0;
        answer_says(a,
                    "The effective rank of the embedding %s is %.3g of its %s, %.3g at its first "
                    "record: few directions carry all words.",
                    name, c.last.value, "dimensions", c.first);
    }
    if (!any && !most) return answer_not_asked(a, "no singular values of an embedding");
    if (!any)
        return answer_not_asked(a, "singular values at %lld step(s), %d are needed%s",
                                (long long)most, LEAST_RECORDS, subject_how(s, " (--svd-every)"));
    answer_judge(a);
    if (a->verdict != FOUND) a->says[0] = 0;
    return SR_OK;
}
