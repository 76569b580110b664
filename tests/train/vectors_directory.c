/* vectors_directory.c -- the checker of each kind of file, and a directory of files through them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"

typedef struct file_row {
    const char *name;
    model_checker *check; /* NULL: skipped */
    const char *why;      /* NULL or why it is skipped */
} file_row;

static const char not_built[] = "not built yet", not_read[] = "not read here yet";

static const file_row files[] = {
    {"encoder_layer", check_encoder_layer, NULL},
    {"decoder_layer", check_decoder_layer, NULL},
    {"transformer_full", check_transformer_full, NULL},
    {"positions", check_positions, NULL},
    {"conv", check_conv, NULL},
    {"resnet", check_resnet, NULL},
    {"label_smoothing", check_label_smoothing, NULL},
    {"optim", check_optim, NULL},
    {"clip", check_clip, NULL},
    {"lr", check_lr, NULL},
    {"tensorized_attention", check_tensorized_attention, NULL},
    {"adaptive_softmax", check_adaptive_softmax, NULL},
    {"beam", NULL, not_read},
    {"bleu", NULL, not_read},
    {"bpe", NULL, not_read},
    {"crf", NULL, not_built},
    {"oracle", NULL, not_built},
    {"span_f1", NULL, not_built},
    {"tener_attention", NULL, not_built},
    {"uas", NULL, not_built},
    {"xl_attention", NULL, not_built},
};

/* -- a file */

static bool has_attribute(hid_t file, const char *name) {
    return H5Aexists(file, name) > 0;
}

static int read_int(hid_t file, const char *name) {
    int value = -1;
    hid_t a = has_attribute(file, name) ? H5Aopen(file, name, H5P_DEFAULT) : -1;
    if (a < 0) return -1;
    if (H5Aread(a, H5T_NATIVE_INT, &value) < 0) value = -1;
    H5Aclose(a);
    return value;
}

/* NULL, told, when nothing here knows what the file is about. */
static const file_row *find_row(hid_t file, const char *file_name) {
    char name[64];
    vectors_read_text(file, "name", name, sizeof name);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (!strcmp(files[i].name, name)) return &files[i];
    fprintf(stderr, "%s: no attribute norm, and attribute name '%s' is not known\n", file_name,
            name);
    return NULL;
}

static void run_case(const file_row *row, hid_t file, const char *file_name, int k,
                     vector_tally *sum) {
    model_case c;
    if (case_open(&c, file, file_name, k)) row->check(&c);
    case_close(&c);
    if (c.skipped[0] && !c.broken) {
        if (!sum->quiet) printf("skipped: %s: %s\n", c.where, c.skipped);
        sum->skipped++;
    } else if (!c.broken && c.compared > 0) {
        sum->passed++;
    } else {
        if (!c.broken) fprintf(stderr, "%s: nothing was compared\n", c.where);
        sum->failed++;
    }
}

static void run_cases(hid_t file, const char *name, vector_tally *sum) {
    const file_row *row = find_row(file, name);
    const int cases = read_int(file, "cases"), version = read_int(file, "layout_version");
    if (!row) {
        sum->failed++;
    } else if (!row->check) {
        if (!sum->quiet) printf("skipped: %s: %s is %s\n", name, row->name, row->why);
        sum->skipped += cases > 0 ? cases : 1;
    } else if (version != 1 || cases < 1) {
        fprintf(stderr, "%s: layout_version %d and %d cases, not 1 and some\n", name, version,
                cases);
        sum->failed++;
    } else {
        for (int k = 0; k < cases; k++) run_case(row, file, name, k, sum);
    }
}

static void run_file(const char *directory, const char *name, vector_tally *sum) {
    char path[4096];
    const vector_tally before = *sum;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file < 0) {
        fprintf(stderr, "%s: not a readable HDF5 file\n", path);
        sum->failed++;
    } else if (has_attribute(file, "norm")) {
        sum->left_out++;
    } else {
        run_cases(file, name, sum);
    }
    if (file >= 0) H5Fclose(file);
    if (sum->quiet || sum->left_out != before.left_out) return;
    printf("%-28s %3d passed, %d failed, %d skipped\n", name, sum->passed - before.passed,
           sum->failed - before.failed, sum->skipped - before.skipped);
}

/* -- a directory */

static int is_vector_file(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 3 && !strcmp(e->d_name + n - 3, ".h5");
}

void vectors_run_directory(const char *directory, vector_tally *sum) {
    struct dirent **list = NULL;
    int count = scandir(directory, &list, is_vector_file, alphasort);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (int i = 0; i < count; i++) {
        run_file(directory, list[i]->d_name, sum);
        free(list[i]);
    }
    free(list);
    if (count <= 0) {
        fprintf(stderr, "%s: no .h5 files\n", directory);
        sum->failed++;
    }
    if (sum->quiet) return;
    if (sum->left_out) printf("left out: %d files of normalizations\n", sum->left_out);
    printf("%d passed, %d failed, %d skipped\n", sum->passed, sum->failed, sum->skipped);
}
