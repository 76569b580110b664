/* test_recover_whole.c -- the check of a recovered file reports only its interrupted end. recover
 * names data that it cannot save, and a failed recover leaves no file. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

enum { STEPS = 20, DATASETS = 256 };

/* -- a run of everything --------------------------------------------------------------------- */

static void put_spectra(sr_recorder *r, int64_t step) {
    double value[SAMPLE_WIDTH];
    const double *const both[SR_SPECTRUM_COUNT] = {value, value};
    for (int i = 0; i < SAMPLE_SITES; i++) {
        for (int k = 0; k < sample_sites[i].width; k++) value[k] = (double)(step + 100 - k);
        sr_put_spectrum(r, i, 10, both);
    }
}

static void whole_step(sr_recorder *r, const int id[2], int64_t step) {
    const double singular[SAMPLE_EMBEDDING] = {3, 2, 1};
    const float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, (float)step};
    const sr_tensor t = {sizeof(sr_tensor), x, SR_FLOAT32, 2, 5, 1, NULL, 0};
    const sr_step row = sample_row(step);
    sr_begin_step(r, step);
    sr_take_forward(r, 0, &t, NULL), sr_take_backward(r, 0, &t);
    for (int i = 1; i < SAMPLE_SITES; i++) sr_put_rows(r, i, sample_rows(step, i));
    put_spectra(r, step);
    sr_put_scalar(r, 1, id[0], 0.5), sr_put_step_scalar(r, id[1], 2);
    sr_end_step(r, &row);
    sample_put_eval(r, step);
    check_ok(sr_put_singular_values(r, "shared", step, singular), sr_failed(r));
    if (step % 5 == 0) sr_flush(r);
}

static int write_run(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0, o.vectors_every = 1, o.spectra = o.final = true;
    o.program = "a program", o.version = "a version", o.command = "a command",
    o.config = "a config";
    o.host = "a host", o.git = "a commit", o.model = "a model", o.data = "data", o.task = "a task";
    o.loss_reduction = "mean", o.parent = "a parent", o.ranks = "two ranks";
    o.seed = 77, o.threads = 3;
    sr_recorder *r = sample_begin(sample_path("whole.h5"), &o);
    const int id[2] = {sr_declare_scalar(r, "own", "1", "of a site", SR_PER_SITE),
                       sr_declare_scalar(r, "own too", "1", "of a step", SR_PER_STEP)};
    const double tid[SAMPLE_SITES] = {1, 2, 3, 4}, *const final[SR_FINAL_COUNT] = {tid, tid};
    for (int64_t step = 1; step <= STEPS; step++) whole_step(r, id, step);
    check_ok(sr_put_final(r, 7, final), sr_failed(r));
    check_ok(sr_close(r, &SR_INIT(sr_finish, .status = "complete"), &why), &why);
    check_ok(sr_run_check(sample_path("whole.h5"), &why), &why);
    return 0;
}

typedef struct name_list {
    char name[DATASETS][128];
    int count;
} name_list;

static herr_t keep_dataset(hid_t file, const char *name, const H5O_info_t *info, void *context) {
    name_list *l = context;
    (void)file;
    if (info->type == H5O_TYPE_DATASET && l->count < DATASETS)
        snprintf(l->name[l->count++], sizeof l->name[0], "/%s", name);
    return 0;
}

static const name_list *datasets(void) {
    static name_list list;
    if (list.count) return &list;
    hid_t file = H5Fopen(sample_path("whole.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, keep_dataset, &list, H5O_INFO_BASIC);
    H5Fclose(file);
    assert_true(list.count > 90);
    return &list;
}

/* -- expected results ------------------------------------------------------------------------ */

typedef struct heard {
    char text[4096];
} heard;

static void hear_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    heard *h = context;
    const size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s %lld: %s\n", dataset, (long long)rows,
             reason);
}

static void hear_fault(void *context, const sr_failure *fault) {
    heard *h = context;
    const size_t used = strlen(h->text);
    if (fault->status != SR_STATE)
        snprintf(h->text + used, sizeof h->text - used, "%s\n", fault->text);
}

