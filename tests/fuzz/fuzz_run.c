/* A run file: checked, read, described and recovered; the recovered file passes as a run file.
 * Readers: src/runfile/read/read_open.c src/runfile/read/read_values.c
 *   src/runfile/read/read_trailer.c src/journal/trailer.c src/runfile/repair/check_run.c
 *   src/runfile/repair/recover.c src/runfile/repair/copy_run.c src/hdf5/guard/h5_guard.c
 *   src/hdf5/v1_10/h5_headers.c src/hdf5/v1_10/h5_heaps.c src/hdf5/v1_10/h5_messages.c
 *   src/hdf5/v1_10/h5_trees.c */
#include <string.h>
#include <unistd.h>

#include "fuzz_hdf5.h"
#include "runfile/repair/copy_run.h"
#include "statrec/runfile.h"

enum { ROWS = 16, ROOM = 4096 };

static void read_rows(const sr_runfile *f, const sr_run_info *info) {
    static float value[ROOM];
    static double reals[ROOM];
    int64_t step, rows;
    const int64_t steps = info->steps < ROWS ? info->steps : ROWS;
    const int64_t vectors = info->vectors < ROWS ? info->vectors : ROWS;
    const char *name;
    for (int i = 0; (name = sr_run_name(f, "steps", i)); i++)
        sr_run_step_reals(f, name, 0, steps, reals, NULL);
    for (int i = 0; (name = sr_run_name(f, "scalars", i)); i++) {
        sr_run_definition(f, name);
        if (info->sites * ROWS <= ROOM) sr_run_scalar(f, name, -1, 0, steps, value, NULL);
    }
    for (int i = 0; (name = sr_run_name(f, "vectors", i)); i++)
        if (info->width * ROWS <= ROOM) sr_run_vector(f, name, -1, 0, vectors, value, NULL);
    for (int i = 0; (name = sr_run_name(f, "evals", i)); i++)
        sr_run_eval(f, name, 0, info->evals < ROWS ? info->evals : ROWS, reals, NULL);
    for (int64_t i = 0; i < info->spectra && i < ROWS && info->width <= ROOM; i++)
        sr_run_spectrum(f, (sr_spectrum)0, 0, i, &step, &rows, reals, NULL);
}

static void read_embeddings(const sr_runfile *f) {
    static double value[ROOM];
    sr_run_embedding e = {.size = sizeof e};
    const char *name;
    int64_t step;
    for (int i = 0; (name = sr_run_name(f, "embeddings", i)) && i < ROWS; i++) {
        if (sr_run_get_embedding(f, name, &e, NULL) != SR_OK || e.values > ROOM) continue;
        for (int64_t k = 0; k < e.records && k < ROWS; k++)
            sr_run_singular_values(f, name, k, &step, value, NULL);
    }
}

/* Sites, blocks of columns, and rows that it does not have. */
static void read_ranges(const sr_runfile *f, const sr_run_info *info) {
    static float value[ROOM];
    sr_failure why = {0};
    int64_t rows, columns;
    const char *name;
    for (int64_t i = 0; i < info->sites && i < ROWS; i++) {
        const int64_t found = sr_run_find_site(f, sr_run_get_site(f, i)->name);
        fuzz_expect(found >= 0 && found < info->sites, "a site that its name does not find");
    }
    for (int i = 0; (name = sr_run_name(f, "vectors", i)); i++) {
        if (sr_run_vector_block(f, name, &rows, &columns, NULL) == SR_OK)
            fuzz_expect(rows >= 0 && columns >= 0, "a block of fewer rows than none");
        if (info->width * ROWS <= ROOM) sr_run_vectors(f, name, 0, info->sites, 0, 1, value, NULL);
        fuzz_expect(sr_run_vectors(f, name, info->sites, 1, 0, 1, value, &why) != SR_OK,
                    "a site beyond the last");
        why = (sr_failure){0};
        fuzz_expect(sr_run_vector(f, name, -1, info->vectors, 1, value, &why) != SR_OK,
                    "a row beyond the last");
    }
    for (int i = 0; (name = sr_run_name(f, "evals", i)); i++) sr_run_has_eval(f, name);
}

static void read_all(const char *path) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    fuzz_expect_reason(!f, &why);
    if (!f) return;
    const sr_run_info *info = sr_run_get_info(f);
    fuzz_expect(info->steps >= 0 && info->vectors >= 0 && info->evals >= 0 && info->sites >= 0,
                "fewer rows than none");
    for (int64_t i = 0; i < info->sites && i < ROWS; i++)
        fuzz_expect(sr_run_get_site(f, i) != NULL, "a site is missing");
    read_rows(f, info);
    read_embeddings(f);
    read_ranges(f, info);
    sr_run_close(f);
}

/* A part of it, with names or without. */
static void copy_part(const char *path, const char *to, bool anonymous) {
    static const int64_t site[] = {0};
    char *const paths[] = {(char *)(uintptr_t)path};
    const run_copy_options o = {.every = 2,
                                .vectors_every = 3,
                                .first = INT64_MIN,
                                .last = INT64_MAX,
                                .choice = {.site = site, .sites = 1},
                                .text = "none",
                                .anonymous = anonymous};
    run_copied result;
    sr_failure why = {0};
    const sr_status status = run_copy(paths, 1, to, &o, &result, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    fuzz_expect(status == SR_OK || access(to, F_OK) != 0, "a copy is left of one that failed");
    if (status == SR_OK) read_all(to);
    unlink(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sr_failure why = {0};
    sr_recovery count = {.size = sizeof count};
    const char *path = fuzz_image_store(fuzz_run_image(), "run.h5", data, size);
    const char *copy = fuzz_path("copy.h5");
    fuzz_expect_reason(sr_run_check(path, &why) != SR_OK, &why);
    read_all(path);
    why = (sr_failure){0};
    const sr_status status = sr_run_recover(path, copy, true, -1, &count, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    fuzz_expect(status == SR_OK || access(copy, F_OK) != 0, why.text);
    fuzz_expect(status == SR_OK || access(copy, F_OK) != 0,
                "a copy is left by a recovery that failed");
    if (status == SR_OK) read_all(copy);
    unlink(copy);
    copy_part(path, copy, false);
    copy_part(path, copy, true);
    return 0;
}
