/* test_flips.c -- flips one bit anywhere in a finished run file. check notices it, readers and
 * recovery lose at most the dataset that it hit, and no number changes. STATREC_TORTURE: number of
 * bits, default 300. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

enum { STEPS = 130 };

static int flips(void) {
    return (int)check_places(300);
}

/* Every kind of dataset of a run file, most with more than one chunk. */
static void make_run(const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.flush_steps = 16, o.spectra = o.final = true, o.sync = SR_SYNC_NONE;
    o.ranks = "rank 0 of 2";
    sr_recorder *r = sample_begin(path, &o);
    const int own = sr_declare_scalar(r, "own", "1", "of a site", SR_PER_SITE);
    double final[SR_FINAL_COUNT][SAMPLE_SITES] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    const double *value[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = final[i];
    for (int64_t step = 1; step <= STEPS; step++) {
        sr_begin_step(r, step);
        for (int i = 0; i < SAMPLE_SITES; i++) {
            double row[SAMPLE_WIDTH];
            sr_put_rows(r, i, sample_rows(step, i));
            for (int64_t k = 0; k < sample_sites[i].width; k++)
                row[k] = sample_vector(step, i, SR_sum_g, k);
            if (sample_puts(i, SR_sum_g)) sr_put_vector(r, i, SR_sum_g, row);
            for (int64_t k = 0; k < sample_sites[i].width; k++) row[k] = 9 - (double)k;
            const double *both[SR_SPECTRUM_COUNT] = {row, row};
            if (step % 40 == 0) sr_put_spectrum(r, i, 5, both);
            sr_put_scalar(r, i, own, (double)step);
        }
        sr_step row = sample_row(step);
        sr_end_step(r, &row);
        if (step % 10 == 0) sample_put_eval(r, step);
    }
    const double singular[SAMPLE_EMBEDDING] = {3, 2, 1};
    check_ok(sr_put_singular_values(r, "shared", STEPS, singular), sr_failed(r));
    check_ok(sr_put_final(r, 3, value), sr_failed(r));
    check_ok(sr_close(r, &SR_INIT(sr_finish, .status = "complete", .reason = "done"), &why), &why);
    check_ok(sr_run_check(path, &why), &why);
}

/* -- reading all of it ----------------------------------------------------------------------- */

typedef struct contents {
    unsigned char *bytes; /* all datasets, concatenated */
    size_t used, room;
    size_t end[256]; /* end of each */
    bool lost[256];
    int count;
} contents;

static void *add(contents *c, size_t size,
                 sr_status (*read)(sr_runfile *f, void *to, const char *name), sr_runfile *f,
                 const char *name) {
    if (c->used + size > c->room) {
        c->room = 2 * c->room + size;
        c->bytes = realloc(c->bytes, c->room);
        assert_non_null(c->bytes);
    }
    memset(c->bytes + c->used, 0, size);
    c->lost[c->count] = read(f, c->bytes + c->used, name) != SR_OK;
    c->used += size;
    c->end[c->count++] = c->used;
    assert_true(c->count < 256);
    return c->bytes + c->used - size;
}

static sr_status read_int(sr_runfile *f, void *to, const char *name) {
    return sr_run_step_ints(f, name, 0, STEPS, to, NULL);
}

static sr_status read_real(sr_runfile *f, void *to, const char *name) {
    return sr_run_step_reals(f, name, 0, STEPS, to, NULL);
}

static sr_status read_scalar(sr_runfile *f, void *to, const char *name) {
    return sr_run_scalar(f, name, -1, 0, STEPS, to, NULL);
}

static sr_status read_steps(sr_runfile *f, void *to, const char *name) {
    (void)name;
    return sr_run_vector_steps(f, 0, STEPS, to, NULL);
}

static sr_status read_vector(sr_runfile *f, void *to, const char *name) {
    return sr_run_vector(f, name, -1, 0, STEPS, to, NULL);
}

static sr_status read_eval(sr_runfile *f, void *to, const char *name) {
    return sr_run_eval(f, name, 0, STEPS / 10, to, NULL);
}

static sr_status read_singular(sr_runfile *f, void *to, const char *name) {
    return sr_run_singular_values(f, name, 0, to, (double *)to + 1, NULL);
}

static sr_status read_spectrum(sr_runfile *f, void *to, const char *name) {
    int64_t step, rows;
    sr_status status = SR_OK;
    for (int i = 0; i < 3 && status == SR_OK; i++)
        status = sr_run_spectrum(f, (sr_spectrum)atoi(name), 2, i, &step, &rows,
                                 (double *)to + 8 * i, NULL);
    return status;
}

static sr_status read_final(sr_runfile *f, void *to, const char *name) {
    double *value[SR_FINAL_COUNT];
    (void)name;
    for (int i = 0; i < SR_FINAL_COUNT; i++) value[i] = (double *)to + 1 + i * SAMPLE_SITES;
    return sr_run_final(f, to, value, NULL);
}

static sr_status read_table(sr_runfile *f, void *to, const char *name) {
    char *at = to;
    (void)name;
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const sr_run_site *s = sr_run_get_site(f, i);
        at += sprintf(at, "%s %s %s %d %d %g %g ", s->name, s->norm, s->axis, (int)s->width,
                      (int)s->depth, s->eps, s->alpha);
    }
    const sr_run_info *info = sr_run_get_info(f);
    sprintf(at, "%s %s %s %g %llu %s", info->status, info->reason, info->model, info->wall_seconds,
            (unsigned long long)info->seed, info->ranks);
    return SR_OK;
}

