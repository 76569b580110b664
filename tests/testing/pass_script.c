#include "testing/pass_script.h"
#include "testing/check.h"
#include "testing/run_builder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/moments.h"

enum { INNER = 2, ROWS_MAX = 64 };

/* Rows of each piece: one in four is padding; in piece 3 all are; piece 4 is empty. */
static const int piece_rows[SCRIPT_PIECES] = {8, 12, 4, 8, 0};

static const float gamma_of[SCRIPT_WIDTH] = {1, -2, 0.5F, 3, 0.25F};

/* Values of 1/16 that every element holds exactly around 0. */
static double noise(int64_t i) {
    uint64_t z = (uint64_t)i * 0x9e3779b97f4a7c15ULL + 0x123456789ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (double)((int64_t)(z >> 40 & 31) - 16) / 16;
}

static uint16_t half(double value) {
    int exponent;
    if (value == 0) return 0;
    const double fraction = frexp(fabs(value), &exponent);
    return (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 |
                      (int)((2 * fraction - 1) * 1024));
}

static void store(sr_element element, void *data, int64_t at, double value) {
    const float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (element == SR_FLOAT32) ((float *)data)[at] = single;
    if (element == SR_FLOAT64) ((double *)data)[at] = value;
    if (element == SR_BFLOAT16) ((uint16_t *)data)[at] = (uint16_t)(bits >> 16);
    if (element == SR_FLOAT16) ((uint16_t *)data)[at] = isnan(value) ? 0x7e00 : half(value);
}

/* The rows of one call: the rows of its pieces, in order. */
typedef struct batch {
    int64_t rows;
    double x[ROWS_MAX][SCRIPT_WIDTH], g[ROWS_MAX][SCRIPT_WIDTH];
    uint8_t valid[ROWS_MAX];
} batch;

static void add_piece(batch *b, const script_case *c, int64_t step, int piece) {
    for (int row = 0; row < piece_rows[piece]; row++, b->rows++) {
        const bool valid = piece != 3 && row % 4 != 1;
        b->valid[b->rows] = valid;
        for (int k = 0; k < SCRIPT_WIDTH; k++) {
            const int64_t i = ((step * SCRIPT_PIECES + piece) * ROWS_MAX + row) * SCRIPT_WIDTH + k;
            b->x[b->rows][k] = valid ? c->mean + noise(i) * (1 + k) + piece - 1 : NAN;
            b->g[b->rows][k] = valid ? noise(i + 1000000) + 0.125 * piece : NAN;
        }
    }
}

static batch make_batch(const script_case *c, int64_t step, char what) {
    batch b = {0};
    const char one[2] = {what, 0}, *pieces = what == '=' ? c->together : one;
    for (; *pieces; pieces++) add_piece(&b, c, step, *pieces - '0');
    return b;
}

/* -- calls ----------------------------------------------------------------------------------- */

/* Memory for tensors; it stays valid until the step ends. */
static void *next_memory(void) {
    enum { BYTES = ROWS_MAX * (SCRIPT_WIDTH * 8 + 1), CALLS = 32 };
    static double memory[CALLS][BYTES / 8];
    static int at;
    return memory[at++ % CALLS];
}

static sr_tensor make_tensor(const script_case *c, const batch *b, double (*value)[SCRIPT_WIDTH],
                             bool backward) {
    const int64_t inner = c->channels_first ? INNER : 1;
    const size_t count = (size_t)b->rows * SCRIPT_WIDTH;
    void *data = count ? next_memory() : NULL;
    uint8_t *valid = count ? (uint8_t *)data + count * 8 : NULL;
    for (int64_t row = 0; row < b->rows; row++)
        for (int k = 0; k < SCRIPT_WIDTH; k++)
            store(c->element, data, (row / inner * SCRIPT_WIDTH + k) * inner + row % inner,
                  value[row][k]);
    if (valid) memcpy(valid, b->valid, (size_t)b->rows);
    return SR_INIT(sr_tensor, data, c->element, b->rows / inner, SCRIPT_WIDTH, inner,
                   backward ? NULL : valid, backward ? 0 : c->samples);
}

