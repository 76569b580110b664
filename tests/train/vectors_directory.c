/* vectors_directory.c -- the checker of each kind of file, and files through them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"

typedef struct file_row {
    const char *name;
    model_checker *check;
} file_row;

static const file_row files[] = {
    {"encoder_layer", check_encoder_layer},
    {"decoder_layer", check_decoder_layer},
    {"transformer_full", check_transformer_full},
    {"positions", check_positions},
    {"conv", check_conv},
    {"resnet", check_resnet},
    {"label_smoothing", check_label_smoothing},
    {"optim", check_optim},
    {"clip", check_clip},
    {"lr", check_lr},
    {"tensorized_attention", check_memory_attention},
    {"adaptive_softmax", check_adaptive_softmax},
    {"beam", check_beam},
    {"bleu", check_bleu},
    {"bpe", check_bpe},
    {"crf", check_crf},
    {"oracle", check_oracle},
    {"span_f1", check_span_f1},
    {"tener_attention", check_tener_attention},
    {"uas", check_uas},
    {"xl_attention", check_memory_attention},
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

/* NULL, reported, if no checker handles the file. */
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
    } else if (version != 1 || cases < 1) {
        fprintf(stderr, "%s: layout_version %d and %d cases, not 1 and some\n", name, version,
                cases);
        sum->failed++;
    } else {
        for (int k = 0; k < cases; k++) run_case(row, file, name, k, sum);
    }
}

void vectors_run_file(const char *path, vector_tally *sum) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const vector_tally before = *sum;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
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
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, list[i]->d_name);
        vectors_run_file(path, sum);
        free(list[i]);
    }
    free(list);
    if (count > 0) return;
    fprintf(stderr, "%s: no .h5 files\n", directory);
    sum->failed++;
}
