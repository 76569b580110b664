/* test_guard.c -- untrusted run files. A link out of the file is rejected by its name, before it is
 * opened. Declared sizes without stored bytes are rejected before allocation. */
#include <errno.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/bounded.h"
#include "testing/check.h"
#include "testing/damage.h"
#include "testing/sample_run.h"

#define SECRET "SECRETSECRETSECRET"

static int write_run(void **state) {
    (void)state;
    damage_make_run(sample_path("whole.h5"), 40);
    char secret[8192];
    for (size_t i = 0; i < sizeof secret; i++) secret[i] = SECRET[i % (sizeof SECRET - 1)];
    damage_store(sample_path("secret"), secret, sizeof secret);
    return mkfifo(sample_path("fifo"), 0600);
}

static hid_t reopen(const char *path) {
    size_t size;
    char *bytes = damage_load(sample_path("whole.h5"), &size);
    damage_store(path, bytes, size);
    free(bytes);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void drop(hid_t file, const char *name) {
    assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

/* Replaces a dataset; closes the properties (H5P_DEFAULT is allowed). */
static void put(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                const hsize_t *most, hid_t properties) {
    hid_t space = rank ? H5Screate_simple(rank, dims, most) : H5Screate(H5S_SCALAR);
    drop(file, name);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Sclose(space);
    if (properties != H5P_DEFAULT) H5Pclose(properties);
}

static hid_t text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, size) >= 0);
    return type;
}

/* -- links out of the file ------------------------------------------------------------------- */

static void store_elsewhere(hid_t file, const char *name, hid_t type, hsize_t rows,
                            const char *where) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_external(properties, where, 0, rows * H5Tget_size(type)) >= 0);
    put(file, name, type, 1, &rows, NULL, properties);
}

