/* test_damage.c -- truncated, altered and foreign files: one line, never a crash. HDF5's 1.10
 * format has a checksum on all metadata; raw values have none. */
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "sample_run.h"

static const sr_finish complete = {"complete", "", ""};

static void make_run(const char *path, int64_t steps) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.planned_steps = steps;
    sr_recorder *r = sample_create(path, &o, &why);
    assert_non_null(r);
    check_ok(sample_steps(r, 1, steps, 10), sr_failed(r));
    check_ok(sr_close(r, &complete, &why), &why);
}

static char *load(const char *path, size_t *size) {
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

static void store(const char *path, const char *bytes, size_t size) {
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

/* Opens, checks, reads everything and recovers. Returns whether the file opened. */
static bool exercise(const char *path) {
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
    sr_recovery count;
    why = (sr_failure){0};
    if (sr_run_recover(path, sample_path("again.h5"), true, -1, &count, &why) == SR_OK) {
        unlink(sample_path("again.h5"));
        assert_true(checked != SR_OK || count.lost_steps == 0);
    }
    return true;
}

static void test_truncated(void **state) {
    (void)state;
    size_t size;
    make_run(sample_path("whole.h5"), 40);
    char *bytes = load(sample_path("whole.h5"), &size);
    const char *path = sample_path("cut.h5");
    int opened = 0;
    for (int i = 0; i < 64; i++) {
        size_t length = i < 24 ? (size_t)(i * 7) : size * (size_t)(i - 24) / 40;
        store(path, bytes, length);
        opened += exercise(path);
    }
    store(path, bytes, size - 1);
    opened += exercise(path);
    assert_int_equal(opened, 0); /* its superblock knows how long the file was */
    free(bytes);
}

/* HDF5 reads zeros past the end of such a file; no row that is told to be readable has one. */
static void check_rows_left(const char *path, bool cut) {
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_int_equal(strstr(sr_run_get_info(f)->reason, "truncated to") != NULL, cut);
    sample_check(f, 1, 1);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_STATE);
    check_failure(&why, SR_STATE, cut ? "truncated to" : "steps readable");
}

static void expect_text(const char *path, const char *text) {
    sr_failure why = {0};
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, text);
    why = (sr_failure){0};
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, text);
}

/* What the first bytes and the length tell is said without HDF5's words. */
static void test_first_bytes(void **state) {
    (void)state;
    size_t size;
    char text[128];
    const char *path = sample_path("bytes.h5");
    make_run(sample_path("whole.h5"), 40);
    char *bytes = load(sample_path("whole.h5"), &size);
    store(path, bytes, 0);
    expect_text(path, "bytes.h5: empty, not a run file");
    store(path, bytes, 5);
    expect_text(path, "bytes.h5: truncated: its first 5 bytes only");
    store(path, bytes, 47);
    expect_text(path, "bytes.h5: truncated: its first 47 bytes only");
    store(path, bytes, size / 2);
    snprintf(text, sizeof text, "bytes.h5: truncated: %zu of %zu bytes", size / 2, size);
    expect_text(path, text);
    store(path, bytes + 1, 3);
    expect_text(path, "not a run file (3 bytes without the signature of HDF5)");
    bytes[10] = 77;
    store(path, bytes, size);
    expect_text(path, "bytes.h5: damaged: open: ");
    bytes[10] = 8, bytes[11] = 1; /* its writer has it open, but not for readers */
    store(path, bytes, size);
    expect_text(path, "bytes.h5: nothing to read: its writer has not begun");
    free(bytes);
}

/* A killed writer's file may end anywhere: what is left of it is read. */
static void test_truncated_unfinished(void **state) {
    (void)state;
    size_t size;
    sr_failure why = {0};
    fflush(NULL);
    const char *part = sample_path("run.h5.part");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.flush_steps = 4;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sr_recorder *r = sample_create(sample_path("run.h5"), &o, NULL);
        sample_steps(r, 1, 40, 10);
        kill(getpid(), SIGKILL);
    }
    int status;
    waitpid(child, &status, 0);
    char *bytes = load(part, &size);
    const char *path = sample_path("cut2.h5");
    int opened = 0;
    for (int i = 0; i <= 40; i++) {
        store(path, bytes, size * (size_t)i / 40);
        bool opens = exercise(path);
        if (opens) check_rows_left(path, i < 40);
        opened += opens;
    }
    printf("unfinished and cut: %d of 41 opened\n", opened);
    assert_true(opened > 0);
    store(path, bytes, size);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sample_check(f, 1, 1);
    sr_run_close(f);
    free(bytes);
}

