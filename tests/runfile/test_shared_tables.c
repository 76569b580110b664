/* test_shared_tables.c -- files of a pool share their tables where these are equal; each difference
 * keeps them apart. Numbers outside of a table are none. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "copied_run.h"
#include "runfile/read/datasets/read_custom.h"
#include "runfile/read/datasets/read_metrics.h"
#include "runfile/read/file/shared_tables.h"
#include "testing/check.h"
#include "testing/sample_run.h"

enum { DIFFERENCES = 16 };

/* Changes one thing. False: there is no such difference. */
static bool differ(sr_runfile *f, int which) {
    reader_metric *m = &f->metric[1];
    reader_declared *d = &f->declared[1];
    char *const text[] = {m->name,
                          m->unit,
                          m->definition,
                          d->name,
                          d->unit,
                          d->definition,
                          f->site[2].norm,
                          f->names[0].name[0],
                          f->names[READER_GROUPS - 1].name[0]};
    const int texts = (int)(sizeof text / sizeof *text);
    if (which < texts) return strcpy(text[which], "other"), true;
    if (which == texts) return m->better = SR_BETTER_NEITHER, true;
    if (which == texts + 1) return m->place++, true;
    if (which == texts + 2) return d->shown.scope = SR_PER_SITE, true;
    if (which == texts + 3) return f->metrics--, true;
    if (which == texts + 4) return f->declared_count--, true;
    if (which == texts + 5) return f->names[1].count--, true;
    if (which == texts + 6) return f->site[0].eps *= 2, true;
    return false;
}

static void test_sharing(void **state) {
    (void)state;
    for (int which = -1; which < DIFFERENCES; which++) {
        shared_tables *list = NULL;
        sr_runfile *a = sample_open(sample_path("whole.h5")),
                   *b = sample_open(sample_path("whole.h5"));
        if (which >= 0) assert_true(differ(b, which));
        shared_tables_join(a, &list);
        shared_tables_join(b, &list);
        if ((a->shared == b->shared) != (which < 0)) fail_msg("difference %d", which);
        if (which < 0) assert_ptr_equal(a->metric, b->metric);
        shared_tables_leave(a, &list);
        if (which < 0) assert_string_equal(b->site[0].name, "stem"); /* the other's stay */
        shared_tables_leave(b, &list);
        assert_null(list);
        sr_run_close(a), sr_run_close(b);
    }
}

static void test_outside(void **state) {
    (void)state;
    sr_runfile *f = sample_open(sample_path("whole.h5"));
    assert_false(differ(f, DIFFERENCES)); /* all were tried */
    const int outside[] = {-1, 4096};
    for (int i = 0; i < 2; i++) {
        assert_null(sr_run_get_site(f, outside[i]));
        assert_null(sr_run_get_metric(f, outside[i]));
        assert_null(sr_run_get_declared(f, outside[i]));
        assert_null(sr_run_name(f, "scalars", outside[i]));
        assert_null(sr_run_damage(f, outside[i]));
        assert_null(sr_run_repaired(f, outside[i]));
    }
    assert_null(sr_run_name(f, "no group", 0));
    sr_run_close(f);
}

static int write_run(void **state) {
    (void)state;
    const run_shape shape = {1, 12, 77, "1", true};
    copied_write("whole.h5", &shape);
    return 0;
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sharing),
                                       cmocka_unit_test(test_outside)};
    return cmocka_run_group_tests(tests, write_run, NULL);
}