static void read_all(contents *c, sr_runfile *f) {
#define INT(name, ...)    add(c, STEPS * 8, read_int, f, #name);
#define REAL(name, ...)   add(c, STEPS * 8, read_real, f, #name);
#define SCALAR(name, ...) add(c, STEPS *SAMPLE_SITES * 4, read_scalar, f, #name);
#define VECTOR(name, ...) add(c, STEPS *SAMPLE_WIDTH * 4, read_vector, f, #name);
    c->used = 0, c->count = 0;
    SR_STEP_INTS(INT)
    SR_STEP_REALS(REAL)
    SR_SCALARS(SCALAR)
    SR_VECTORS(VECTOR)
    add(c, STEPS * SAMPLE_SITES * 4, read_scalar, f, "own");
    add(c, STEPS * 8, read_steps, f, "");
    add(c, STEPS / 10 * 8, read_eval, f, "step"), add(c, STEPS / 10 * 8, read_eval, f, "epoch");
    for (int i = 0; i < SAMPLE_METRICS; i++)
        add(c, STEPS / 10 * 8, read_eval, f, sample_metrics[i].name);
    add(c, 8 + 8 * SAMPLE_EMBEDDING, read_singular, f, "shared");
    add(c, 3 * 64, read_spectrum, f, "0"), add(c, 3 * 64, read_spectrum, f, "1");
    add(c, 8 + 8 * SR_FINAL_COUNT * SAMPLE_SITES, read_final, f, "");
    add(c, 1024, read_table, f, "");
}

/* Returns the number of unreadable datasets; the others must be unchanged. */
static int compare(const contents *truth, const contents *got, const char *where) {
    int lost = 0;
    for (int i = 0; i < truth->count; i++) {
        const size_t from = i ? truth->end[i - 1] : 0;
        if (!got->lost[i] &&
            memcmp(truth->bytes + from, got->bytes + from, truth->end[i] - from) != 0)
            fail_msg("%s: dataset %d of %d has other numbers", where, i, truth->count);
        lost += got->lost[i];
    }
    return lost;
}

/* -- flips ----------------------------------------------------------------------------------- */

