/* Weights from other sources: entries of an archive (a line with the name, then the bytes of
 * NAME.npy) between lines "%%%%", loaded into a tiny model. The archive is valid and has each
 * weight of the model. The input's entries replace weights; an entry without bytes removes one.
 * Readers: src/train/checkpoint/weights.c */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "fuzz_hdf5.h"
#include "train/loaded_model.h"

static bool add_entry(zip_t *z, fuzz_part part) {
    const uint8_t *end = memchr(part.byte, '\n', part.size);
    char name[64] = "x.npy";
    if (!end) return true;
    const size_t length = (size_t)(end - part.byte);
    if (length > 0 && length < sizeof name) {
        memcpy(name, part.byte, length);
        name[length] = 0;
    }
    const zip_int64_t known = zip_name_locate(z, name, 0);
    if (end + 1 == part.byte + part.size)
        return known < 0 || zip_delete(z, (zip_uint64_t)known) == 0;
    zip_source_t *s = zip_source_buffer(z, end + 1, part.size - length - 1, 0);
    const zip_int64_t at = s ? zip_file_add(z, name, s, ZIP_FL_OVERWRITE | ZIP_FL_ENC_GUESS) : -1;
    if (s && at < 0) zip_source_free(s);
    return at < 0 || zip_set_file_compression(z, (zip_uint64_t)at, ZIP_CM_STORE, 0) == 0;
}

static const char *make_archive(model *m, const uint8_t *data, size_t size) {
    sr_failure why = {0};
    fuzz_part part[FUZZ_PARTS];
    int error = 0;
    const char *path = fuzz_path("w.npz");
    const int parts = fuzz_split(data, size, part);
    fuzz_expect(weights_write_npz(m, path, true, &why) == SR_OK, why.text);
    zip_t *z = zip_open(path, 0, &error);
    fuzz_expect(z != NULL, "no archive");
    for (int i = 0; i < parts; i++) fuzz_expect(add_entry(z, part[i]), "no entry");
    if (zip_close(z) != 0) zip_discard(z);
    return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static model *m;
    sr_failure why = {0};
    if (!m) {
        model_options o = {0};
        train_config c;
        options_set_defaults(train_options(), &c);
        o = c.model;
        strcpy(o.name, "mlp_parser");
        o.embed_dim = o.hidden_dim = 1;
        const data_shape shape = {.task = TASK_TREES, .classes = 3, .vocabulary = 6, .pos_tags = 5};
        m = model_create(&o, &shape, &why);
        fuzz_expect(m != NULL, why.text);
    }
    why = (sr_failure){0};
    unlink(fuzz_path("w.npz"));
    fuzz_expect_reason(weights_read(m, make_archive(m, data, size), &why) != SR_OK, &why);
    return 0;
}
