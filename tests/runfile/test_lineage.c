/* test_lineage.c -- properties that exclude a file as part of a run (copy_lineage.h), or as a
 * resuming recorder's earlier run (copy.h). Each property is changed in turn, most in memory. */
#include <hdf5.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "record/recorder_state.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/repair/copy.h"
#include "runfile/repair/copy_lineage.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

static sr_runfile *first, *second; /* two readers of equal bytes */

static void expect_part(void) {
    sr_failure why = {0};
    check_ok(copy_lineage_check(first, second, &why), &why);
}

static void expect_other(const char *part) {
    sr_failure why = {0};
    assert_int_equal(copy_lineage_check(first, second, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, part);
}

/* -- texts of the root, sites -- */

static void test_texts(void **state) {
    (void)state;
    sr_run_info *i = &second->info;
    const struct {
        const char **text, *part;
    } row[] = {{&i->program, "its program is 'other'"}, {&i->model, "its model is 'other'"},
               {&i->data, "its data is 'other'"},       {&i->task, "its task is 'other'"},
               {&i->ranks, "its ranks is 'other'"},     {&i->loss_reduction, "its loss reduction"}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const char *was = *row[k].text;
        *row[k].text = "other";
        expect_other(row[k].part);
        *row[k].text = was;
    }
    i->seed++, expect_other("its seed is 78, not 77"), i->seed--;
    i->sites--, expect_other("it has 3 sites, not 4"), i->sites++;
    expect_part();
}

typedef enum { TEXT, WHOLE, REAL, FAMILY } field_type;

static const struct {
    const char *name;
    size_t at;
    field_type type;
} fields[] = {
#define FIELD(name, type)                                                                          \
    { #name, offsetof(sr_run_site, name), type }
    FIELD(name, TEXT),
    FIELD(norm, TEXT),
    FIELD(kind, TEXT),
    FIELD(axis, TEXT),
    FIELD(uses, TEXT),
    FIELD(constants, TEXT),
    FIELD(family, FAMILY),
    FIELD(width, WHOLE),
    FIELD(depth, WHOLE),
    FIELD(layer_scale, WHOLE),
    FIELD(layer_scale_own, WHOLE),
    FIELD(observed, WHOLE),
    FIELD(merged, WHOLE),
    FIELD(eps, REAL),
    FIELD(alpha, REAL),
#undef FIELD
};

static void change(void *at, field_type type) {
    if (type == TEXT) strcpy(at, "other");
    if (type == WHOLE) ++*(int64_t *)at;
    if (type == REAL) *(double *)at = isnan(*(double *)at) ? 0.5 : NAN;
    if (type == FAMILY) ++*(sr_family *)at;
}

/* The last site has no alpha: setting one counts as a difference. */
static void test_sites(void **state) {
    (void)state;
    for (int site = 0; site < SAMPLE_SITES; site += SAMPLE_SITES - 1)
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            const sr_run_site was = second->site[site];
            change((char *)&second->site[site] + fields[k].at, fields[k].type);
            sr_failure why = {0};
            if (copy_lineage_check(first, second, &why) != SR_USAGE || !strstr(why.text, "differs"))
                fail_msg("%s: '%s'", fields[k].name, why.text);
            second->site[site] = was;
        }
    double *eps = &second->site[0].eps;
    *eps *= 2, expect_other("site stem differs from stem there"), *eps /= 2;
    expect_part();
}

/* -- embeddings, metrics, scalars -- */

static void write_size(hid_t file, const char *name, int64_t value) {
    const char *group = "/embeddings/shared";
    assert_true(H5Adelete_by_name(file, group, name, H5P_DEFAULT) >= 0);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t a = H5Acreate_by_name(file, group, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                                H5P_DEFAULT);
    assert_true(a >= 0 && H5Awrite(a, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(a), H5Sclose(space);
}

static sr_runfile *open_sized(const char *name, int64_t rows, int64_t cols) {
    const char *path = sample_path(name);
    hid_t file = damage_reopen(path);
    write_size(file, "rows", rows), write_size(file, "cols", cols);
    assert_true(H5Fclose(file) >= 0);
    return sample_open(path);
}

static void test_embeddings(void **state) {
    (void)state;
    sr_runfile *const whole = second;
    const char *part = "embedding shared is not there, or of another size";
    char *name = first->names[READER_GROUPS - 1].name[0];
    second = open_sized("rows.h5", 12, SAMPLE_EMBEDDING), expect_other(part), sr_run_close(second);
    sr_runfile *const narrow = first;
    first = open_sized("narrow.h5", SAMPLE_EMBEDDING, SAMPLE_EMBEDDING);
    second = open_sized("cols.h5", SAMPLE_EMBEDDING, 11), expect_other(part);
    sr_run_close(first), sr_run_close(second);
    first = narrow, second = whole;
    strcpy(name, "other"), expect_other(part), strcpy(name, "shared");
    expect_part();
}

static void test_units(void **state) {
    (void)state;
    reader_metric *m = &second->metric[0];
    const sr_better better = m->better;
    char was[SR_NAME_SIZE];
    strcpy(was, m->unit);
    strcpy(m->unit, "other"), expect_other("has another unit or direction"), strcpy(m->unit, was);
    m->better = SR_BETTER_NEITHER, expect_other("another unit or direction"), m->better = better;
    sr_run_declared *d = &second->declared[0].shown;
    char *unit = second->declared[0].unit;
    strcpy(unit, "other"), expect_other("scalar own has another unit or scope"), strcpy(unit, "1");
    d->scope = SR_PER_STEP, expect_other("scalar own has another"), d->scope = SR_PER_SITE;
    expect_part();
}

/* -- a recorder that resumes -- */

static sr_recorder *begin(void) {
    int id[2];
    const run_shape shape = {1, 2, 77, "1", false};
    sr_options o = copied_options();
    sr_recorder *r = sample_begin(sample_path("resumed.h5"), &o);
    copied_declare(r, &shape, id);
    return r;
}

static void match(sr_recorder *r, const char *part) {
    unreadable_data losses = {0};
    const sr_status status = recorder_copy_match(r, second, &losses);
    if (!part) check_ok(status, &r->failure);
    if (part) check_failure(&r->failure, SR_USAGE, part);
    r->failure = (sr_failure){0};
}

static void test_recorder(void **state) {
    (void)state;
    static const char *const compared[] = {"name", "width", "observed"};
    sr_recorder *r = begin();
    match(r, NULL);
    for (size_t c = 0; c < sizeof compared / sizeof *compared; c++)
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            if (strcmp(fields[k].name, compared[c]) != 0) continue;
            const sr_run_site was = second->site[1];
            change((char *)&second->site[1] + fields[k].at, fields[k].type);
            match(r, "its sites or embeddings differ");
            second->site[1] = was;
        }
    run_embedding *e = &r->embedding[0];
    e->rows++, match(r, "its sites or embeddings differ"), e->rows--;
    e->cols++, match(r, "its sites or embeddings differ"), e->cols--;
    r->embeddings--, match(r, "its sites or embeddings differ"), r->embeddings++;
    reader_metric *m = &second->metric[0];
    const sr_better better = m->better;
    m->better = SR_BETTER_NEITHER, match(r, "another unit or direction"), m->better = better;
    reader_declared *d = &second->declared[0];
    strcpy(d->unit, "other"), match(r, "scalar own has another unit or scope"),
        strcpy(d->unit, "1");
    d->shown.scope = SR_PER_STEP, match(r, "scalar own"), d->shown.scope = SR_PER_SITE;
    strcpy(d->name, "a/b"), match(r, "a/b");
    const int declared = r->writer.declared_count;
    strcpy(d->name, "new"), match(r, NULL), strcpy(d->name, "own");
    assert_int_equal(r->writer.declared_count, declared + 1);
    sr_abandon(r);
}

static int open_files(void **state) {
    (void)state;
    const run_shape shape = {1, COPIED_STEPS, 77, "1", true};
    copied_write("whole.h5", &shape);
    first = sample_open(sample_path("whole.h5")), second = sample_open(sample_path("whole.h5"));
    return 0;
}

static int close_files(void **state) {
    (void)state;
    sr_run_close(first), sr_run_close(second);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_sites),
                                       cmocka_unit_test(test_embeddings),
                                       cmocka_unit_test(test_units),
                                       cmocka_unit_test(test_recorder)};
    return cmocka_run_group_tests(tests, open_files, close_files);
}