static void flip_bytes(const char *source, int rounds) {
    size_t size;
    char *bytes = load(source, &size);
    const char *path = sample_path("flip.h5");
    int opened = 0;
    uint64_t random = 12345;
    for (int i = 0; i < rounds; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        size_t at = i < 48 ? (size_t)i : (size_t)(random >> 33) % size;
        char old = bytes[at];
        bytes[at] = (char)(old ^ (1 + (random >> 20) % 255));
        store(path, bytes, size);
        opened += exercise(path);
        bytes[at] = old;
    }
    printf("%s: %d of %d with one altered byte opened\n", source, opened, rounds);
    free(bytes);
}

static void test_flipped(void **state) {
    (void)state;
    flip_bytes(sample_path("whole.h5"), 120);
    flip_bytes(sample_path("run.h5.part"), 60);
}

/* -- well-formed HDF5 that is no run file ------------------------------------------------------ */

static hid_t reopen(const char *path) {
    size_t size;
    char *bytes = load(sample_path("whole.h5"), &size);
    store(path, bytes, size);
    free(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

/* Replaces a dataset by one of another type, rank or extent (unlimited, nothing allocated). */
static void replace(hid_t file, const char *name, hid_t type, int rank, hsize_t rows,
                    hsize_t columns) {
    hsize_t dims[3] = {rows, columns, 1}, most[3] = {H5S_UNLIMITED, columns, 1},
            chunk[3] = {1, 1, 1};
    hid_t space = rank ? H5Screate_simple(rank, dims, most) : H5Screate(H5S_SCALAR);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (rank) H5Pset_chunk(properties, rank, chunk);
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Pclose(properties), H5Sclose(space);
}

static void expect_refused(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("odd.h5");
    sr_failure why = {0};
    hid_t file = reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, part);
    exercise(path);
}

typedef struct told {
    const char *part;
    int count, met;
} told;

static void hear_lost(void *context, const char *dataset, int64_t rows, const char *reason) {
    told *t = context;
    (void)dataset, (void)rows;
    t->count++;
    t->met += strstr(reason, t->part) != NULL;
}

/* One thing is damaged: the file opens and says so, the check too, and recover takes the rest. */
static void expect_rest(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("odd.h5");
    sr_failure why = {0};
    sr_recovery count;
    told lost = {part, 0, 0};
    hid_t file = reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    if (!sr_run_damage(f, 0) || !strstr(sr_run_damage(f, 0), part))
        fail_msg("'%s' is not told: %s", part, sr_run_damage(f, 0));
    assert_null(sr_run_damage(f, 1));
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    why = (sr_failure){0};
    check_ok(sr_run_recover_telling(path, sample_path("rest.h5"), true, -1, &count, hear_lost,
                                    &lost, &why),
             &why);
    if (lost.met == 0) fail_msg("'%s' is not among %d losses", part, lost.count);
    exercise(path);
}

static void write_int(hid_t file, const char *name, int64_t value) {
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(set);
}

static void spoil_type(hid_t file) {
    replace(file, "/steps/step", H5T_IEEE_F64LE, 1, 40, 1);
}
static void spoil_rank(hid_t file) {
    replace(file, "/steps/loss", H5T_IEEE_F64LE, 2, 40, 1);
}
static void spoil_rank3(hid_t file) {
    replace(file, "/vectors/mu", H5T_IEEE_F32LE, 3, 40, SAMPLE_WIDTH);
}
static void spoil_columns(hid_t file) {
    replace(file, "/vectors/mu", H5T_IEEE_F32LE, 2, 40, SAMPLE_WIDTH + 1);
}
static void spoil_status(hid_t file) {
    replace(file, "/state/status", H5T_STD_I32LE, 0, 0, 0);
}
static void spoil_committed(hid_t file) {
    write_int(file, "/state/committed_steps", -4);
}
static void spoil_missing(hid_t file) {
    assert_true(H5Ldelete(file, "/steps/tokens", H5P_DEFAULT) >= 0);
}
static void spoil_sites(hid_t file) {
    replace(file, "/sites/width", H5T_STD_I32LE, 1, 1u << 30, 1);
}
static void spoil_names(hid_t file) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, SR_NAME_SIZE);
    replace(file, "/sites/name", type, 1, (hsize_t)1 << 40, 1);
    H5Tclose(type);
}
static void spoil_format(hid_t file) {
    assert_true(H5Adelete(file, "format") >= 0);
}
static void spoil_version(hid_t file) {
    int64_t version = 2;
    hid_t a = H5Aopen(file, "format_version", H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &version) >= 0);
    H5Aclose(a);
}
static void spoil_text(hid_t file) {
    assert_true(H5Adelete(file, "model") >= 0);
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    hid_t a = H5Acreate2(file, "model", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const char *text = "variable";
    assert_true(H5Awrite(a, type, &text) >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
}
static void spoil_group(hid_t file) {
    assert_true(H5Ldelete(file, "/state", H5P_DEFAULT) >= 0);
}
static void spoil_link(hid_t file) {
    assert_true(H5Ldelete(file, "/steps/lr", H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/nowhere", file, "/steps/lr", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void spoil_dataset_for_group(hid_t file) {
    assert_true(H5Ldelete(file, "/sites", H5P_DEFAULT) >= 0);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t set =
        H5Dcreate2(file, "/sites", H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(set), H5Sclose(space);
}

static void test_foreign(void **state) {
    (void)state;
    const char *path = sample_path("foreign.h5");
    sr_failure why = {0};
    store(path, "not HDF5 at all", 15);
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, "signature");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    why = (sr_failure){0};
    assert_null(sr_run_open(path, &why));
    check_failure(&why, SR_FORMAT, "not a run file");
    expect_rest("/steps/step", spoil_type);
    expect_rest("/steps/loss", spoil_rank);
    expect_rest("/vectors/mu", spoil_rank3);
    expect_rest("/vectors/mu", spoil_columns);
    expect_rest("/state/status", spoil_status);
    expect_rest("committed_steps: -4", spoil_committed);
    expect_rest("no dataset /steps/tokens", spoil_missing);
    expect_rest("attribute model", spoil_text);
    expect_rest("/steps/lr", spoil_link);
    expect_refused("/sites/width", spoil_sites);
    expect_refused("/sites/name", spoil_names);
    expect_refused("not a run file", spoil_format);
    expect_refused("format_version 2", spoil_version);
    expect_refused("/sites/name", spoil_dataset_for_group);
}

/* What is left out is NaN or -1, what stands beside it as it was. */
static void test_recovered_values(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count;
    double loss[40], lr[40], was[40];
    int64_t tokens[40];
    const char *path = sample_path("values.h5");
    hid_t file = reopen(path);
    spoil_rank(file), spoil_missing(file);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_recover(path, sample_path("rest.h5"), true, -1, &count, &why), &why);
    sr_runfile *f = sr_run_open(sample_path("rest.h5"), &why),
               *whole = sr_run_open(sample_path("whole.h5"), &why);
    if (!f || !whole) fail_msg("%s", why.text);
    check_ok(sr_run_step_reals(f, "loss", 0, 40, loss, &why), &why);
    check_ok(sr_run_step_reals(f, "lr", 0, 40, lr, &why), &why);
    check_ok(sr_run_step_reals(whole, "lr", 0, 40, was, &why), &why);
    check_ok(sr_run_step_ints(f, "tokens", 0, 40, tokens, &why), &why);
    for (int i = 0; i < 40; i++) assert_true(isnan(loss[i]) && tokens[i] == -1);
    assert_memory_equal(lr, was, sizeof lr);
    sr_run_close(f), sr_run_close(whole);
}

/* Without /state the rows are counted by what is there. */
static void test_without_state(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count;
    const char *path = sample_path("stateless.h5");
    hid_t file = reopen(path);
    spoil_group(file);
    assert_true(H5Fclose(file) >= 0);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    const sr_run_info *info = sr_run_get_info(f);
    assert_string_equal(info->status, "damaged");
    assert_true(info->steps == 40 && info->vectors == 40 && info->evals == 4);
    assert_true(isnan(info->wall_seconds));
    sample_check(f, 1, 1);
    sr_run_close(f);
    check_ok(sr_run_recover(path, sample_path("rest.h5"), true, -1, &count, &why), &why);
    assert_true(count.steps == 40 && count.lost_steps == 0 && count.lost_vectors == 0);
    f = sr_run_open(sample_path("rest.h5"), &why);
    if (!f) fail_msg("%s", why.text);
    sample_check(f, 1, 1);
    sr_run_close(f);
}

/* Counts that promise more rows than there are bytes are cut down to what is stored. */
static void test_huge_extent(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("huge.h5");
    hid_t file = reopen(path);
    const char *columns[] = {"step", "update", "tokens",    "epoch",
                             "loss", "lr",     "grad_norm", "seconds"};
    for (int i = 0; i < 8; i++) {
        char name[32];
        hsize_t rows = (hsize_t)1 << 50;
        snprintf(name, sizeof name, "/steps/%s", columns[i]);
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
        assert_true(H5Dset_extent(set, &rows) >= 0);
        H5Dclose(set);
    }
    write_int(file, "/state/committed_steps", (int64_t)1 << 50);
    H5Fclose(file);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sample_check(f, 1, 1);
    sr_run_close(f);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    exercise(path);
}

/* The same where no column of statistics says less. */
static void test_huge_extent_alone(void **state) {
    (void)state;
    static const char *const columns[] = {"step", "update", "tokens",    "epoch",
                                          "loss", "lr",     "grad_norm", "seconds"};
    sr_failure why = {0};
    const char *path = sample_path("alone.h5");
    sr_options o = SR_OPTIONS_DEFAULT;
    o.force = true, o.planned_steps = 40, o.scalars = o.vectors = false;
    sr_recorder *r = sample_create(path, &o, &why);
    assert_non_null(r);
    check_ok(sample_steps(r, 1, 40, 10), sr_failed(r));
    check_ok(sr_close(r, &complete, &why), &why);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; i < 8; i++) {
        char name[32];
        hsize_t rows = (hsize_t)1 << 50;
        snprintf(name, sizeof name, "/steps/%s", columns[i]);
        hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
        assert_true(H5Dset_extent(set, &rows) >= 0);
        H5Dclose(set);
    }
    write_int(file, "/state/committed_steps", (int64_t)1 << 50);
    H5Fclose(file);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    sr_run_close(f);
}

/* Faults that leave a file readable are found by the check. */
static void expect_found(const char *part, void (*spoil)(hid_t file)) {
    const char *path = sample_path("found.h5");
    sr_failure why = {0};
    hid_t file = reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, part);
    exercise(path);
}

static void write_element(hid_t file, const char *name, hsize_t at, int64_t value) {
    hsize_t one = 1;
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(set);
    hid_t memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT64, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}

static void spoil_order(hid_t file) {
    write_element(file, "/steps/step", 20, 3);
}
static void spoil_vector_step(hid_t file) {
    write_element(file, "/vectors/step", 39, 9999);
}
static void spoil_eval_step(hid_t file) {
    write_element(file, "/evals/step", 3, 1);
}
static void spoil_column_site(hid_t file) {
    write_element(file, "/sites/column_site", 7, 0);
}
static void spoil_count(hid_t file) {
    write_int(file, "/state/committed_steps", 39);
}
static void spoil_count_up(hid_t file) {
    write_int(file, "/state/committed_vectors", 41);
}
static void spoil_scalar(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/g_mu", H5P_DEFAULT) >= 0);
}

static void spoil_first_scalar(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/rows", H5P_DEFAULT) >= 0);
}
static void spoil_one_exact(hid_t file) {
    assert_true(H5Ldelete(file, "/scalars/row_exact_mean", H5P_DEFAULT) >= 0);
}

/* The first files of version 1 lack what was added to /scalars later. */
static void test_older(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_recovery count;
    const char *path = sample_path("older.h5");
    hid_t file = reopen(path);
    assert_true(H5Ldelete(file, "/scalars/row_free_var", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_check(path, &why), &why); /* from between the two additions */
    file = reopen(path);
    assert_true(H5Ldelete(file, "/scalars/row_free_var", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "/scalars/row_exact_mean", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(file, "/scalars/row_exact_var", H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    check_ok(sr_run_check(path, &why), &why);
    sr_runfile *f = sr_run_open(path, &why);
    assert_non_null(f);
    assert_int_equal(sr_run_get_info(f)->steps, 40);
    assert_false(sr_run_has_scalar(f, "row_exact_var"));
    assert_true(sr_run_has_scalar(f, "row_grad_var"));
    sr_run_close(f);
    check_ok(sr_run_recover(path, sample_path("again.h5"), true, -1, &count, &why), &why);
    assert_int_equal(count.steps, 40);
    expect_found("/scalars/row_exact_mean: missing", spoil_one_exact);
}

/* Another program's texts: the same attribute as ASCII, and shorter. */
static void test_ascii_attribute(void **state) {
    (void)state;
    sr_failure why = {0};
    const char *path = sample_path("ascii.h5");
    hid_t file = reopen(path), type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    assert_true(H5Tset_size(type, 8) >= 0);
    assert_true(H5Adelete(file, "model") >= 0);
    hid_t a = H5Acreate2(file, "model", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, "resnet\0") >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type), H5Fclose(file);
    sr_runfile *f = sr_run_open(path, &why);
    if (!f) fail_msg("%s", why.text);
    assert_string_equal(sr_run_get_info(f)->model, "resnet");
    sr_run_close(f);
    check_ok(sr_run_check(path, &why), &why);
}

static void test_check_finds(void **state) {
    (void)state;
    expect_found("not increasing", spoil_order);
    expect_found("not increasing, or not among", spoil_vector_step);
    expect_found("decreasing", spoil_eval_step);
    expect_found("column_site", spoil_column_site);
    expect_found("not counted", spoil_count);
    expect_found("rows are missing", spoil_count_up);
    expect_found("/scalars/g_mu", spoil_scalar);
    expect_found("/scalars/rows: missing", spoil_first_scalar);
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_bytes),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_truncated_unfinished),
        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_without_state),
        cmocka_unit_test(test_recovered_values),
        cmocka_unit_test(test_huge_extent),
        cmocka_unit_test(test_huge_extent_alone),
        cmocka_unit_test(test_check_finds),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_ascii_attribute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
