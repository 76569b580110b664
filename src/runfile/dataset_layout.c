/* dataset_layout.c -- tables of datasets, their chunk shapes and sizes.
 *
 * If the widths of the sites allow it, chunks of /vectors end where sites end. A site that never
 * puts a vector then has no chunks: they take no space and read as the fill value.
 */
#include "runfile/dataset_layout.h"

#include <string.h>

#define STEP_INT(name, definition)        {"steps", #name, "1", definition, H5_INT64},
#define STEP_REAL(name, unit, definition) {"steps", #name, unit, definition, H5_FLOAT64},
#define SCALAR(name, definition)          {"scalars", #name, "1", definition, H5_FLOAT32},
#define VECTOR(name, definition)          {"vectors", #name, "1", definition, H5_FLOAT32},

const run_column run_steps[RUN_STEPS] = {SR_STEP_INTS(STEP_INT) SR_STEP_REALS(STEP_REAL)};
const run_column run_scalars[SR_SCALAR_COUNT] = {SR_SCALARS(SCALAR)};
const run_column run_vectors[SR_VECTOR_COUNT] = {SR_VECTORS(VECTOR)};
const run_column run_vector_step = {"vectors", "step", "1", "step of each row, one of /steps/step",
                                    H5_INT64};
const run_column run_eval_step = {"evals", "step", "1", "step after which this evaluation ran",
                                  H5_INT64};
const run_column run_eval_epoch = {"evals", "epoch", "epochs",
                                   "passes over the training data at this evaluation", H5_FLOAT64};
const char *const run_better_words[3] = SR_BETTER_WORDS;

#define SPECTRUM(name, definition)    {"spectra", #name, "1", definition, H5_FLOAT64},
#define FINAL(name, unit, definition) {"final", #name, unit, definition, H5_FLOAT64},

const run_column run_spectra[SR_SPECTRUM_COUNT] = {SR_SPECTRA(SPECTRUM)};
const run_column run_spectra_step = {"spectra", "step", "1", "step of each row, one of /steps/step",
                                     H5_INT64};
const run_column run_spectra_rows = {"spectra", "rows", "1", "valid rows N; -1: not measured",
                                     H5_INT64};
const run_column run_finals[SR_FINAL_COUNT] = {SR_FINALS(FINAL)};

#define PAIR(name, type, definition) {"final", "pair_" #name, "1", definition, H5_##type},

const run_column run_pairs[SR_PAIR_COUNT] = {SR_PAIRS(PAIR)};

#define RUNNING(name, definition) {"running", #name, "1", definition, H5_FLOAT64},

const run_column run_running[RUN_RUNNING] = {SR_RUNNING(RUNNING)};
const run_column run_running_step = {"running", "step", "1", "step of each row; -1: none",
                                     H5_INT64};

const char *const run_copy_names[COPY_TEXTS] = {"sources", "checksums", "options"};

const char *const run_committed_names[COMMITTED_COUNT] = {"committed_steps", "committed_vectors",
                                                          "committed_evals"};

_Static_assert(SR_VECTOR_COUNT <= 32 && SR_SCALAR_COUNT <= 32, "sets are bits of uint32_t");

#define V(name) (1u << SR_##name)
#define C(name) (1u << SR_SCALAR_##name)

uint32_t run_family_vectors(sr_family family) {
    const uint32_t batch = V(mu_B) | V(sigma2_B) | V(psi2_B);
    const uint32_t affine = V(gamma) | V(sum_g) | V(sum_gx);
    switch (family) {
    case SR_FAMILY_SIGMA:
        return batch | affine | V(mu) | V(sigma2);
    case SR_FAMILY_PSI:
        return batch | affine | V(psi2);
    case SR_FAMILY_PN:
        return batch | affine | V(psi2) | V(nu) | V(Gamma_t) | V(Lambda_t);
    case SR_FAMILY_ROW:
        return affine;
    case SR_FAMILY_OWN: /* the rest by sr_expect_vectors */
        return batch | affine;
    case SR_FAMILY_NONE:
    case SR_FAMILY_COUNT:
        break;
    }
    return 0;
}

uint32_t run_family_scalars(sr_family family) {
    const uint32_t any =
        C(rows) | C(nonfinite) | C(dx_norm) | C(direct_norm) | C(samples) | C(padded);
    switch (family) {
    case SR_FAMILY_SIGMA:
        return any | C(dist_mu) | C(dist_sigma) | C(dist_sigma2) | C(rel_sigma2) | C(tid_mean) |
               C(tid_var) | C(g_mu) | C(g_sigma2);
    case SR_FAMILY_PSI:
        return any | C(dist_psi) | C(dist_psi2) | C(rel_psi) | C(rel_psi2) | C(g_psi2);
    case SR_FAMILY_PN:
        return any | C(dist_psi) | C(dist_psi2) | C(rel_psi) | C(rel_psi2) | C(g_psi2) |
               C(Gamma_max);
    case SR_FAMILY_ROW:
        return any | C(row_grad_mean) | C(row_grad_var) | C(row_g_mean) | C(row_g_var) |
               C(row_exact_mean) | C(row_exact_var) | C(row_free_var);
    case SR_FAMILY_OWN: /* the rest by its uses */
    case SR_FAMILY_NONE:
    case SR_FAMILY_COUNT:
        break;
    }
    return any;
}

