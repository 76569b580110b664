/* test_guard_input.c -- other untrusted input of programs: checkpoints, weights, data, options.
 * Each program exits with one line, within 64 MiB and four times the file's size. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "testing/bounded.h"
#include "testing/check.h"
#include "testing/programs.h"

#define SMALL                                                                                      \
    "--model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1 "  \
    "--decoder-layers 1 --data synth-pairs --max-tokens 256 --threads 1 --quiet "
#define CHECKPOINT "small-0000004.ckpt"

static int train(void **state) {
    (void)state;
    program_result r = program_run("statrec train " SMALL "--max-steps 4 -o small.h5 "
                                   "--checkpoint-every 4");
    if (r.status != 0) fail_msg("%s", r.err);
    program_free(&r);
    assert_int_equal(access(program_file(CHECKPOINT), R_OK), 0);
    assert_int_equal(mkfifo(program_file("fifo.gp"), 0600), 0);
    return mkfifo(program_file("fifo.ckpt"), 0600);
}

/* A copy of the checkpoint, to be damaged. */
static hid_t copy_checkpoint(const char *name) {
    program_result r = program_run("cp " CHECKPOINT " %s", name);
    assert_int_equal(r.status, 0);
    program_free(&r);
    hid_t file = H5Fopen(program_file(name), H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static void write_text(hid_t file, const char *name, const char *text) {
    hid_t space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(type, strlen(text)) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
    assert_true(H5Adelete(file, name) >= 0);
    hid_t a = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, text) >= 0);
    H5Aclose(a), H5Tclose(type), H5Sclose(space);
}

static void write_number(hid_t file, const char *name, int64_t value) {
    hid_t space = H5Screate(H5S_SCALAR);
    assert_true(H5Adelete(file, name) >= 0);
    hid_t a = H5Acreate2(file, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(a), H5Sclose(space);
}

/* Declares one array of `count` numbers without stored bytes. */
static void claim_array(hid_t file, const char *name, hsize_t count) {
    hid_t space = H5Screate_simple(1, &count, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 1 << 20;
    assert_true(H5Pset_chunk(properties, 1, &chunk) >= 0);
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) H5Ldelete(file, name, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(set >= 0);
    H5Dclose(set), H5Pclose(properties), H5Sclose(space);
}

/* An array with a checksum whose only chunk is shorter than its values. */
static void shorten_array(hid_t file, const char *name) {
    const hsize_t count = 4096, zero = 0;
    const char bytes[16] = "";
    hid_t space = H5Screate_simple(1, &count, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(properties, 1, &count) >= 0 && H5Pset_fletcher32(properties) >= 0);
    H5Ldelete(file, name, H5P_DEFAULT);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 1, &zero, sizeof bytes, bytes) >= 0);
    H5Dclose(set), H5Pclose(properties), H5Sclose(space);
}

/* -- one program and one file ---------------------------------------------------------------- */

static void expect_within(const char *words, const char *file, int64_t memory, const char *part) {
    bounded_result r = bounded_run(words, file);
    if (r.signal) fail_msg("%s (%s): signal %d", words, file, r.signal);
    if (r.status == 0) fail_msg("%s (%s) is taken", words, file);
    if (!strstr(r.text, part)) fail_msg("%s (%s): %s", words, file, r.text);
    if (strstr(r.text, "statrec recover")) fail_msg("%s: %s", words, r.text); /* for run files */
    if (r.memory > memory) fail_msg("%s (%s): %lld bytes", words, file, (long long)r.memory);
    bounded_free(&r);
}

static void expect_refused(const char *words, const char *file, const char *part) {
    expect_within(words, file, bounded_memory(file), part);
}

static const char *const readers[] = {
    "statrec info FILE",
    "statrec check FILE",
    "statrec evaluate FILE",
    "statrec translate FILE",
    "statrec export FILE -o OUT.npz --force",
    "statrec average FILE FILE -o OUT.ckpt --force",
    "statrec train " SMALL "--max-steps 1 --weights FILE -o OUT.h5 --force",
};
enum { READERS = sizeof readers / sizeof *readers };

static void expect_all(const char *file, const char *part) {
    for (int i = 0; i < READERS; i++) expect_refused(readers[i], file, part);
}

