/* file_page.c -- prints the contents of a run file as lines for file_page.awk, which makes
 * statrec-file(5).
 *
 * Records a small run with libstatrec and walks through the file: types, units and definitions come
 * from the file itself. Every extent is a different number, so that each has one letter. Names of
 * statrec/format.h come first, in its order. usage: file_page NEW.h5
 *
 *   attribute  OBJECT  NAME  TYPE  VALUE
 *   group      PATH
 *   dataset    PATH  TYPE  SHAPE  UNIT  DEFINITION
 *   link       PATH  DATASET
 *   family     NAME  DEFINITION
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statrec/record.h"

enum { STEPS = 19, EVERY = 2, EVALS = 4, RECORDS = 5, ROWS = 31, COLUMNS = 29, TEXT = 1024 };
enum { PASSES = 6, FLUSHES = 2, PAIRS = 13 };
static const int widths[] = {5, 7, 11};
static const struct {
    hsize_t extent;
    const char *letter;
} extents[] = {
    {3, "S"},     {5 + 7 + 11, "W"}, {STEPS, "T"},  {STEPS / EVERY, "V"},         {FLUSHES, "R"},
    {EVALS, "E"}, {RECORDS, "M"},    {PASSES, "P"}, {COLUMNS, "min(rows, cols)"}, {PAIRS, "K"}};

#define SITE(name, ...)   "/sites/" #name,
#define STEP(name, ...)   "/steps/" #name,
#define SCALAR(name, ...) "/scalars/" #name,
#define VECTOR(name, ...) "/vectors/" #name,
static const char *const groups[] = {"/sites",   "/steps",   "/scalars",    "/vectors",
                                     "/evals",   "/spectra", "/embeddings", "/final",
                                     "/running", "/host",    "/state"};
enum { GROUPS = sizeof groups / sizeof *groups };
static const char *const in_order[] = {
    SR_SITE_TEXTS(SITE) SR_METHOD_TEXTS(SITE) "/sites/family",
    SR_SITE_INTS(SITE) SR_SITE_REALS(SITE) SR_STEP_INTS(STEP) SR_STEP_REALS(STEP)
        SR_SCALARS(SCALAR) "/vectors/step",
    SR_VECTORS(VECTOR) "/state/status",
};
enum { IN_ORDER = sizeof in_order / sizeof *in_order };

static int fail(const char *what) {
    fprintf(stderr, "file_page: %s\n", what);
    return EXIT_FAILURE;
}

/* -- a run ----------------------------------------------------------------------------------- */

static void record_steps(sr_recorder *r, const int *site, const int *own) {
    double value[64] = {0};
    const sr_forward x = {.size = sizeof(sr_forward),
                          .rows = 4,
                          .mean = value,
                          .variance = value,
                          .mean_square = value};
    const double *const spectrum[SR_SPECTRUM_COUNT] = {value, value};
    for (int64_t step = 1; step <= STEPS; step++) {
        const sr_step row = {
            .size = sizeof(sr_step), .update = step, .tokens = 1, .epoch = 1, .loss = 1, .lr = 1};
        sr_begin_step(r, step);
        for (int i = 0; i < 3; i++) {
            sr_put_rows(r, site[i], 4);
            sr_put_vector(r, site[i], SR_mu_B, value);
        }
        sr_put_scalar(r, site[0], own[0], 1);
        sr_put_step_scalar(r, own[1], 1);
        sr_put_forward(r, site[0], &x);
        if (step <= PASSES) sr_put_spectrum(r, site[0], 4, spectrum);
        sr_end_step(r, &row);
        if (step < FLUSHES) sr_flush(r); /* closing is the last one */
        if (step <= RECORDS) sr_put_singular_values(r, "NAME", step, value);
        if (step > EVALS) continue;
        sr_begin_eval(r, step, 1);
        sr_put_metric(r, "NAME", 1);
        sr_end_eval(r);
    }
}

static sr_status record(const char *path, sr_failure *why) {
    sr_options options = SR_OPTIONS_DEFAULT;
    const sr_finish finish = {.size = sizeof(sr_finish), .status = "complete"};
    int site[3];
    char name[16];
    options.spectra = options.final = true, options.pairs = PAIRS;
    options.ranks = "all of 2";
    options.vectors_every = EVERY, options.planned_steps = STEPS;
    sr_recorder *r = sr_create(path, &options, why);
    if (!r) return why->status;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "site%d", i);
        const sr_site s = {.size = sizeof(sr_site),
                           .name = name,
                           .norm = "bn",
                           .kind = "linear",
                           .width = widths[i],
                           .family = SR_FAMILY_SIGMA,
                           .depth = i,
                           .eps = 1e-5,
                           .alpha = 0.9};
        site[i] = sr_add_site(r, &s);
    }
    sr_add_embedding(r, "NAME", ROWS, COLUMNS);
    sr_add_metric(r, "NAME", "1", "each metric that the host declares, in its unit; NaN: not put",
                  SR_BETTER_LESS);
    const int own[] = {
        sr_declare_scalar(r, "NAME", "1", "each number of the host's own per site; NaN: not put",
                          SR_PER_SITE),
        sr_declare_scalar(r, "NAME of a step", "1",
                          "each number of the host's own per step; NaN: not put", SR_PER_STEP)};
    record_steps(r, site, own);
    return sr_close(r, &finish, why);
}

/* -- the file -------------------------------------------------------------------------------- */

static void type_name(hid_t type, char *text) {
    const unsigned bits = 8 * (unsigned)H5Tget_size(type);
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        snprintf(text, TEXT, "%sint%u", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
        break;
    case H5T_FLOAT:
        snprintf(text, TEXT, "float%u", bits);
        break;
    case H5T_STRING:
        snprintf(text, TEXT, "text of %u bytes", bits / 8);
        break;
    default:
        snprintf(text, TEXT, "other");
    }
}

