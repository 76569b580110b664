/* fuzz_hdf5.c -- see fuzz_hdf5.h. Every block that starts with a signature ends with a checksum of
 * its bytes (h5_checksum.c). */
#include "fuzz_hdf5.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "hdf5/v1_10/h5_checks.h"
#include "statrec/record.h"
#include "statrec/runfile.h"
#include "train/train.h"

enum { BLOCKS = 4096, LONGEST = 2048, CHANGE = 4, WHOLE_MOST = 1 << 20 };

typedef struct block {
    size_t at, size; /* the checksum follows */
} block;

struct fuzz_image {
    uint8_t *byte;
    size_t size, inner; /* inner: bytes of all blocks */
    block block[BLOCKS];
    int blocks;
};

/* As the programs do: HDF5 1.10 cannot close every damaged file, and crashes when it tries again at
   the end. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    sr_disable_hdf5_atexit();
    return 0;
}

/* -- checksums */

static uint32_t stored(const uint8_t *byte) {
    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
           (uint32_t)byte[3] << 24;
}

/* -- blocks */

/* Signatures of blocks that end in a checksum. */
static bool is_signature(const uint8_t *b) {
    static const char names[] = "\x89HDFOHDROCHKFRHPFHDBFHIBFSHDFSSEBTHDBTINBTLFSMTBSMLIFAHDFADB"
                                "FAHDEAHDEAIBEASBEADB";
    for (const char *n = names; *n; n += 4)
        if (memcmp(b, n, 4) == 0) return true;
    return false;
}

/* Only the parent stores a block's size; here it is the first size with a matching checksum. */
static size_t block_size(const fuzz_image *m, size_t at) {
    for (size_t size = 8; size < LONGEST && at + size + 4 <= m->size; size++)
        if (h5_checksum(m->byte + at, size) == stored(m->byte + at + size)) return size;
    return 0;
}

static void find_blocks(fuzz_image *m) {
    for (size_t at = 0; at + 12 <= m->size && m->blocks < BLOCKS; at++) {
        const size_t size = is_signature(m->byte + at) ? block_size(m, at) : 0;
        if (size == 0) continue;
        m->block[m->blocks++] = (block){at, size};
        m->inner += size;
        at += size + 3;
    }
    fuzz_expect(m->blocks > 2, "no blocks in an HDF5 file");
}

fuzz_image *fuzz_image_load(const char *path) {
    fuzz_image *m = calloc(1, sizeof *m);
    FILE *f = fopen(path, "rb");
    fuzz_expect(m && f && fseek(f, 0, SEEK_END) == 0, path);
    m->size = (size_t)ftell(f);
    m->byte = malloc(m->size);
    rewind(f);
    fuzz_expect(m->byte && fread(m->byte, 1, m->size, f) == m->size, path);
    fclose(f);
    find_blocks(m);
    return m;
}

/* -- changes */

static size_t place_of(const fuzz_image *m, const uint8_t *change) {
    size_t at = ((size_t)(change[0] & 127) << 16 | (size_t)change[1] << 8 | change[2]);
    if (!(change[0] & 128)) return at % m->size;
    at %= m->inner;
    for (int i = 0;; at -= m->block[i++].size)
        if (at < m->block[i].size) return m->block[i].at + at;
}

static void repair(const fuzz_image *m, uint8_t *byte) {
    for (int i = 0; i < m->blocks; i++) {
        const block *b = &m->block[i];
        const uint32_t sum = h5_checksum(byte + b->at, b->size);
        for (int k = 0; k < 4; k++) byte[b->at + b->size + (size_t)k] = (uint8_t)(sum >> 8 * k);
    }
}

/* STATREC_FUZZ_KEEP=PATH: writes the file of an input there as a self-contained input. */
static void keep_whole(const uint8_t *byte, size_t size) {
    static uint8_t packed[1 + WHOLE_MOST];
    const char *path = getenv("STATREC_FUZZ_KEEP");
    if (!path) return;
    uLongf length = WHOLE_MOST;
    packed[0] = 'z';
    FILE *f = fopen(path, "wb");
    fuzz_expect(f && compress2(packed + 1, &length, byte, size, 9) == Z_OK, path);
    fuzz_expect(fwrite(packed, 1, 1 + length, f) == 1 + length && fclose(f) == 0, path);
}

static const char *store_whole(const char *name, const uint8_t *packed, size_t size) {
    static uint8_t byte[WHOLE_MOST];
    uLongf length = WHOLE_MOST;
    return fuzz_store(name, byte, uncompress(byte, &length, packed, size) == Z_OK ? length : 0);
}