/* Recovers; returns 1 on a fault. */
static int recover(const char *broken, const char *what, heard *lost) {
    const char *path = sample_path("saved.h5"), *part = sample_path("saved.h5.part");
    sr_failure why = {0};
    heard faults = {""};
    *lost = (heard){""};
    sr_recovery count = SR_INIT(sr_recovery, .steps = 0);
    sr_status status =
        sr_run_recover_report(broken, path, false, -1, &count, hear_lost, lost, &why);
    int bad = 0;
    if (status == SR_OK) {
        sr_run_check_all(path, hear_fault, &faults, NULL);
        if (faults.text[0]) bad = 1, print_error("%s: the new file: %s", what, faults.text);
    } else {
        if (status != SR_FORMAT)
            bad = 1, print_error("%s: %s: %s\n", what, sr_status_name(status), why.text);
        if (access(path, F_OK) == 0 || access(part, F_OK) == 0)
            bad = 1, print_error("%s: something is left behind: %s\n", what, why.text);
    }
    unlink(path), unlink(part);
    return bad;
}

/* -- a run's description of itself ----------------------------------------------------------- */

static void same_text(const char *name, const char *got, const char *want) {
    if (strcmp(got, want) != 0) fail_msg("%s: '%s', not '%s'", name, got, want);
}

/* Every text and number of the root is copied. */
static void test_info(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("saved.h5");
    check_ok(sr_run_recover(sample_path("whole.h5"), path, true, -1, NULL, &why), &why);
    sr_runfile *old = sr_run_open(sample_path("whole.h5"), &why), *new = sr_run_open(path, &why);
    assert_true(old && new);
    const sr_run_info *a = sr_run_get_info(old), *b = sr_run_get_info(new);
#define SAME(name)                                                                                 \
    assert_true(*a->name);                                                                         \
    same_text(#name, b->name, a->name);
    SAME(program)
    SAME(version)
    SAME(command)
    SAME(config)
    SAME(host)
    SAME(created)
    SAME(git)
    SAME(model)
    SAME(data)
    SAME(task)
    SAME(loss_reduction)
    SAME(parent)
    SAME(ranks)
#undef SAME
    assert_int_equal(b->seed, 77);
    assert_int_equal(b->threads, 3);
    sr_run_close(old), sr_run_close(new);
    unlink(path);
}

/* -- well-formed files with wrong values ----------------------------------------------------- */

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Replaces some values of a dataset. */
static void spoil_values(hid_t file, const char *name, uint64_t *random) {
    static const double odd[] = {-1, 0, 1e30, -1e30, NAN, INFINITY, 3, 1e9, -2, 0.5};
    static const int64_t odd_int[] = {-1, 0, 1, 5, INT64_MAX, INT64_MIN, 1000, 65, -2, 3};
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(set),
          space = H5Dget_space(set);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t size = H5Tget_size(type);
    char *bytes = calloc((size_t)count + 1, size);
    H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    for (int i = 0; i < 4 && count > 0; i++) {
        char *at = bytes + next_random(random) % (uint64_t)count * size;
        const uint64_t k = next_random(random) % 10;
        const float narrow = (float)odd[k];
        const int32_t whole = (int32_t)odd_int[k];
        const H5T_class_t class = H5Tget_class(type);
        if (class == H5T_STRING)
            at[next_random(random) % size] = (char)next_random(random);
        else if (class == H5T_FLOAT)
            memcpy(at, size == 4 ? (const void *)&narrow : &odd[k], size);
        else
            memcpy(at, size == 4 ? (const void *)&whole : &odd_int[k], size);
    }
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0);
    free(bytes);
    H5Sclose(space), H5Tclose(type), H5Dclose(set);
}

static void test_nonsense(void **state) {
    (void)state;
    const name_list *l = datasets();
    const char *broken = sample_path("broken.h5");
    uint64_t random = 1;
    int bad = 0;
    heard lost;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < l->count; i++) {
            hid_t file = damage_reopen(broken);
            spoil_values(file, l->name[i], &random);
            if (round == 1)
                spoil_values(file, l->name[next_random(&random) % (uint64_t)l->count], &random);
            assert_true(H5Fclose(file) >= 0);
            bad += recover(broken, l->name[i], &lost);
        }
    assert_int_equal(bad, 0);
}

