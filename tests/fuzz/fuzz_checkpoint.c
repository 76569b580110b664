/* A checkpoint: its card, and the model in it.
 * Readers: src/train/checkpoint/checkpoint_info.c src/train/checkpoint/state.c
 *   src/train/checkpoint/weights.c src/train/loaded_model.c src/hdf5/array_file.c */
#include "fuzz_hdf5.h"
#include "train/loaded_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static loaded_model t;
    sr_failure why = {0};
    bool weights_only;
    checkpoint_card card = {0};
    const loaded_model_options o = {.data_dir = "", .threads = 1};
    const char *path = fuzz_image_store(fuzz_checkpoint_image(), "x.ckpt", data, size);
    sr_status status = checkpoint_info_read(path, &card, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    checkpoint_info_free(&card);
    why = (sr_failure){0};
    t = (loaded_model){0};
    status = loaded_model_open(&t, path, &o, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    if (status == SR_OK) {
        status = weights_read(t.model, path, &why);
        fuzz_expect_reason(status != SR_OK, &why);
    }
    loaded_model_close(&t);
    why = (sr_failure){0};
    status = loaded_model_check(path, &weights_only, &why);
    fuzz_expect_reason(status != SR_OK, &why);
    return 0;
}