const char *fuzz_image_store(const fuzz_image *m, const char *name, const uint8_t *data,
                             size_t size) {
    if (size > 0 && data[0] == 'f') return fuzz_store(name, data + 1, size - 1);
    if (size > 0 && data[0] == 'z') return store_whole(name, data + 1, size - 1);
    size_t left = m->size;
    uint8_t *byte = malloc(m->size);
    fuzz_expect(byte != NULL, "no memory");
    memcpy(byte, m->byte, m->size);
    if (size > 2 && data[0] == 't')
        left = m->size * ((size_t)data[1] << 8 | data[2]) / 65536;
    else
        for (size_t i = 1; i + CHANGE <= size; i += CHANGE)
            byte[place_of(m, data + i)] = data[i + CHANGE - 1];
    if (size > 0 && data[0] == 'r') repair(m, byte);
    keep_whole(byte, left);
    const char *path = fuzz_store(name, byte, left);
    free(byte);
    return path;
}

/* -- a run */

enum { SITES = 2, WIDTH = 3, STEPS = 6 };

static void put_step(sr_recorder *r, int64_t step, int own) {
    const double value[WIDTH] = {1, 2, 3 + (double)step}, singular[WIDTH] = {value[2], 2, 1};
    const double *const spectrum[SR_SPECTRUM_COUNT] = {singular, singular};
    sr_begin_step(r, step);
    for (int site = 0; site < SITES; site++) {
        sr_put_rows(r, site, 7);
        for (int v = 0; v < SR_VECTOR_COUNT; v++) sr_put_vector(r, site, (sr_vector)v, value);
        sr_put_spectrum(r, site, 7, spectrum);
    }
    sr_put_scalar(r, 0, own, 1);
    sr_end_step(r, &SR_INIT(sr_step, .update = step, .tokens = 9, .loss = 1, .lr = 1));
    sr_put_singular_values(r, "embedding", step, singular);
    sr_begin_eval(r, step, 0.5);
    sr_put_metric(r, "f1", 1);
    sr_end_eval(r);
}

static void write_run(const char *path) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.program = "fuzz", o.host = "host", o.model = "model", o.data = "data", o.task = "images";
    o.config = "batch-size = 4\nlr = 0.1\n";
    o.force = o.spectra = o.final = true, o.planned_steps = STEPS, o.overhead = 0, o.started = 1e9;
    o.vectors_every = 1;
    sr_recorder *r = sr_create(path, &o, &why);
    fuzz_expect(r != NULL, why.text);
    sr_add_site(r, &SR_INIT(sr_site, .name = "stem", .norm = "bn", .family = SR_FAMILY_SIGMA,
                            .width = WIDTH, .eps = 1e-5, .alpha = 0.9));
    sr_add_site(r, &SR_INIT(sr_site, .name = "top", .norm = "pn", .family = SR_FAMILY_PN,
                            .width = WIDTH, .depth = 1, .eps = 1e-5, .alpha = 0.9));
    sr_add_embedding(r, "embedding", WIDTH, WIDTH);
    sr_add_metric(r, "f1", "percent", "F1", SR_BETTER_MORE);
    const int own = sr_declare_scalar(r, "own", "1", "of the host's", SR_PER_SITE);
    for (int64_t step = 1; step <= STEPS; step++) put_step(r, step, own);
    const double final[SITES] = {1, 2};
    const double *finals[SR_FINAL_COUNT];
    for (int i = 0; i < SR_FINAL_COUNT; i++) finals[i] = final;
    sr_put_final(r, 3, finals);
    const sr_status closed = sr_close(r, &SR_INIT(sr_finish, .status = "complete"), &why);
    fuzz_expect(closed == SR_OK, why.text);
}

const fuzz_image *fuzz_run_image(void) {
    static const fuzz_image *image;
    if (image) return image;
    write_run(fuzz_path("base.h5"));
    return image = fuzz_image_load(fuzz_path("base.h5"));
}

/* -- a checkpoint */

const fuzz_image *fuzz_checkpoint_image(void) {
    static const fuzz_image *image;
    static train_config c;
    static char *words[] = {"statrec",
                            "train",
                            "--model",
                            "transformer",
                            "--preset",
                            "mini",
                            "--embed-dim",
                            "4",
                            "--ffn-dim",
                            "4",
                            "--heads",
                            "1",
                            "--encoder-layers",
                            "1",
                            "--decoder-layers",
                            "1",
                            "--data",
                            "synth-pairs",
                            "--limit",
                            "20",
                            "--max-tokens",
                            "64",
                            "--threads",
                            "1",
                            "--record",
                            "none",
                            "--quiet",
                            "--max-steps",
                            "1",
                            "--checkpoint-every",
                            "1",
                            "--checkpoint",
                            NULL,
                            NULL};
    sr_failure why = {0};
    train_result result;
    int positional, argc = sizeof words / sizeof *words - 1;
    if (image) return image;
    words[argc - 1] = (char *)fuzz_path("base");
    fuzz_expect(train_config_parse(&c, argc, words, 2, &positional, &why) == SR_OK, why.text);
    fuzz_expect(train_run(&c, "fuzz", NULL, &(train_events){0}, &result, &why) == SR_OK, why.text);
    return image = fuzz_image_load(fuzz_path("base-0000001.ckpt"));
}