/* -- chunk shapes ---------------------------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

/* Rows of a chunk of about `bytes`, so that `planned` rows (0: unknown) fill whole chunks. */
static int64_t chunk_rows(int64_t bytes, int64_t row_bytes, int64_t most, int64_t planned) {
    int64_t rows = clamp(bytes / row_bytes, 1, most);
    if (planned <= 0) return rows;
    return divide_up(planned, divide_up(planned, rows));
}

void run_chunk_steps(const run_layout *l, int64_t chunk[2]) {
    chunk[0] = chunk_rows(8192, 8, 1024, l->planned_steps), chunk[1] = 1;
}

void run_chunk_scalars(const run_layout *l, int64_t chunk[2]) {
    chunk[0] = chunk_rows(32768, 4 * l->sites, 1024, l->planned_steps), chunk[1] = l->sites;
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

void run_chunk_vectors(const run_layout *l, int64_t chunk[2]) {
    int64_t unit = 0;
    for (int64_t i = 0; i < l->sites; i++) unit = common_divisor(l->site[i].width, unit);
    int64_t columns = unit;
    if (unit < 64) columns = divide_up(l->width, divide_up(l->width, 512));
    int64_t rows = 0;
    if (l->vectors_every > 0) rows = divide_up(l->planned_steps, l->vectors_every);
    chunk[0] = chunk_rows(65536, 4 * columns, 64, rows), chunk[1] = columns;
}

#define RUN_BYTES_MAX 4e18 /* above all disks, and within int64_t */

/* -- sizes ----------------------------------------------------------------------------------- */

/* Columns of /vectors/<v> in chunks that a site will write to. */
static int64_t allocated_columns(const run_layout *l, int v, int64_t columns) {
    int64_t total = 0, done = 0; /* chunks below `done` are counted */
    for (int64_t i = 0; i < l->sites; i++) {
        if (!(l->expected[i] >> v & 1)) continue;
        int64_t first = l->site[i].offset / columns;
        int64_t end = divide_up(l->site[i].offset + l->site[i].width, columns);
        if (first < done) first = done;
        if (end > first) total += (end - first) * columns, done = end;
    }
    return total;
}

int64_t run_vector_bytes(const run_layout *l) {
    int64_t chunk[2], columns = 0;
    if (!l->vectors) return 0; /* else the sites have columns */
    run_chunk_vectors(l, chunk);
    for (int v = 0; v < SR_VECTOR_COUNT; v++) columns += allocated_columns(l, v, chunk[1]);
    /* the step and its backup copy; for each chunk two entries of indexes, and its checksum */
    return 4 * columns + 16 + 32 * columns / (chunk[0] * chunk[1]);
}

static int64_t scalar_bytes(const run_layout *l) {
    if (!l->scalars) return 0;
    uint32_t all = 0;
    for (int64_t i = 0; i < l->sites; i++) all |= l->expected_scalars[i];
    int64_t count = 0;
    for (; all; all >>= 1) count += all & 1;
    return 4 * count * l->sites;
}

int64_t run_bytes(double bytes) {
    return bytes < RUN_BYTES_MAX ? (int64_t)bytes : (int64_t)RUN_BYTES_MAX;
}

/* In double, since a host program may plan any number of steps. */
int64_t run_project(const run_layout *l, int64_t every) {
    /* groups, headers, attributes, first index blocks, 13 metrics; twice, since metadata and steps
     * have a backup copy (journal.h) */
    const double fixed = 2 * 50000;
    const double steps = (double)l->planned_steps, sites = (double)l->sites;
    double bytes = fixed + 2 * (4 * (double)l->width + 300 * sites);
    if (l->metrics > 13) bytes += 4000 * (double)(l->metrics - 13);
    bytes += steps * (double)(8 * (1 + RUN_STEPS) + scalar_bytes(l));
    bytes += (2000 + 8 * steps) * (double)l->declared_steps;
    bytes += (2000 + 4 * steps * sites) * (double)l->declared_sites;
    if (l->running) bytes += SR_RUNNING_KEPT * 8 * (1 + RUN_RUNNING * (double)l->width);
    bytes += 2 * 4 * SR_PAIR_COUNT * sites * (double)l->pairs; /* with a backup copy */
    if (every > 0)
        bytes += (double)divide_up(l->planned_steps, every) * (double)run_vector_bytes(l);
    return run_bytes(bytes);
}

int64_t run_spacing(const run_layout *l, int64_t limit) {
    int64_t rest = limit - run_project(l, 0), row = run_vector_bytes(l);
    if (row == 0) return 1; /* unreached: called only with vectors */
    int64_t rows = clamp(rest / row, 1, l->planned_steps > 0 ? l->planned_steps : 1);
    return l->planned_steps > 0 ? divide_up(l->planned_steps, rows) : 1;
}

const run_column *run_find_column(const run_column *c, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(c[i].name, name) == 0) return &c[i];
    return NULL;
}