/* Rows, and values other than NaN, must be unchanged. */
static void check_recovered(const char *path, const contents *truth) {
    sr_failure why = {0};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    const char *copy = sample_path("recovered.h5");
    contents got = {0};
    check_ok(sr_run_recover(path, copy, true, -1, &count, &why), &why);
    if (count.steps != STEPS || count.lost_steps != 0)
        fail_msg("recovered %d steps, lost %d", (int)count.steps, (int)count.lost_steps);
    sr_runfile *f = sample_open(copy);
    read_all(&got, f);
    const float *was = (const float *)(const void *)truth->bytes, *is = (float *)(void *)got.bytes;
    /* float datasets: the format's scalars and vectors, and the scalar "own" */
    enum { FIRST = 8, END = FIRST + SR_SCALAR_COUNT + SR_VECTOR_COUNT + 1 };
    int others = 0, of = -1;
    for (int i = FIRST; i < END; i++)
        for (size_t k = truth->end[i - 1] / 4; k < truth->end[i] / 4; k++)
            if (memcmp(&was[k], &is[k], 4) != 0) {
                if (is[k] == is[k])
                    fail_msg("dataset %d: %g for %g", i, (double)is[k], (double)was[k]);
                others += of != i, of = i;
            }
    assert_true(others <= 1);
    sr_run_close(f);
    free(got.bytes);
    check_failure((sr_run_check(copy, &why), &why), SR_STATE, "interrupted");
}

/* Flips bit `bit` of the file. Returns the number of lost datasets. */
static int flip(const char *path, char *bytes, size_t size, uint64_t bit, const contents *truth,
                bool recover) {
    char where[64];
    sr_failure why = {0};
    contents got = {0};
    snprintf(where, sizeof where, "bit %d of byte %zu", (int)(bit % 8), (size_t)(bit / 8));
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    damage_store(path, bytes, size);
    bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    if (sr_run_check(path, &why) == SR_OK) fail_msg("%s: not noticed", where);
    assert_null(strchr(why.text, '\n'));
    why = (sr_failure){0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s: %s", where, why.text);
    if (sr_run_get_info(f)->steps != STEPS || sr_run_get_info(f)->vectors != STEPS ||
        sr_run_get_info(f)->evals != STEPS / 10)
        fail_msg("%s: %d rows", where, (int)sr_run_get_info(f)->steps);
    read_all(&got, f);
    const int lost = compare(truth, &got, where);
    if (lost > 1) printf("%s: %d datasets\n", where, lost);
    sr_run_close(f);
    free(got.bytes);
    if (recover) check_recovered(path, truth);
    return lost;
}

static void test_flips(void **state) {
    (void)state;
    const char *path = sample_path("whole.h5"), *flipped = sample_path("flipped.h5");
    size_t size;
    contents truth = {0};
    int more = 0, one = 0;
    make_run(path);
    sr_runfile *f = sample_open(path);
    read_all(&truth, f);
    sr_run_close(f);
    for (int i = 0; i < truth.count; i++) assert_false(truth.lost[i]);
    char *bytes = damage_load(path, &size);
    uint64_t random = 4711;
    for (int i = 0; i < flips(); i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        const int lost =
            flip(flipped, bytes, size, (random >> 20) % (8 * size), &truth, i % 10 == 0);
        more += lost > 1, one += lost == 1;
    }
    printf("%d of %d flipped bits cost a dataset's rows, %d more than that\n", one, flips(), more);
    assert_true(1000 * more <= 5 * flips());
    assert_true(one > flips() / 20);
    free(bytes), free(truth.bytes);
}

/* Headers that are lost with a torn page. */
static void test_pages(void **state) {
    (void)state;
    const char *path = sample_path("whole2.h5"), *torn = sample_path("torn.h5");
    size_t size;
    contents truth = {0}, got = {0};
    make_run(path);
    sr_runfile *f = sample_open(path);
    read_all(&truth, f);
    sr_run_close(f);
    char *bytes = damage_load(path, &size), *copy = malloc(size);
    assert_non_null(copy);
    for (size_t at = 0; at + 512 <= damage_end(bytes); at += 4096) {
        memcpy(copy, bytes, size);
        memset(copy + at, 0, 512);
        if (memcmp(copy, bytes, size) == 0) continue;
        damage_store(torn, copy, size);
        f = sample_open(torn);
        read_all(&got, f);
        compare(&truth, &got, "a torn page");
        sr_run_close(f);
        assert_int_equal(sr_run_check(torn, NULL), SR_FORMAT);
    }
    free(bytes), free(copy), free(truth.bytes), free(got.bytes);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