/* Extent 0 is a scalar. A number without a letter, or with two, is printed so that file_page.awk
 * rejects it. */
static void shape_name(hid_t space, char *text) {
    hsize_t dims[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < rank; i++) {
        const char *letter = NULL;
        for (size_t k = 0; k < sizeof extents / sizeof *extents; k++)
            if (extents[k].extent == dims[i]) letter = letter ? "two?" : extents[k].letter;
        used += (size_t)snprintf(text + used, TEXT - used, "%s", i ? ", " : "[");
        if (letter)
            used += (size_t)snprintf(text + used, TEXT - used, "%s", letter);
        else
            used +=
                (size_t)snprintf(text + used, TEXT - used, "%llu?", (unsigned long long)dims[i]);
    }
    if (rank > 0) snprintf(text + used, TEXT - used, "]");
}

/* The text of an attribute; "" if it is missing or no text. */
static void attribute_text(hid_t object, const char *name, char *text) {
    text[0] = 0;
    if (H5Aexists(object, name) <= 0) return;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    if (H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type) && H5Tget_size(type) < TEXT &&
        H5Aread(attribute, type, text) >= 0)
        text[H5Tget_size(type)] = 0;
    H5Tclose(type);
    H5Aclose(attribute);
}

static herr_t print_attribute(hid_t object, const char *name, const H5A_info_t *info, void *path) {
    char type_text[TEXT], value[TEXT];
    (void)info;
    const hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    type_name(type, type_text);
    if (H5Tget_class(type) == H5T_STRING) snprintf(type_text, TEXT, "text");
    attribute_text(object, name, value);
    const bool of_scale = strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0;
    if (strcmp(type_text, "other") != 0 && !of_scale)
        printf("attribute\t%s\t%s\t%s\t%s\n", (const char *)path, name, type_text, value);
    H5Tclose(type);
    H5Aclose(attribute);
    return 0;
}

static void print_attributes(hid_t object, const char *path) {
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, print_attribute, (void *)(size_t)path);
}

static void print_dataset(hid_t set, const char *path) {
    char type_text[TEXT], shape[TEXT], unit[TEXT], definition[TEXT];
    const hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    type_name(type, type_text);
    shape_name(space, shape);
    attribute_text(set, "unit", unit);
    attribute_text(set, "definition", definition);
    printf("dataset\t%s\t%s\t%s\t%s\t%s\n", path, type_text, shape, unit, definition);
    print_attributes(set, path);
    H5Sclose(space);
    H5Tclose(type);
}

/* True when both are names of one object. */
static bool same_object(hid_t file, const char *a, const char *b) {
    H5O_info_t of_a, of_b;
    return H5Oget_info_by_name1(file, a, &of_a, H5P_DEFAULT) >= 0 &&
           H5Oget_info_by_name1(file, b, &of_b, H5P_DEFAULT) >= 0 && of_a.addr == of_b.addr;
}

static bool is_among(const char *path, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(path, names[i]) == 0) return true;
    return false;
}

static void print_group(hid_t file, const char *path) {
    const hid_t group = H5Gopen2(file, path, H5P_DEFAULT);
    printf("group\t%s\n", path);
    print_attributes(group, path);
    H5Gclose(group);
}

/* A second name in the root group. */
static bool is_link(hid_t file, const char *path) {
    static const char *const scales[] = {"/steps/step", "/sites/depth", "/sites/column_site"};
    for (size_t i = 0; !strchr(path + 1, '/') && i < sizeof scales / sizeof *scales; i++)
        if (same_object(file, path, scales[i]))
            return printf("link\t%s\t%s\n", path, scales[i]), true;
    return false;
}

/* Prints an object that is not listed in the order above. */
static herr_t print_path(hid_t file, const char *name, const H5L_info_t *info,
                         void *groups_wanted) {
    char path[TEXT];
    (void)info;
    snprintf(path, sizeof path, "/%s", name);
    if (is_among(path, in_order, IN_ORDER) || is_among(path, groups, GROUPS)) return 0;
    const hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    const bool wanted = *(bool *)groups_wanted, group = H5Iget_type(object) == H5I_GROUP;
    if (group && wanted) print_group(file, path);
    if (!group && !wanted && !is_link(file, path)) print_dataset(object, path);
    H5Oclose(object);
    return 0;
}

static int print_file(hid_t file) {
    bool groups_wanted = true;
    print_attributes(file, "/");
    for (int i = 0; i < GROUPS; i++) print_group(file, groups[i]);
    H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, print_path, &groups_wanted);
    for (int i = 0; i < IN_ORDER; i++) {
        const hid_t set = H5Dopen2(file, in_order[i], H5P_DEFAULT);
        if (set < 0) return fail(in_order[i]);
        print_dataset(set, in_order[i]);
        H5Dclose(set);
    }
    groups_wanted = false;
    H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, print_path, &groups_wanted);
#define FAMILY(NAME, name, definition) printf("family\t%s\t%s\n", #name, definition);
    SR_FAMILIES(FAMILY)
    return ferror(stdout) || fflush(stdout) ? fail("standard output cannot be written") : 0;
}

int main(int argc, char **argv) {
    sr_failure why = {0};
    if (argc != 2) return fprintf(stderr, "usage: file_page NEW.h5\n"), 2;
    if (record(argv[1], &why) != SR_OK) return fail(why.text);
    const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) return fail(argv[1]);
    const int status = print_file(file);
    H5Fclose(file);
    return status;
}
