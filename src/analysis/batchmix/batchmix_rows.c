/* mu_B - mu of one site, row after row, in chunks: memory does not grow with the file. */
#include <math.h>
#include <stdlib.h>

#include "analysis/batchmix/batchmix.h"

enum { READ = 5, PIECE = 64 };
static const char *const name[READ] = {"mu_B", "mu", "sigma2", "position_B", "position"};
enum { MU_B, MU, SIGMA2, POSITION_B, POSITION };

typedef struct delta_block {
    int64_t rows;
    float *raw[READ];     /* [rows, width]; NULL: not read */
    double *delta, *rest; /* [width] */
} delta_block;

static sr_status piece_create(delta_block *p, const mix_site *m, sr_failure *why) {
    const int64_t width = m->at->width;
    int64_t columns;
    *p = (delta_block){0};
    sr_status status = sr_run_vector_block(m->run, name[MU], &p->rows, &columns, why);
    if (status != SR_OK) return status;
    if (p->rows < PIECE) p->rows = PIECE;
    bool whole = (p->delta = malloc((size_t)(2 * width) * sizeof *p->delta)) != NULL;
    for (int v = 0; v < (m->position ? READ : POSITION_B); v++) {
        p->raw[v] = malloc((size_t)(p->rows * width) * sizeof *p->raw[v]);
        whole = whole && p->raw[v];
    }
    p->rest = whole ? p->delta + width : NULL;
    return whole ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

/* Row i of the block. */
static mix_row make_row(const delta_block *p, const mix_site *m, int64_t i, int64_t at) {
    const int64_t d = m->at->width;
    mix_row r = {.at = at, .y = {p->delta, m->position ? p->rest : NULL}};
    for (int64_t k = i * d, to = 0; to < d; k++, to++) {
        p->delta[to] = (double)p->raw[MU_B][k] - (double)p->raw[MU][k];
        r.delta2 += p->delta[to] * p->delta[to];
        r.sigma2 += (double)p->raw[SIGMA2][k];
        if (!m->position) continue;
        const double part = (double)p->raw[POSITION_B][k] - (double)p->raw[POSITION][k];
        p->rest[to] = p->delta[to] - part;
        r.position2 += part * part;
        r.rest2 += p->rest[to] * p->rest[to];
    }
    r.z = m->z + at * (m->length + m->padding);
    double all = r.delta2 + r.sigma2 + r.position2 + m->n[at];
    for (int j = 0; j < m->length + m->padding; j++) all += r.z[j];
    r.finite = isfinite(all) && r.sigma2 > 0;
    return r;
}

sr_status mix_each_row(const mix_site *m, mix_visitor visit, void *context, sr_failure *why) {
    delta_block p;
    sr_status status = piece_create(&p, m, why);
    for (int64_t at = 0; at < m->rows && status == SR_OK; at += p.rows) {
        const int64_t some = m->rows - at < p.rows ? m->rows - at : p.rows;
        for (int v = 0; v < READ && status == SR_OK; v++)
            if (p.raw[v])
                status =
                    sr_run_vector(m->run, name[v], m->site, m->first + at, some, p.raw[v], why);
        for (int64_t i = 0; i < some && status == SR_OK; i++) {
            const mix_row row = make_row(&p, m, i, at + i);
            visit(context, &row);
        }
    }
    for (int v = 0; v < READ; v++) free(p.raw[v]);
    free(p.delta);
    return status;
}