/* -- missing objects ------------------------------------------------------------------------- */

/* Objects that no file needs, and second names. */
static bool may_be_silent(const char *name) {
    static const char *const silent[] = {"/column", "/site", "/step"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(name, silent[i]) == 0) return true;
    return false;
}

static void test_missing(void **state) {
    (void)state;
    const name_list *l = datasets();
    const char *broken = sample_path("broken.h5");
    int bad = 0;
    heard lost, faults;
    for (int i = 0; i < l->count; i++) {
        hid_t file = damage_reopen(broken);
        assert_true(H5Ldelete(file, l->name[i], H5P_DEFAULT) >= 0);
        assert_true(H5Fclose(file) >= 0);
        bad += recover(broken, l->name[i], &lost);
        faults = (heard){""};
        sr_run_check_all(broken, hear_fault, &faults, NULL);
        /* recover names every loss that check reports */
        if (faults.text[0] && !lost.text[0] && !may_be_silent(l->name[i]) &&
            !strstr(faults.text, "/sites/name") && !strstr(faults.text, "/sites/offset") &&
            !strstr(faults.text, "/sites/width"))
            bad++, print_error("%s: nothing is said to be lost: %s", l->name[i], faults.text);
    }
    assert_int_equal(bad, 0);
}

/* -- declarations that no writer makes ------------------------------------------------------- */

static void rename_link(hid_t file, const char *from, const char *to) {
    assert_true(H5Lmove(file, from, file, to, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* Names that a reader accepts and no recorder writes: each loses only its own data, and is
 * reported. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[][3] = {
        {"/evals/valid_nll", "/evals/.nll", "/evals/.nll -1: "},
        {"/embeddings/shared", "/embeddings/.shared", "/embeddings/.shared -1: "},
        {"/scalars/own", "/scalars/.own", "/scalars/own -1: "},
        {"/steps/own too", "/steps/.own too", "/steps/own too -1: "}};
    const char *broken = sample_path("broken.h5");
    int bad = 0;
    heard lost;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hid_t file = damage_reopen(broken);
        rename_link(file, names[i][0], names[i][1]);
        assert_true(H5Fclose(file) >= 0);
        bad += recover(broken, names[i][1], &lost);
        if (strstr(lost.text, names[i][2])) continue;
        print_error("%s: not named: %s\n", names[i][1], lost.text);
        bad++;
    }
    assert_int_equal(bad, 0);
}

static void rename_site(hid_t file, int site, const char *name) {
    hid_t set = H5Dopen2(file, "/sites/name", H5P_DEFAULT), type = H5Dget_type(set);
    const size_t size = H5Tget_size(type);
    char *text = calloc(SAMPLE_SITES, size);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    memset(text + (size_t)site * size, 0, size);
    memcpy(text + (size_t)site * size, name, strlen(name));
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    free(text);
    H5Tclose(type), H5Dclose(set);
}

/* A site cannot be replaced: the file is rejected by its name, and the error is not the
 * caller's. */
static void test_sites(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"stem", "broken.h5: site stem declared twice"},
        {"a\x01", "broken.h5: a site name with control characters"}};
    const char *broken = sample_path("broken.h5");
    for (int i = 0; i < 2; i++) {
        sr_failure why = {0};
        hid_t file = damage_reopen(broken);
        rename_site(file, 1, names[i][0]);
        assert_true(H5Fclose(file) >= 0);
        sr_run_recover(broken, sample_path("saved.h5"), false, -1, NULL, &why);
        check_failure(&why, SR_FORMAT, names[i][1]);
        assert_int_not_equal(access(sample_path("saved.h5.part"), F_OK), 0);
    }
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),    cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_missing), cmocka_unit_test(test_names),
        cmocka_unit_test(test_sites),
    };
    return cmocka_run_group_tests(tests, write_run, NULL);
}