static void spoil_names_elsewhere(hid_t file) {
    hid_t type = text_type(SR_NAME_SIZE);
    store_elsewhere(file, "/sites/name", type, SAMPLE_SITES, sample_path("secret"));
    H5Tclose(type);
}
static void spoil_names_fifo(hid_t file) {
    hid_t type = text_type(SR_NAME_SIZE);
    store_elsewhere(file, "/sites/name", type, SAMPLE_SITES, sample_path("fifo"));
    H5Tclose(type);
}
static void spoil_loss_elsewhere(hid_t file) {
    store_elsewhere(file, "/steps/loss", H5T_IEEE_F64LE, 40, sample_path("secret"));
}
static void spoil_soft(hid_t file) {
    drop(file, "/sites/name");
    assert_true(H5Lcreate_soft("/sites/norm", file, "/sites/name", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void spoil_soft_group(hid_t file) {
    assert_true(H5Lmove(file, "/sites", file, "/others", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/others", file, "/sites", H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void spoil_external_link(hid_t file) {
    drop(file, "/sites/name");
    assert_true(H5Lcreate_external(sample_path("whole.h5"), "/sites/name", file, "/sites/name",
                                   H5P_DEFAULT, H5P_DEFAULT) >= 0);
}
static void spoil_external_group(hid_t file) {
    drop(file, "/steps");
    assert_true(H5Lcreate_external(sample_path("fifo"), "/steps", file, "/steps", H5P_DEFAULT,
                                   H5P_DEFAULT) >= 0);
}
static void spoil_virtual(hid_t file) {
    const hsize_t rows = SAMPLE_SITES;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, NULL),
          type = text_type(SR_NAME_SIZE);
    assert_true(H5Pset_virtual(properties, space, sample_path("fifo"), "/sites/name", space) >= 0);
    put(file, "/sites/name", type, 1, &rows, NULL, properties);
    H5Sclose(space), H5Tclose(type);
}
/* A dataset whose extent follows the number of source files, which is unlimited. */
static void spoil_virtual_growing(hid_t file) {
    const hsize_t rows = 1, most = H5S_UNLIMITED, none = 0;
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), to = H5Screate_simple(1, &none, &most),
          from = H5Screate_simple(1, &rows, NULL);
    const hsize_t start = 0, stride = 1, count = H5S_UNLIMITED;
    assert_true(H5Sselect_hyperslab(to, H5S_SELECT_SET, &start, &stride, &count, &rows) >= 0);
    assert_true(H5Pset_virtual(properties, to, sample_path("fifo"), "/steps/loss%b", from) >= 0);
    put(file, "/steps/loss", H5T_IEEE_F64LE, 1, &none, &most, properties);
    H5Sclose(to), H5Sclose(from);
}

/* A user-defined link, which the library of its author would follow. */
static ssize_t ask_link(const char *name, const void *data, size_t size, void *to, size_t room) {
    (void)name, (void)data, (void)size, (void)to, (void)room;
    return 0;
}
static hid_t follow_link(const char *name, hid_t group, const void *data, size_t size, hid_t access,
                         hid_t transfer) {
    (void)data, (void)size, (void)access, (void)transfer;
    fail_msg("the link %s of %lld was followed", name, (long long)group);
    return -1;
}
static const H5L_class_t own_link = {
    H5L_LINK_CLASS_T_VERS, (H5L_type_t)200, "own", NULL, NULL, NULL, follow_link, NULL, ask_link};

static void spoil_own_link(hid_t file) {
    assert_true(H5Lregister(&own_link) >= 0);
    drop(file, "/steps/loss");
    assert_true(
        H5Lcreate_ud(file, "/steps/loss", (H5L_type_t)200, "x", 2, H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* -- objects that no run file has ------------------------------------------------------------ */

static hid_t in_chunks(int rank, const hsize_t *chunk) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(properties, rank, chunk) >= 0);
    return properties;
}

static void spoil_deflated(hid_t file) {
    const hsize_t rows = SAMPLE_SITES;
    hid_t properties = in_chunks(1, &rows), type = text_type(SR_NAME_SIZE);
    assert_true(H5Pset_deflate(properties, 9) >= 0);
    put(file, "/sites/name", type, 1, &rows, NULL, properties);
    H5Tclose(type);
}
static void spoil_plugin(hid_t file) {
    const hsize_t rows = 40;
    hid_t properties = in_chunks(1, &rows);
    assert_true(H5Pset_filter(properties, 32015, H5Z_FLAG_OPTIONAL, 0, NULL) >= 0);
    put(file, "/steps/loss", H5T_IEEE_F64LE, 1, &rows, NULL, properties);
}
static void spoil_committed(hid_t file) {
    const hsize_t rows = 40, most = H5S_UNLIMITED;
    hid_t type = H5Tcopy(H5T_IEEE_F64LE);
    assert_true(H5Tcommit2(file, "/t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put(file, "/steps/loss", type, 1, &rows, &most, in_chunks(1, &rows));
    H5Tclose(type);
}
static void spoil_order_of_bytes(hid_t file) {
    const hsize_t rows = 40, most = H5S_UNLIMITED;
    put(file, "/steps/loss", H5T_IEEE_F64BE, 1, &rows, &most, in_chunks(1, &rows));
}
static void spoil_variable(hid_t file) {
    const hsize_t rows = SAMPLE_SITES;
    hid_t type = text_type(H5T_VARIABLE);
    put(file, "/sites/name", type, 1, &rows, NULL, H5P_DEFAULT);
    H5Tclose(type);
}
static void spoil_references(hid_t file) {
    const hsize_t rows = 40;
    put(file, "/steps/loss", H5T_STD_REF_OBJ, 1, &rows, NULL, H5P_DEFAULT);
}
static void spoil_attribute(hid_t file) {
    hid_t type = text_type(H5T_VARIABLE), space = H5Screate(H5S_SCALAR);
    const char *text = "variable";
    assert_true(H5Adelete(file, "config") >= 0);
    hid_t a = H5Acreate2(file, "config", type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, &text) >= 0);
    H5Aclose(a), H5Sclose(space), H5Tclose(type);
}
static void spoil_group_filters(hid_t file) {
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    assert_true(H5Pset_deflate(properties, 9) >= 0);
    drop(file, "/steps");
    hid_t group = H5Gcreate2(file, "/steps", H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(group >= 0);
    H5Gclose(group), H5Pclose(properties);
}

/* -- sizes without bytes --------------------------------------------------------------------- */

enum { WIDE = 100000000 };

static void write_width(hid_t file, int32_t width) {
    const int32_t all[SAMPLE_SITES] = {5, 3, 7, width};
    hid_t set = H5Dopen2(file, "/sites/width", H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    H5Dclose(set);
}

/* Increases the width and the number of columns of every dataset of columns; the chunks are
 * unwritten. */
static void widen(hid_t file) {
    const char *const wide[] = {"/vectors/mu_B", "/vectors/mu", "/vectors/gamma"};
    const hsize_t chunk[2] = {64, 1 << 14}, dims[2] = {40, 15 + WIDE},
                  most[2] = {H5S_UNLIMITED, 15 + WIDE};
    write_width(file, WIDE);
    for (int i = 0; i < 3; i++)
        put(file, wide[i], H5T_IEEE_F32LE, 2, dims, most, in_chunks(2, chunk));
}
static void spoil_width(hid_t file) {
    const hsize_t columns = 15 + WIDE, most = H5S_UNLIMITED, chunk = 1 << 16;
    widen(file);
    put(file, "/sites/column_site", H5T_STD_I32LE, 1, &columns, &most, in_chunks(1, &chunk));
}
static void spoil_width_unwritten(hid_t file) {
    const hsize_t columns = 15 + WIDE;
    widen(file);
    put(file, "/sites/column_site", H5T_STD_I32LE, 1, &columns, NULL, H5P_DEFAULT);
}
/* Without the dataset of columns, their number is the sum of the widths. */
static void spoil_width_alone(hid_t file) {
    widen(file);
    drop(file, "/sites/column_site");
}
static void spoil_sites(hid_t file) {
    const hsize_t sites = 1 << 20, most = H5S_UNLIMITED, chunk = 1 << 10;
    hid_t type = text_type(SR_NAME_SIZE);
    put(file, "/sites/name", type, 1, &sites, &most, in_chunks(1, &chunk));
    H5Tclose(type);
}
static void spoil_chunk(hid_t file) {
    const hsize_t rows = 40, most = H5S_UNLIMITED, chunk = 1 << 28;
    put(file, "/steps/loss", H5T_IEEE_F64LE, 1, &rows, &most, in_chunks(1, &chunk));
}
/* One value at a distant index: the chunk index extends to it. */
static void spoil_far(hid_t file) {
    const hsize_t rows = (hsize_t)1 << 50, most = H5S_UNLIMITED, chunk = 16, one = 1;
    const hsize_t at = rows - 1;
    put(file, "/steps/loss", H5T_IEEE_F64LE, 1, &rows, &most, in_chunks(1, &chunk));
    hid_t set = H5Dopen2(file, "/steps/loss", H5P_DEFAULT), space = H5Dget_space(set);
    hid_t memory = H5Screate_simple(1, &one, NULL);
    const double value = 1;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &one, NULL);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0);
    H5Sclose(memory), H5Sclose(space), H5Dclose(set);
}
/* HDF5 1.10 cannot always overwrite one of many. */
static void write_attribute(hid_t file, const char *object, const char *name, int64_t value) {
    hid_t space = H5Screate(H5S_SCALAR);
    assert_true(H5Adelete_by_name(file, object, name, H5P_DEFAULT) >= 0);
    hid_t a = H5Acreate_by_name(file, object, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT,
                                H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(a), H5Sclose(space);
}
static void spoil_embedding_chunk(hid_t file, hsize_t columns, hsize_t width) {
    const hsize_t dims[2] = {4, columns}, most[2] = {H5S_UNLIMITED, columns}, chunk[2] = {1, width};
    write_attribute(file, "/embeddings/shared", "rows", (int64_t)columns);
    write_attribute(file, "/embeddings/shared", "cols", (int64_t)columns);
    put(file, "/embeddings/shared/singular_values", H5T_IEEE_F64LE, 2, dims, most,
        in_chunks(2, chunk));
}
static void spoil_embedding(hid_t file) {
    spoil_embedding_chunk(file, (hsize_t)1 << 30, 1 << 15);
}
static void spoil_embedding_little(hid_t file) {
    spoil_embedding_chunk(file, (hsize_t)1 << 14, 1 << 13);
}

/* -- rejected files -------------------------------------------------------------------------- */

typedef struct hostile {
    const char *name;
    void (*spoil)(hid_t file);
    const char *part; /* part of the message, which names the object */
    bool opens;       /* only this object is rejected; the rest can be read */
} hostile;

static const hostile files[] = {
    {"elsewhere", spoil_names_elsewhere, "/sites/name: refused: its values are in another", false},
    {"fifo", spoil_names_fifo, "/sites/name: refused: its values are in another file", false},
    {"loss", spoil_loss_elsewhere, "/steps/loss: refused: its values are in another file", true},
    {"soft", spoil_soft, "/sites/name: refused: a soft link", false},
    {"soft_group", spoil_soft_group, "/sites/name: refused: a soft link", false},
    {"external_link", spoil_external_link, "/sites/name: refused: a link into another", false},
    {"external_group", spoil_external_group, "/steps/step: refused: a link into another", true},
    {"virtual", spoil_virtual, "/sites/name: refused: a virtual dataset", false},
    {"virtual_growing", spoil_virtual_growing, "/steps/loss: refused: a virtual dataset", true},
    {"own_link", spoil_own_link, "/steps/loss: refused: a link of a kind", true},
    {"deflated", spoil_deflated, "/sites/name: refused: under a filter", false},
    {"plugin", spoil_plugin, "/steps/loss: refused: under a filter", true},
    {"committed", spoil_committed, "/steps/loss: refused: of a committed type", true},
    {"order_of_bytes", spoil_order_of_bytes, "/steps/loss: refused: of a type that no", true},
    {"variable", spoil_variable, "/sites/name: refused: a text of variable length", false},
    {"references", spoil_references, "/steps/loss: refused: of a type that no run file", true},
    {"attribute", spoil_attribute, "/ attribute config: refused: a text of variable", true},
    {"group_filters", spoil_group_filters, "/steps/step: refused: a group under filters", true},
    {"width", spoil_width, "/sites: 100000015 columns in a file of", false},
    {"unwritten", spoil_width_unwritten, "/sites: 100000015 columns in a file of", false},
    {"width_alone", spoil_width_alone, "/sites: 100000015 columns in a file of", false},
    {"sites", spoil_sites, "/sites/name: refused: larger than its stored bytes", false},
    {"chunk", spoil_chunk, "/steps/loss: refused: in chunks larger than the file", true},
    {"far", spoil_far, "/steps/loss: refused: of more rows than the file has bytes", true},
};
enum { FILES = sizeof files / sizeof *files };

static const char *make(const char *name, void (*spoil)(hid_t file)) {
    static char base[64];
    snprintf(base, sizeof base, "hostile_%s.h5", name);
    const char *path = sample_path(base);
    if (access(path, F_OK) == 0) return path;
    hid_t file = reopen(path);
    spoil(file);
    assert_true(H5Fclose(file) >= 0);
    return path;
}

static void expect_refused(const hostile *h) {
    const char *path = make(h->name, h->spoil);
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(path, &why);
    if (!f && h->opens) fail_msg("%s: %s", h->name, why.text);
    if (f && !h->opens) fail_msg("%s opens", h->name);
    const char *text = f ? sr_run_damage(f, 0) : why.text;
    if (!text || !strstr(text, h->part)) fail_msg("%s: %s", h->name, text ? text : "nothing told");
    sr_run_close(f);
    why = (sr_failure){0};
    assert_int_equal(sr_run_check(path, &why), SR_FORMAT);
    damage_exercise(path);
}

static void test_refused(void **state) {
    (void)state;
    for (int i = 0; i < FILES; i++) expect_refused(&files[i]);
}

/* An embedding is checked when it is read. */
static void test_embeddings(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_run_embedding e = SR_INIT(sr_run_embedding, .rows = 0);
    sr_runfile *f = sample_open(make("embedding", spoil_embedding));
    assert_int_equal(sr_run_get_embedding(f, "shared", &e, &why), SR_FORMAT);
    check_failure(&why, SR_FORMAT, "1073741824 values in a file of");
    sr_run_close(f);
    f = sample_open(make("embedding_little", spoil_embedding_little));
    why = (sr_failure){0};
    check_ok(sr_run_get_embedding(f, "shared", &e, &why), &why);
    assert_int_equal(e.records, 0);
    sr_run_close(f);
}

/* -- programs -------------------------------------------------------------------------------- */

/* FILE is read; %s is a file name that the program may write. */
static const char *const programs[] = {
    "statrec info FILE",
    "statrec info --format json FILE",
    "statrec check FILE",
    "statrec recover FILE -o OUT.h5 --force",
    "statrec export FILE -o OUT.npz --force",
    "statrec diagnose FILE",
    "statrec resume FILE",
    "stat-alpha FILE",
    "stat-batch FILE",
    "stat-batchmix FILE",
    "stat-compare FILE FILE",
    "stat-condition FILE",
    "stat-curve FILE",
    "stat-distance FILE",
    "stat-gamma FILE",
    "stat-gap FILE",
    "stat-gradnorm FILE",
    "stat-lngrad FILE",
    "stat-outlier FILE",
    "stat-scalar FILE --stat g_mu",
    "stat-svd FILE",
    "stat-table FILE",
    "stat-tid FILE",
    "statplot curves FILE -o OUT.pdf",
    "statplot layers FILE -o OUT.pdf",
    "statplot compare FILE FILE -o OUT.pdf",
    "statplot fair FILE -o OUT.pdf",
    "statplot report FILE -o OUT.dir",
    "statplot report FILE FILE -o OUT.dir",
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* Each program exits with a message, within the memory limit of its file, and prints no secret. */
static void walk_programs(const hostile *h) {
    const char *path = make(h->name, h->spoil);
    for (int i = 0; i < PROGRAMS; i++) {
        bounded_result r = bounded_run(programs[i], path);
        if (r.signal) fail_msg("%s of %s: signal %d", programs[i], h->name, r.signal);
        if (!h->opens && r.status == 0) fail_msg("%s takes %s", programs[i], h->name);
        if (r.status && !*r.text) fail_msg("%s of %s: no message", programs[i], h->name);
        if (strstr(r.text, "SECRET")) fail_msg("%s of %s: %s", programs[i], h->name, r.text);
        if (r.memory > bounded_memory(path))
            fail_msg("%s of %s: %lld bytes", programs[i], h->name, (long long)r.memory);
        bounded_free(&r);
    }
}

static void test_programs(void **state) {
    (void)state;
    static const char *const worst[] = {"elsewhere",       "fifo",  "loss",       "soft", "virtual",
                                        "virtual_growing", "width", "width_alone"};
    for (size_t k = 0; k < sizeof worst / sizeof *worst; k++)
        for (int i = 0; i < FILES; i++)
            if (strcmp(files[i].name, worst[k]) == 0) walk_programs(&files[i]);
    walk_programs(&(hostile){"embedding", spoil_embedding, "", true});
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_embeddings),
        cmocka_unit_test(test_programs),
    };
    return cmocka_run_group_tests(tests, write_run, NULL);
}