static void test_checkpoints(void **state) {
    (void)state;
    hid_t file = copy_checkpoint("huge.ckpt");
    claim_array(file, "/parameters/encoder.0.ffn_block.in.weight", (hsize_t)1 << 32);
    H5Fclose(file);
    expect_refused(readers[0], program_file("huge.ckpt"), "weight: refused: ");
    expect_refused(readers[2], program_file("huge.ckpt"), "weight: refused: ");
    file = copy_checkpoint("short.ckpt");
    shorten_array(file, "/parameters/encoder.0.ffn_block.in.weight");
    H5Fclose(file);
    expect_refused(readers[0], program_file("short.ckpt"), "refused: a chunk is not as long as");
    file = copy_checkpoint("soft.ckpt");
    assert_true(H5Lmove(file, "/parameters", file, "/p", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/p", file, "/parameters", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    expect_refused(readers[0], program_file("soft.ckpt"), "refused: a soft link");
    expect_refused(readers[4], program_file("soft.ckpt"), "refused: a soft link");
    expect_all(program_file("fifo.ckpt"), "not a regular file");
}

/* The checkpoint's numbers give the model its sizes. */
static void test_large_models(void **state) {
    (void)state;
    hid_t file = copy_checkpoint("words.ckpt");
    write_number(file, "vocabulary", (int64_t)1 << 30);
    H5Fclose(file);
    for (int i = 2; i < 5; i++)
        expect_refused(readers[i], program_file("words.ckpt"), "the model has");
    file = copy_checkpoint("long.ckpt");
    write_number(file, "longest", (int64_t)1 << 30);
    H5Fclose(file);
    for (int i = 2; i < 5; i++)
        expect_refused(readers[i], program_file("long.ckpt"), "longest is 1073741824");
    file = copy_checkpoint("wide.ckpt");
    write_text(file, "config",
               "model = transformer\npreset = mini\nembed-dim = 65536\nffn-dim = 65536\nheads = 2\n"
               "encoder-layers = 6\ndecoder-layers = 6\ndata = synth-pairs\nrecord = none\n");
    H5Fclose(file);
    for (int i = 2; i < 5; i++) expect_refused(readers[i], program_file("wide.ckpt"), "wide.ckpt");
}

/* -- data and options ------------------------------------------------------------------------ */

static void make_zeros(const char *path, int mebibytes) {
    static char zeros[1 << 20];
    gzFile gz = gzopen(path, "wb9");
    assert_non_null(gz);
    for (int i = 0; i < mebibytes; i++)
        assert_int_equal(gzwrite(gz, zeros, sizeof zeros), sizeof zeros);
    assert_int_equal(gzclose(gz), Z_OK);
}

#define ROWS "--record none --max-steps 1 --threads 1 "

static void test_data(void **state) {
    (void)state;
    program_result r = program_run("mkdir cifar idx text pipes && mkfifo pipes/train.de pipes/x && "
                                   "echo a >pipes/train.en");
    assert_int_equal(r.status, 0);
    program_free(&r);
    const char *zeros = program_file("cifar/data_batch_1.bin.gz");
    make_zeros(zeros, 600);
    r = program_run("cp %s idx/train-images-idx3-ubyte.gz && cp %s text/all.gz", zeros, zeros);
    program_free(&r);
    const int64_t room = bounded_memory(zeros) + ((int64_t)104 << 20); /* memory limit */
    expect_within("statrec train --model resnet20 --data cifar10 --data-dir cifar " ROWS, zeros,
                  room, "unpacks to over");
    expect_within("statrec train --model mnist_cnn --data idx --data-dir idx " ROWS, zeros, room,
                  "unpacks to over");
    expect_within("statrec bpe vocab text/all.gz", zeros, room, "text/all.gz");
    expect_refused("statrec train --model transformer --preset mini --data parallel --data-dir "
                   "pipes " ROWS,
                   zeros, "pipes/train.de: not a regular file");
    expect_refused("statrec bpe vocab pipes/x", zeros, "not a regular file");
    expect_refused("statrec bpe vocab /dev/zero", zeros, "not a regular file");
}

static void test_options(void **state) {
    (void)state;
    expect_refused("statrec train -c /dev/zero", "", "/dev/zero: not a regular file");
    expect_refused("statrec train -c FILE", program_file("fifo.ckpt"), "not a regular file");
    expect_refused("stat-table --layout x --layouts /dev/zero", "", "not a regular file");
    expect_refused("statplot FILE x.h5 -o x.pdf", program_file("fifo.gp"), "not a regular file");
}

int main(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_large_models),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, train, NULL);
}
