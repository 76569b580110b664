#include "failing_readings.h"

#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/child_complaint.h"
#include "testing/sample_run.h"

const run_shape readings_shape = {1, READINGS_STEPS, 77, "1", true};

static void add_reading(readings *r, sr_status status, sr_failure *why, const void *value,
                        size_t size) {
    uint64_t digest = 14695981039346656037ull;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ ((const unsigned char *)value)[i]) * 1099511628211ull;
    if (status != SR_OK) complain_unless_told("a reading", ".h5", why);
    if (r->count == READINGS_MAX) complain("readings", "too many");
    r->size[r->count] = size;
    r->digest[r->count++] = status == SR_OK ? digest : 0;
    r->refused += status != SR_OK;
    *why = (sr_failure){0};
}

static void read_columns(const sr_runfile *f, readings *r, sr_failure *why) {
    static float value[READINGS_STEPS * SAMPLE_WIDTH];
    static double real[READINGS_STEPS];
    static int64_t whole_number[READINGS_STEPS];
    const sr_run_info *info = sr_run_get_info(f);
    const int64_t steps = info->steps, vectors = info->vectors;
    const size_t width = sizeof *value * SAMPLE_WIDTH;
    sr_status status;
    status = sr_run_step_ints(f, "step", 0, steps, whole_number, why);
    add_reading(r, status, why, whole_number, (size_t)steps * sizeof *whole_number);
    status = sr_run_step_reals(f, "loss", 0, steps, real, why);
    add_reading(r, status, why, real, (size_t)steps * sizeof *real);
    status = sr_run_step_reals(f, "own too", 0, steps, real, why);
    add_reading(r, status, why, real, (size_t)steps * sizeof *real);
    for (int i = 0; i < SR_SCALAR_COUNT; i++) {
        status = sr_run_scalar(f, sr_scalar_name(i), i % SAMPLE_SITES, 0, steps, value, why);
        add_reading(r, status, why, value, (size_t)steps * sizeof *value);
    }
    for (int i = 0; i < SR_VECTOR_COUNT; i++) {
        status = sr_run_vector(f, sr_vector_name(i), -1, 0, vectors, value, why);
        add_reading(r, status, why, value, (size_t)vectors * width);
    }
    status = sr_run_eval(f, "valid_nll", 0, info->evals, real, why);
    add_reading(r, status, why, real, (size_t)info->evals * sizeof *real);
}

static void read_rest(const sr_runfile *f, readings *r, sr_failure *why) {
    double value[SAMPLE_WIDTH], final[2][SAMPLE_SITES], *const both[] = {final[0], final[1]};
    float x[COPIED_PAIRS], y[COPIED_PAIRS];
    int32_t feature[COPIED_PAIRS];
    int64_t step, rows, batches;
    sr_run_embedding e = {.size = sizeof e};
    sr_status status = sr_run_get_embedding(f, "shared", &e, why);
    add_reading(r, status, why, &e, sizeof e);
    status = sr_run_singular_values(f, "shared", 0, &step, value, why);
    add_reading(r, status, why, value, SAMPLE_EMBEDDING * sizeof *value);
    for (int i = 0; i < SAMPLE_SITES; i++) {
        const size_t size = (size_t)sample_sites[i].width * sizeof *value;
        status = sr_run_spectrum(f, SR_SPECTRUM_input, i, 0, &step, &rows, value, why);
        add_reading(r, status, why, value, size);
        status = sr_run_pairs(f, i, x, y, feature, why);
        add_reading(r, status, why, x, sizeof x);
    }
    status = sr_run_final(f, &batches, both, why);
    add_reading(r, status, why, final, sizeof final);
    int64_t block[2];
    status = sr_run_vector_block(f, "mu_B", &block[0], &block[1], why);
    add_reading(r, status, why, block, sizeof block);
}

static void read_names(const sr_runfile *f, readings *r, sr_failure *why) {
    static const char *const groups[] = {"scalars", "vectors", "evals", "steps", "embeddings"};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        const char *name;
        uint64_t sum = 0;
        for (int i = 0; (name = sr_run_name(f, groups[g], i)); i++) sum += strlen(name);
        add_reading(r, SR_OK, why, &sum, sizeof sum);
    }
    const char *text = sr_run_definition(f, "scalars/dist_mu"); /* "" on a failed read */
    if (*text) add_reading(r, SR_OK, why, text, strlen(text));
}

sr_status readings_of(const char *path, readings *r, sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    /* if no damage was met while opening, all values equal the file's */
    r->sound = !sr_run_damage(f, 0);
    read_columns(f, r, why);
    read_rest(f, r, why);
    if (r->sound) read_names(f, r, why);
    sr_run_close(f);
    return SR_OK;
}

void readings_compare(const char *after, const readings *now, const readings *whole) {
    for (int i = 0; i < now->count; i++)
        if (now->digest[i] && now->digest[i] != whole->digest[i] &&
            (now->sound || now->size[i] >= whole->size[i]))
            complain(after, "reading %d has other values", i);
}

void readings_look(const char *name, const char *after, bool all, const char *status) {
    sr_failure why = {0};
    readings r = {0};
    if (readings_of(sample_path(name), &r, &why) != SR_OK) {
        if (all) complain(after, "%s: %s", name, why.text);
        return complain_unless_told(after, name, &why);
    }
    sr_runfile *f = sample_open(sample_path(name));
    sample_check(f, 1, COPIED_VECTORS);
    const int64_t rows = sr_run_get_info(f)->steps;
    sr_run_close(f);
    if (!all) return;
    const bool whole = r.refused == 0 && rows == READINGS_STEPS;
    const bool checked = sr_run_check(sample_path(name), &why) == SR_OK;
    if (!whole || (checked ? strcmp(status, "complete") : !strstr(why.text, status)))
        complain(after, "%s: %d refused, %lld rows, %s", name, r.refused, (long long)rows,
                 why.text);
}
