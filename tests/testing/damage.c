#include "testing/damage.h"
#include "hdf5/v1_10/h5_checks.h"
#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void damage_make_run(const char *path, int64_t steps) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true, o.planned_steps = steps;
    sr_recorder *r = sample_begin(path, &o);
    check_ok(sample_steps(r, 1, steps, 10), sr_failed(r));
    run_finish(r);
}

char *damage_load(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *size = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

size_t damage_end(const char *bytes) {
    size_t end = 0;
    for (int i = 7; i >= 0; i--) end = end << 8 | (unsigned char)bytes[28 + i];
    return end;
}

void damage_store(const char *path, const char *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void expect_one_line(const sr_failure *why) {
    assert_true(why->status == SR_FORMAT || why->status == SR_IO || why->status == SR_STATE);
    assert_true(strlen(why->text) > 10);
    assert_null(strchr(why->text, '\n'));
    if (strstr(why->text, "unknown")) fail_msg("without a reason: %s", why->text);
}

bool damage_exercise(const char *path) {
    sr_failure why = {0};
    sr_status checked = sr_run_check(path, &why);
    if (checked != SR_OK) expect_one_line(&why);
    why = (sr_failure){0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) {
        expect_one_line(&why);
        assert_int_not_equal(checked, SR_OK);
        return false;
    }
    const sr_run_info *info = sr_run_get_info(f);
    const char *name;
    float value[4096];
    int64_t rows = info->vectors < 20 ? info->vectors : 20;
    for (int i = 0; (name = sr_run_name(f, "vectors", i)); i++)
        if (info->width <= SAMPLE_WIDTH) sr_run_vector(f, name, -1, 0, rows, value, &why);
    for (int i = 0; (name = sr_run_name(f, "scalars", i)); i++) {
        sr_run_definition(f, name);
        sr_run_scalar(f, name, 0, 0, info->steps < 4096 ? info->steps : 4096, value, &why);
    }
    sr_run_close(f);
    sr_recovery count = {.size = sizeof(sr_recovery)};
    why = (sr_failure){0};
    if (sr_run_recover(path, sample_path("again.h5"), true, -1, &count, &why) == SR_OK) {
        unlink(sample_path("again.h5"));
        assert_true(checked != SR_OK || count.lost_steps == 0);
    }
    return true;
}

hid_t damage_reopen(const char *path) {
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    damage_store(path, bytes, size);
    free(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

void damage_leave_open(const char *path, size_t less) {
    enum { FLAGS = 11, CHECKSUM = 44 }; /* offsets in the superblock */
    size_t size;
    char *bytes = damage_load(path, &size);
    bytes[FLAGS] = 4 | 1;
    const uint32_t sum = h5_checksum((const unsigned char *)bytes, CHECKSUM);
    for (int i = 0; i < 4; i++) bytes[CHECKSUM + i] = (char)(sum >> 8 * i);
    assert_true(damage_end(bytes) > less);
    damage_store(path, bytes, damage_end(bytes) - less);
    free(bytes);
}