typedef struct batch_sums {
    int64_t rows;
    double mean[SCRIPT_WIDTH], variance[SCRIPT_WIDTH], square[SCRIPT_WIDTH], gain[SCRIPT_WIDTH];
    double sum_g[SCRIPT_WIDTH], sum_gc[SCRIPT_WIDTH], sum_gg[SCRIPT_WIDTH];
} batch_sums;

static void sum_feature(const batch *b, int k, batch_sums *s) {
    for (int64_t i = 0; i < b->rows; i++)
        if (b->valid[i]) s->mean[k] += b->x[i][k], s->square[k] += b->x[i][k] * b->x[i][k];
    s->mean[k] /= (double)s->rows, s->square[k] /= (double)s->rows;
    for (int64_t i = 0; i < b->rows; i++) {
        if (!b->valid[i]) continue;
        const double d = b->x[i][k] - s->mean[k], g = b->g[i][k];
        s->variance[k] += d * d / (double)s->rows;
        s->sum_g[k] += g, s->sum_gc[k] += g * d, s->sum_gg[k] += g * g;
    }
}

static batch_sums sum_up(const batch *b) {
    batch_sums s = {0};
    for (int64_t i = 0; i < b->rows; i++) s.rows += b->valid[i];
    for (int k = 0; k < SCRIPT_WIDTH; k++) s.gain[k] = (double)gamma_of[k];
    for (int k = 0; k < SCRIPT_WIDTH && s.rows > 0; k++) sum_feature(b, k, &s);
    return s;
}

void script_call(sr_recorder *r, int site, const script_case *c, int64_t step, const char *call) {
    batch b = make_batch(c, step, call[1]);
    const batch_sums s = sum_up(&b);
    if (*call == 'F') {
        const sr_tensor t = make_tensor(c, &b, b.x, false);
        sr_take_forward(r, site, &t, gamma_of);
    } else if (*call == 'B') {
        const sr_tensor t = make_tensor(c, &b, b.g, true);
        sr_take_backward(r, site, &t);
    } else if (*call == 'f') {
        sr_put_forward(r, site,
                       &SR_INIT(sr_forward, s.rows, c->samples, b.rows - s.rows, s.mean, s.variance,
                                s.square, s.gain));
    } else {
        sr_put_backward(r, site, &SR_INIT(sr_backward, s.sum_g, s.sum_gc, s.sum_gg));
    }
}

/* -- runs ------------------------------------------------------------------------------------ */

static void add_sites(sr_recorder *r, const script_case *c, int count) {
    char name[16];
    assert_true(count <= SCRIPT_CASES);
    for (int i = 0; i < count; i++) {
        sr_site site = c[i].site;
        snprintf(name, sizeof name, "site%d", i);
        site.name = name, site.depth = i;
        assert_int_equal(sr_add_site(r, &site), i);
        if (c[i].observed) sr_set_observed(r, i);
    }
}

void script_run(const char *path, const script_case *c, int count, script_record *to) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.overhead = 0, o.vectors_every = 1;
    sr_recorder *r = run_create(path, o);
    add_sites(r, c, count);
    for (int64_t step = 0; step < SCRIPT_STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < count; i++)
            for (const char *call = c[i].script; *call; call += 2)
                script_call(r, i, &c[i], step, call);
        sr_end_step(r, &SR_INIT(sr_step, .update = step));
    }
    check_ok(sr_close(r, &SR_INIT(sr_finish, "complete", "", ""), &why), &why);
    script_read(path, count, to);
}

void script_read(const char *path, int count, script_record *to) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        for (int i = 0; i < count; i++)
            check_ok(sr_run_vector(f, sr_vector_name(v), i, 0, SCRIPT_STEPS, to[i].vector[v], &why),
                     &why);
    for (int s = 0; s < SR_SCALAR_COUNT; s++)
        for (int i = 0; i < count; i++)
            check_ok(sr_run_scalar(f, sr_scalar_name(s), i, 0, SCRIPT_STEPS, to[i].scalar[s], &why),
                     &why);
    sr_run_close(f);
}
